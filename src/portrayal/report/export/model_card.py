"""A section for a model card on a hub: its numbers as metadata, and a text with their meaning and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from portrayal.files import write_text
from portrayal.report.cards import metric_cards
from portrayal.report.export.citation import bibtex
from portrayal.report.export.front_matter import front_matter
from portrayal.report.export.slugs import slug, slugs
from portrayal.report.tables.by_term import GROUPS_SUBTITLE
from portrayal.report.tables.layout import footnotes, is_too_few, make_tables, settings_text
from portrayal.report.tables.markdown import code_block, escape, paragraph, table_lines
from portrayal.report.tables.table import SUMMARY, Table
from portrayal.results import HUMAN, TOO_FEW, Measurement, Results

CARD_FILE = "model-card.md"
MAX_ROWS = 24  # rows of a table; a card is an overview
TASK = {"type": "image-to-text", "name": "Portrayal of people"}


def write_cards(results: Results, folder: Path) -> list[Path]:
    """Write a model card for each system; human captions have none. Returns the paths."""
    systems = audited_systems(results)
    files = [CARD_FILE] if len(systems) == 1 else [f"model-card-{name}.md" for name in slugs(systems)]
    written = []
    for system, file in zip(systems, files, strict=True):
        write_text(folder / file, model_card(results, system))
        written.append(folder / file)
    return written


def audited_systems(results: Results) -> list[str]:
    return list(dict.fromkeys(m.system for m in results.measurements if m.system not in (None, HUMAN)))


def model_card(results: Results, system: str) -> str:
    return _ModelCard.of(results, system).text()


@dataclass(frozen=True)
class _ModelCard:
    results: Results  # of the system and of human captions
    system: str
    tables: Sequence[Table]  # the overall numbers
    cards: Mapping[str, Any]
    study: Mapping[str, Any]

    @classmethod
    def of(cls, results: Results, system: str) -> _ModelCard:
        measurements = tuple(m for m in results.measurements if m.system in (system, HUMAN))
        own = replace(results, measurements=measurements)
        used = dict.fromkeys(m.metric for m in measurements if m.system == system)
        cards = metric_cards(results)
        study = results.provenance.get("study")
        return cls(
            own,
            system,
            [table for table in map(_overview, make_tables(own)) if table.rows and table.metric in used],
            {name: cards.get(name, {}) for name in used},
            study if isinstance(study, Mapping) else {},
        )

    def text(self) -> str:
        parts = [
            ["## Bias and fairness evaluation", ""],
            self._introduction(),
            self._measured(),
            self._numbers(),
            self._caveats(),
            self._skipped(),
            self._reproduction(),
            ["### Citation", "", *code_block(bibtex(self.results, self.cards), "bibtex"), ""],
        ]
        return front_matter(self.metadata()) + "\n" + "\n".join(line for part in parts for line in part)

    def metadata(self) -> dict[str, Any]:
        """The metadata of the hub, without undefined numbers and those on too few images, which must not be ranked."""
        name = str(self.study.get("name") or "study")
        dataset = {"type": slug(name), "name": name}
        if self.study.get("digest"):
            dataset["revision"] = str(self.study["digest"])
        evaluation = {
            "task": TASK,
            "dataset": dataset,
            "metrics": [_metric(m) for m in self.headlines() if m.value is not None and not is_too_few(m)],
        }
        return {"model-index": [{"name": self.system, "results": [evaluation]}]}

    def headlines(self) -> list[Measurement]:
        """The system's numbers about all people, each once."""
        measurements = [
            m for table in self.tables for row in table.rows[:MAX_ROWS] for m in row.cells.values()
        ]
        return list({m.id: m for m in measurements if m.system == self.system and m.group is None}.values())

    def _introduction(self) -> list[str]:
        origin, study = self.results.provenance, self.study
        counts = [
            f"{study[name]:,} {name}"
            for name in ("images", "captions", "references", "instances")
            if isinstance(study.get(name), int) and study[name]
        ]
        version = escape(str(origin.get("version") or "(version unknown)"))
        name = escape(str(study.get("name") or "a study without a name"))
        lines = [
            f"{paragraph(self.system)} was measured with Portrayal {version} on {name}"
            + (f": {', '.join(counts)}." if counts else "."),
            "Numbers have 95 % CIs in brackets where there are any. They say what was measured on this data; they do "
            "not say that a model is fair.",
            "",
        ]
        groups = study.get("groups")
        for attribute, sizes in (groups if isinstance(groups, Mapping) else {}).items():
            if isinstance(sizes, Mapping) and sizes:
                sizes_text = ", ".join(f"{group} {size}" for group, size in sizes.items())
                lines.append(f"- Images by {escape(str(attribute))}: {escape(sizes_text)}.")
        left_out = study.get("left_out")
        if isinstance(left_out, int) and left_out:
            lines.append(f"- Left out because they could not be used: {left_out:,}.")
        return [*lines, *([""] if lines[-1] else [])]

    def _measured(self) -> list[str]:
        lines = ["### What was measured", ""]
        for name, card in self.cards.items():
            description = ". ".join(
                str(card[part]).rstrip(".") for part in ("title", "question") if card.get(part)
            )
            end = "" if not description or description.endswith("?") else "."
            lines.append(f"- **{escape(name)}**" + (f": {escape(description)}{end}" if description else ""))
        return [*lines, ""]

    def _numbers(self) -> list[str]:
        lines = ["### Numbers", ""]
        measurements = [m for m in self.results.measurements if m.system == self.system]
        undefined, too_few = sum(m.value is None for m in measurements), sum(map(is_too_few, measurements))
        lines += [
            f"Numbers about this model: {len(measurements):,}. Undefined: {undefined:,} (a dash; the reason is "
            f"below its table). Resting on fewer than {TOO_FEW} images: {too_few:,} (†). Neither kind is in the "
            "metadata. "
            "Shown are the terms with a better end, without single words, objects and concepts, which are in the "
            "results.",
            "",
        ]
        for table in self.tables:
            shown = replace(table, rows=table.rows[:MAX_ROWS])
            lines += [
                f"#### {escape(table.heading)}",
                "",
                *table_lines(shown, keep_second_column=False),
            ]
            if len(table.rows) > MAX_ROWS:
                lines += [f"{len(table.rows) - MAX_ROWS:,} more lines are in the results.", ""]
            settings = [f"Settings: {settings_text(table.settings)}."] if table.settings else []
            for note in (*table.notes, *footnotes(shown.rows), *settings):
                lines += [paragraph(note), ""]
        return lines

    def _caveats(self) -> list[str]:
        lines = [
            f"- {escape(name)}: {escape(str(caveat))}"
            for name, card in self.cards.items()
            for caveat in card.get("caveats") or ()
        ]
        return ["### What the numbers cannot say", "", *lines, ""] if lines else []

    def _skipped(self) -> list[str]:
        skipped = self.results.provenance.get("skipped")
        lines = [
            f"- {' by '.join(escape(str(skip[name])) for name in ('metric', 'attribute') if skip.get(name))}: "
            f"{escape(str(skip.get('reason')))}"
            for skip in (skipped if isinstance(skipped, list | tuple) else ())
            if isinstance(skip, Mapping)
        ]
        return ["### What was not measured", "", *lines, ""] if lines else []

    def _reproduction(self) -> list[str]:
        origin = self.results.provenance
        values = {
            "Portrayal": origin.get("version"),
            "seed": origin.get("seed"),
            "study": self.study.get("name"),
            "digest of the study": self.study.get("digest"),
            "measured": origin.get("started"),
        }
        lines = [f"- {name}: {escape(str(value))}" for name, value in values.items() if value is not None]
        command = str(origin.get("command") or "")
        command_lines = ["", *code_block(command, "sh")] if command else []
        return ["### How to reproduce", "", *lines, *command_lines, ""]


def _overview(table: Table) -> Table:
    """A table without items, and with the terms that have a direction if there are any."""
    if table.by_term and table.subtitle not in (SUMMARY, GROUPS_SUBTITLE):
        return replace(table, rows=[])
    rows = [row for row in table.rows if row.item is None]
    if table.by_term:
        directed = [row for row in rows if any(m.better is not None for m in row.cells.values())]
        return replace(table, rows=directed or rows)
    directed_terms = {term for row in rows for term, m in row.cells.items() if m.better is not None}
    terms = [term for term in table.columns if term in directed_terms] or table.columns
    cells = [{term: m for term, m in row.cells.items() if term in terms} for row in rows]
    kept = [replace(row, cells=directed) for row, directed in zip(rows, cells, strict=True) if directed]
    return replace(table, rows=kept, columns=terms)


def _metric(m: Measurement) -> dict[str, Any]:
    by = f" by {m.attribute}" if m.attribute else ""
    values = {
        "term": m.term,
        "attribute": m.attribute,
        "unit": m.unit,
        "low": m.low,
        "high": m.high,
        "n": m.n,
    }
    return {
        "type": m.metric,
        "value": m.value,
        "name": f"{m.metric}: {m.term}{by}",
        "args": {name: value for name, value in values.items() if value is not None}
        | {"settings": dict(m.settings)},
        "verified": False,
    }
