"""What the page and the command say of remedies: which number stands where, and that names stay names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portrayal.report.charts.tradeoff import mitigation_tradeoffs
from portrayal.report.page import page
from portrayal.report.tables.mitigation import mitigation_tables, summary_tables
from portrayal.results import Measurement, Results

MARKUP = '<img src=x onerror="window.hacked=1">'
UNITS = {
    "excess": "percent",
    "b@v-l": "percent",
    "drop": "percent",
    "p-before": "percent",
    "words-lost": "nats",
}


def row(metric: str, term: str, system: str, value: float | None, wide: float | None = None, **settings: Any):
    return Measurement(
        metric,
        term,
        system=system,
        attribute="gender",
        value=value,
        low=None if wide is None or value is None else value - wide,
        high=None if wide is None or value is None else value + wide,
        n=40,
        n_unit="image",
        unit=UNITS.get(term, "share"),
        reason="not defined for every seed" if value is None else None,
        settings={"model": "lab", "steps": 24, **settings},
    )


def of(system: str, left: float | None, found: float) -> list[Measurement]:
    """All that is said of a method: `left` of the bias by attack, twice that by exact pictures."""
    made = []
    for way, times in (("pgd", 1), ("exact", 2)):
        bias = None if left is None else times * left
        told = {
            "attack": way,
            "kind": "activity",
            **({"epsilon": 0.03, "attack_steps": 10} if way == "pgd" else {}),
        }
        made += [
            row("counterbias", "b@v-l", system, 99.0, **told),
            row("counterbias", "excess", system, bias, 1.0, of="b@v-l", **told),
            row("counterbias", "excess", system, 50.0, of="b@l", **told),
            row("counterbias", "p-before", system, 70.0 + times, attack=way),
        ]
        if system != "vanilla":
            made.append(row("mitigation", "drop", system, bias, 1.0, of="b@v-l", **told))
            made.append(row("mitigation", "drop-share", system, None, of="b@v-l", **told))
    made += [
        row("retrieval-recall", "tr@1", system, found, 0.05, fitted="zero-shot", rerank=4),
        row("retrieval-recall", "ir@1", system, found / 2, fitted="zero-shot", rerank=4),
        row("retrieval-recall", "tr@1", system, found + 0.1, fitted="fine-tuned", rerank=4),
        row("mitigation", "words-right", system, 0.6, 0.1, texts="balanced"),
        row("mitigation", "words-lost", system, 1.25, texts="balanced"),
        row("mitigation", "group-right", system, 0.875),
    ]
    if system != "vanilla":
        made.append(row("mitigation", "change", system, -0.25, of="words-right", texts="balanced"))
        made.append(row("mitigation", "change", system, 0.5, of="tr@1", fitted="zero-shot", rerank=4))
        made.append(row("mitigation", "change", system, 0.75, of="group-right"))
    return made


def results(*names: str, left: float | None = 4.0) -> Results:
    rows = of("vanilla", 20.0, 0.5)
    for name in names:
        rows += of(name, left, 0.4)
    return Results(tuple(rows), provenance={"cards": {}})


def test_tables_as_the_paper_has_them():
    bias, zero, fine, costs = summary_tables(results("fairvlp"))
    title, columns, lines = bias
    assert title == "Remaining bias, activity: excess over the noise floor, in percent"
    assert columns == ["method", "b@v-l, pgd", "b@l, pgd", "b@v-l, exact", "b@l, exact"]
    assert lines == [
        ["vanilla", "20.0 [19.0, 21.0]", "50.0", "40.0 [39.0, 41.0]", "50.0"],
        ["fairvlp", "4.0 [3.0, 5.0]", "50.0", "8.0 [7.0, 9.0]", "50.0"],
    ]
    assert zero[0] == "Retrieval recall, zero-shot"
    assert zero[1] == ["method", "tr@1", "ir@1"]
    assert zero[2][1] == ["fairvlp", "0.400 [0.350, 0.450]", "0.200"]
    assert fine[0] == "Retrieval recall, fine-tuned"
    assert fine[2] == [["vanilla", "0.600"], ["fairvlp", "0.500"]]
    assert costs[0] == "Costs"
    # whom the model sees is told by the pictures that are true, not by those of the attack
    assert dict(zip(costs[1], costs[2][1], strict=True)) == {
        "method": "fairvlp",
        "words right, balanced": "0.600 [0.500, 0.700]",
        "-log P, balanced": "1.250",
        "P(group | V), percent": "72.0",
        "group right": "0.875",
    }


def test_an_undefined_number_is_said_to_be_and_a_missing_one_is_left_empty():
    (bias, *_) = summary_tables(results("fairvlp", left=None))
    assert bias[2][1][1] == "undefined"
    whole = results("fairvlp")
    few = tuple(
        m for m in whole.measurements if not (m.system == "fairvlp" and m.settings.get("attack") == "exact")
    )
    (bias, *_) = summary_tables(replace(whole, measurements=few))
    assert bias[2][1] == ["fairvlp", "4.0 [3.0, 5.0]", "50.0", "", ""]


def test_without_people_there_is_no_table_of_bias():
    whole = results("fairvlp")
    few = tuple(m for m in whole.measurements if m.metric != "counterbias")
    assert [title for title, _, _ in summary_tables(replace(whole, measurements=few))] == [
        "Retrieval recall, zero-shot",
        "Retrieval recall, fine-tuned",
        "Costs",
    ]
    assert summary_tables(Results(())) == []


def test_sections_hold_every_number_once():
    rows = [m for m in results("fairvlp", "dropout").measurements if m.metric == "mitigation"]
    made = mitigation_tables(rows)
    assert [section.subtitle for section in made] == [
        "bias removed, against vanilla",
        "masked words",
        "perceived group",
        "what else changed, against vanilla",
    ]
    shown = [cell.id for section in made for line in section.rows for cell in line.cells.values()]
    assert sorted(shown) == sorted(m.id for m in rows)
    gone, words, seen, else_changed = made
    assert [(line.system, line.group) for line in gone.rows] == [
        ("fairvlp", "b@v-l, activity, pgd"),
        ("dropout", "b@v-l, activity, pgd"),
        ("fairvlp", "b@v-l, activity, exact"),
        ("dropout", "b@v-l, activity, exact"),
    ]
    assert set(gone.rows[0].cells) == {"drop", "drop-share"}
    assert [line.group for line in words.rows] == ["balanced"] * 3
    assert not seen.has_second_column
    assert [line.group for line in else_changed.rows][::2] == [
        "words-right, balanced",
        "tr@1, zero-shot",
        "group-right",
    ]
    for section in made:  # what one row has of its own does not stand above them all
        assert section.settings == {"model": "lab", "steps": 24}
    assert mitigation_tables([]) == []


def test_bias_left_against_what_is_found_for_each_way_to_change_pictures():
    made = mitigation_tradeoffs(results("fairvlp"))
    assert [(one.setting, one.quality_term) for one in made] == [
        ("activity, pgd", "tr@1, zero-shot"),
        ("activity, pgd", "ir@1, zero-shot"),
        ("activity, exact", "tr@1, zero-shot"),
        ("activity, exact", "ir@1, zero-shot"),
    ]
    exact = made[2]
    assert exact.title == "excess of b@v-l against tr@1, zero-shot, by gender · activity, exact"
    assert [(system, good.value, bias.value) for system, good, bias in exact.points] == [
        ("vanilla", 0.5, 40.0),
        ("fairvlp", 0.4, 8.0),
    ]
    assert "fairvlp" in exact.svg()


def test_who_lacks_a_number_is_on_no_chart():
    assert mitigation_tradeoffs(results()) == []  # vanilla alone
    made = mitigation_tradeoffs(results("fairvlp", "dropout", left=None))
    assert made == []
    whole = results("fairvlp")
    for metric in ("retrieval-recall", "mitigation", "counterbias"):
        few = tuple(m for m in whole.measurements if m.metric != metric)
        assert mitigation_tradeoffs(replace(whole, measurements=few)) == []


@pytest.mark.parametrize("name", [MARKUP, "<script>alert(1)</script>"])
def test_a_name_stays_a_name(name):
    made = page.render(results(name))
    assert name not in made
    assert "bias removed, against vanilla" in made
    assert "excess of b@v-l against tr@1" in made
    for one in mitigation_tradeoffs(results(name)):
        assert name not in one.svg()
