"""No sentence on a page contradicts a number in its section.

The test parses names and numbers from the sentences of twenty pages and compares them with the rows. It uses no code
that writes the sentences.
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


def study_results(seed):
    """Results of a small study whose biases are drawn at random from the seed."""
    rng = np.random.default_rng(seed)
    groups = ("female", "male")

    def dial(maximum):
        return {group: float(rng.uniform(0, maximum) * (rng.random() < 0.5)) for group in groups}

    captioners = [
        Captioner(
            name, wrong_group=dial(0.5), erasure=dial(0.6), demeaning=dial(0.4), hallucination=dial(0.6),
            neutral=dial(0.8), amplification=float(rng.random() < 0.4), guessed_group=float(rng.random() < 0.4),
        )
        for name in ("amber", "birch")
    ]  # fmt: skip
    study = make_study(SCENES, seed=seed, captioners=captioners)
    options = {
        "error": {"bootstrap": 50},
        "naming-ratio": {"bootstrap": 50},
        "amplification": {"bootstrap": 50},
        "quality": {"bootstrap": 50},
    }
    if seed < 2:  # slower metrics, whose sentences have the same forms
        options["leakage"] = {"bootstrap": 50}
        terms = ("demeaning.people-not-mentioned", "demeaning.words", "stereotyping.incorrect-word")
        options["harms"] = {"bootstrap": 50, "stage": ("3", "4"), "measurement": terms}
    parts = [METRICS[name](study, **arguments) for name, arguments in options.items()]
    return Results.join(parts, {"cards": {name: METRICS[name].card.as_dict() for name in options}})


def near(text, value, unit):
    """Whether a number of the text equals a row's value, up to its printed digits."""
    digits = len(text.partition(".")[2].partition("e")[0])
    scale = 100 if unit == "share" else 1
    return abs(float(text.replace(",", "")) - scale * value) <= 0.51 * 10**-digits + 1e-9 * abs(scale * value)


def counterparts(row, rows, **changed):
    """Rows equal to `row` but for the changed fields, and for the settings where the system is changed."""
    fields = {
        name: getattr(row, name)
        for name in ("metric", "term", "system", "attribute", "group", "item", "unit")
    }
    fields |= changed
    return [
        m
        for m in rows
        if all(getattr(m, name) == value for name, value in fields.items())
        and (changed.get("system") or m.settings == row.settings)
    ]


def direction(text):
    """Direction that the words before the numbers claim: 1 above, -1 below, None if none."""
    words = f" {text.partition(':')[0].lower()}"
    above, below = (any(phrase in words for phrase in phrases) for phrases in (_ABOVE, _BELOW))
    assert not (above and below), f"both ways at once: {text}"
    return 1 if above else -1 if below else None


def contradictions(text, state, row, rows):
    """Problems of a sentence: claims that its rows do not support."""
    problems = []

    def check(holds, problem):
        if not holds:
            problems.append(problem)

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
    match = groups or human or ideal
    if match is None:
        check(not claims or row.metric == "word-odds", "a claim without numbers")
        return problems
    gap = float((match["gap"] if match is not ideal else match["a"]).replace(",", ""))
    low, high = float(match["low"].replace(",", "")), float(match["high"].replace(",", ""))
    if ideal is match:
        check(near(match["a"], row.value, row.unit), "value")
        check(near(match["low"], row.low, row.unit), "low")
        check(near(match["high"], row.high, row.unit), "high")
        gap, low, high = ((number - (row.ideal or 0.0)) for number in (gap, low, high))
    else:
        if groups is match:
            check(row.group == match["first"], "the row is not of the group that is named first")
            others = counterparts(row, rows, group=match["second"])
            if match["c"]:
                check(
                    any(near(match["c"], m.value, m.unit) for m in counterparts(row, rows, system="human")),
                    "human",
                )
        else:
            others = counterparts(row, rows, system="human")
        check(near(match["a"], row.value, row.unit), "first value")
        check(any(m.value is not None and near(match["b"], m.value, m.unit) for m in others), "second value")
        scale = 100 if row.unit == "share" else 1
        other = next((m.value for m in others if near(match["b"], m.value, m.unit)), 0.0)
        check(abs(gap - scale * (row.value - other)) <= 0.06 + 0.01 * abs(gap), "difference")
    check(low <= gap + 1e-9 and gap - 1e-9 <= high, "the interval does not hold the difference")
    if claims:
        sign = direction(text)
        check(sign is not None, "no direction")
        check(sign is None or sign * gap > 0, "the words say another direction than the numbers")
        check(low >= 0 or high <= 0, "claimed, but the interval holds 0")
    return problems


def read_page(results):
    rows = {m.id: m for m in results.measurements}
    for match in _SENTENCE.finditer(render(results)):
        text = html.unescape(match["text"]).strip()
        yield match["state"], text, rows[match["id"]]


@pytest.mark.parametrize("seed", range(STUDIES))
def test_no_sentence_contradicts_its_rows(seed):
    results = study_results(seed)
    sentences = list(read_page(results))
    assert len(sentences) > 10
    problems_by_sentence = {
        text: problems
        for state, text, row in sentences
        if (problems := contradictions(text, state, row, results.measurements))
    }
    assert not problems_by_sentence


def row(term, value, low, high, **overrides):
    fields = {"system": "oscar", "attribute": "gender", "unit": "share", "n": 99}
    return Measurement("error", term, value=value, low=low, high=high, **{**fields, **overrides})


def test_contradictions_are_detected():
    """Each of these wrong sentences has its problem reported."""
    female = row("error", 0.14, 0.11, 0.17, group="female")
    male = row("error", 0.04, 0.02, 0.06, group="male")
    rows = [female, male]
    numbers = ": 14.0 % for female, 4.0 % for male; difference +10.0 points (95 % CI [6.4, 13.6])."
    correct = f"oscar names the wrong gender more often for female than for male{numbers}"
    assert contradictions(correct, "finding", female, rows) == []
    assert "state" in contradictions(correct, "inconclusive", female, rows)
    for sentence, problem in (
        (correct.replace("more often", "less often"), "the words say another direction than the numbers"),
        (correct.replace("oscar", "sat"), "the system is not named"),
        (correct.replace("14.0", "15.0"), "first value"),
        (correct.replace("4.0 % for male", "5.0 % for male"), "second value"),
        (correct.replace("+10.0", "+12.0"), "difference"),
        (correct.replace("[6.4", "[-0.4"), "claimed, but the interval holds 0"),
        (
            correct.replace("14.0 % for female, 4.0 % for male", "4.0 % for male, 14.0 % for female"),
            "first value",
        ),
    ):
        assert problem in contradictions(sentence, "finding", female, rows)
    ba_row = row("ba", -0.026, -0.04, -0.01, ideal=0.0)
    text = (
        "oscar associates objects with gender more strongly than the images do (ba): "
        "-2.6 points (95 % CI [-4.0, -1.0])."
    )
    assert "the words say another direction than the numbers" in contradictions(
        text, "finding", ba_row, [ba_row]
    )
