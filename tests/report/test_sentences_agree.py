"""No sentence on a page contradicts a number in its section.

Pages of twenty studies are read as a person would: names and numbers out of the text, held against the rows. Nothing
of the code that writes the sentences is used.
"""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from portrayal.lab.captioners import Captioner
from portrayal.lab.study import make_study
from portrayal.metrics import METRICS
from portrayal.report.page.page import render
from portrayal.results import Measurement, Results

STUDIES = 20
SCENES = 160
_SENTENCE = re.compile(r'<li data-state="(?P<state>[^"]+)" data-row="(?P<id>[^"]+)">(?P<text>[^<]*)')
_NUMBER = r"-?[\d,]+(?:\.\d+)?(?:e-?\d+)?"
_GROUPS = re.compile(
    rf": (?P<a>{_NUMBER})(?: %| times)? for (?P<first>[\w+]+), (?P<b>{_NUMBER})(?: %| times)? for "
    rf"(?P<second>[\w+]+); "
    rf"difference (?P<gap>[+-]?{_NUMBER})(?: points)? \(95 % CI \[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\]\)"
    rf"(?:; human captions (?P<c>{_NUMBER})(?: %)? and (?P<d>{_NUMBER}))?"
)
_HUMAN = re.compile(
    rf": (?P<a>{_NUMBER})(?: %)?, human captions (?P<b>{_NUMBER})(?: %)?; "
    rf"difference (?P<gap>[+-]?{_NUMBER})(?: points)? "
    rf"\(95 % CI \[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\]\)"
)
_IDEAL = re.compile(
    rf": (?P<a>[+-]?{_NUMBER})(?: points| times)? \(95 % CI \[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\]\)"
)
_ABOVE = (
    " more often",
    " more strongly",
    " more than",
    " better from",
    "easier to classify",
    "takes ",
    "first more often",
)
_BELOW = (" less often", " less strongly", " less than", " less like", " worse from", "harder to classify")


def study_results(number):
    """A small study with whatever faults its number draws."""
    rng = np.random.default_rng(number)
    groups = ("female", "male")

    def dial(most):
        return {group: float(rng.uniform(0, most) * (rng.random() < 0.5)) for group in groups}

    captioners = [
        Captioner(
            name, wrong_group=dial(0.5), erasure=dial(0.6), demeaning=dial(0.4), hallucination=dial(0.6),
            neutral=dial(0.8), amplification=float(rng.random() < 0.4), guessed_group=float(rng.random() < 0.4),
        )
        for name in ("amber", "birch")
    ]  # fmt: skip
    study = make_study(SCENES, seed=number, captioners=captioners)
    options = {
        "error": {"bootstrap": 50},
        "naming-ratio": {"bootstrap": 50},
        "amplification": {"bootstrap": 50},
        "quality": {"bootstrap": 50},
    }
    if number < 2:  # the slower ones, whose sentences are made in the same ways
        options["leakage"] = {"bootstrap": 50}
        terms = ("demeaning.people-not-mentioned", "demeaning.words", "stereotyping.incorrect-word")
        options["harms"] = {"bootstrap": 50, "stage": ("3", "4"), "measurement": terms}
    parts = [METRICS[name](study, **given) for name, given in options.items()]
    return Results.join(parts, {"cards": {name: METRICS[name].card.as_dict() for name in options}})


def near(text, value, unit):
    """Whether a number of the text is a row's value, as far as it was written out."""
    digits = len(text.partition(".")[2].partition("e")[0])
    scale = 100 if unit == "share" else 1
    return abs(float(text.replace(",", "")) - scale * value) <= 0.51 * 10**-digits + 1e-9 * abs(scale * value)


def same(row, rows, **changed):
    """The rows that differ from `row` in what is said to be changed, and in settings where the source changes."""
    about = {
        name: getattr(row, name)
        for name in ("metric", "term", "system", "attribute", "group", "item", "unit")
    }
    about |= changed
    return [
        m
        for m in rows
        if all(getattr(m, name) == value for name, value in about.items())
        and (changed.get("system") or m.settings == row.settings)
    ]


def direction(text):
    """What the words before the numbers claim: 1 above, -1 below, None where they claim nothing."""
    words = f" {text.partition(':')[0].lower()}"
    above, below = (any(sign in words for sign in signs) for signs in (_ABOVE, _BELOW))
    assert not (above and below), f"both ways at once: {text}"
    return 1 if above else -1 if below else None


def contradictions(text, state, row, rows):
    """What a sentence says that its rows do not."""
    wrong = []

    def check(holds, what):
        if not holds:
            wrong.append(what)

    claims = state in ("finding", "observed")
    check(row.system in text, "the system is not named")
    check(
        claims
        == (
            not text.startswith(
                (
                    "Not significant",
                    "Suggestive",
                    "Not shown",
                    "Inconclusive",
                    "Undefined",
                    "Too few",
                    "Cannot be",
                )
            )
        ),
        "state",
    )
    groups, human, ideal = _GROUPS.search(text), _HUMAN.search(text), _IDEAL.search(text)
    found = groups or human or ideal
    if found is None:
        check(not claims or row.metric == "word-odds", "a claim without numbers")
        return wrong
    gap = float((found["gap"] if found is not ideal else found["a"]).replace(",", ""))
    low, high = float(found["low"].replace(",", "")), float(found["high"].replace(",", ""))
    if ideal is found:
        check(near(found["a"], row.value, row.unit), "value")
        check(near(found["low"], row.low, row.unit), "low")
        check(near(found["high"], row.high, row.unit), "high")
        gap, low, high = ((number - (row.ideal or 0.0)) for number in (gap, low, high))
    else:
        if groups is found:
            check(row.group == found["first"], "the row is not of the group that is named first")
            others = same(row, rows, group=found["second"])
            if found["c"]:
                check(
                    any(near(found["c"], m.value, m.unit) for m in same(row, rows, system="human")), "human"
                )
        else:
            others = same(row, rows, system="human")
        check(near(found["a"], row.value, row.unit), "first value")
        check(any(m.value is not None and near(found["b"], m.value, m.unit) for m in others), "second value")
        scale = 100 if row.unit == "share" else 1
        other = next((m.value for m in others if near(found["b"], m.value, m.unit)), 0.0)
        check(abs(gap - scale * (row.value - other)) <= 0.06 + 0.01 * abs(gap), "difference")
    check(low <= gap + 1e-9 and gap - 1e-9 <= high, "the interval does not hold the difference")
    if claims:
        side = direction(text)
        check(side is not None, "no direction")
        check(side is None or side * gap > 0, "the words say another direction than the numbers")
        check(low >= 0 or high <= 0, "claimed, but the interval holds 0")
    return wrong


def read_page(results):
    rows = {m.id: m for m in results.measurements}
    for found in _SENTENCE.finditer(render(results)):
        text = html.unescape(found["text"]).strip()
        yield found["state"], text, rows[found["id"]]


@pytest.mark.parametrize("number", range(STUDIES))
def test_no_sentence_contradicts_its_rows(number):
    results = study_results(number)
    sentences = list(read_page(results))
    assert len(sentences) > 10
    wrong = {
        text: faults
        for state, text, row in sentences
        if (faults := contradictions(text, state, row, results.measurements))
    }
    assert not wrong


def row(term, value, low, high, **more):
    given = {"system": "oscar", "attribute": "gender", "unit": "share", "n": 99}
    return Measurement("error", term, value=value, low=low, high=high, **{**given, **more})


def test_the_reader_sees_what_is_wrong():
    """Sentences as they once were, or as they could be: each is caught."""
    female = row("error", 0.14, 0.11, 0.17, group="female")
    male = row("error", 0.04, 0.02, 0.06, group="male")
    rows = [female, male]
    numbers = ": 14.0 % for female, 4.0 % for male; difference +10.0 points (95 % CI [6.4, 13.6])."
    good = f"oscar names the wrong gender more often for female than for male{numbers}"
    assert contradictions(good, "finding", female, rows) == []
    assert "state" in contradictions(good, "inconclusive", female, rows)
    for broken, fault in (
        (good.replace("more often", "less often"), "the words say another direction than the numbers"),
        (good.replace("oscar", "sat"), "the system is not named"),
        (good.replace("14.0", "15.0"), "first value"),
        (good.replace("4.0 % for male", "5.0 % for male"), "second value"),
        (good.replace("+10.0", "+12.0"), "difference"),
        (good.replace("[6.4", "[-0.4"), "claimed, but the interval holds 0"),
        (
            good.replace("14.0 % for female, 4.0 % for male", "4.0 % for male, 14.0 % for female"),
            "first value",
        ),
    ):
        assert fault in contradictions(broken, "finding", female, rows)
    whole = row("ba", -0.026, -0.04, -0.01, ideal=0.0)
    text = (
        "oscar associates objects with gender more strongly than the images do (ba): "
        "-2.6 points (95 % CI [-4.0, -1.0])."
    )
    assert "the words say another direction than the numbers" in contradictions(
        text, "finding", whole, [whole]
    )
