"""The HTML view of a study in a notebook."""

from __future__ import annotations

import polars as pl

from portrayal.errors import counted
from portrayal.notebook_html import MAX_ROWS, render_view
from portrayal.results import HUMAN
from portrayal.study.study import Study, groups_text

_VIEW = """
<p>Study <b>{{ study.name }}</b>: {{ study.image_ids.len() | counted("image") }}.</p>
{% if sources %}
<div class="scroll"><table>
<thead><tr><th scope="col">system</th><th scope="col" class="n">captions</th>
<th scope="col" class="n">images</th></tr></thead>
<tbody>
{% for source in sources %}
<tr><td>{{ source.name }}</td><td class="n">{{ "{:,}".format(source.captions) }}</td>
<td class="n">{{ "{:,}".format(source.images) }}</td></tr>
{% endfor %}
</tbody>
</table></div>
{% endif %}
{% if hidden %}<p class="note">{{ hidden | counted("more system") }}: .systems.</p>{% endif %}
{% for attribute in study.attribute_names %}
<p><b>{{ attribute }}</b>: {{ groups_text(study, attribute) }}.</p>
{% endfor %}
{% if other_tables %}<p>{{ other_tables | join(", ") }}.</p>{% endif %}
{% if study.left_out %}<p class="note">{{ study.left_out | counted("bad row", "was") }} left out.</p>{% endif %}
"""


def study_html(study: Study) -> str:
    """The HTML view of a study: its systems, and the groups of its attributes."""
    sources = _sources(study)
    values = {
        "study": study,
        "sources": sources[:MAX_ROWS],
        "hidden": len(sources) - len(sources[:MAX_ROWS]),
        "other_tables": _other_tables(study),
        "groups_text": groups_text,
    }
    return render_view(_VIEW, values)


def _sources(study: Study) -> list[dict[str, object]]:
    """The captions and captioned images of each system, then of humans."""
    captions = [(system, study.captions.filter(pl.col("system") == system)) for system in study.systems]
    if study.references.height:
        captions.append((HUMAN, study.references))
    return [
        {"name": name, "captions": table.height, "images": table["image_id"].n_unique()}
        for name, table in captions
    ]


def _other_tables(study: Study) -> list[str]:
    """What the study has besides captions and attributes, in a few words each."""
    labels = study.objects["label"].count()
    contents = {
        counted(labels, "object label"): labels,
        counted(study.rankings.height, "ranked item"): study.rankings.height,
        counted(study.people.height, "person label"): study.people.height,
        counted(len(study.image_files), "image file"): len(study.image_files),
    }
    return [text for text, present in contents.items() if present]
