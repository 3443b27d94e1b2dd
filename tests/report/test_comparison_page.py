"""The page of a comparison: what moved is said, what did not is counted, and names are text."""

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


def row(term, value, q, metric="lic", group=None, better="lower", **more):
    low, high = (None, None) if value is None else (value - 1, value + 1)
    settings = {
        "first": 4.0,
        "second": None if value is None else 4.0 + value,
        "paired": True,
        "detectable": 1.0,
    }
    given = {"system": "oscar", "attribute": "gender", "unit": "percent", "n": 500, "se_data": 0.5}
    return Measurement(
        metric, term, value=value, low=low, high=high, q=q, p=q, group=group, better=better, settings=settings,
        **{**given, **more},
    )  # fmt: skip


def results(*rows):
    names = ["runs/old", "runs/new@system=oscar"]
    return Results(
        tuple(rows), provenance={"compared": names, "only_first": 2, "only_second": 0, "version": "1"}
    )


def test_what_moved_is_said_once_for_each_metric():
    found = results(
        row("accuracy", 3.0, 0.01, better=None),
        row("lic_m", 2.0, 0.01),
        row("lic", -2.0, 0.02),
        row("null", 1.0, 0.4),
    )
    assert change_sentences(found) == [
        "lic by gender, oscar: lic_m rose from 4.0 to 6.0, which is worse (+2.0, 95 % CI [1.0, 3.0], paired); "
        "also lic (better), accuracy."
    ]
    assert [m.term for m in changed_rows(found)] == ["accuracy", "lic_m", "lic"]


@pytest.mark.parametrize(
    "quiet",
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
def test_what_did_not_move_is_not_said(quiet):
    assert change_sentences(results(quiet)) == []
    assert "Nothing changed significantly." in render(results(quiet))


def test_the_page_counts_the_others_and_says_why_some_cannot_be_compared():
    page = render(
        results(row("lic", 2.0, 0.01), row("lic_m", 1.0, 0.5), row("lic_d", None, None, reason="one group"))
    )
    assert "What changed from old to new@system=oscar" in page
    assert "1 of 3 rows changed; 1 did not change significantly; 1 cannot be compared." in page
    assert page.count("<td>worse</td>") == page.count("<td>not significant</td>") == 1
    assert '<p class="note">One group (lic_d).</p>' in page
    assert "Only in old: 2 rows. Only in new@system=oscar: 0." in page
    assert "What do captions give away?" in page


def test_better_for_one_group_and_worse_for_another_comes_first():
    """Over all groups it is better, as liu17 to shetty17 is; for men it is worse, and that is read first."""
    found = results(
        row("lic", 2.0, 0.01),
        row("wrong", -2.0, 0.01, metric="error"),
        row("wrong", -3.0, 0.01, metric="error", group="female"),
        row("wrong", 1.0, 0.01, metric="error", group="male"),
        row("right", 1.5, 0.01, metric="error", group="male", better=None),
    )
    first, second = change_sentences(found)
    assert first == (
        "error by gender, oscar: worse for male, better for female and over all groups: "
        "wrong for male rose from 4.0 to 5.0, which is worse (+1.0, 95 % CI [0.0, 2.0], paired); "
        "wrong for female fell from 4.0 to 1.0, which is better (-3.0, 95 % CI [-4.0, -2.0], paired); "
        "wrong over all groups fell from 4.0 to 2.0, which is better (-2.0, 95 % CI [-3.0, -1.0], paired); also right."
    )
    assert second.startswith("lic by gender")


def test_a_change_for_one_group_alone_is_said():
    quiet, loud = (
        row("wrong", -0.1, 0.6, metric="error"),
        row("wrong", 1.0, 0.01, metric="error", group="male"),
    )
    assert change_sentences(results(quiet, loud)) == [
        "error by gender, oscar: wrong for male rose from 4.0 to 5.0, which is worse "
        "(+1.0, 95 % CI [0.0, 2.0], paired)."
    ]


def test_a_count_does_not_repeat_its_share():
    share = row("demeaning.words", 2.0, 0.01, metric="harms", unit="share")
    count = row("demeaning.words", 20.0, 0.01, metric="harms", unit="count")
    assert change_sentences(results(count, share)) == change_sentences(results(share))
    assert len(change_sentences(results(count))) == 1


def test_what_may_not_be_compared_is_cautioned_about(tmp_path, capsys):
    caution = "It depends on how many images there are: 900 in the first, 90 in the second."
    found = results(
        row("lic_m", 2.0, None, caution=caution), row("lic_m", 1.0, None, group="male", caution=caution)
    )
    assert f"Caution (lic_m): {caution}" in render(found)
    for name, n in (("a", 900), ("b", 90)):
        cards = {"lic": {"terms": [{"name": "lic_m", "depends_on_n": True}]}}
        m = Measurement(
            "lic", "lic_m", system="s", value=n / 20, se_data=1.0, n=n, n_unit="image", unit="percent"
        )
        Results((m,), provenance={"cards": cards}).save(tmp_path / name)
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "Caution (lic_m): It depends on how many images there are" in capsys.readouterr().out


def test_a_caution_does_not_silence_a_change():
    """It is said, with a pointer to the caution, which stands once below the table for all rows that have it."""
    caution = "Captions of oscar are 2.8 times as long."
    found = results(
        row("cider", 2.0, 0.01, caution=caution, group="male"),
        row("bleu-4", 1.0, 0.4, caution=caution, group="male"),
        row("cider", 1.0, 0.4, group="female"),
        row("bleu-4", 1.0, 0.4, group="female"),
    )
    assert verdict(found.measurements[0]) == "worse"
    (sentence,) = change_sentences(found)
    assert sentence.endswith("paired). (See the cautions below its table.)")
    assert caution_notes(found.measurements) == [f"Caution (cider, bleu-4 for male): {caution}"]
    every = [row(term, 1.0, 0.4, caution=caution) for term in ("cider", "bleu-4")]
    assert caution_notes(every) == [f"Caution (all rows): {caution}"]
    others = [row("cider", 1.0, 0.4, system="sat"), row("bleu-4", 1.0, 0.4, system="sat")]
    assert caution_notes([*every, *others]) == [f"Caution (all rows of oscar): {caution}"]
    assert render(Results(tuple(every))).count(caution) == 1


def test_what_rests_on_too_few_images_is_marked(tmp_path, capsys):
    few = "too few: 20 images, fewer than 30"
    page = render(results(row("wrong", 2.0, None, reason=few), row("right", 1.0, 0.4)))
    assert "+2.0†" in page
    assert f"† {few[0].upper()}{few[1:]} (wrong)." in page
    assert "1 cannot be compared" in page
    for name, value in (("a", 0.1), ("b", 0.9)):
        m = Measurement("error", "wrong", system="s", group="x", value=value, se_data=0.1, n=20, reason=few)
        Results((m,)).save(tmp_path / name)
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "0.800†" in out
    assert f"† {few[0].upper()}{few[1:]} (wrong)." in out


def test_what_does_not_differ_is_said_and_counted_as_unchanged():
    page = render(results(row("wrong", 0.0, None, reason="nothing differs"), row("right", 1.0, 0.4)))
    assert "<td>nothing differs</td>" in page
    assert "0 of 2 rows changed; 2 did not change significantly." in page
    assert "Nothing differs (" not in page


def test_p_is_printed_as_far_as_it_is_known():
    assert [format_p(p) for p in (1e-187, 0.00009, 0.00042, 0.0034, 0.05, 1.0, None)] == [
        "< .0001", "< .0001", ".0004", ".003", ".050", "1.000", "",
    ]  # fmt: skip
    assert "&lt; .0001" in render(results(row("lic", 2.0, 1e-6)))


def test_the_differences_stand_in_the_page_as_they_are():
    found = results(row("lic", 2.0, 0.01))
    inside = re.search(r'<template id="results">(.*?)</template>', render(found), re.DOTALL)
    assert unpack_json(inside.group(1)) == json.loads(found.to_json())


def test_names_are_text_and_nothing_is_loaded(tmp_path):
    name = "<img src=x onerror=alert(1)>"
    found = results(row("lic", 2.0, 0.01, system=name), row("lic_m", 1.0, 0.2, system=name))
    page = write_comparison(found, tmp_path).read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert page.count("<script") == 3  # the library of the charts, their data, and what draws them
    assert "<script" not in render(results(row("lic", 2.0, 0.01)))  # one number makes no chart
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:)', page)


def test_the_command_writes_it(tmp_path, capsys):
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
