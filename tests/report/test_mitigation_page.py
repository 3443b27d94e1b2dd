"""Mitigations on the page and in the command: positions of the numbers, and escaping of names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portrayal.mitigate.measurements import CARDS as METHOD_CARDS
from portrayal.report.charts.tradeoff import tradeoffs
from portrayal.report.page import page
from portrayal.report.tables.methods import method_tables, summary_tables
from portrayal.results import Measurement, Results

CARDS = {name: card.as_dict() for name, card in METHOD_CARDS.items()}
MARKUP = '<img src=x onerror="window.hacked=1">'
UNITS = {
    "excess": "percent",
    "b@v-l": "percent",
    "drop": "percent",
    "p-before": "percent",
    "words-lost": "nats",
}


def row(
    metric: str, term: str, system: str, value: float | None, half_width: float | None = None, **settings: Any
):
    return Measurement(
        metric,
        term,
        system=system,
        attribute="gender",
        value=value,
        low=None if half_width is None or value is None else value - half_width,
        high=None if half_width is None or value is None else value + half_width,
        n=40,
        n_unit="image",
        unit=UNITS.get(term, "share"),
        reason="not defined for every seed" if value is None else None,
        settings={"model": "lab", "steps": 24, **settings},
    )


def system_rows(system: str, remaining: float | None, recall: float) -> list[Measurement]:
    """Measurements of a method: the bias `remaining` under the attack, and twice that with exact images."""
    measurements = []
    for attack, factor in (("pgd", 1), ("exact", 2)):
        bias = None if remaining is None else factor * remaining
        settings = {
            "attack": attack,
            "kind": "activity",
            **({"epsilon": 0.03, "attack_steps": 10} if attack == "pgd" else {}),
        }
        measurements += [
            row("counterbias", "b@v-l", system, 99.0, **settings),
            row("counterbias", "excess", system, bias, 1.0, of="b@v-l", **settings),
            row("counterbias", "excess", system, 50.0, of="b@l", **settings),
            row("counterbias", "p-before", system, 70.0 + factor, attack=attack),
        ]
        if system != "vanilla":
            measurements.append(row("mitigation", "drop", system, bias, 1.0, of="b@v-l", **settings))
            measurements.append(row("mitigation", "drop-share", system, None, of="b@v-l", **settings))
    measurements += [
        row("retrieval-recall", "tr@1", system, recall, 0.05, fitted="zero-shot", rerank=4),
        row("retrieval-recall", "ir@1", system, recall / 2, fitted="zero-shot", rerank=4),
        row("retrieval-recall", "tr@1", system, recall + 0.1, fitted="fine-tuned", rerank=4),
        row("mitigation", "words-right", system, 0.6, 0.1, texts="balanced"),
        row("mitigation", "words-lost", system, 1.25, texts="balanced"),
        row("mitigation", "group-right", system, 0.875),
    ]
    if system != "vanilla":
        measurements.append(row("mitigation", "change", system, -0.25, of="words-right", texts="balanced"))
        measurements.append(row("mitigation", "change", system, 0.5, of="tr@1", fitted="zero-shot", rerank=4))
        measurements.append(row("mitigation", "change", system, 0.75, of="group-right"))
    return measurements


def results(*names: str, remaining: float | None = 4.0) -> Results:
    rows = system_rows("vanilla", 20.0, 0.5)
    for name in names:
        rows += system_rows(name, remaining, 0.4)
    return Results(tuple(rows), provenance={"cards": CARDS})


def test_summary_tables_as_in_the_paper():
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
    # P(group | V) is that of the exact images, not of the attacked ones
    assert dict(zip(costs[1], costs[2][1], strict=True)) == {
        "method": "fairvlp",
        "words right, balanced": "0.600 [0.500, 0.700]",
        "-log P, balanced": "1.250",
        "P(group | V), percent": "72.0",
        "group right": "0.875",
    }


def test_undefined_number_is_labelled_and_missing_number_is_empty():
    (bias, *_) = summary_tables(results("fairvlp", remaining=None))
    assert bias[2][1][1] == "undefined"
    full_results = results("fairvlp")
    measurements = tuple(
        m
        for m in full_results.measurements
        if not (m.system == "fairvlp" and m.settings.get("attack") == "exact")
    )
    (bias, *_) = summary_tables(replace(full_results, measurements=measurements))
    assert bias[2][1] == ["fairvlp", "4.0 [3.0, 5.0]", "50.0", "", ""]


def test_without_counterbias_there_is_no_table_of_bias():
    full_results = results("fairvlp")
    measurements = tuple(m for m in full_results.measurements if m.metric != "counterbias")
    assert [title for title, _, _ in summary_tables(replace(full_results, measurements=measurements))] == [
        "Retrieval recall, zero-shot",
        "Retrieval recall, fine-tuned",
        "Costs",
    ]
    assert summary_tables(Results(())) == []


def test_sections_have_every_number_once():
    rows = [m for m in results("fairvlp", "dropout").measurements if m.metric == "mitigation"]
    sections = method_tables(rows)
    assert [section.subtitle for section in sections] == [
        "bias removed, against vanilla",
        "masked words",
        "perceived group",
        "what else changed, against vanilla",
    ]
    shown_ids = [cell.id for section in sections for line in section.rows for cell in line.cells.values()]
    assert sorted(shown_ids) == sorted(m.id for m in rows)
    removed, words, perceived_group, other_changes = sections
    assert [(line.system, line.group) for line in removed.rows] == [
        ("fairvlp", "b@v-l, activity, pgd"),
        ("dropout", "b@v-l, activity, pgd"),
        ("fairvlp", "b@v-l, activity, exact"),
        ("dropout", "b@v-l, activity, exact"),
    ]
    assert set(removed.rows[0].cells) == {"drop", "drop-share"}
    assert [line.group for line in words.rows] == ["balanced"] * 3
    assert not perceived_group.has_second_column
    assert [line.group for line in other_changes.rows][::2] == [
        "words-right, balanced",
        "tr@1, zero-shot",
        "group-right",
    ]
    for section in sections:  # only the settings that all rows share
        assert section.settings == {"model": "lab", "steps": 24}
    assert method_tables([]) == []


def test_tradeoff_of_remaining_bias_and_recall_for_each_attack():
    charts = tradeoffs(results("fairvlp"))
    assert [(chart.setting, chart.quality_term) for chart in charts] == [
        ("activity, pgd", "tr@1, zero-shot"),
        ("activity, pgd", "ir@1, zero-shot"),
        ("activity, exact", "tr@1, zero-shot"),
        ("activity, exact", "ir@1, zero-shot"),
    ]
    exact = charts[2]
    assert exact.title == "excess of b@v-l against tr@1, zero-shot, by gender · activity, exact"
    assert [
        (system, quality_row.value, bias_row.value) for system, quality_row, bias_row in exact.points
    ] == [
        ("vanilla", 0.5, 40.0),
        ("fairvlp", 0.4, 8.0),
    ]
    assert "fairvlp" in exact.svg()


def test_systems_without_a_number_have_no_chart():
    assert tradeoffs(results()) == []  # vanilla alone
    charts = tradeoffs(results("fairvlp", "dropout", remaining=None))
    assert charts == []
    full_results = results("fairvlp")
    for metric in ("retrieval-recall", "mitigation", "counterbias"):
        measurements = tuple(m for m in full_results.measurements if m.metric != metric)
        assert tradeoffs(replace(full_results, measurements=measurements)) == []


@pytest.mark.parametrize("name", [MARKUP, "<script>alert(1)</script>"])
def test_names_are_escaped(name):
    html = page.render(results(name))
    assert name not in html
    assert "bias removed, against vanilla" in html
    assert "excess of b@v-l against tr@1" in html
    for chart in tradeoffs(results(name)):
        assert name not in chart.svg()
