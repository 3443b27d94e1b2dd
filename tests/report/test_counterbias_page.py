"""The page's part for counterbias: its numbers by hand, what is left out, and that names and texts stay text."""

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

from portrayal.report import write_page
from portrayal.report.charts import counterbias_data as data
from portrayal.report.charts.counterbias import MAX_CONCEPTS, counterbias_charts
from portrayal.report.charts.vega import color_scale
from portrayal.report.page import page
from portrayal.report.page.instances import MAX_EXAMPLES, counterfactual_examples
from portrayal.results import EVIDENCE_SCHEMA, THUMBNAILS_SCHEMA, Measurement, Results
from tests.report.drawn import all_drawn

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
TIES = {"fishing": "male", "driving": "male", "sewing": "female", "shopping": "female"}


def row(term: str, value: float | None, system: str, item: str | None, **settings: Any) -> Measurement:
    settings = {"attack": "pgd", "groups": GROUPS, "kind": "activity", "template": "all"} | settings
    wide = None if value is None or item is None or term == "b@text" else 2.5
    return Measurement(
        "counterbias",
        term,
        system=system,
        attribute="gender",
        item=item,
        value=value,
        low=None if wide is None or value is None else value - wide,
        high=None if wide is None or value is None else value + wide,
        unit="percent" if term != "b@text" else None,
        reason="the attack failed" if value is None else None,
        settings=settings,
    )


def rows(system: str, said: Mapping[str, tuple[float, ...]], **settings: Any) -> list[Measurement]:
    made = []
    for number, term in enumerate(data.TERMS[:3]):
        sizes = [abs(values[number]) for values in said.values()]
        made.append(row(term, sum(sizes) / len(sizes), system, None, **settings))
        made += [row(term, values[number], system, name, **settings) for name, values in said.items()]
        made.append(row(term, None, system, "flying", **settings))
        made.append(row(term, 99.0, system, "fishing", **settings | {"template": "S"}))
        made.append(replace(made[1], group="male", value=77.0, low=None, high=None, id=""))
    return made


def texts(system: str, said: Mapping[str, tuple[float, ...]], **settings: Any) -> list[Measurement]:
    mean = sum(abs(values[3]) for values in said.values()) / len(said)
    return [
        row("b@text", mean, system, None, **settings),
        *(row("b@text", values[3], system, name, **settings) for name, values in said.items()),
    ]


def picture(colour: int) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (48, 48), (colour % 256, 90, 160)).save(held, "WEBP")
    return held.getvalue()


def told(
    measurements: list[Measurement], each: int = 2
) -> tuple[list[tuple[str, ...]], list[tuple[str, bytes]]]:
    """Evidence of the b@v-l rows, and pictures; the last instance of a concept has no counterfactual."""
    evidence, pictures = [], {}
    for m in measurements:
        if m.term != "b@v-l" or m.item is None or m.group is not None or m.settings["template"] != "all":
            continue
        for n in range(each * 2):
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
            pictures[image] = picture(n)
            if n < each * 2 - 1:
                pictures[f"{image}#{m.system}#{m.settings['attack']}#counterfactual"] = picture(100 + n)
                pictures[f"{image}#{m.system}#{m.settings['attack']}#difference"] = picture(200 + n)
    return evidence, list(pictures.items())


def made(measurements: list[Measurement], **provenance: Any) -> Results:
    evidence, pictures = told(measurements)
    return Results(
        tuple(measurements),
        evidence=pl.DataFrame(evidence, schema=EVIDENCE_SCHEMA, orient="row"),
        thumbnails=pl.DataFrame(pictures, schema=THUMBNAILS_SCHEMA, orient="row"),
        provenance={"stereotypes": TIES} | provenance,
    )


@pytest.fixture(scope="module")
def results() -> Results:
    exact = {name: tuple(2 * value for value in values) for name, values in LEFT.items()}
    exact["fishing"] = (20.0, 20.0, 8.0, 1.2)
    return made(
        [
            *rows("left <i>", LEFT),
            *texts("left <i>", LEFT),
            *rows("right", RIGHT),
            *texts("right", RIGHT),
            *texts("bert", {"sewing": (0, 0, 0, -0.5), "fishing": (0, 0, 0, 0.3)}),
            *rows("left <i>", exact, attack="exact"),
        ]
    )


def chart(results: Results, title: str) -> Any:
    (part,) = counterbias_charts(results)
    return next(one for one in part.charts if one.title.startswith(title))


def test_which_charts_there_are(results):
    (part,) = counterbias_charts(results)
    assert part.heading == "activity · gender"
    titles = [one.title for one in part.charts]
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
    for one in part.charts:
        for panel in one.panels:
            assert panel.summary in panel.alt
            assert "results.json" in panel.alt


def test_concepts_come_sorted_and_only_what_is_defined(results):
    one = chart(results, "Bias of each concept (pgd")
    assert [panel.name for panel in one.panels] == ["left <i>", "right"]
    drawn = one.panels[0].spec["data"]["values"]
    assert [(each["concept"], each["value"]) for each in drawn] == [
        ("fishing", 12.0), ("driving", 8.0), (MARKUP, -1.0), ("shopping", -4.0), ("sewing", -9.0),
    ]  # fmt: skip
    assert [each["by"] for each in drawn] == ["male", "male", "not known", "female", "female"]
    assert one.explanation.endswith("Left out because undefined: 1 of left <i>, 1 of right.")
    assert "2 concepts lean to male, 3 to female; the 95 % CIs of 4 of 5 exclude 0." in one.panels[0].summary
    assert "Mean size 6.8 percent" in one.panels[0].summary  # (12 + 8 + 9 + 1 + 4) / 5
    assert "← female  ·  male →" in str(one.panels[0].spec)


def test_agreement_with_raters(results):
    (panel,) = chart(results, "Do models lean").panels
    assert panel.summary.startswith("left <i> leans as raters do in 4 of 4 concepts (100 %).")
    assert chart(made(rows("m", LEFT)), "Do models lean").panels
    silent = counterbias_charts(made(rows("m", LEFT), stereotypes=None))[0].charts
    assert [one.title for one in silent] == ["Bias of each concept", "From the image, or from the text?"]


def test_quadrant_shares(results):
    """Both to the first: fishing and the markup; both to the second: sewing; apart: driving and shopping."""
    panel = chart(results, "From the image").panels[0]
    assert "both to male 40 %, both to female 20 %, image to male and text to female 20 %" in panel.summary
    assert "the other way round 20 %" in panel.summary
    assert panel.summary.endswith("As raters say in both: 2 of 4 (50 %).")
    svg = panel.svg()
    assert svg.count("20 %") >= 3
    assert "40 %" in svg


def test_the_text_alone_has_each_model_once(results):
    means, each = chart(results, "The text alone").panels
    assert means.summary == "Mean size over concepts: left <i> 0.42, right 0.21, bert 0.40."
    values = each.spec["data"]["values"]
    assert [one["by"] for one in values if one["concept"] == "fishing"] == ["left <i>", "right", "bert"]
    assert values[0]["concept"] == "fishing"
    assert values[-1]["concept"] == "sewing"
    alone = counterbias_charts(made([*rows("m", LEFT), *texts("m", LEFT)]))[0].charts
    assert "The text alone" not in [one.title for one in alone]
    only_text = counterbias_charts(Results((*texts("a", LEFT), *texts("b", RIGHT))))[0].charts
    assert [one.title for one in only_text] == ["The text alone"]


def test_exact_against_attack(results):
    one = chart(results, "Does the attack")
    assert [panel.name for panel in one.panels] == ["left <i>, b@v-l, pgd", "left <i>, b@v, pgd"]
    x, y = (20, 16, -18, -2, -8), (12, 8, -9, -1, -4)
    # sums 8 and 6; products 240 + 128 + 162 + 2 + 32 = 564; squares 1048 and 306
    by_hand = (564 - 8 * 6 / 5) / ((1048 - 8 * 8 / 5) * (306 - 6 * 6 / 5)) ** 0.5
    names = [str(n) for n in range(5)]
    assert data.pearson(dict(zip(names, x, strict=True)), dict(zip(names, y, strict=True))) == pytest.approx(
        by_hand
    )
    assert f"r = {by_hand:.2f}" in one.panels[0].summary
    assert f"r = {by_hand:.2f}" in one.panels[0].svg()
    assert "1 of left <i> exact b@v-l" in one.explanation
    assert data.pearson({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert data.pearson({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 3}) is None


def test_only_the_first_setting_is_drawn():
    other = [
        replace(
            m, settings={**m.settings, "normalize_over": "candidates"}, id="", value=m.value and m.value * 3
        )
        for m in rows("m", LEFT)
    ]
    assert counterbias_charts(made(rows("m", LEFT) + other)) == counterbias_charts(made(rows("m", LEFT)))


def test_any_number_of_groups_and_concepts():
    colour, shape = color_scale([f"g{n}" for n in range(30)] + ["not known"], neutral="not known")
    assert len(set(zip(colour["range"], shape["range"], strict=True))) == 31
    assert data.directions(["a", "b", "c"]) == ("a", "b or c")
    many = {f"c{n}": (float(n), 1.0, 1.0, 0.0) for n in range(MAX_CONCEPTS + 20)}
    one = chart(made(rows("m", many)), "Bias of each concept")
    assert len(one.panels[0].spec["data"]["values"]) == MAX_CONCEPTS
    assert "Of 100 concepts" in one.explanation


def test_instances_are_spread_and_the_largest_come_first(results):
    found = counterfactual_examples(results)
    assert len(found) == MAX_EXAMPLES
    assert {one.concept for one in found} == {*LEFT, "flying"}
    assert {one.group for one in found} == set(GROUPS)
    assert {one.system for one in found} == {"left <i>", "right"}
    for concept in LEFT:
        sizes = [one.magnitude for one in found if one.concept == concept]
        assert sizes == sorted(sizes, reverse=True)
    assert not any(one.image.endswith("3.jpg") for one in found)  # has no counterfactual
    wanted = ("fishing 2.jpg", "left <i>", "pgd")
    fishing = next(one for one in found if (one.image, one.system, one.attack) == wanted)
    assert (fishing.p_concept, fishing.p_person, fishing.p_placebo) == ((0.84, 0.57), (0.98, 0.04), 0.8)
    assert fishing.biases == {"b@v-l": 14.0, "b@v": 12.5, "b@l": None}
    assert fishing.positive_group == "male"
    undefined = next(one for one in found if one.concept == "flying")
    assert not undefined.defined
    assert counterfactual_examples(replace(results, thumbnails=results.thumbnails.clear())) == []


@pytest.mark.parametrize(
    "detail",
    [None, "no JSON", "[]", '{"target": 3, "b@v-l": NaN, "b@v": 1' + "0" * 400 + ', "present": null}'],
)
def test_evidence_of_another_make(results, detail):
    changed = results.evidence.with_columns(detail=pl.lit(detail, dtype=pl.String()))
    assert all(one.magnitude == -1 for one in counterfactual_examples(replace(results, evidence=changed)))
    assert page.render(replace(results, evidence=changed))


def test_the_page_has_each_picture_once_and_only_text_as_text(results):
    html = page.render(results)
    assert "What changes when only the person changes" in html
    assert MARKUP not in html
    assert "left <i>" not in html
    embedded = json.loads(re.search(r'id="thumbnails">(.*?)</script>', html, re.DOTALL).group(1))
    assert not [name for name in embedded if "#" in name]
    assert html.count("<article") == MAX_EXAMPLES
    assert (
        html.count('<img src="data:image/webp;base64,') == 2 * MAX_EXAMPLES
    )  # no examples: nobody said these texts
    assert html.count("<img data-image=") == MAX_EXAMPLES
    svgs = [
        panel.svg() for part in counterbias_charts(results) for one in part.charts for panel in one.panels
    ]
    assert not any("<img" in svg or "<i>" in svg for svg in svgs)
    assert page.render(results) == html


def test_a_control_character_cannot_break_a_drawing():
    strange = {**LEFT, "a\x00b": (3.0, 3.0, 3.0, 3.0)}
    for part in counterbias_charts(Results(tuple(rows("m\x07", strange)))):
        for one in part.charts:
            for panel in one.panels:
                assert not re.search("[\x00-\x08]", panel.svg())


def test_a_page_without_counterbias_has_no_such_part():
    html = page.render(Results((Measurement("m", "t", value=0.5),)))
    assert "only the person" not in html
    assert "<article" not in html
    assert counterbias_charts(Results(())) == []


def large(models: int, many: int, seed: int = 0) -> Results:
    """As a real run looks: some leaning, some noise."""
    draw = random.Random(seed)
    known = "fishing driving lifting climbing biking skating working shopping cooking washing sewing".split()
    names = [*known, *(f"concept {n}" for n in range(many))][:many]
    stereotypes = {name: GROUPS[n >= 7] for n, name in enumerate(known)}
    side = {name: {"male": 1, "female": -1}.get(stereotypes.get(name, ""), 0) for name in names}
    measured: list[Measurement] = []
    for n in range(models):
        said = {}
        for name in names:
            visual, language = draw.gauss(7 * side[name], 6), draw.gauss(3 * side[name], 3)
            said[name] = (visual * 0.7 + language, visual, language, draw.gauss(0.4 * side[name], 0.4))
        measured += [*rows(f"ALBEF-{n}", said), *texts(f"ALBEF-{n}", said)]
        if not n:
            near = {name: tuple(v + draw.gauss(0, 2) for v in values) for name, values in said.items()}
            measured += rows(f"ALBEF-{n}", near, attack="exact")
    measured += texts("BERT", {name: (0, 0, 0, draw.gauss(0.2 * side[name], 0.2)) for name in names})
    return made(measured, stereotypes=stereotypes)


def test_in_a_browser_every_picture_is_there_and_a_phone_does_not_scroll_sideways(
    browser, results, tmp_path: Path
):
    path = write_page(results, tmp_path)
    context = browser.new_context(offline=True)
    complaints: list[str] = []
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(path.as_uri())
    pictures = tab.locator(".triple img")
    assert pictures.count() == 3 * MAX_EXAMPLES
    assert pictures.evaluate_all("all => all.every(one => one.complete && one.naturalWidth > 0 && one.alt)")
    drawn = all_drawn(tab)
    assert drawn.count() > 5
    assert drawn.evaluate_all("all => all.every(one => one.getAttribute('aria-label'))")
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("td button").last.click()
    facts = tab.locator('#evidence-table tbody [data-label="target"]').first.inner_text()
    assert "factual 0.84, counterfactual 0.57" in facts
    assert tab.locator("#evidence button.image").count() == 0  # nobody said it: a model was asked
    assert tab.evaluate("window.hacked") is None
    context.close()
    assert complaints == []


def test_with_many_concepts_labels_are_as_large_on_a_phone_as_on_a_desk(browser, tmp_path: Path):
    path = write_page(large(2, 52), tmp_path)
    for scheme in ("light", "dark"):
        context = browser.new_context(
            offline=True, viewport={"width": 360, "height": 700}, color_scheme=scheme
        )
        tab = context.new_page()
        tab.goto(path.as_uri())
        shrunk = (
            all_drawn(tab)
            .locator("svg")
            .evaluate_all(
                "all => all.map(one => one.getBoundingClientRect().width / one.viewBox.baseVal.width)"
            )
        )
        assert min(shrunk) > 0.9
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        context.close()
