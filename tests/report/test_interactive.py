"""Charts that the page draws itself: offline, with every interval, and names that are only ever text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from portrayal.report.charts.intervals import interval_chart, system_names
from portrayal.report.charts.vega import _COLORS, _NEUTRAL, DARK_COLORS
from portrayal.report.page import page
from portrayal.report.page.comparison import render as render_comparison
from portrayal.report.page.embedded import unpack_json
from portrayal.report.page.page import page_tables
from portrayal.report.tables.layout import format_number, make_tables
from portrayal.results import TOO_FEW_REASON, Measurement, Results
from tests.report.drawn import all_drawn

MARKUP = "<img src=x onerror=alert(1)>"
ODD = [
    MARKUP,
    'it\'s "q"',
    "a.b[0]",
    "datum.x",
    "[x](y)",
    "very long " * 12,
    "#0072B2",
    "{{ 1 }}",
    "__proto__",
    "a\x00b",
]
PAPER = {"light": "#fdfcf9", "dark": "#17161b"}


def row(system, term="wrong", group=None, value=0.2, low=0.1, high=0.3, item=None, **more):
    told = {
        "metric": "error",
        "attribute": "gender",
        "unit": "share",
        "n": 400,
        "n_unit": "images",
        "ideal": 0.0,
    }
    return Measurement(
        term=term, system=system, group=group, item=item, value=value, low=low, high=high, **told | more
    )


def table(*names, **more):
    return [
        row(name, term, group, **more)
        for name in names
        for term in ("right", "wrong")
        for group in (None, "female")
    ]


def charts(results):
    return [made for one in page_tables(results) if (made := interval_chart(one, system_names(results)))]


def layers(spec, kind):
    return [one for one in spec["layer"] if one["mark"]["type"] == kind]


def drawn_points(spec, filled=None):
    some = [one for one in layers(spec, "point") if "shape" in one["encoding"]]
    return [
        point for one in some if filled in (None, one["mark"]["filled"]) for point in one["data"]["values"]
    ]


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page from disk; fails on any console message, and on any request for something outside it."""
    complaints, contexts = [], []

    def open_page(html, **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **options))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        tab.on(
            "request", lambda request: complaints.append(request.url) if not own(request.url, path) else None
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-charts]", state="attached")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def own(address, path):
    return address == path.as_uri() or address.startswith(("blob:null/", "data:image/"))


def test_every_interval_is_in_the_drawing_and_what_is_undefined_is_not():
    rows = [
        *table("a", "b"),
        row("c", value=None, low=None, high=None, reason="nobody"),
        row("c", "right"),
        row("d", low=None, high=None),
        row("d", "right", reason=f"{TOO_FEW_REASON} images", n=9),
    ]
    (made,) = charts(Results(tuple(rows)))
    assert [panel.name for panel in made.panels] == ["right", "wrong"]
    for panel in made.panels:
        known = [m for m in rows if m.term == panel.name and m.value is not None]
        assert len(drawn_points(panel.spec)) == len(known)
        lines = [one["data"]["values"] for one in layers(panel.spec, "rule") if "x2" in one["encoding"]][1]
        assert sorted((one["low"], one["high"]) for one in lines) == sorted(
            (m.low, m.high) for m in known if m.low
        )
    right, wrong = made.panels
    assert [one["label"] for one in drawn_points(right.spec, filled=False)] == ["all"]
    assert drawn_points(wrong.spec, filled=False) == []
    assert "1 undefined number is not drawn." in made.explanation
    assert "Hollow: rests on fewer than 30 images." in made.explanation
    ideals = [one for one in layers(right.spec, "rule") if one["mark"].get("strokeDash")]
    assert [one["data"]["values"][0]["ideal"] for one in ideals] == [0.0]


def test_one_number_makes_no_chart_and_no_script():
    results = Results((row("a"), row("b", value=None, low=None, high=None, reason="nobody")))
    assert charts(results) == []
    html = page.render(results)
    assert "blob:" not in html
    assert "charts-library" not in html


def test_numbers_without_any_interval_make_no_chart():
    assert charts(Results(tuple(table("a", "b", low=None, high=None)))) == []


def test_at_most_six_terms_are_drawn_the_main_ones_first():
    plain = [row(name, f"t{n}", ideal=None) for n in range(9) for name in "ab"]
    main = [row(name, term) for term in ("error", "ruled") for name in "ab"]
    (made,) = charts(Results((*plain, *main)))
    assert [panel.name for panel in made.panels] == ["t0", "t1", "t2", "t3", "error", "ruled"]
    assert "6 of 11 terms with 95 % CIs are drawn." in made.explanation


def test_words_are_drawn_as_they_are_ranked():
    rows = [row("s", "z", "g", n / 10, n / 10 - 0.1, n / 10 + 0.1, f"w{n}", p=1 / (n + 2)) for n in range(30)]
    (made,) = charts(Results(tuple(rows)))
    (panel,) = made.panels
    assert panel.name == "s · g · z"
    assert [one["label"] for one in drawn_points(panel.spec)] == [f"w{n}" for n in range(29, 17, -1)]


def test_one_wide_interval_does_not_squeeze_the_rest():
    (made,) = charts(Results((*(row(name) for name in "abcd"), row("e", high=500.0))))
    (panel,) = made.panels
    (point,) = [one for one in drawn_points(panel.spec) if one["past high"]]
    assert point["high"] < 2
    assert "[0.100, 500.000]" in point.values()


def test_many_lines_fall_back_to_all_people_and_say_so():
    names = [f"s{n}" for n in range(40)]
    (made,) = charts(Results(tuple(table(*names))))
    assert {len(drawn_points(panel.spec)) for panel in made.panels} == {40}
    assert "80 of 160 numbers are drawn." in made.explanation


def test_names_are_data_and_nothing_else():
    """Were a name used as a field, a title or an expression, it would stand outside the data."""
    (made,) = charts(Results(tuple(table(*ODD))))

    def outside(value):
        if isinstance(value, dict):
            return [
                text
                for key, one in value.items()
                if key not in ("data", "domain")
                for text in (key, *outside(one))
            ]
        return [text for one in value for text in outside(one)] if isinstance(value, list) else [value]

    names = {name.replace("\x00", "\ufffd") for name in ODD} - {"#0072B2"}
    for panel in made.panels:
        assert not names & {text for text in outside(panel.spec) if isinstance(text, str)}


@pytest.mark.parametrize("paper", PAPER)
def test_colours_stand_out_from_the_paper(paper):
    def light(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    for colour in (*_COLORS, _NEUTRAL):
        dark, bright = sorted(
            (light(DARK_COLORS[colour] if paper == "dark" else colour), light(PAPER[paper]))
        )
        assert (bright + 0.05) / (dark + 0.05) >= 3


def test_a_point_tells_its_value_and_interval(opened):
    results = Results(tuple(table("faithful", "other", value=0.25, low=0.125, high=0.5)))
    tab = opened(page.render(results))
    all_drawn(tab).first.locator("path[fill='#0072B2']").first.hover(force=True)
    tip = tab.locator("#vg-tooltip-element")
    expect(tip).to_be_visible()
    said = dict(
        zip(tip.locator(".key").all_inner_texts(), tip.locator(".value").all_inner_texts(), strict=True)
    )
    assert {key.rstrip(":"): value for key, value in said.items()} == {
        "system": "faithful", "group": "all", "term": "right", "value": f"{format_number(0.25, 'share')} share",
        "95 % CI": "[0.125, 0.500]", "n": "400 images",
    }  # fmt: skip


def test_odd_names_show_as_text_and_run_nothing(opened):
    results = Results(tuple(table(*ODD)))
    html = page.render(results)
    assert MARKUP not in html
    tab = opened(html)
    plot = all_drawn(tab).first
    shown = plot.locator("text").all_text_contents()
    for name in ODD:
        name = " ".join(name.replace("\x00", "\ufffd").split())
        assert any(
            " ".join(text.split()) == name or name.startswith(text.rstrip("… ")) for text in shown if text
        ), name
    names = plot.locator("text[font-weight='600']")
    assert names.count() == len(ODD)
    for n, name in ((0, MARKUP), (5, ODD[5].strip())):  # what is cut is whole in the tooltip
        names.nth(n).hover(force=True)
        expect(tab.locator("#vg-tooltip-element")).to_contain_text(name)
    assert tab.locator("#vg-tooltip-element img").count() == 0
    plot.locator("path[fill='#0072B2']").first.hover(force=True)
    expect(tab.locator("#vg-tooltip-element")).to_contain_text(MARKUP)
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_charts_follow_the_theme(opened):
    tab = opened(page.render(Results(tuple(table("a", "b")))))
    plot = all_drawn(tab).first
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)
    ink = plot.locator("text").first.get_attribute("fill")
    tab.locator("#theme").click()
    expect(plot.locator(f"path[fill='{DARK_COLORS['#0072B2']}']")).to_have_count(2)
    assert plot.locator("text").first.get_attribute("fill") != ink
    tab.locator("#theme").click()
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)
    tab.emulate_media(color_scheme="dark")  # the reader's choice stays
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)


def test_charts_come_when_they_are_near_and_fit_a_phone(opened):
    rows = [replace(m, metric=f"m{n}", id="") for n in range(25) for m in table("faithful", "stereotyping")]
    tab = opened(page.render(Results(tuple(rows))), viewport={"width": 360, "height": 700})
    plots = tab.locator(".plot")
    assert 0 < plots.locator("svg").count() < plots.count()
    plots.last.scroll_into_view_if_needed()
    plots.last.locator("svg").wait_for()
    for svg in all_drawn(tab).locator("svg").all():
        box = svg.bounding_box()
        assert 250 < box["width"] <= 320
        assert svg.evaluate("one => one.viewBox.baseVal.width") == pytest.approx(box["width"], abs=2)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.set_viewport_size({"width": 1100, "height": 700})
    expect(plots.last.locator("svg")).not_to_have_attribute("width", "320")


def test_a_chart_has_words_of_its_own(opened):
    tab = opened(page.render(Results(tuple(table("a", "b")))))
    plot = all_drawn(tab).first
    assert plot.get_attribute("role") == "img"
    assert plot.get_attribute("aria-label") == (
        "right: 4 numbers with their 95 % CIs. Lowest: a all 0.200 share, 95 % CI [0.100, 0.300]. "
        "Highest: a all 0.200 share, 95 % CI [0.100, 0.300]. Ideal: 0. "
        "The table of this section holds the same numbers."
    )


def test_the_page_of_a_comparison_draws_how_far_numbers_moved(opened):
    told = {"first": 0.1, "second": 0.3, "paired": True}
    rows = [row(name, term, settings=told) for name in (MARKUP, "b") for term in ("right", "wrong")]
    results = Results(tuple(rows), provenance={"compared": ["one", "two"]})
    tab = opened(render_comparison(results))
    plot = all_drawn(tab).first
    plot.locator("path[fill='#0072B2']").first.hover(force=True)
    tip = tab.locator("#vg-tooltip-element")
    expect(tip).to_contain_text(MARKUP)
    expect(tip).to_contain_text("+0.200, 95 % CI [0.100, 0.300]")


def test_drawings_in_the_page_are_those_of_its_tables():
    results = Results(tuple(table("a", "b")))
    html = page.render(results)
    inside = unpack_json(re.search(r'id="charts">(.*?)</script>', html, re.DOTALL).group(1))
    panels = [panel for made in charts(results) for panel in made.panels]
    assert [one["layer"] for one in inside["specs"]] == [panel.spec["layer"] for panel in panels]
    assert not any("$schema" in one or "background" in one for one in inside["specs"])
    assert len(make_tables(results)) == 1


def test_many_groups_of_one_system_are_drawn_as_far_as_there_is_room():
    rows = [row("one", group=f"g{n}") for n in range(60)]
    (made,) = charts(Results((row("one"), *rows)))
    assert len(drawn_points(made.panels[0].spec)) == 48
    assert "48 of 61 numbers are drawn." in made.explanation


def test_panels_of_one_name_stand_beside_each_other():
    rows = [row(None), row(None, group="female"), *(row(None, item=f"word{n}", p=0.01) for n in range(5))]
    panels = [panel for made in charts(Results(tuple(rows))) for panel in made.panels]
    assert sorted(len(drawn_points(panel.spec)) for panel in panels) == [2, 5]


def test_what_is_undefined_did_not_lack_room():
    (made,) = charts(
        Results((row("one"), row("two"), row("three", value=None, low=None, high=None, reason="none")))
    )
    assert "1 undefined number is not drawn." in made.explanation
    assert "numbers are drawn" not in made.explanation


def test_numbers_that_no_axis_holds_are_not_drawn():
    assert charts(Results((row("one", value=1.5e308), row("two", value=-1.5e308)))) == []


def test_an_interval_beyond_the_axis_ends_at_its_edge():
    rows = [row(f"s{n}", value=0.01, low=-0.1, high=0.1) for n in range(6)]
    (made,) = charts(Results((*rows, row("far", value=0.01, low=5.0, high=6.0))))
    spec = made.panels[0].spec
    low, high = next(layer for layer in spec["layer"] if layer["encoding"]["x"].get("field") == "at")[
        "encoding"
    ]["x"]["scale"]["domain"]
    (rule,) = [layer for layer in layers(spec, "rule") if layer["mark"].get("opacity") == 0.75]
    assert all(low <= one["low"] <= one["high"] <= high for one in rule["data"]["values"])
