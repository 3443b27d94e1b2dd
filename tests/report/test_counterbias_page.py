"""Counterbias section of the page: values by hand, rows left out, and escaping of names and texts."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from portrayal.metrics.counterbias.card import CARD
from portrayal.report import write_page
from portrayal.report.charts import concept_biases as data
from portrayal.report.charts.concepts import MAX_CONCEPTS, concept_charts
from portrayal.report.charts.vega import color_scale
from portrayal.report.page import page
from portrayal.report.page.instances import MAX_EXAMPLES, counterfactual_examples
from portrayal.results import EVIDENCE_SCHEMA, THUMBNAILS_SCHEMA, Measurement, Results
from tests.report.drawn import rendered_charts

CARDS = {CARD.name: CARD.as_dict()}
MARKUP = '<img src=x onerror="window.hacked=1">'
GROUPS = ["male", "female"]
# By concept: b@v-l, b@v, b@l and b@text.
LEFT = {
    "fishing": (12.0, 10.0, 4.0, 0.6),
    "driving": (8.0, 6.0, -2.0, 0.2),
    "sewing": (-9.0, -7.0, -3.0, -0.8),
    MARKUP: (-1.0, 2.0, 1.0, 0.1),
    "shopping": (-4.0, -3.0, 2.0, -0.4),
}
RIGHT = {name: (row[0] / 2, row[1] / 2, row[2] / 2, row[3] / 2) for name, row in LEFT.items()}
STEREOTYPES = {"fishing": "male", "driving": "male", "sewing": "female", "shopping": "female"}


def row(term: str, value: float | None, system: str, item: str | None, **settings: Any) -> Measurement:
    settings = {"attack": "pgd", "groups": GROUPS, "kind": "activity", "template": "all"} | settings
    half_width = None if value is None or item is None or term == "b@text" else 2.5
    return Measurement(
        "counterbias",
        term,
        system=system,
        attribute="gender",
        item=item,
        value=value,
        low=None if half_width is None or value is None else value - half_width,
        high=None if half_width is None or value is None else value + half_width,
        unit="percent" if term != "b@text" else None,
        reason="the attack failed" if value is None else None,
        settings=settings,
    )


def rows(
    system: str, values_by_concept: Mapping[str, tuple[float, ...]], **settings: Any
) -> list[Measurement]:
    measurements = []
    for column, term in enumerate(data.TERMS[:3]):
        sizes = [abs(values[column]) for values in values_by_concept.values()]
        measurements.append(row(term, sum(sizes) / len(sizes), system, None, **settings))
        measurements += [
            row(term, values[column], system, name, **settings) for name, values in values_by_concept.items()
        ]
        measurements.append(row(term, None, system, "flying", **settings))
        measurements.append(row(term, 99.0, system, "fishing", **settings | {"template": "S"}))
        measurements.append(replace(measurements[1], group="male", value=77.0, low=None, high=None, id=""))
    return measurements


def texts(
    system: str, values_by_concept: Mapping[str, tuple[float, ...]], **settings: Any
) -> list[Measurement]:
    mean = sum(abs(values[3]) for values in values_by_concept.values()) / len(values_by_concept)
    return [
        row("b@text", mean, system, None, **settings),
        *(row("b@text", values[3], system, name, **settings) for name, values in values_by_concept.items()),
    ]


def webp_image(colour: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (48, 48), (colour % 256, 90, 160)).save(buffer, "WEBP")
    return buffer.getvalue()


def evidence_and_thumbnails(
    measurements: list[Measurement], n_per_group: int = 2
) -> tuple[list[tuple[str, ...]], list[tuple[str, bytes]]]:
    """Evidence and thumbnails of the b@v-l rows. The last image of a concept has no counterfactual."""
    evidence, thumbnails = [], {}
    for m in measurements:
        if m.term != "b@v-l" or m.item is None or m.group is not None or m.settings["template"] != "all":
            continue
        for n in range(n_per_group * 2):
            image, group = f"{m.item} {n}.jpg", GROUPS[n % 2]
            detail = {
                "group": group,
                "concept": m.item,
                "kind": "activity",
                "target": {"factual": 0.84, "counterfactual": 0.57, "placebo": 0.8},
                "present": {"factual": 0.98, "counterfactual": 0.04},
                "b@v-l": None if m.value is None else m.value + n,
                "b@v": 12.5,
                "b@l": None,
                "defined": m.value is not None,
            }
            text = f"The {group} is [MASK] <b>{MARKUP}</b>"
            evidence.append((m.id, image, m.system, text, json.dumps(detail)))
            thumbnails[image] = webp_image(n)
            if n < n_per_group * 2 - 1:
                thumbnails[f"{image}#{m.system}#{m.settings['attack']}#counterfactual"] = webp_image(100 + n)
                thumbnails[f"{image}#{m.system}#{m.settings['attack']}#difference"] = webp_image(200 + n)
    return evidence, list(thumbnails.items())


def make_results(measurements: list[Measurement], **provenance: Any) -> Results:
    evidence, thumbnails = evidence_and_thumbnails(measurements)
    return Results(
        tuple(measurements),
        evidence=pl.DataFrame(evidence, schema=EVIDENCE_SCHEMA, orient="row"),
        thumbnails=pl.DataFrame(thumbnails, schema=THUMBNAILS_SCHEMA, orient="row"),
        provenance={"stereotypes": STEREOTYPES, "cards": CARDS} | provenance,
    )


@pytest.fixture(scope="module")
def results() -> Results:
    exact_values = {name: tuple(2 * value for value in values) for name, values in LEFT.items()}
    exact_values["fishing"] = (20.0, 20.0, 8.0, 1.2)
    return make_results(
        [
            *rows("left <i>", LEFT),
            *texts("left <i>", LEFT),
            *rows("right", RIGHT),
            *texts("right", RIGHT),
            *texts("bert", {"sewing": (0, 0, 0, -0.5), "fishing": (0, 0, 0, 0.3)}),
            *rows("left <i>", exact_values, attack="exact"),
        ]
    )


def find_chart(results: Results, title: str) -> Any:
    (section,) = concept_charts(results)
    return next(chart for chart in section.charts if chart.title.startswith(title))


def test_titles_of_the_charts(results):
    (section,) = concept_charts(results)
    assert section.heading == "activity · gender"
    titles = [chart.title for chart in section.charts]
    per_attack = [
        "Bias of each concept",
        "Do models lean the way raters do?",
        "From the image, or from the text?",
    ]
    assert titles == [
        *(f"{title} ({attack})" for attack in ("pgd", "exact") for title in per_attack),
        "The text alone",
        "Does the attack agree with exact images?",
    ]
    for chart in section.charts:
        for panel in chart.panels:
            assert panel.summary in panel.alt
            assert "results.json" in panel.alt


def test_concepts_are_sorted_and_undefined_ones_left_out(results):
    chart = find_chart(results, "Bias of each concept (pgd")
    assert [panel.name for panel in chart.panels] == ["left <i>", "right"]
    points = chart.panels[0].spec["data"]["values"]
    assert [(point["concept"], point["value"]) for point in points] == [
        ("fishing", 12.0), ("driving", 8.0), (MARKUP, -1.0), ("shopping", -4.0), ("sewing", -9.0),
    ]  # fmt: skip
    assert [point["by"] for point in points] == ["male", "male", "not known", "female", "female"]
    assert chart.explanation.endswith("Left out because undefined: 1 of left <i>, 1 of right.")
    assert (
        "2 concepts lean to male, 3 to female; the 95 % CIs of 4 of 5 exclude 0." in chart.panels[0].summary
    )
    assert "Mean size 6.8 percent" in chart.panels[0].summary  # (12 + 8 + 9 + 1 + 4) / 5
    assert "← female  ·  male →" in str(chart.panels[0].spec)


def test_agreement_with_raters(results):
    (panel,) = find_chart(results, "Do models lean").panels
    assert panel.summary.startswith("left <i> leans as raters do in 4 of 4 concepts (100 %).")
    assert find_chart(make_results(rows("m", LEFT)), "Do models lean").panels
    charts = concept_charts(make_results(rows("m", LEFT), stereotypes=None))[0].charts
    assert [chart.title for chart in charts] == ["Bias of each concept", "From the image, or from the text?"]


def test_quadrant_shares(results):
    """Both lean to male: fishing and the markup. Both to female: sewing. Opposite: driving and shopping."""
    panel = find_chart(results, "From the image").panels[0]
    assert "both to male 40 %, both to female 20 %, image to male and text to female 20 %" in panel.summary
    assert "the other way round 20 %" in panel.summary
    assert panel.summary.endswith("As raters say in both: 2 of 4 (50 %).")
    svg = panel.svg()
    assert svg.count("20 %") >= 3
    assert "40 %" in svg


def test_text_only_chart_has_each_model_once(results):
    mean_panel, concept_panel = find_chart(results, "The text alone").panels
    assert mean_panel.summary == "Mean size over concepts: left <i> 0.42, right 0.21, bert 0.40."
    points = concept_panel.spec["data"]["values"]
    assert [point["by"] for point in points if point["concept"] == "fishing"] == ["left <i>", "right", "bert"]
    assert points[0]["concept"] == "fishing"
    assert points[-1]["concept"] == "sewing"
    charts = concept_charts(make_results([*rows("m", LEFT), *texts("m", LEFT)]))[0].charts
    assert "The text alone" not in [chart.title for chart in charts]
    text_charts = concept_charts(make_results([*texts("a", LEFT), *texts("b", RIGHT)]))[0].charts
    assert [chart.title for chart in text_charts] == ["The text alone"]


def test_correlation_of_exact_images_and_attack(results):
    chart = find_chart(results, "Does the attack")
    assert [panel.name for panel in chart.panels] == ["left <i>, b@v-l, pgd", "left <i>, b@v, pgd"]
    x, y = (20, 16, -18, -2, -8), (12, 8, -9, -1, -4)
    # sums 8 and 6; products 240 + 128 + 162 + 2 + 32 = 564; squares 1048 and 306
    by_hand = (564 - 8 * 6 / 5) / ((1048 - 8 * 8 / 5) * (306 - 6 * 6 / 5)) ** 0.5
    names = [str(n) for n in range(5)]
    assert data.pearson(dict(zip(names, x, strict=True)), dict(zip(names, y, strict=True))) == pytest.approx(
        by_hand
    )
    assert f"r = {by_hand:.2f}" in chart.panels[0].summary
    assert f"r = {by_hand:.2f}" in chart.panels[0].svg()
    assert "1 of left <i> exact b@v-l" in chart.explanation
    assert data.pearson({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert data.pearson({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 3}) is None


def test_only_the_first_setting_has_charts():
    other_setting = [
        replace(
            m, settings={**m.settings, "normalize_over": "candidates"}, id="", value=m.value and m.value * 3
        )
        for m in rows("m", LEFT)
    ]
    assert concept_charts(make_results(rows("m", LEFT) + other_setting)) == concept_charts(
        make_results(rows("m", LEFT))
    )


def test_any_number_of_groups_and_concepts():
    colour, shape = color_scale([f"g{n}" for n in range(30)] + ["not known"], neutral="not known")
    assert len(set(zip(colour["range"], shape["range"], strict=True))) == 31
    assert data.directions(["a", "b", "c"]) == ("a", "b or c")
    values_by_concept = {f"c{n}": (float(n), 1.0, 1.0, 0.0) for n in range(MAX_CONCEPTS + 20)}
    chart = find_chart(make_results(rows("m", values_by_concept)), "Bias of each concept")
    assert len(chart.panels[0].spec["data"]["values"]) == MAX_CONCEPTS
    assert "Of 100 concepts" in chart.explanation


def test_examples_cover_concepts_groups_and_models_and_the_largest_come_first(results):
    examples = counterfactual_examples(results)
    assert len(examples) == MAX_EXAMPLES
    assert {example.concept for example in examples} == {*LEFT, "flying"}
    assert {example.group for example in examples} == set(GROUPS)
    assert {example.system for example in examples} == {"left <i>", "right"}
    for concept in LEFT:
        sizes = [example.magnitude for example in examples if example.concept == concept]
        assert sizes == sorted(sizes, reverse=True)
    assert not any(example.image.endswith("3.jpg") for example in examples)  # has no counterfactual
    key = ("fishing 2.jpg", "left <i>", "pgd")
    fishing = next(example for example in examples if (example.image, example.system, example.attack) == key)
    assert (fishing.p_concept, fishing.p_person, fishing.p_placebo) == ((0.84, 0.57), (0.98, 0.04), 0.8)
    assert fishing.biases == {"b@v-l": 14.0, "b@v": 12.5, "b@l": None}
    assert fishing.positive_group == "male"
    undefined = next(example for example in examples if example.concept == "flying")
    assert not undefined.defined
    assert counterfactual_examples(replace(results, thumbnails=results.thumbnails.clear())) == []


@pytest.mark.parametrize(
    "detail",
    [None, "no JSON", "[]", '{"target": 3, "b@v-l": NaN, "b@v": 1' + "0" * 400 + ', "present": null}'],
)
def test_malformed_details_of_evidence(results, detail):
    changed = results.evidence.with_columns(detail=pl.lit(detail, dtype=pl.String()))
    assert all(
        example.magnitude == -1 for example in counterfactual_examples(replace(results, evidence=changed))
    )
    assert page.render(replace(results, evidence=changed))


def test_page_has_each_image_once_and_escapes_texts(results):
    html = page.render(results)
    assert "What changes when only the person changes" in html
    assert MARKUP not in html
    assert "left <i>" not in html
    embedded = json.loads(re.search(r'id="thumbnails">(.*?)</script>', html, re.DOTALL).group(1))
    assert not [name for name in embedded if "#" in name]
    assert html.count("<article") == MAX_EXAMPLES
    assert (
        html.count('<img src="data:image/webp;base64,') == 2 * MAX_EXAMPLES
    )  # no examples: these texts are no captions
    assert html.count("<img data-image=") == MAX_EXAMPLES
    svgs = [
        panel.svg()
        for section in concept_charts(results)
        for chart in section.charts
        for panel in chart.panels
    ]
    assert not any("<img" in svg or "<i>" in svg for svg in svgs)
    assert page.render(results) == html


def test_control_characters_are_removed_from_charts():
    values_by_concept = {**LEFT, "a\x00b": (3.0, 3.0, 3.0, 3.0)}
    for section in concept_charts(make_results(rows("m\x07", values_by_concept))):
        for chart in section.charts:
            for panel in chart.panels:
                assert not re.search("[\x00-\x08]", panel.svg())


def test_page_without_counterbias_has_no_counterbias_section():
    html = page.render(Results((Measurement("m", "t", value=0.5),)))
    assert "only the person" not in html
    assert "<article" not in html
    assert concept_charts(Results(())) == []


def synthetic_results(n_models: int, n_concepts: int, seed: int = 0) -> Results:
    """Synthetic results of the size of a real run: concepts with a lean, and noise."""
    rng = random.Random(seed)
    known = "fishing driving lifting climbing biking skating working shopping cooking washing sewing".split()
    names = [*known, *(f"concept {n}" for n in range(n_concepts))][:n_concepts]
    stereotypes = {name: GROUPS[n >= 7] for n, name in enumerate(known)}
    lean = {name: {"male": 1, "female": -1}.get(stereotypes.get(name, ""), 0) for name in names}
    measurements: list[Measurement] = []
    for n in range(n_models):
        values_by_concept = {}
        for name in names:
            visual, language = rng.gauss(7 * lean[name], 6), rng.gauss(3 * lean[name], 3)
            values_by_concept[name] = (
                visual * 0.7 + language,
                visual,
                language,
                rng.gauss(0.4 * lean[name], 0.4),
            )
        measurements += [*rows(f"ALBEF-{n}", values_by_concept), *texts(f"ALBEF-{n}", values_by_concept)]
        if not n:
            exact_values = {
                name: tuple(v + rng.gauss(0, 2) for v in values) for name, values in values_by_concept.items()
            }
            measurements += rows(f"ALBEF-{n}", exact_values, attack="exact")
    measurements += texts("BERT", {name: (0, 0, 0, rng.gauss(0.2 * lean[name], 0.2)) for name in names})
    return make_results(measurements, stereotypes=stereotypes)


def test_browser_shows_every_image_and_a_phone_does_not_scroll_sideways(browser, results, tmp_path: Path):
    path = write_page(results, tmp_path)
    context = browser.new_context(offline=True)
    complaints: list[str] = []
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(path.as_uri())
    images = tab.locator(".triple img")
    assert images.count() == 3 * MAX_EXAMPLES
    assert images.evaluate_all(
        "all => all.every(image => image.complete && image.naturalWidth > 0 && image.alt)"
    )
    plots = rendered_charts(tab)
    assert plots.count() > 5
    assert plots.evaluate_all("all => all.every(plot => plot.getAttribute('aria-label'))")
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("td button").last.click()
    facts = tab.locator('#evidence-table tbody [data-label="target"]').first.inner_text()
    assert "factual 0.84, counterfactual 0.57" in facts
    assert tab.locator("#evidence button.image").count() == 0  # the prompt of a model, not a caption
    assert tab.evaluate("window.hacked") is None
    context.close()
    assert complaints == []


def test_labels_of_many_concepts_are_as_large_on_a_phone(browser, tmp_path: Path):
    path = write_page(synthetic_results(2, 52), tmp_path)
    for scheme in ("light", "dark"):
        context = browser.new_context(
            offline=True, viewport={"width": 360, "height": 700}, color_scheme=scheme
        )
        tab = context.new_page()
        tab.goto(path.as_uri())
        scales = (
            rendered_charts(tab)
            .locator("svg")
            .evaluate_all(
                "all => all.map(svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"
            )
        )
        assert min(scales) > 0.9
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        context.close()
