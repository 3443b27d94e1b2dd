"""Interactive charts of the page: offline, with every interval, and with escaped names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from portrayal.report.charts.intervals import interval_chart, system_names
from portrayal.report.charts.vega import _COLORS, _NEUTRAL_COLOR, DARK_COLORS
from portrayal.report.page import page
from portrayal.report.page.comparison import render as render_comparison
from portrayal.report.page.embedded import unpack_json
from portrayal.report.page.page import page_tables
from portrayal.report.tables.layout import format_number, make_tables
from portrayal.results import TOO_FEW_REASON, Measurement, Results
from tests.report.drawn import rendered_charts

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
BACKGROUNDS = {"light": "#fdfcf9", "dark": "#17161b"}


def row(system, term="wrong", group=None, value=0.2, low=0.1, high=0.3, item=None, **overrides):
    defaults = {
        "metric": "error",
        "attribute": "gender",
        "unit": "share",
        "n": 400,
        "n_unit": "images",
        "ideal": 0.0,
    }
    return Measurement(
        term=term,
        system=system,
        group=group,
        item=item,
        value=value,
        low=low,
        high=high,
        **defaults | overrides,
    )


def measurement_rows(*names, **fields):
    return [
        row(name, term, group, **fields)
        for name in names
        for term in ("right", "wrong")
        for group in (None, "female")
    ]


def charts(results):
    return [
        chart for table in page_tables(results) if (chart := interval_chart(table, system_names(results)))
    ]


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def drawn_points(spec, filled=None):
    point_layers = [layer for layer in layers(spec, "point") if "shape" in layer["encoding"]]
    return [
        point
        for layer in point_layers
        if filled in (None, layer["mark"]["filled"])
        for point in layer["data"]["values"]
    ]


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a page from disk; fails on any console message, and on any request for something outside it."""
    complaints, contexts = [], []

    def open_tab(html, **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **options))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        tab.on(
            "request",
            lambda request: complaints.append(request.url) if not is_own_address(request.url, path) else None,
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-charts]", state="attached")
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert complaints == []


def is_own_address(address, path):
    return address == path.as_uri() or address.startswith(("blob:null/", "data:image/"))


def test_chart_has_every_interval_and_no_undefined_number():
    rows = [
        *measurement_rows("a", "b"),
        row("c", value=None, low=None, high=None, reason="nobody"),
        row("c", "right"),
        row("d", low=None, high=None),
        row("d", "right", reason=f"{TOO_FEW_REASON} images", n=9),
    ]
    (chart,) = charts(Results(tuple(rows)))
    assert [panel.name for panel in chart.panels] == ["right", "wrong"]
    for panel in chart.panels:
        known = [m for m in rows if m.term == panel.name and m.value is not None]
        assert len(drawn_points(panel.spec)) == len(known)
        intervals = [
            layer["data"]["values"] for layer in layers(panel.spec, "rule") if "x2" in layer["encoding"]
        ][1]
        assert sorted((interval["low"], interval["high"]) for interval in intervals) == sorted(
            (m.low, m.high) for m in known if m.low
        )
    right, wrong = chart.panels
    assert [point["label"] for point in drawn_points(right.spec, filled=False)] == ["all"]
    assert drawn_points(wrong.spec, filled=False) == []
    assert "1 undefined number is not drawn." in chart.explanation
    assert "Hollow: rests on fewer than 30 images." in chart.explanation
    ideal_lines = [layer for layer in layers(right.spec, "rule") if layer["mark"].get("strokeDash")]
    assert [layer["data"]["values"][0]["ideal"] for layer in ideal_lines] == [0.0]


def test_single_number_has_no_chart_and_no_script():
    results = Results((row("a"), row("b", value=None, low=None, high=None, reason="nobody")))
    assert charts(results) == []
    html = page.render(results)
    assert "blob:" not in html
    assert "charts-library" not in html


def test_numbers_without_any_interval_have_no_chart():
    assert charts(Results(tuple(measurement_rows("a", "b", low=None, high=None)))) == []


def test_chart_has_at_most_six_terms_and_prefers_main_terms():
    plain = [row(name, f"t{n}", ideal=None) for n in range(9) for name in "ab"]
    main = [row(name, term) for term in ("error", "ruled") for name in "ab"]
    (chart,) = charts(Results((*plain, *main)))
    assert [panel.name for panel in chart.panels] == ["t0", "t1", "t2", "t3", "error", "ruled"]
    assert "6 of 11 terms with 95 % CIs are drawn." in chart.explanation


def test_words_in_the_chart_are_ranked():
    rows = [row("s", "z", "g", n / 10, n / 10 - 0.1, n / 10 + 0.1, f"w{n}", p=1 / (n + 2)) for n in range(30)]
    (chart,) = charts(Results(tuple(rows)))
    (panel,) = chart.panels
    assert panel.name == "s · g · z"
    assert [point["label"] for point in drawn_points(panel.spec)] == [f"w{n}" for n in range(29, 17, -1)]


def test_single_wide_interval_does_not_compress_the_others():
    (chart,) = charts(Results((*(row(name) for name in "abcd"), row("e", high=500.0))))
    (panel,) = chart.panels
    (point,) = [point for point in drawn_points(panel.spec) if point["past high"]]
    assert point["high"] < 2
    assert "[0.100, 500.000]" in point.values()


def test_many_lines_fall_back_to_all_people_with_a_note():
    names = [f"s{n}" for n in range(40)]
    (chart,) = charts(Results(tuple(measurement_rows(*names))))
    assert {len(drawn_points(panel.spec)) for panel in chart.panels} == {40}
    assert "80 of 160 numbers are drawn." in chart.explanation


def test_names_appear_only_in_the_data_of_a_spec():
    """A name used as a field, a title or an expression would appear outside the data."""
    (chart,) = charts(Results(tuple(measurement_rows(*ODD))))

    def texts_outside_data(node):
        if isinstance(node, dict):
            return [
                text
                for key, child in node.items()
                if key not in ("data", "domain")
                for text in (key, *texts_outside_data(child))
            ]
        return (
            [text for child in node for text in texts_outside_data(child)]
            if isinstance(node, list)
            else [node]
        )

    names = {name.replace("\x00", "\ufffd") for name in ODD} - {"#0072B2"}
    for panel in chart.panels:
        assert not names & {text for text in texts_outside_data(panel.spec) if isinstance(text, str)}


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_colours_contrast_with_the_background(theme):
    def luminance(colour):
        channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [
            channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
            for channel in channels
        ]
        return sum(channel * weight for channel, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    for colour in (*_COLORS, _NEUTRAL_COLOR):
        darker, brighter = sorted(
            (luminance(DARK_COLORS[colour] if theme == "dark" else colour), luminance(BACKGROUNDS[theme]))
        )
        assert (brighter + 0.05) / (darker + 0.05) >= 3


def test_tooltip_shows_value_and_interval(open_page):
    results = Results(tuple(measurement_rows("faithful", "other", value=0.25, low=0.125, high=0.5)))
    tab = open_page(page.render(results))
    rendered_charts(tab).first.locator("path[fill='#0072B2']").first.hover(force=True)
    tooltip = tab.locator("#vg-tooltip-element")
    expect(tooltip).to_be_visible()
    tooltip_fields = dict(
        zip(
            tooltip.locator(".key").all_inner_texts(),
            tooltip.locator(".value").all_inner_texts(),
            strict=True,
        )
    )
    assert {key.rstrip(":"): value for key, value in tooltip_fields.items()} == {
        "system": "faithful", "group": "all", "term": "right", "value": f"{format_number(0.25, 'share')} share",
        "95 % CI": "[0.125, 0.500]", "n": "400 images",
    }  # fmt: skip


def test_hostile_names_are_shown_as_text_and_run_nothing(open_page):
    results = Results(tuple(measurement_rows(*ODD)))
    html = page.render(results)
    assert MARKUP not in html
    tab = open_page(html)
    plot = rendered_charts(tab).first
    texts = plot.locator("text").all_text_contents()
    for name in ODD:
        name = " ".join(name.replace("\x00", "\ufffd").split())
        assert any(
            " ".join(text.split()) == name or name.startswith(text.rstrip("… ")) for text in texts if text
        ), name
    names = plot.locator("text[font-weight='600']")
    assert names.count() == len(ODD)
    for n, name in ((0, MARKUP), (5, ODD[5].strip())):  # truncated names are complete in the tooltip
        names.nth(n).hover(force=True)
        expect(tab.locator("#vg-tooltip-element")).to_contain_text(name)
    assert tab.locator("#vg-tooltip-element img").count() == 0
    plot.locator("path[fill='#0072B2']").first.hover(force=True)
    expect(tab.locator("#vg-tooltip-element")).to_contain_text(MARKUP)
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_charts_follow_the_theme(open_page):
    tab = open_page(page.render(Results(tuple(measurement_rows("a", "b")))))
    plot = rendered_charts(tab).first
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)
    ink = plot.locator("text").first.get_attribute("fill")
    tab.locator("#theme").click()
    expect(plot.locator(f"path[fill='{DARK_COLORS['#0072B2']}']")).to_have_count(2)
    assert plot.locator("text").first.get_attribute("fill") != ink
    tab.locator("#theme").click()
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)
    tab.emulate_media(color_scheme="dark")  # the reader's choice stays
    expect(plot.locator("path[fill='#0072B2']")).to_have_count(2)


def test_charts_are_rendered_lazily_and_fit_a_phone(open_page):
    rows = [
        replace(m, metric=f"m{n}", id="")
        for n in range(25)
        for m in measurement_rows("faithful", "stereotyping")
    ]
    tab = open_page(page.render(Results(tuple(rows))), viewport={"width": 360, "height": 700})
    plots = tab.locator(".plot")
    assert 0 < plots.locator("svg").count() < plots.count()
    plots.last.scroll_into_view_if_needed()
    plots.last.locator("svg").wait_for()
    for svg in rendered_charts(tab).locator("svg").all():
        box = svg.bounding_box()
        assert 250 < box["width"] <= 320
        assert svg.evaluate("svg => svg.viewBox.baseVal.width") == pytest.approx(box["width"], abs=2)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.set_viewport_size({"width": 1100, "height": 700})
    expect(plots.last.locator("svg")).not_to_have_attribute("width", "320")


def test_chart_has_an_aria_label(open_page):
    tab = open_page(page.render(Results(tuple(measurement_rows("a", "b")))))
    plot = rendered_charts(tab).first
    assert plot.get_attribute("role") == "img"
    assert plot.get_attribute("aria-label") == (
        "right: 4 numbers with their 95 % CIs. Lowest: a all 0.200 share, 95 % CI [0.100, 0.300]. "
        "Highest: a all 0.200 share, 95 % CI [0.100, 0.300]. Ideal: 0. "
        "The table of this section holds the same numbers."
    )


def test_comparison_page_has_a_chart_of_the_differences(open_page):
    settings = {"first": 0.1, "second": 0.3, "paired": True}
    rows = [row(name, term, settings=settings) for name in (MARKUP, "b") for term in ("right", "wrong")]
    results = Results(tuple(rows), provenance={"compared": ["one", "two"]})
    tab = open_page(render_comparison(results))
    plot = rendered_charts(tab).first
    plot.locator("path[fill='#0072B2']").first.hover(force=True)
    tooltip = tab.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text(MARKUP)
    expect(tooltip).to_contain_text("+0.200, 95 % CI [0.100, 0.300]")


def test_embedded_specs_are_those_of_the_tables():
    results = Results(tuple(measurement_rows("a", "b")))
    html = page.render(results)
    embedded = unpack_json(re.search(r'id="charts">(.*?)</script>', html, re.DOTALL).group(1))
    panels = [panel for chart in charts(results) for panel in chart.panels]
    assert [spec["layer"] for spec in embedded["specs"]] == [panel.spec["layer"] for panel in panels]
    assert not any("$schema" in spec or "background" in spec for spec in embedded["specs"])
    assert len(make_tables(results)) == 1


def test_number_of_groups_in_a_chart_is_limited():
    rows = [row("one", group=f"g{n}") for n in range(60)]
    (chart,) = charts(Results((row("one"), *rows)))
    assert len(drawn_points(chart.panels[0].spec)) == 48
    assert "48 of 61 numbers are drawn." in chart.explanation


def test_panels_of_the_same_name_are_side_by_side():
    rows = [row(None), row(None, group="female"), *(row(None, item=f"word{n}", p=0.01) for n in range(5))]
    panels = [panel for chart in charts(Results(tuple(rows))) for panel in chart.panels]
    assert sorted(len(drawn_points(panel.spec)) for panel in panels) == [2, 5]


def test_undefined_numbers_are_not_counted_as_omitted():
    (chart,) = charts(
        Results((row("one"), row("two"), row("three", value=None, low=None, high=None, reason="none")))
    )
    assert "1 undefined number is not drawn." in chart.explanation
    assert "numbers are drawn" not in chart.explanation


def test_numbers_beyond_any_axis_are_not_drawn():
    assert charts(Results((row("one", value=1.5e308), row("two", value=-1.5e308)))) == []


def test_an_interval_beyond_the_axis_ends_at_its_edge():
    rows = [row(f"s{n}", value=0.01, low=-0.1, high=0.1) for n in range(6)]
    (chart,) = charts(Results((*rows, row("far", value=0.01, low=5.0, high=6.0))))
    spec = chart.panels[0].spec
    low, high = next(layer for layer in spec["layer"] if layer["encoding"]["x"].get("field") == "at")[
        "encoding"
    ]["x"]["scale"]["domain"]
    (rule,) = [layer for layer in layers(spec, "rule") if layer["mark"].get("opacity") == 0.75]
    assert all(low <= interval["low"] <= interval["high"] <= high for interval in rule["data"]["values"])
