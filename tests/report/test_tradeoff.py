"""Trade-off chart of bias and quality: its systems, its coordinates, and escaping of names."""

from __future__ import annotations

from dataclasses import replace

from portrayal.lab import make_study
from portrayal.metrics import CARDS, lic, quality
from portrayal.report.charts.tradeoff import tradeoffs
from portrayal.report.page.page import render
from portrayal.results import Results


def bias_and_quality(**options) -> Results:
    study = make_study(150, seed=1)
    parts = [
        quality(study, attribute="gender", bootstrap=40),
        lic(study, attribute="gender", bootstrap=40, permutations=0, **options),
    ]
    cards = {name: CARDS[name].as_dict() for name in ("lic", "quality")}
    return Results.join(parts, {"cards": cards})


def test_chart_has_one_point_per_system_under_one_setting():
    results = bias_and_quality(split=("crossfit", "common"))
    (chart,) = tradeoffs(results)
    assert chart.setting == "crossfit"
    assert [system for system, _, _ in chart.points] == ["faithful", "stereotyping", "cautious"]
    for system, quality_row, bias_row in chart.points:
        assert (quality_row.metric, quality_row.term, quality_row.system) == ("quality", "cider", system)
        assert (bias_row.term, bias_row.system, bias_row.settings["split"]) == ("lic", system, "crossfit")
    assert "stereotyping" in chart.svg()


def test_axes_come_from_cards():
    results = bias_and_quality()
    without_axes = {name: {"title": name} for name in ("lic", "quality")}
    assert tradeoffs(replace(results, provenance={"cards": without_axes})) == []
    cards = results.provenance["cards"]
    leaks = {"is_bias": True, "terms": ["undefined term", "accuracy"], "titled_settings": ["classifier"]}
    foreign = {**cards, "lic": {**cards["lic"], "trade_off": leaks}}
    (chart,) = tradeoffs(replace(results, provenance={"cards": foreign}))
    assert (chart.title, chart.bias_direction) == ("accuracy against cider, by gender · linear", "better")


def test_bias_that_two_systems_lack_gives_way_to_the_next_term():
    results = bias_and_quality()
    partial = tuple(
        m
        for m in results.measurements
        if (m.term, m.system) not in {("lic", "cautious"), ("lic", "faithful")}
    )
    (chart,) = tradeoffs(replace(results, measurements=partial))
    assert chart.bias_term == "lic_m"
    assert len(chart.points) == 3


def test_single_system_has_no_chart():
    results = bias_and_quality()
    single_system = tuple(m for m in results.measurements if m.system in ("faithful", "human"))
    assert tradeoffs(replace(results, measurements=single_system)) == []
    lic_rows = tuple(m for m in results.measurements if m.metric == "lic")
    assert tradeoffs(replace(results, measurements=lic_rows)) == []


def test_page_shows_the_chart_and_escapes_names():
    results = bias_and_quality()
    name = "<script>alert(1)</script>"
    renamed = tuple(replace(m, system=name) if m.system == "faithful" else m for m in results.measurements)
    hostile = replace(results, measurements=renamed)
    (chart,) = tradeoffs(hostile)
    assert "<script" not in chart.svg()
    page = render(hostile)
    assert "lic against cider, by gender" in page
    assert 'class="plot"' in page
    assert name not in page
