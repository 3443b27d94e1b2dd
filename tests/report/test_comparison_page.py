"""Comparison page: significant changes have sentences, other rows are counted, and names are escaped."""

from __future__ import annotations

import json
import re

import pytest

from portrayal.cli.main import run
from portrayal.report.findings.changes import caution_notes, verdict
from portrayal.report.page.comparison import change_sentences, changed_rows, render, write_comparison
from portrayal.report.page.embedded import unpack_json
from portrayal.report.tables.table import format_p
from portrayal.results import Measurement, Results


def row(term, value, q, metric="lic", group=None, better="lower", **overrides):
    low, high = (None, None) if value is None else (value - 1, value + 1)
    settings = {
        "first": 4.0,
        "second": None if value is None else 4.0 + value,
        "paired": True,
        "mde": 1.0,
    }
    defaults = {"system": "oscar", "attribute": "gender", "unit": "percent", "n": 500, "se_data": 0.5}
    return Measurement(
        metric, term, value=value, low=low, high=high, q=q, p=q, group=group, better=better, settings=settings,
        **{**defaults, **overrides},
    )  # fmt: skip


def results(*rows):
    names = ["runs/old", "runs/new@system=oscar"]
    cards = {"lic": {"answers": "leaks"}}
    provenance = {"compared": names, "only_first": 2, "only_second": 0, "version": "1", "cards": cards}
    return Results(tuple(rows), provenance=provenance)


def test_each_metric_with_a_change_has_a_sentence():
    comparison = results(
        row("accuracy", 3.0, 0.01, better=None),
        row("lic_m", 2.0, 0.01),
        row("lic", -2.0, 0.02),
        row("null", 1.0, 0.4),
    )
    assert change_sentences(comparison) == [
        "lic by gender, oscar: lic_m rose from 4.0 to 6.0, which is worse (+2.0, 95 % CI [1.0, 3.0], paired); "
        "also lic (better), accuracy."
    ]
    assert [m.term for m in changed_rows(comparison)] == ["accuracy", "lic_m", "lic"]


@pytest.mark.parametrize(
    "unchanged_row",
    [
        row("lic", 2.0, 0.06),
        row("lic", 2.0, None),
        row("lic", None, None, reason="undefined in the first: one group"),
        row("lic", 0.0, 0.001),
        row("lic", 2.0, None, caution="It depends on how many images there are."),
        row("lic", 2.0, None, reason="too few: 20 images, fewer than 30"),
        row("lic", 0.0, None, reason="nothing differs"),
    ],
)
def test_unchanged_rows_have_no_sentence(unchanged_row):
    assert change_sentences(results(unchanged_row)) == []
    assert "Nothing changed significantly." in render(results(unchanged_row))


def test_page_counts_unchanged_rows_and_gives_reasons():
    page = render(
        results(row("lic", 2.0, 0.01), row("lic_m", 1.0, 0.5), row("lic_d", None, None, reason="one group"))
    )
    assert "What changed from old to new@system=oscar" in page
    assert "1 of 3 rows changed; 1 did not change significantly; 1 cannot be compared." in page
    assert page.count("<td>worse</td>") == page.count("<td>not significant</td>") == 1
    assert '<p class="note">One group (lic_d).</p>' in page
    assert "Only in old: 2 rows. Only in new@system=oscar: 0." in page
    assert "What do captions give away?" in page


def test_opposite_changes_of_groups_come_first():
    """The change over all groups is better, as from liu17 to shetty17. It is worse for men and so comes first."""
    comparison = results(
        row("lic", 2.0, 0.01),
        row("wrong", -2.0, 0.01, metric="error"),
        row("wrong", -3.0, 0.01, metric="error", group="female"),
        row("wrong", 1.0, 0.01, metric="error", group="male"),
        row("right", 1.5, 0.01, metric="error", group="male", better=None),
    )
    first, second = change_sentences(comparison)
    assert first == (
        "error by gender, oscar: worse for male, better for female and over all groups: "
        "wrong for male rose from 4.0 to 5.0, which is worse (+1.0, 95 % CI [0.0, 2.0], paired); "
        "wrong for female fell from 4.0 to 1.0, which is better (-3.0, 95 % CI [-4.0, -2.0], paired); "
        "wrong over all groups fell from 4.0 to 2.0, which is better (-2.0, 95 % CI [-3.0, -1.0], paired); also right."
    )
    assert second.startswith("lic by gender")


def test_change_of_a_single_group_has_a_sentence():
    unchanged, changed = (
        row("wrong", -0.1, 0.6, metric="error"),
        row("wrong", 1.0, 0.01, metric="error", group="male"),
    )
    assert change_sentences(results(unchanged, changed)) == [
        "error by gender, oscar: wrong for male rose from 4.0 to 5.0, which is worse "
        "(+1.0, 95 % CI [0.0, 2.0], paired)."
    ]


def test_a_count_does_not_repeat_its_share():
    share = row("demeaning.words", 2.0, 0.01, metric="harms", unit="share")
    count = row("demeaning.words", 20.0, 0.01, metric="harms", unit="count")
    assert change_sentences(results(count, share)) == change_sentences(results(share))
    assert len(change_sentences(results(count))) == 1


def test_rows_that_cannot_be_compared_have_a_caution(tmp_path, capsys):
    caution = "It depends on how many images there are: 900 in the first, 90 in the second."
    comparison = results(
        row("lic_m", 2.0, None, caution=caution), row("lic_m", 1.0, None, group="male", caution=caution)
    )
    assert f"Caution (lic_m): {caution}" in render(comparison)
    for name, n in (("a", 900), ("b", 90)):
        cards = {"lic": {"terms": [{"name": "lic_m", "depends_on_n": True}]}}
        m = Measurement(
            "lic", "lic_m", system="s", value=n / 20, se_data=1.0, n=n, n_unit="image", unit="percent"
        )
        Results((m,), provenance={"cards": cards}).save(tmp_path / name)
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "Caution (lic_m): It depends on how many images there are" in capsys.readouterr().out


def test_change_with_a_caution_has_a_sentence():
    """The sentence refers to the caution, which is printed once below the table for all its rows."""
    caution = "Captions of oscar are 2.8 times as long."
    comparison = results(
        row("cider", 2.0, 0.01, caution=caution, group="male"),
        row("bleu-4", 1.0, 0.4, caution=caution, group="male"),
        row("cider", 1.0, 0.4, group="female"),
        row("bleu-4", 1.0, 0.4, group="female"),
    )
    assert verdict(comparison.measurements[0]) == "worse"
    (sentence,) = change_sentences(comparison)
    assert sentence.endswith("paired). (See the cautions below its table.)")
    assert caution_notes(comparison.measurements) == [f"Caution (cider, bleu-4 for male): {caution}"]
    oscar_rows = [row(term, 1.0, 0.4, caution=caution) for term in ("cider", "bleu-4")]
    assert caution_notes(oscar_rows) == [f"Caution (all rows): {caution}"]
    sat_rows = [row("cider", 1.0, 0.4, system="sat"), row("bleu-4", 1.0, 0.4, system="sat")]
    assert caution_notes([*oscar_rows, *sat_rows]) == [f"Caution (all rows of oscar): {caution}"]
    assert render(Results(tuple(oscar_rows))).count(caution) == 1


def test_rows_with_too_few_images_are_marked(tmp_path, capsys):
    reason = "too few: 20 images, fewer than 30"
    page = render(results(row("wrong", 2.0, None, reason=reason), row("right", 1.0, 0.4)))
    assert "+2.0†" in page
    assert f"† {reason[0].upper()}{reason[1:]} (wrong)." in page
    assert "1 cannot be compared" in page
    for name, value in (("a", 0.1), ("b", 0.9)):
        m = Measurement(
            "error", "wrong", system="s", group="x", value=value, se_data=0.1, n=20, reason=reason
        )
        Results((m,)).save(tmp_path / name)
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "0.800†" in out
    assert f"† {reason[0].upper()}{reason[1:]} (wrong)." in out


def test_equal_values_are_labelled_and_counted_as_unchanged():
    page = render(results(row("wrong", 0.0, None, reason="nothing differs"), row("right", 1.0, 0.4)))
    assert "<td>nothing differs</td>" in page
    assert "0 of 2 rows changed; 2 did not change significantly." in page
    assert "Nothing differs (" not in page


def test_format_of_p_values():
    assert [format_p(p) for p in (1e-187, 0.00009, 0.00042, 0.0034, 0.05, 1.0, None)] == [
        "< .0001", "< .0001", ".0004", ".003", ".050", "1.000", "",
    ]  # fmt: skip
    assert "&lt; .0001" in render(results(row("lic", 2.0, 1e-6)))


def test_page_embeds_the_exact_results():
    comparison = results(row("lic", 2.0, 0.01))
    match = re.search(r'<template id="results">(.*?)</template>', render(comparison), re.DOTALL)
    assert unpack_json(match.group(1)) == json.loads(comparison.to_json())


def test_names_are_escaped_and_nothing_is_loaded(tmp_path):
    name = "<img src=x onerror=alert(1)>"
    comparison = results(row("lic", 2.0, 0.01, system=name), row("lic_m", 1.0, 0.2, system=name))
    page = write_comparison(comparison, tmp_path).read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert (
        page.count("<script") == 3
    )  # the library of the charts, their data, and the script that renders them
    assert "<script" not in render(results(row("lic", 2.0, 0.01)))  # a single number has no chart
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:)', page)


def test_compare_command_writes_the_page(tmp_path, capsys):
    study = tmp_path / "study"
    assert run(["lab", "make", "--scenes", "80", "--out", str(study)]) == 0
    assert run(["audit", str(study), "--metrics", "error", "--out", str(tmp_path / "a")]) == 0
    pair = [f"{tmp_path / 'a'}@system={name}" for name in ("faithful", "stereotyping")]
    assert run(["compare", *pair, "--out", str(tmp_path / "page")]) == 0
    assert "The page:" in capsys.readouterr().out
    assert (tmp_path / "page" / "index.html").is_file()
    assert Results.load(tmp_path / "page").measurements
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert run(["compare", *pair, "--out", str(tmp_path / "full")]) == 2
    assert "holds files (mine.txt) but no results.json" in capsys.readouterr().err
