"""What stands beside numbers on a page: whose n it is, what a row of all people repeats, and no chart of nothing."""

from __future__ import annotations

import polars as pl

import portrayal
from portrayal.metrics import CARDS
from portrayal.report.charts.intervals import interval_chart
from portrayal.report.page.page import render
from portrayal.report.tables.layout import footnotes, make_tables
from portrayal.results import Measurement, Results


def row(term, value, n, group=None, **more):
    given = {"system": "oscar", "attribute": "gender", "unit": "share", "low": 0.0, "high": 0.2}
    return Measurement("error", term, value=value, n=n, group=group, **{**given, **more})


def test_a_dagger_tells_its_own_n_and_not_that_of_the_row():
    few = {"reason": "too few: 24 images, fewer than 30"}
    (section,) = make_tables(
        Results((row("right", 0.5, 69, "female"), row("error", 0.1, 24, "female", **few)))
    )
    assert section.rows[0].n == "69"
    assert footnotes(section.rows) == [
        "† Rests on fewer than 30 images: too few to rank (error oscar female 24)."
    ]


def test_a_long_list_of_daggers_is_cut_and_counted():
    few = {"reason": "too few: 9 images, fewer than 30"}
    rows = tuple(row("error", 0.1, 9, f"g{number}", **few) for number in range(12))
    (section,) = make_tables(Results(rows))
    assert footnotes(section.rows)[0].endswith("g7 9; 4 more).")


def test_a_chart_of_nothing_but_zeros_is_not_drawn():
    values = {"right": (0.5, 0.4), "wrong": (0.0, 0.0)}
    rows = tuple(
        row(term, value, 99, group)
        for term in values
        for group, value in zip("ab", values[term], strict=True)
    )
    (section,) = make_tables(Results(rows))
    drawn = interval_chart(section, ["oscar"])
    assert [panel.name for panel in drawn.panels] == ["right"]
    assert "Not drawn, since all its numbers are 0: wrong." in drawn.explanation
    (zeros,) = make_tables(Results(rows[2:]))
    assert interval_chart(zeros, ["oscar"]) is None


def test_the_ratio_of_all_people_says_whose_it_is():
    study = portrayal.Study.from_frames(
        captions=pl.DataFrame({"image_id": [1, 2, 3], "system": ["s"] * 3, "caption": ["a man", "a man", "a woman"]}),
        attributes=pl.DataFrame({"image_id": [1, 2, 3], "gender": ["male", "male", "female"]}),
    )  # fmt: skip
    whole = {
        m.group: m for m in portrayal.metrics.error(study, systems=["s"]).measurements if m.term == "ratio"
    }
    assert whole[None].value == whole["female"].value
    assert whole[None].caution == "The ratio of all people is that of female, the rarest group, to male."
    assert whole["female"].caution is None


def test_what_is_undefined_and_what_is_not_significant_are_counted_apart():
    cards = {"leakage": CARDS["leakage"].as_dict()}
    given = {"attribute": "gender", "ideal": 0.0, "better": "lower", "unit": "share", "n": 500}
    level = Measurement("leakage", "difference", system="oscar", value=0.0, low=-0.1, high=0.1, **given)
    unknown = Measurement("leakage", "difference", system="sat", reason="one group", **given)
    page = render(Results((level, unknown), provenance={"cards": cards}))
    assert "cannot be told" not in page
    assert "<summary>1 not significant" in page
    assert "<summary>1 not measured: undefined" in page
