"""The rows of a comparison against numbers worked out by hand."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portrayal.counterfactual.concepts import default_templates
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.stats import Estimate

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)
GROUPS, CONCEPTS = ("male", "female"), ("fishing", "cooking")
ATTACK = {"epsilon": 0.03, "norm": "linf", "attack_steps": 10, "step_size": 0.01, "stop_at": 0.9}


# -- one number -----------------------------------------------------------------------------------------------------


def number(*seeds, rate=None):
    from portrayal.mitigate.seed_means import SeedMean

    made = [
        Estimate(value, None, None, None, np.array(n_resamples, dtype=float))
        if value is not None
        else Estimate.of(None)
        for value, n_resamples in seeds
    ]
    return SeedMean(tuple(made), 0, rate)


def test_of_one_seed_the_replicates_are_the_replicates():
    n_resamples = np.arange(101.0)
    made = number((50.0, n_resamples)).mean()
    assert (made.value, made.low, made.high) == pytest.approx((50.0, 2.5, 97.5))
    assert made.se == pytest.approx(n_resamples.std(ddof=1))
    assert number((50.0, n_resamples)).std is None


def test_of_two_seeds_the_mean_and_how_far_they_lie_apart():
    same = number((10.0, np.full(400, 10.0)), (10.0, np.full(400, 10.0)))
    assert (same.mean().value, same.mean().low, same.mean().high, same.std) == (10, 10, 10, 0)
    apart = number((8.0, np.full(400, 8.0)), (12.0, np.full(400, 12.0)))
    made = apart.mean()
    assert made.value == 10
    assert (made.low, made.high) == (8, 12)  # the data say nothing, so only which seeds are drawn
    assert set(made.replicates) == {8.0, 10.0, 12.0}
    assert apart.std == pytest.approx(np.sqrt(8))  # squares of 2 and 2, over 1


def test_differences_are_taken_draw_by_draw():
    noise = np.random.default_rng(0).normal(0, 5, 500)
    before, after = (
        number((20.0, 20 + noise), (30.0, 30 + noise)),
        number((15.0, 15 + noise), (25.0, 25 + noise)),
    )
    fell = before.minus(after)
    assert fell.points.tolist() == [5, 5]
    assert np.allclose(fell.replicates, 5)  # what pictures do to both is gone
    assert fell.mean().low == pytest.approx(5)
    share = fell.ratio_to(before)
    assert share.value == pytest.approx(5 / 25)
    # The draws of both share their pictures and their seeds: 5 over what vanilla has in the draw.
    assert np.allclose(share.replicates, 5 / before.mean().replicates)
    assert before.minus(before).ratio_to(before).value == 0


def test_a_share_of_nothing_is_undefined():
    assert number((1.0, [1.0] * 40)).ratio_to(number((0.0, [0.0] * 40))).value is None
    assert number((1.0, [1.0] * 40)).ratio_to(number((-2.0, [-2.0] * 40))).value is None
    few = number((1.0, [1.0] * 40)).ratio_to(number((1.0, [1.0] * 30 + [0.0] * 5 + [-1.0] * 5)))
    assert (few.value, few.low, few.high) == (
        1.0,
        None,
        None,
    )  # a quarter of the draws have nothing to be a share of


def test_a_seed_without_a_number_leaves_none():
    from portrayal.mitigate.seed_means import SeedMean

    made = number((1.0, [1.0] * 40), (None, []))
    assert made.mean().value is None
    assert made.std is None
    assert made.minus(number((1.0, [1.0] * 40), (1.0, [1.0] * 40))).seeds[1].value is None
    assert isinstance(made.minus(made), SeedMean)


def test_draws_that_are_not_defined_leave_a_number_without_an_interval():
    one = number((1.0, [1.0] * 99 + [np.nan])).mean()
    assert (one.value, one.low, one.high, one.se) == (1.0, 1.0, 1.0, 0.0)
    many = number((1.0, [1.0] * 90 + [np.nan] * 10)).mean()
    assert (many.value, many.low, many.high, many.se) == (1.0, None, None, None)
    none = number((1.0, [])).mean()
    assert (none.value, none.low, none.high, none.se) == (1.0, None, None, None)


def test_the_interval_of_a_share_has_a_width_and_stays_a_share():
    rate = Estimate(1.0, 0.9, 1.0, 0.0, np.empty(0))
    made = number((1.0, [1.0] * 40), (1.0, [1.0] * 40), rate=rate).mean()
    assert (made.value, made.low, made.high) == (1.0, 0.9, 1.0)
    wide = number((0.9, [0.9] * 40), (1.0, [1.0] * 40), rate=rate).mean()
    assert wide.low == pytest.approx(0.9)
    assert wide.high == 1.0


# -- hand-made scores ------------------------------------------------------------------------------------------------

EACH = 10  # pictures of a group with a concept


def evaluation_set(each=EACH, exact=True):
    from portrayal.mitigate.evaluation import EvaluationSet
    from portrayal.models.masked_vlm.retrieval.search import RetrievalPool

    cells = [(group, concept) for concept in CONCEPTS for group in GROUPS for _ in range(each)]
    instances = tuple(
        Instance(f"{n:03}", group, concept, "activity", Path(f"{n}"), Path("x") if exact else None)
        for n, (group, concept) in enumerate(cells)
    )
    words = dict(zip(GROUPS, ("man", "woman"), strict=True))
    questions = Prompts(words, {"activity": CONCEPTS}, default_templates()[:1])
    images = tuple(f"s{n}" for n in range(4))
    return EvaluationSet(
        instances, lambda _: None, questions, RetrievalPool(4, lambda _: [], ["c"] * 8, np.repeat(np.arange(4), 2)),
        images, {}, {"held out": tuple("cab")}, 16,
    )  # fmt: skip


def answers(bias, noise=0.0, seed=0, each=EACH, present=(0.9, 0.0), share=(0.1, 0.95)):
    """Fishing leans to men and cooking to women, by `bias` when both the picture and the text are changed, half as much
    by the picture and a quarter as much by the text; `noise` is each picture's own."""
    random = np.random.default_rng(seed)
    many = 4 * each
    own = random.normal(0, noise, many) if noise else np.zeros(many)
    leans = np.repeat([1.0, -1.0, -1.0, 1.0], each)  # toward one's own group, by concept and group
    fell = bias * leans + own  # of P(T) when the person becomes another
    present = np.tile(np.array(present, dtype=float), (many, 1))
    target = np.empty((many, 1, 2, 2))
    target[:, 0, 0, 0] = 0.5
    target[:, 0, 1, 1] = 0.5 - fell * (present[:, 0] - present[:, 1] + 1) / 2
    target[:, 0, 1, 0] = 0.5 - fell / 2 * (present[:, 0] - present[:, 1])
    target[:, 0, 0, 1] = 0.5 - fell / 4
    share = np.tile(np.array(share, dtype=float), (many, 1))
    return ModelOutputs(target, present, share, np.ones((many, 2, 2)) / 2, np.zeros((many, 2)), {}), fell


def by_hand(fell, each=EACH):
    """The mean over concepts of the absolute value of the mean over both groups, toward men, in percent."""
    toward = fell * np.tile(np.repeat([1.0, -1.0], each), 2)
    leans = toward.reshape(2, 2, each).mean(axis=2).mean(axis=1)
    return 100 * np.abs(leans).mean()


def floor_of(fell, factor=1.0, each=EACH):
    """Signs turned by lot, as CounterBias does it."""
    from portrayal.metrics.counterbias.means import Means
    from portrayal.stats import resampler

    toward = 100 * factor * fell * np.tile(np.repeat([1.0, -1.0], each), 2)
    names = tuple(f"{n:03}" for n in range(4 * each))
    group = np.tile(np.repeat([0, 1], each), 2)
    concept = np.repeat([0, 1], 2 * each)
    means = Means(toward[:, None], np.arange(4 * each), concept, group, 2, resampler(names, 0, 60))
    return float(means.noise_floors(0)[0])


def standing(better):
    from portrayal.models.masked_vlm.retrieval.recall import RankPositions

    better = np.array(better)
    return RankPositions(better, np.ones_like(better), np.ones_like(better), np.zeros_like(better))


def scores(said, exact=None, right=(2.0, 1.0, 0.0), tr=(0, 0, 3, 7), asked=(2.0, 2.0, 1.0), ways=True):
    from portrayal.mitigate.evaluation import EvaluationScores, MaskedWordScores

    words = MaskedWordScores(np.array(asked), np.array(right), np.array([1.0, 2.0, 3.0]))
    found = (standing(tr), standing([0, 0, 0, 0, 0, 0, 0, 20]))
    told = {"pgd": said, **({"exact": exact or said} if ways else {})}
    return EvaluationScores(told, {"zero-shot": found}, {"held out": words})


def rows(made, about=None, n_resamples=60):
    from portrayal.mitigate.measurements import MitigationMeasurements

    settings = {"model": "m", "steps": 5}
    return MitigationMeasurements(
        about or evaluation_set(), made, "gender", settings, ATTACK, 0, n_resamples
    ).results()


def value(results, term, system, **settings):
    (one,) = (
        m
        for m in results.measurements
        if (m.term, m.system) == (term, system)
        and all(m.settings.get(name) == wanted for name, wanted in settings.items())
    )
    return one


def test_excess_and_drop_of_two_seeds_by_hand():
    said = {
        "vanilla": [answers(0.20, 0.05, 1), answers(0.24, 0.05, 2)],
        "fairvlp": [answers(0.05, 0.05, 3), answers(0.01, 0.05, 4)],
    }
    results = rows({name: [scores(one) for one, _ in both] for name, both in said.items()})
    factors = {"b@v-l": 1.0, "b@v": 0.5, "b@l": 0.25}
    for attack in ("pgd", "exact"):
        for term, factor in factors.items():
            here = {"attack": attack, "kind": "activity"}
            excess = {}
            for name, both in said.items():
                sizes = [factor * by_hand(fell) for _, fell in both]
                floors = [floor_of(fell, factor) for _, fell in both]
                assert value(results, term, name, **here).value == pytest.approx(np.mean(sizes))
                assert value(results, "floor", name, of=term, **here).value == pytest.approx(np.mean(floors))
                excess[name] = np.subtract(sizes, floors)
                row = value(results, "excess", name, of=term, **here)
                assert row.value == pytest.approx(excess[name].mean())
                assert row.std_seed == pytest.approx(excess[name].std(ddof=1))
                assert row.low < row.value < row.high
            fell = excess["vanilla"] - excess["fairvlp"]
            row = value(results, "drop", "fairvlp", of=term, **here)
            assert row.value == pytest.approx(fell.mean())
            assert row.value > 0  # less bias is a drop
            assert row.std_seed == pytest.approx(fell.std(ddof=1))
            share = value(results, "drop-share", "fairvlp", of=term, **here)
            assert share.value == pytest.approx(fell.mean() / excess["vanilla"].mean())
            assert share.low < share.value < share.high
    assert not [m for m in results.measurements if m.term.startswith("drop") and m.system == "vanilla"]
    assert 15 < value(results, "b@v-l", "vanilla", attack="pgd").value < 30


def test_one_seed_has_no_spread_and_the_attacks_settings_stand_by_the_attack():
    results = rows({"vanilla": [scores(answers(0.2)[0])]})
    row = value(results, "excess", "vanilla", of="b@v-l", attack="pgd")
    assert row.std_seed is None
    assert row.settings["attack_steps"] == 10
    assert row.settings["steps"] == 5
    assert "epsilon" not in value(results, "excess", "vanilla", of="b@v-l", attack="exact").settings


def test_without_vanilla_nothing_is_a_difference():
    results = rows({"fairvlp": [scores(answers(0.1)[0])], "dropout": [scores(answers(0.2)[0])]})
    assert not {m.term for m in results.measurements} & {"drop", "drop-share", "change"}
    assert value(results, "excess", "fairvlp", of="b@v-l", attack="exact").value is not None


def test_the_order_of_methods_changes_no_number():
    said = {
        "vanilla": [scores(answers(0.2, 0.05, 1)[0])],
        "fairvlp": [scores(answers(0.05, 0.05, 2)[0], right=(1.0, 1.0, 1.0), tr=(0, 3, 3, 7))],
    }
    one, other = rows(said), rows(dict(reversed(said.items())))
    assert {m.id: m for m in one.measurements} == {m.id: m for m in other.measurements}
    assert len(one.measurements) == len(other.measurements)


def test_every_row_is_there_once():
    said = {
        name: [scores(answers(b)[0])] * 2
        for name, b in (("vanilla", 0.2), ("fairvlp", 0.1), ("dropout", 0.2))
    }
    found = rows(said).measurements
    keys = [
        (m.system, m.metric, m.term, m.group, m.item, m.unit, tuple(sorted((k, str(v)) for k, v in m.settings.items())))
        for m in found
    ]  # fmt: skip
    assert len(set(keys)) == len(keys) == len({m.id for m in found})


def test_a_seed_whose_attack_failed_makes_a_row_undefined_and_says_so():
    good, failed = answers(0.2)[0], answers(0.2, present=(0.9, 0.85), share=(0.1, 0.1))[0]
    made = {"vanilla": [scores(good), scores(good)], "fairvlp": [scores(failed, good), scores(good, good)]}
    results = rows(made)
    for term, more in (("excess", {"of": "b@v-l"}), ("b@v", {}), ("drop", {"of": "b@v"})):
        row = value(results, term, "fairvlp", attack="pgd", **more)
        assert row.value is None
        assert row.reason == "not defined for every seed"
        assert value(results, term, "fairvlp", attack="exact", **more).value is not None
    assert value(results, "drop-share", "fairvlp", attack="pgd", of="b@v").reason is not None
    assert (
        value(results, "excess", "fairvlp", attack="pgd", of="b@l").value is not None
    )  # a text needs no attack
    assert value(results, "undefined", "fairvlp", attack="pgd").value == 20  # of 40, the mean of 40 and 0
    assert value(results, "attack-success", "fairvlp", attack="pgd").value == pytest.approx(50)
    assert value(results, "p-after", "fairvlp", attack="pgd").value == pytest.approx((85 + 0) / 2)
    assert value(results, "p-before", "fairvlp", attack="pgd").value == pytest.approx(90)


def test_of_no_bias_nothing_can_be_dropped():
    results = rows({"vanilla": [scores(answers(0.0)[0])], "fairvlp": [scores(answers(0.1)[0])]})
    row = value(results, "drop-share", "fairvlp", attack="exact", of="b@v-l")
    assert row.value is None
    assert row.reason == "vanilla has no bias beyond its floor to be dropped"
    assert value(results, "drop", "fairvlp", attack="exact", of="b@v-l").value < 0


def test_words_and_searches_by_hand():
    """Of 5 words 3 are found; 1 + 2 + 3 nats are lost on them. Of 4 pictures 2 have a caption first, 3 among five."""
    before, after = scores(answers(0.2)[0]), scores(answers(0.1)[0], right=(2.0, 2.0, 1.0), tr=(0, 0, 0, 7))
    results = rows({"vanilla": [before, before], "fairvlp": [after, before]})
    assert value(results, "words-right", "vanilla", texts="held out").value == pytest.approx(3 / 5)
    assert value(results, "words-lost", "vanilla", texts="held out").value == pytest.approx(6 / 5)
    assert value(results, "words-right", "fairvlp", texts="held out").value == pytest.approx((1 + 3 / 5) / 2)
    change = value(results, "change", "fairvlp", of="words-right")
    assert change.value == pytest.approx((2 / 5 + 0) / 2)
    assert change.std_seed == pytest.approx(np.std([0.4, 0.0], ddof=1))
    assert (change.unit, change.better) == ("share", "higher")
    lost = value(results, "change", "fairvlp", of="words-lost")
    assert (lost.value, lost.unit, lost.better) == (0, "nats", "lower")
    found = {k: value(results, f"tr@{k}", "vanilla", fitted="zero-shot").value for k in (1, 5, 10)}
    assert found == {1: 0.5, 5: 0.75, 10: 1.0}
    assert value(results, "ir@10", "vanilla", fitted="zero-shot").value == pytest.approx(7 / 8)
    assert value(results, "ir@10", "vanilla", fitted="zero-shot").n == 8
    assert value(results, "change", "fairvlp", of="tr@1").value == pytest.approx(0.25 / 2)
    assert value(results, "change", "fairvlp", of="ir@1").value == 0


def test_whom_the_model_sees():
    """Women's pictures are taken for men's: half are right. Blindness cannot pass for fairness."""
    half = answers(0.2)[0]
    women = np.array([one.group == "female" for one in evaluation_set().instances])
    half = replace(half, share=np.where(women[:, None], 0.8, half.share))
    results = rows({"vanilla": [scores(answers(0.2)[0])], "fairvlp": [scores(half)]})
    assert value(results, "group-right", "vanilla").value == 1
    assert value(results, "group-right", "fairvlp").value == 0.5
    assert value(results, "change", "fairvlp", of="group-right").value == -0.5
    assert value(results, "p-before", "fairvlp", attack="exact").value == pytest.approx(90)


def test_intervals_of_shares_are_shares_and_have_a_width():
    perfect = scores(answers(0.2)[0], right=(2.0, 2.0, 1.0), tr=(0, 0, 0, 0))
    results = rows({"vanilla": [perfect, perfect]})
    for term in ("words-right", "group-right", "tr@1", "tr@10", "ir@1"):
        row = value(results, term, "vanilla")
        assert 0 <= row.low <= row.value <= row.high <= 1
        assert row.low < row.high
    assert value(results, "words-right", "vanilla").high == 1
    success = value(results, "attack-success", "vanilla", attack="exact")
    assert 0 <= success.low < success.value == success.high == 100


def test_without_exact_pictures_the_attack_alone_speaks():
    made = {name: [scores(answers(b)[0], ways=False)] for name, b in (("vanilla", 0.2), ("fairvlp", 0.1))}
    results = rows(made, evaluation_set(exact=False))
    assert {m.settings["attack"] for m in results.measurements if "attack" in m.settings} == {"pgd"}
    assert value(results, "group-right", "fairvlp").value == 1


def test_few_pictures_make_rows_without_intervals_and_no_error():
    """With one picture of a group and concept, most draws lack some: they are told as they are, not as numbers."""
    made = {name: [scores(answers(b, each=1)[0])] * 2 for name, b in (("vanilla", 0.2), ("fairvlp", 0.1))}
    few = rows(made, evaluation_set(each=1))
    row = value(few, "excess", "fairvlp", of="b@v-l", attack="exact")
    assert row.value is not None
    assert row.reason.startswith("too few")
    alone = {name: [scores(answers(0.2)[0], right=(1.0,), asked=(2.0,))] for name in ("vanilla", "fairvlp")}
    for both in alone.values():
        both[0].masked_words["held out"].loss.resize(1, refcheck=False)
    one = rows(alone, replace(evaluation_set(), text_images={"held out": ("a",)}))
    assert value(one, "words-right", "fairvlp").value == 0.5
    assert value(one, "words-lost", "fairvlp").low is None


def test_the_same_seed_gives_the_same_rows():
    made = {"vanilla": [scores(answers(0.2, 0.05, 1)[0])], "fairvlp": [scores(answers(0.1, 0.05, 2)[0])]}
    assert rows(made).measurements == rows(made).measurements
    assert rows(made, n_resamples=40).measurements != rows(made).measurements
