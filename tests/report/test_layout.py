"""Layout of measurements in tables: settings side by side, and separate tables of words."""

from __future__ import annotations

import pytest
from scipy import stats

from portrayal.report import to_markdown
from portrayal.report.charts.intervals import interval_chart
from portrayal.report.tables.layout import footnotes, make_tables, rank_correlation
from portrayal.results import Measurement, Results


def measurement(term, system, value, item=None, group=None, reason=None, **settings):
    return Measurement(
        "lic", term, system=system, attribute="gender", group=group, item=item, value=value, n=100, unit="percent",
        reason=reason, settings=settings,
    )  # fmt: skip


def two_settings(values: dict[str, list[float]]) -> Results:
    rows = [
        measurement("lic_m", f"s{number}", value, split=split, seeds=seeds)
        for (split, seeds), system_values in zip(
            [("crossfit", [0]), ("paper", [0, 12])], values.values(), strict=True
        )
        for number, value in enumerate(system_values)
    ]
    return Results(tuple(rows))


def test_side_by_side_table_comes_before_those_of_each_setting():
    overview, first, second = make_tables(
        two_settings({"crossfit": [1.0, 2.0, 3.0], "paper": [1.5, 3.5, 2.5]})
    )
    assert overview.side_by_side
    assert [(row.system, row.group) for row in overview.rows] == [
        (system, split) for system in ("s0", "s1", "s2") for split in ("split crossfit", "split paper")
    ]
    assert [row.cells["lic_m"].value for row in overview.rows] == [1.0, 1.5, 2.0, 3.5, 3.0, 2.5]
    assert (first.subtitle, second.subtitle) == ("split crossfit", "split paper")
    assert not first.side_by_side
    assert overview.notes == [
        "The order of systems by lic_m, compared with 'split crossfit' (Spearman's correlation; 1: the same): "
        "split paper 0.50."
    ]


def test_two_systems_have_no_order_to_compare():
    assert make_tables(two_settings({"crossfit": [1.0, 2.0], "paper": [2.0, 1.0]}))[0].notes == []


def test_settings_are_named_by_their_changed_option():
    rows = [
        measurement("lic_m", "s", 1.0, vocabulary="system", C=0.1),
        measurement("lic_m", "s", 2.0, vocabulary="none", C=0.1),
        measurement("lic_m", "s", 3.0, vocabulary="system", C=1.0),
        measurement("lic_m", "s", 4.0, vocabulary=None, C=0.1),
    ]
    overview = make_tables(Results(tuple(rows)))[0]
    assert [row.group for row in overview.rows] == [
        "as given",
        "vocabulary none",
        "C 1.0",
        "vocabulary none",
    ]


def test_single_setting_has_a_single_table():
    (table,) = make_tables(Results((measurement("lic_m", "s", 1.0), measurement("lic", "s", 0.5))))
    assert table.subtitle is None
    assert table.columns == ["lic_m", "lic"]


def test_words_have_a_table_of_their_own_unless_other_terms_share_their_rows():
    rows = [measurement("lic_m", "s", 1.0), measurement("word", "s", 2.0, item="cook", group="x")]
    numbers, words = make_tables(Results(tuple(rows)))
    assert (numbers.columns, words.columns, words.subtitle) == (["lic_m"], ["word"], "word")
    assert words.has_items
    assert not numbers.has_items
    shared = [
        Measurement("cooccurrence", term, item="cat", system="s", value=1.0) for term in ("bias", "count")
    ]
    assert (
        len(make_tables(Results((*shared, Measurement("cooccurrence", "overall", system="s", value=1.0)))))
        == 1
    )
    word_results = Results((Measurement("word-odds", "z", item="cat", system="s", value=1.0),))
    assert [section.subtitle for section in make_tables(word_results)] == [None]


def test_identical_reasons_share_a_footnote():
    rows = [measurement("lic", system, 1.0, reason="3 of 9 images are left out") for system in ("a", "b")] + [
        measurement("lic_d", "a", 1.0, reason="words are missing"),
        measurement("lic_d", "b", 2.0),
    ]
    (section,) = make_tables(Results(tuple(rows)))
    assert footnotes(section.rows) == ["lic: 3 of 9 images are left out.", "lic_d of a: words are missing."]


def test_markdown_has_the_side_by_side_table():
    text = to_markdown(two_settings({"crossfit": [1.0, 2.0, 3.0], "paper": [1.5, 3.5, 2.5]}))
    assert "### lic · gender · side by side" in text
    assert "| system | setting | lic\\_m | n |" in text
    assert "split paper 0.50" in text


@pytest.mark.parametrize("other", [[1, 2, 3, 4, 5], [5, 1, 4, 2, 3], [1, 1, 2, 2, 9]])
def test_rank_correlation_agrees_with_scipy(other):
    reference = [3, 1, 4, 1, 5]
    assert rank_correlation(reference, other) == pytest.approx(stats.spearmanr(reference, other).statistic)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None
    assert rank_correlation([1, 2], [1, 2]) is None


def test_headline_of_the_card_comes_first_in_charts():
    terms = [f"t{n}" for n in range(8)]
    rows = [
        Measurement("m", term, system=system, value=value, low=0.0, high=1.0)
        for term in terms
        for system, value in (("one", 0.25), ("two", 0.5))
    ]
    drawn = {}
    for name, card in (("plain", {}), ("chosen", {"headline": ["t7"]})):
        (table,) = make_tables(Results(tuple(rows), provenance={"cards": {"m": card}}))
        drawn[name] = [panel.name for panel in interval_chart(table, ["one", "two"]).panels]
    assert drawn == {"plain": terms[:6], "chosen": [*terms[:5], "t7"]}


def test_layout_of_the_card_chooses_the_tables():
    settings = {"kind": "activity", "attack": "exact", "groups": ["a", "b"], "template": "all"}
    rows = tuple(
        Measurement("m", "b@v", system="s", item=item, value=1.0, settings=settings)
        for item in (None, "sewing")
    )
    subtitles = {}
    for layout in ("terms", "concepts", "a later one"):
        tables = make_tables(Results(rows, provenance={"cards": {"m": {"layout": layout}}}))
        subtitles[layout] = [table.subtitle for table in tables]
        assert {table.metric for table in tables} == {"m"}
    assert subtitles == {
        "terms": [None],
        "concepts": ["means over concepts (a or b)", "each concept: activity, exact (a or b)"],
        "a later one": [None],
    }
