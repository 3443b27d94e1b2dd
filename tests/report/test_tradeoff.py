"""Bias against quality: who is on the chart, at which numbers, and that names cannot do harm there."""

from __future__ import annotations

from dataclasses import replace

from portrayal.lab import make_study
from portrayal.metrics import lic, quality
from portrayal.report.charts.tradeoff import tradeoffs
from portrayal.report.page.page import render
from portrayal.results import Results


def both(**options) -> Results:
    study = make_study(150, seed=1)
    parts = [
        quality(study, attribute="gender", bootstrap=40),
        lic(study, attribute="gender", bootstrap=40, permutations=0, **options),
    ]
    return Results.join(parts, {"cards": {}})


def test_a_point_a_system_under_one_setting():
    results = both(split=("crossfit", "common"))
    (one,) = tradeoffs(results)
    assert one.setting == "crossfit"
    assert [system for system, _, _ in one.points] == ["faithful", "stereotyping", "cautious"]
    for system, good, bias in one.points:
        assert (good.metric, good.term, good.system) == ("quality", "cider", system)
        assert (bias.term, bias.system, bias.settings["split"]) == ("lic", system, "crossfit")
    assert "stereotyping" in one.svg()


def test_one_system_makes_no_chart():
    results = both()
    few = tuple(m for m in results.measurements if m.system in ("faithful", "human"))
    assert tradeoffs(replace(results, measurements=few)) == []
    without = tuple(m for m in results.measurements if m.metric == "lic")
    assert tradeoffs(replace(results, measurements=without)) == []


def test_the_page_shows_it_and_a_name_stays_a_name():
    results = both()
    name = "<script>alert(1)</script>"
    renamed = tuple(replace(m, system=name) if m.system == "faithful" else m for m in results.measurements)
    hostile = replace(results, measurements=renamed)
    (one,) = tradeoffs(hostile)
    assert "<script" not in one.svg()
    page = render(hostile)
    assert "lic against cider, by gender" in page
    assert 'class="plot"' in page
    assert name not in page
