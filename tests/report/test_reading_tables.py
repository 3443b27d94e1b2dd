"""Notes next to numbers on a page: n of a dagger, the group of an overall ratio, and charts left out."""

from __future__ import annotations

import polars as pl

import portrayal
from portrayal.metrics import CARDS
from portrayal.report.charts.intervals import interval_chart
from portrayal.report.page.page import render
from portrayal.report.tables.layout import footnotes, make_tables
from portrayal.results import Measurement, Results


def row(term, value, n, group=None, **overrides):
    fields = {"system": "oscar", "attribute": "gender", "unit": "share", "low": 0.0, "high": 0.2}
    return Measurement("error", term, value=value, n=n, group=group, **{**fields, **overrides})


def test_dagger_note_has_the_n_of_its_cell():
    too_few = {"reason": "too few: 24 images, fewer than 30"}
    (section,) = make_tables(
        Results((row("right", 0.5, 69, "female"), row("error", 0.1, 24, "female", **too_few)))
    )
    assert section.rows[0].n == "69"
    assert footnotes(section.rows) == [
        "† Rests on fewer than 30 images: too few to rank (error oscar female 24)."
    ]


def test_a_long_list_of_daggers_is_cut_and_counted():
    too_few = {"reason": "too few: 9 images, fewer than 30"}
    rows = tuple(row("error", 0.1, 9, f"g{number}", **too_few) for number in range(12))
    (section,) = make_tables(Results(rows))
    assert footnotes(section.rows)[0].endswith("g7 9; 4 more).")


def test_panel_of_zeros_is_not_drawn():
    values_by_term = {"right": (0.5, 0.4), "wrong": (0.0, 0.0)}
    rows = tuple(
        row(term, value, 99, group)
        for term in values_by_term
        for group, value in zip("ab", values_by_term[term], strict=True)
    )
    (section,) = make_tables(Results(rows))
    chart = interval_chart(section, ["oscar"])
    assert [panel.name for panel in chart.panels] == ["right"]
    assert "Not drawn, since all its numbers are 0: wrong." in chart.explanation
    (zeros,) = make_tables(Results(rows[2:]))
    assert interval_chart(zeros, ["oscar"]) is None


def test_overall_ratio_has_a_caution_with_its_groups():
    study = portrayal.Study.from_frames(
        captions=pl.DataFrame({"image_id": [1, 2, 3], "system": ["s"] * 3, "caption": ["a man", "a man", "a woman"]}),
        attributes=pl.DataFrame({"image_id": [1, 2, 3], "gender": ["male", "male", "female"]}),
    )  # fmt: skip
    ratio_rows = {
        m.group: m for m in portrayal.metrics.error(study, systems=["s"]).measurements if m.term == "ratio"
    }
    assert ratio_rows[None].value == ratio_rows["female"].value
    assert ratio_rows[None].caution == "The ratio of all people is that of female, the rarest group, to male."
    assert ratio_rows["female"].caution is None


def test_undefined_and_not_significant_are_counted_separately():
    cards = {"leakage": CARDS["leakage"].as_dict()}
    fields = {"attribute": "gender", "ideal": 0.0, "better": "lower", "unit": "share", "n": 500}
    not_significant = Measurement(
        "leakage", "difference", system="oscar", value=0.0, low=-0.1, high=0.1, **fields
    )
    undefined = Measurement("leakage", "difference", system="sat", reason="one group", **fields)
    page = render(Results((not_significant, undefined), provenance={"cards": cards}))
    assert "cannot be told" not in page
    assert "<summary>1 not significant" in page
    assert "<summary>1 not measured: undefined" in page
