"""Exports for papers and model cards: the numbers equal the results, and names are escaped."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import example, given
from hypothesis import strategies as st

import portrayal
from portrayal.lab import make_study
from portrayal.report.export import citation
from portrayal.report.export.chart_files import standalone_charts, write_charts
from portrayal.report.export.exports import resolve_exports, write_exports
from portrayal.report.export.front_matter import front_matter
from portrayal.report.export.model_card import model_card, write_cards
from portrayal.report.export.slugs import MAX_LENGTH, slugs
from portrayal.report.export.table_files import file_names, write_tables
from portrayal.report.tables.latex import escape
from portrayal.report.tables.layout import is_too_few, make_tables
from portrayal.report.tables.markdown import code_block, paragraph
from portrayal.results import Measurement, Results
from tests.report.latex_reader import read_table, read_text

ROOT = Path(__file__).parent.parent.parent
EVIL = "[a_b] & 50% <script>`x` {$#~^\\|"  # markup and all special characters of LaTeX
CARD = {
    "title": "Naming",
    "question": "How often?",
    "caveats": ["It counts words | not people."],
    "paper": "A & B, 100 % of {it}, 2018.",
}


def measurement(term: str, value: float | None = None, **fields) -> Measurement:
    fields = {
        "system": EVIL,
        "attribute": "gender",
        "unit": "share",
        "n": 400,
        "settings": {"split": "a_b"},
    } | fields
    return Measurement("error", term, value=value, **fields)


SMALL = Results(
    (
        measurement("wrong", 0.25, low=0.2, high=0.3, better="lower", p=0.01, q=0.02),
        measurement("gap", -0.5, low=-0.6, high=-0.4, better="closer", ideal=0.0),
        measurement("wrong", 1e-07, group="x", n=2, reason="too few: 2 images", better="lower"),
        measurement("gap", None, group="x", n=0, reason="nobody is {x}", better="closer"),
    ),
    provenance={
        "version": "0.1.0",
        "command": "portrayal audit s ```",
        "seed": 7,
        "study": {"name": "my: study", "digest": "abc123", "images": 400, "groups": {"gender": {"x": 2}}},
        "cards": {"error": CARD},
        "skipped": [{"metric": "lic", "attribute": None, "reason": "no captions"}],
    },
)  # fmt: skip


def test_a_table_in_latex(tmp_path):
    write_tables(SMALL, tmp_path)
    system = (
        "{}[a\\_b] \\& 50\\% \\textless{}script\\textgreater{}{`}x{`} "
        "\\textbraceleft{}\\$\\#\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\textbar{}"
    )
    assert (tmp_path / "error-gender.tex").read_text() == "\n".join(
        [
            "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}.",
            "\\begin{table}[t]",
            "\\centering",
            "\\caption{Naming by gender}",
            "\\label{tab:error-gender}",
            "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
            "\\begin{tabular}{@{}llrrr@{}}",
            "\\toprule",
            "system & group & wrong & gap & n \\\\",
            "\\midrule",
            f"{system} & all & 0.250 [0.200, 0.300] & "
            "\\ensuremath{-}0.500 [\\ensuremath{-}0.600, \\ensuremath{-}0.400] & 400 \\\\",
            f"{system} & x & 1.0e-07\\dag{{}} & -- & 2 \\\\",
            "\\bottomrule",
            "\\end{tabular}%",
            "}",
            "\\par\\smallskip",
            "{\\footnotesize\\raggedright",
            f"Undefined, nobody is \\textbraceleft{{}}x\\textbraceright{{}}: {system.removeprefix('{}')} x gap.\\par",
            f"\\dag{{}} Rests on fewer than 30 images: too few to rank (wrong {system.removeprefix('{}')} x 2).\\par",
            "Settings: split a\\_b.\\par",
            "}",
            "\\end{table}",
            "",
        ]
    )
    table = read_table((tmp_path / "error-gender.tex").read_text())
    assert [row[0] for row in table.rows] == [EVIL, EVIL]


def test_csv_table_has_full_precision(tmp_path):
    write_tables(SMALL, tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "error-gender.csv").read_text())))
    assert [row["term"] for row in rows] == ["wrong", "gap", "wrong", "gap"]
    for row, m in zip(rows, SMALL.measurements, strict=True):
        for name in ("value", "low", "high", "p", "q", "n", "ideal"):
            assert row[name] == ("" if getattr(m, name) is None else str(getattr(m, name)))
        assert (row["system"], row["unit"], row["reason"]) == (EVIL, "share", m.reason or "")
        assert row["setting:split"] == "a_b"


def test_a_table_in_markdown(tmp_path):
    write_tables(SMALL, tmp_path)
    system = "\\[a\\_b] & 50% \\<script>\\`x\\` {$#~^\\\\\\|"
    assert (tmp_path / "error-gender.md").read_text() == (
        "**Naming by gender**\n\n"
        "| system | group | wrong | gap | n |\n"
        "| --- | --- | --- | --- | --- |\n"
        f"| {system} | all | 0.250 \\[0.200, 0.300] | -0.500 \\[-0.600, -0.400] | 400 |\n"
        f"| {system} | x | 1.0e-07† | – | 2 |\n\n"
        f"Undefined, nobody is {{x}}: {system} x gap.\n\n"
        f"† Rests on fewer than 30 images: too few to rank (wrong {system} x 2).\n\n"
        "Settings: split a\\_b.\n"
    )


def card_metadata(card: str) -> dict:
    _, header, _ = card.split("---\n", 2)
    return yaml.safe_load(header)


def test_a_card_has_the_numbers_of_the_results():
    card = model_card(SMALL, EVIL)
    model, (wrong, gap) = model_index_to_eval_results(card_metadata(card)["model-index"])
    assert model == EVIL
    assert (wrong.task_type, wrong.dataset_type, wrong.dataset_name) == (
        "image-to-text",
        "my-study",
        "my: study",
    )
    assert wrong.dataset_revision == "abc123"
    assert (wrong.metric_type, wrong.metric_value, wrong.metric_name) == (
        "error",
        0.25,
        "error: wrong by gender",
    )
    assert wrong.metric_args == {
        "term": "wrong", "attribute": "gender", "unit": "share", "low": 0.2, "high": 0.3, "n": 400,
        "settings": {"split": "a_b"},
    }  # fmt: skip
    assert (gap.metric_value, gap.verified) == (-0.5, False)


def test_card_lists_undefined_numbers_and_the_command():
    card = model_card(SMALL, EVIL)
    assert "Numbers about this model: 4. Undefined: 1 (a dash; the reason is below its table). " in card
    assert "Resting on fewer than 30 images: 1 (†). Neither kind is in the metadata." in card
    assert "Undefined, nobody is {x}: " in card
    assert "- error: It counts words \\| not people." in card
    assert "- lic: no captions" in card
    assert "````sh\nportrayal audit s ```\n````" in card
    for line in (
        "- Portrayal: 0.1.0",
        "- seed: 7",
        "- digest of the study: abc123",
        "- Images by gender: x 2.",
    ):
        assert line in card.splitlines()
    assert "note = {A \\& B, 100 \\% of \\textbraceleft{}it\\textbraceright{}, 2018.}" in card
    assert "<script>" not in card.split("---\n", 2)[2].replace("\\<script>", "")


def test_a_card_for_each_system(tmp_path):
    (card_path,) = write_cards(SMALL, tmp_path)
    assert card_path.name == "model-card.md"
    names = ("Über/../x", "uber x", "human", "con")
    measurements = tuple(replace(SMALL.measurements[0], system=name, id="") for name in names)
    files = [path.name for path in write_cards(replace(SMALL, measurements=measurements), tmp_path)]
    assert len(files) == len(set(files)) == 3
    assert re.fullmatch(r"model-card-uber-x-[0-9a-f]{8}\.md", files[0])
    assert files[2] == "model-card-x-con.md"
    assert write_cards(Results((replace(measurements[2], id=""),)), tmp_path) == []


def test_results_of_other_programs_have_a_card():
    card = model_card(Results((Measurement("m", "t", system="s", value=1.0),)), "s")
    assert card_metadata(card)["model-index"][0]["results"][0]["metrics"][0]["value"] == 1.0
    provenance = {"cards": {"m": 3}, "study": "x", "skipped": "y", "version": 4}
    assert "## Bias" in model_card(
        Results((Measurement("m", "t", system="s", value=1.0),), provenance=provenance), "s"
    )


def test_citation_matches_the_citation_file():
    citation_file = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation_file["title"] == citation.TITLE
    assert tuple(author["name"] for author in citation_file["authors"]) == citation.AUTHORS
    assert citation.software_entry(citation_file["version"]) == (
        "@misc{portrayal,\n"
        f"  title = {{{{{citation.TITLE}}}}},\n"
        "  author = {{The Portrayal authors}},\n"
        f"  note = {{Version {portrayal.__version__}}},\n"
        "}\n"
    )


def test_each_paper_of_a_used_metric_is_cited_once():
    cards = {"error": {"paper": "P"}, "lic": {"paper": "P"}, "harms": {"paper": "Q, 王"}, "none": {}}
    assert [re.findall(r"\w+ = .*", entry) for entry in citation.paper_entries(cards)] == [
        ["key = {error},", "note = {P},"],
        ["key = {harms},", "note = {Q, 王},"],
    ]
    used = Results((Measurement("harms", "t", value=1.0),), provenance={"cards": cards})
    assert citation.bibtex(used).count("@misc") == 2
    assert "note = {P}" not in citation.bibtex(used)


def expected_text(text: str) -> str:
    """Returns the text as LaTeX prints it: NFC, plain quotes, no control characters."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    printable = unicodedata.normalize("NFC", printable)
    return printable.translate(str.maketrans({"’": "'", "‘": "`", "”": '"'}))


TEXTS = st.text(st.one_of(st.sampled_from("&%$#_{}~^\\<>|\"`'’-–—,[]*!?\n\0†é̈ßŁ王😀"), st.characters()))


@given(TEXTS)
@example("a--b---c-–d")
@example("''a,,b’'``?`")
@example("é e\u0301 ấ ﷺ 👩‍👩‍👧 \u202e")
def test_latex_escaping_is_lossless(text):
    assert read_text(escape(text)) == expected_text(text)


@given(st.lists(st.text(max_size=8) | st.sampled_from(["a b", "a-b", "A.B", "", "nul", "x" * 200])))
def test_slugs_are_safe_unique_and_stable(titles):
    names = slugs(titles)
    assert len(set(names)) == len(titles)
    assert names == slugs(titles)
    for name in names:
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name)
        assert len(name) <= MAX_LENGTH + 4
        assert name not in ("nul", "con", "aux")
    if len(set(titles)) == len(titles):  # the order does not matter
        assert dict(zip(titles, names, strict=True)) == dict(
            zip(titles[::-1], slugs(titles[::-1]), strict=True)
        )


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=12)


@given(st.dictionaries(TEXTS | st.sampled_from(["on", "no", "n", "null"]), VALUES, min_size=1))
def test_front_matter_round_trip(values):
    text = front_matter(values)
    assert text.startswith("---\n")
    assert text.endswith("\n---\n")
    yaml_text = text.removeprefix("---\n").removesuffix("---\n")
    assert "---" not in yaml_text.splitlines()
    assert yaml.safe_load(yaml_text) == values


def test_markdown_markers_at_line_starts_are_escaped():
    lines = ["# a", "- a", "1. a", "+ a", "> a", "a - b"]
    assert [paragraph(text) for text in lines] == ["\\# a", "\\- a", "1\\. a", "\\+ a", "\\> a", "a - b"]
    assert code_block("a ``` b") == ["````", "a ``` b", "````"]


@pytest.fixture(scope="module")
def audit_results() -> Results:
    metrics = ["error", "naming-ratio", "word-odds", "cooccurrence", "lic", "quality", "harms"]
    return portrayal.audit(make_study(scenes=60), metrics=metrics, quick=True)


def test_every_table_of_an_audit(audit_results, tmp_path):
    tables = make_tables(audit_results)
    written_names = {path.name for path in write_tables(audit_results, tmp_path)}
    assert written_names == {
        f"{name}.{suffix}" for name in file_names(tables) for suffix in ("csv", "md", "tex")
    }
    assert len(written_names) == 3 * len(tables)
    assert {path.name for path in tmp_path.iterdir()} == written_names
    ids = set()
    for name, section in zip(file_names(tables), tables, strict=True):
        table = read_table((tmp_path / f"{name}.tex").read_text())
        assert table.label == name
        assert table.head[-1] == "n"
        n_lines = (tmp_path / f"{name}.md").read_text().count("\n|")
        assert n_lines == len(table.rows) + 2
        rows = list(csv.DictReader(io.StringIO((tmp_path / f"{name}.csv").read_text())))
        assert len(rows) == len({row["id"] for row in rows}) >= len(section.rows)
        ids |= {row["id"] for row in rows}
        if len(table.rows) < len(section.rows):
            assert f"{len(section.rows) - len(table.rows):,} more rows are in {name}.csv." in table.notes
    assert ids == {m.id for m in audit_results.measurements}


def test_cards_of_an_audit(audit_results, tmp_path):
    files = write_cards(audit_results, tmp_path)
    assert [path.name for path in files] == [
        f"model-card-{system}.md" for system in ("faithful", "stereotyping", "cautious")
    ]
    measurements_by_key = {}
    for m in audit_results.measurements:
        measurements_by_key[m.system, m.metric, m.term, m.attribute, m.unit, m.n, m.value, m.low, m.high] = m
    for path in files:
        card = path.read_text()
        model, eval_results = model_index_to_eval_results(card_metadata(card)["model-index"])
        assert len(eval_results) > 20
        for eval_result in eval_results:
            key = [eval_result.metric_args.get(name) for name in ("term", "attribute", "unit", "n")]
            interval = [eval_result.metric_args.get(name) for name in ("low", "high")]
            m = measurements_by_key[
                (model, eval_result.metric_type, *key, eval_result.metric_value, *interval)
            ]
            assert not is_too_few(m)
            assert eval_result.dataset_revision == audit_results.provenance["study"]["digest"]
            assert eval_result.metric_args["settings"] == json.loads(json.dumps(m.settings))
        assert "| human |" in card  # human captions next to the model
        for other in {"faithful", "stereotyping", "cautious"} - {model}:
            assert f"| {other} |" not in card


def test_every_chart_of_an_audit(audit_results, tmp_path):
    name = "<script>alert(1)</script>\x01 & {x}"
    renamed = [replace(m, system=name) if m.system == "faithful" else m for m in audit_results.measurements]
    results = replace(audit_results, measurements=tuple(renamed))
    charts = standalone_charts(results)
    titles = [chart.title for chart in charts]
    assert titles[0] == "Naming the person's group by gender"
    assert "lic against cider, by gender · crossfit" in titles
    paths = write_charts(results, tmp_path)
    assert len(paths) == 3 * len(charts)
    for path in paths:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        elif path.suffix == ".svg":
            text = path.read_text()
            assert text.startswith("<svg")
            assert "<script" not in text
            svg = ElementTree.fromstring(text)
            assert any("<script>alert(1)</script>" in element_text for element_text in svg.itertext())
        else:
            spec = json.loads(path.read_text())
            assert spec["$schema"].endswith("vega-lite/v5.json")
            lines = spec["title"]["text"]
            assert " ".join(lines).split(":")[0] in spec["description"]
            assert max(map(len, lines)) <= 50  # longer lines would be cut off


def test_charts_of_concepts(tmp_path):
    rows = [
        Measurement(
            "counterbias", term, system=system, attribute="gender", item=item, value=value, unit="percent",
            settings={"attack": "pgd", "groups": ["male", "female"], "kind": "activity", "template": "all"},
        )
        for system in ("one", "two")
        for item, value in (("<b>fishing</b>", 12.0), ("sewing", -9.0), ("a\nb", 3.0))
        for term in ("b@v-l", "b@v", "b@l", "b@text")
    ]  # fmt: skip
    cards = {"counterbias": {"layout": "concepts"}}
    results = Results(tuple(rows), provenance={"stereotypes": {"sewing": "female"}, "cards": cards})
    charts = standalone_charts(results)
    assert charts[0].title == "activity · gender · Bias of each concept · one"
    assert len({chart.title for chart in charts}) == len(charts)
    svg_path = write_charts(results, tmp_path)[0]
    assert svg_path.name == "activity-gender-bias-of-each-concept-one.svg"
    assert "<b>" not in svg_path.read_text()
    assert "<b>fishing</b>" in "".join(ElementTree.fromstring(svg_path.read_text()).itertext())


def test_names_of_exports(tmp_path):
    assert resolve_exports(["card", "all"]) == ["card", "tables", "charts"]
    assert resolve_exports([]) == []
    with pytest.raises(
        portrayal.errors.PortrayalError, match=r"Unknown export 'cards'. Did you mean 'card'\?"
    ):
        resolve_exports(["cards"])
    written = write_exports(SMALL, tmp_path, ["all"])
    assert {name: len(files) for name, files in written.items()} == {"tables": 3, "charts": 3, "card": 1}
