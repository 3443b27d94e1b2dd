"""Response curves: every metric follows its dial with few false positives; failures are reported."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portrayal.errors import PortrayalError
from portrayal.lab import Captioner
from portrayal.lab.curves import FULL, Budget, claims_of, curves, read_curves, write_curves
from portrayal.lab.curves.claims import GROUP, SYSTEM, Claim, find_dial, set_dials
from portrayal.lab.curves.curve import (
    MAX_FALSE_POSITIVE_RATE,
    Curve,
    CurvePoint,
    Reaction,
    StudyShare,
    curve_point,
    range_of,
    reaction,
    rejection_rate,
    spearman,
)
from portrayal.lab.curves.simulate import Outcome, simulate
from portrayal.lab.curves.tables import findings, summary
from portrayal.metrics import METRICS
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import Metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.stats import Estimate

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
# Terms with too many false positives in the documentation, each with its reason in the card.
ANTI_CONSERVATIVE = {"amplification:a-to-t", "lic:lic", "lic:lic_excess"}

SMALL = Budget(
    levels=(0.0, 0.1, 0.3, 0.6, 1.0),
    sizes=(800,),
    studies=3,
    scenes=800,
    null_studies=60,
    coverage=0,
    power_levels=(),
    ignored=0,
    n_resamples=100,
)


# Metrics that train classifiers take longer: as many studies at 0 as one task has.
SMALL_TRAINING = replace(SMALL, levels=(0.0, 0.3, 1.0), sizes=(400,), studies=2, scenes=400, null_studies=20)


@pytest.fixture(scope="module")
def small_curves() -> dict[str, Curve]:
    all_curves = []
    for fits_model, budget in ((False, SMALL), (True, SMALL_TRAINING)):
        names = [
            name
            for name, metric in METRICS.items()
            if metric.card.fits_model == fits_model and metric.card.responds_to
        ]
        all_curves += curves(names, budget=budget, workers=2)
    return {curve.name: curve for curve in all_curves}


def claimed_terms() -> list[str]:
    return [f"{claim.metric}:{claim.term}" for metric in METRICS.values() for claim in claims_of(metric.card)]


def test_every_metric_names_the_dials_it_follows_and_ignores():
    for metric in METRICS.values():
        if "model" in metric.card.needs and not metric.card.responds_to:
            # It measures a model of the user, which no dial of the lab changes.
            assert any("no dial of the lab" in caveat for caveat in metric.card.caveats), metric.name
            continue
        assert claims_of(metric.card), metric.name
        assert metric.card.should_ignore, metric.name


@pytest.mark.parametrize("name", claimed_terms())
def test_a_term_follows_its_dial(small_curves, name):
    assert small_curves[name].follows


@pytest.mark.parametrize("name", claimed_terms())
def test_a_term_has_few_false_positives(small_curves, name):
    """At 5 %, more than 8 false positives in 60 (4 in 20) happen once in 350 runs; the documentation has 400."""
    rate = small_curves[name].false_positive_rate
    if rate is None:
        metric, _, term = name.partition(":")
        assert METRICS[metric].card.term(term.partition("@")[0]).ideal is None
    elif name == "lic:lic":
        assert rate.value <= 0.5  # anti-conservative in larger studies only
    elif name in ANTI_CONSERVATIVE:
        assert rate.value > 8 / 60
    else:
        assert rate.value <= (8 / 60 if rate.studies >= 60 else 4 / 20)


def test_the_documented_curves_meet_the_criteria():
    """The full run in the documentation has every current claim, and the card explains what fails."""
    documented = {curve.name: curve for curve in read_curves(ROOT / "docs" / "curves" / "curves.json")}
    assert sorted(documented) == sorted(claimed_terms())
    for name, curve in documented.items():
        notes = METRICS[curve.metric].card.lab_notes
        assert curve.follows, name
        if curve.false_positive_rate is not None:
            assert curve.false_positive_rate.studies >= 390, name
            if curve.anti_conservative or curve.conservative:
                assert curve.term in notes, name
            assert (curve.false_positive_rate.value > MAX_FALSE_POSITIVE_RATE) == (name in ANTI_CONSERVATIVE)
        if curve.failures:
            assert curve.term in notes, f"{name}: {curve.failures}"
    for name in ("lic:lic", "lic:lic_m"):
        coverage = documented[name].coverage
        assert coverage.studies == 200
        assert 0.92 <= coverage.value <= 0.98, name


def test_outcomes_are_significant_by_p_else_by_the_ideal_value():
    assert Outcome(1.0, 0.9, 1.1, 0.04, 1.0).significant is True
    assert Outcome(1.0, 2.0, 3.0, 0.06, 1.0).significant is False
    assert Outcome(2.5, 2.0, 3.0, None, 1.0).significant is True
    assert Outcome(1.0, 0.5, 3.0, None, 1.0).significant is False
    assert Outcome(2.5, 2.0, 3.0).significant is None
    assert Outcome().significant is None
    assert Outcome(2.5, 2.0, 3.0).covers(2.0)
    assert not Outcome(2.5, 2.0, 3.0).covers(1.9)
    assert Outcome().covers(1.0) is None


def test_shares_and_points_by_hand():
    share = StudyShare.of([True, False, None, False, False])
    assert (share.value, share.studies) == (0.25, 4)
    assert share.low < 0.25 < share.high
    assert StudyShare.of([None]) is None
    assert StudyShare.of([True, None, None], missing=False).value == pytest.approx(1 / 3)
    assert (
        rejection_rate([Outcome(1, 0, 2, 0.01), Outcome()]).value == 0.5
    )  # too small to test: not significant
    assert rejection_rate([Outcome(1, 0, 2), Outcome()]) is None  # it never tests
    assert rejection_rate([Outcome()], tests=True).value == 0
    point = curve_point(100, 0.5, [Outcome(1, 0, 2), Outcome(3, 1, 5)])
    assert point == CurvePoint(100, 0.5, 2.0, 0.5, 3.5, 2)
    assert curve_point(100, 0.5, [Outcome(1, 0, 2), Outcome()]).value is None


def points(values, scenes=100):
    return [CurvePoint(scenes, level / 10, value, value, value, 1) for level, value in enumerate(values)]


def test_spearman_is_that_of_the_largest_studies():
    assert spearman(points([1, 2, 3, 4])) == pytest.approx(1)
    assert spearman(points([4, 3, 2, 1])) == pytest.approx(-1)
    assert spearman([*points([4, 1, 3, 2]), *points([1, 2, 3, 4], scenes=200)]) == pytest.approx(1)
    assert spearman(points([1, 3, 2, 4])) == pytest.approx(0.8)  # 1 - 6 (0 + 1 + 1 + 0) / (4 * 15)
    assert spearman(points([1, 1, 1])) is None
    assert spearman(points([1, 2])) is None
    assert range_of(points([1, 2, 5])) == 4
    assert range_of(points([1])) is None


def test_a_term_reacts_by_the_change_or_by_the_false_positives():
    outcomes = [Outcome(2.0), Outcome(3.0), Outcome(4.0)]

    def moved_outcomes(*steps):
        return [Outcome(outcome.value + step) for outcome, step in zip(outcomes, steps, strict=True)]

    not_significant = [Outcome(1, 0, 2, 0.5)] * 40
    significant = [Outcome(1, 0, 2, 0.001)] * 40
    assert not reaction(
        "length", 1, outcomes, moved_outcomes(0.1, 0.2, 0.15), not_significant, not_significant, 4.0
    ).reacts  # small
    assert reaction(
        "length", 1, outcomes, moved_outcomes(0.5, 0.6, 0.55), not_significant, not_significant, 4.0
    ).reacts
    assert not reaction(
        "length", 1, outcomes, moved_outcomes(3, -2, 0.5), not_significant, not_significant, 4.0
    ).reacts  # noise
    assert reaction("length", 1, outcomes, outcomes, not_significant, significant, 4.0).reacts
    assert not reaction(
        "length", 1, outcomes, outcomes, significant, significant, 4.0
    ).reacts  # the same rate as before
    assert reaction(
        "length", 1, outcomes, outcomes, significant, not_significant, 4.0
    ).reacts  # false positives that vanish with the dial
    expected_reaction = reaction(
        "length", 1, outcomes, moved_outcomes(-0.4, -0.6, -0.5), not_significant, not_significant, 4.0
    )
    assert expected_reaction.part_of_range == pytest.approx(-0.125)
    assert expected_reaction.high - expected_reaction.change == pytest.approx(4.302653 * 0.1 / np.sqrt(3))
    assert not reaction("length", 1, outcomes, [Outcome()] * 3, [Outcome()], [Outcome()], 4.0).reacts
    assert (
        reaction(
            "length", 1, outcomes, moved_outcomes(1, 1, 1), not_significant, not_significant, None
        ).part_of_range
        is None
    )


def function_metric(name: str, compute_value, *, follows="wrong-group", ideal=0.0) -> Metric:
    """A metric whose number is computed from the study by a function, with an interval of half a unit."""
    card = Card(
        name, name, "?", "", "", ("captions", "attributes"), "", (), (Term("x", "x", "share", "lower", ideal),),
        responds_to={"x": follows}, should_ignore=("length",),
    )  # fmt: skip

    def compute(study, *, attribute, sources, seed=0, bootstrap: int = 20):
        results = ResultBuilder(card, attribute, {})
        estimate_value = compute_value(study)
        estimate = Estimate(estimate_value, estimate_value - 0.25, estimate_value + 0.25, 0.1, np.empty(0))
        results.add("x", estimate, system=sources[0], n=study.captions.height)
        return results

    return Metric(card, compute)


TINY = Budget(
    levels=(0.0, 0.5, 1.0), sizes=(40,), studies=2, scenes=40, null_studies=4, coverage=3, truth=60,
    power_levels=(0.5,), power_sizes=(40,), power=2, ignored=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny_curves() -> list[Curve]:
    return curves(["error"], budget=TINY)


def test_a_metric_that_follows_the_wrong_dial_is_reported(monkeypatch):
    length_metric = function_metric("long", lambda s: s.captions["caption"].str.len_chars().mean() / 10)
    monkeypatch.setitem(METRICS, "long", length_metric)
    (curve,) = curves(["long"], budget=TINY)
    assert not curve.follows
    assert curve.false_positive_rate.value == 1
    assert curve.anti_conservative == (curve.false_positive_rate.low > 0.05)
    assert curve.coverage.studies == 3
    assert [r.dial for r in curve.reactions] == ["length"]
    assert curve.reactions[0].reacts
    assert "does not follow wrong-group" in curve.failures[0]
    assert curve.failures[-1] == "reacts to dials it should ignore: length"
    constant_metric = function_metric("constant", lambda s: 0.0)
    monkeypatch.setitem(METRICS, "constant", constant_metric)
    (constant_curve,) = curves(["constant"], budget=TINY)
    assert constant_curve.spearman is None
    assert constant_curve.false_positive_rate.value == 0
    assert constant_curve.coverage_at_zero.value == 1
    assert constant_curve.reactions[0].part_of_range is None


def test_claims_of_terms_and_dials_that_are_not_there_are_refused():
    card = METRICS["error"].card
    with pytest.raises(PortrayalError, match="Did you mean 'wrong'"):
        claims_of(replace(card, responds_to={"wrogn": "neutral"}))
    with pytest.raises(PortrayalError, match="Unknown dial 'nuetral'"):
        claims_of(replace(card, should_ignore=("nuetral",)))
    with pytest.raises(PortrayalError, match="cannot be turned for 'one' alone"):
        find_dial("length@one")


def test_a_metric_without_claims_has_no_curve(monkeypatch):
    without_claims = Metric(replace(METRICS["error"].card, responds_to={}), METRICS["error"].compute)
    monkeypatch.setitem(METRICS, "error", without_claims)
    with pytest.raises(PortrayalError, match="names no dial"):
        curves(["error"], budget=TINY)


def test_dials_apply_to_everyone_or_to_a_single_group():
    world, annotators, captioner = set_dials({"data-bias": 0.9, "wrong-group@one": 0.3, "length": 1.0})
    assert world.data_bias == 0.9
    assert captioner == Captioner(SYSTEM, wrong_group={GROUP: 0.3}, length=1.0)
    assert annotators.mistakes == 0


def test_the_same_seeds_give_the_same_outcomes_and_dials_change_only_their_part():
    arguments = {"metric": "error", "terms": ["wrong"], "scenes": 60, "seeds": [1, 2], "bootstrap": 20}
    outcomes = simulate(None, levels={"wrong-group": 0.3}, **arguments)
    assert outcomes == simulate(None, levels={"wrong-group": 0.3}, **arguments)
    assert len(outcomes["wrong"]) == 2
    longer = simulate(None, levels={"wrong-group": 0.3, "length": 1.0}, **arguments)
    assert [o.value for o in longer["wrong"]] == [o.value for o in outcomes["wrong"]]


def test_workers_and_a_checkpoint_change_no_number(tiny_curves, tmp_path):
    with_workers = curves(["error"], budget=TINY, workers=2, checkpoint=tmp_path / "checkpoint")
    from_checkpoint = curves(["error"], budget=TINY, checkpoint=tmp_path / "checkpoint")
    assert tiny_curves == with_workers == from_checkpoint


def test_curves_are_written_and_read_back(tiny_curves, tmp_path):
    page = write_curves(tiny_curves, tmp_path)
    assert read_curves(tmp_path / "curves.json") == tiny_curves
    text = page.read_text()
    assert text.count("<svg") == len(tiny_curves)
    assert "error:ratio@one" in text
    assert sorted(p.name for p in (tmp_path / "charts").iterdir()) == [
        "error.error.svg",
        "error.neutral.svg",
        "error.ratio-one.svg",
        "error.wrong.svg",
    ]
    rows = list(csv.DictReader((tmp_path / "curves.csv").read_text().splitlines()))
    assert {row["part"] for row in rows} == {
        "response",
        "false positives",
        "coverage",
        "power",
        "change",
        "false positives, dial turned",
    }
    last_row = next(
        r for r in rows if r["part"] == "response" and r["term"] == "wrong" and r["level"] == "1.0"
    )
    assert math.isclose(float(last_row["value"]), tiny_curves[0].points[-1].value)
    (tmp_path / "curves.json").write_text(json.dumps({"schema": "other"}))
    with pytest.raises(PortrayalError, match=r"curves\.json"):
        read_curves(tmp_path / "curves.json")


def test_a_summary_says_what_fails_and_why():
    curve = Curve(
        "amplification", "a-to-t", "amplification", False, "share", tuple(points([1, 2, 3])), 1.0, 100,
        StudyShare.of([True] * 9 + [False]), 0.0, None, 0.4, 1.0, StudyShare.of([True] * 5 + [False] * 15), (),
        (Reaction("length", 1.0, 0.5, 0.4, 0.6, 0.5, None, None),),
    )  # fmt: skip
    assert summary([curve])[0][:4] == ["amplification:a-to-t", "amplification", "1", "90.0%"]
    sentences = findings(curve)
    assert "is significant in 90.0% of studies where nothing is planted" in sentences
    assert "has intervals of which 25.0% cover the true value at amplification 0.4" in sentences
    assert "reacts to dials it should ignore: length" in sentences
    assert METRICS["amplification"].card.lab_notes["a-to-t"] in sentences[-1]


def test_following_is_monotone_in_the_claimed_direction_and_more_than_noise():
    curve = Curve(
        "error", "wrong", "wrong-group", False, "share", tuple(points([1, 2, 3])), 1.0, 100, None, None, None, 0.4,
        None, None, (), (),
    )  # fmt: skip
    assert curve.follows
    assert not replace(curve, falls=True).follows
    assert replace(curve, falls=True, spearman=-1.0).follows
    assert not replace(curve, spearman=0.9).follows
    within_noise = replace(
        curve, points=(CurvePoint(100, 0.0, 1, 0, 2, 1), CurvePoint(100, 1.0, 1.1, 0.5, 1.7, 1))
    )
    assert not within_noise.follows
    assert within_noise.failures == [
        "does not follow wrong-group: start and end are not significantly different"
    ]


def test_few_studies_do_not_make_a_verdict():
    """A valid test has 5 false positives in 60 studies now and then; 33 of 400 are too many."""
    curve = Curve(
        "error", "wrong", "wrong-group", False, "share", tuple(points([1, 2, 3])), 1.0, 100,
        StudyShare.of([True] * 5 + [False] * 55), None, None, 0.4, None, None, (), (),
    )  # fmt: skip
    assert not curve.anti_conservative
    assert replace(curve, false_positive_rate=StudyShare.of([True] * 33 + [False] * 367)).anti_conservative
    assert not replace(
        curve, false_positive_rate=StudyShare.of([True] * 32 + [False] * 368)
    ).anti_conservative
    assert not replace(curve, false_positive_rate=StudyShare.of([False] * 60)).conservative
    assert replace(curve, false_positive_rate=StudyShare.of([False] * 400)).conservative


def test_the_command_writes_a_page(command, tmp_path, monkeypatch):
    monkeypatch.setattr("portrayal.lab.curves.run.QUICK", TINY)
    out = tmp_path / "curves"
    code, stdout, _ = command(
        "lab", "curves", "--metrics", "naming-ratio", "--out", out, "--quick", "--workers", 1
    )
    assert code == 0
    assert "naming-ratio:ratio" in " ".join(stdout.split())
    assert (out / "index.html").is_file()
    assert not (out / ".curves-checkpoint").exists()
    code, _, stderr = command("lab", "curves", "--metrics", "eror", "--out", out)
    assert code == 2
    assert "Did you mean 'error'" in stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("mine")
    code, _, stderr = command("lab", "curves", "--metrics", "error", "--out", other, "--quick")
    assert code == 2
    assert "choose a new folder" in " ".join(stderr.split())
    assert (other / "index.html").read_text() == "mine"


def test_the_full_budget_is_the_documented_budget():
    assert FULL.null_studies == 400
    assert len(FULL.levels) >= 6
    assert len(FULL.power_sizes) >= 3


def test_a_claim_picks_its_row():
    claim = Claim("cooccurrence", "bias@one", "data-bias")
    outcomes = simulate(None, "cooccurrence", ["bias@one", "overall"], {"data-bias": 1.0}, 900, [3], 20)
    assert claim.term in outcomes
    assert outcomes["bias@one"][0].value > 0.8  # sweeping goes with the first group in this world
    assert outcomes["overall"][0].ideal == 0.5
