"""The rows of a comparison of methods, compared with values computed by hand."""

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


# -- means over seeds -----------------------------------------------------------------------------------------------


def seed_mean(*seeds, rate=None):
    from portrayal.mitigate.seed_means import SeedMean

    estimates = [
        Estimate(point, None, None, None, np.array(replicates, dtype=float))
        if point is not None
        else Estimate.of(None)
        for point, replicates in seeds
    ]
    return SeedMean(tuple(estimates), 0, rate)


def test_one_seed_keeps_its_replicates():
    replicates = np.arange(101.0)
    estimate = seed_mean((50.0, replicates)).mean()
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((50.0, 2.5, 97.5))
    assert estimate.se == pytest.approx(replicates.std(ddof=1))
    assert seed_mean((50.0, replicates)).std is None


def test_two_seeds_give_a_mean_and_a_standard_deviation():
    equal_seeds = seed_mean((10.0, np.full(400, 10.0)), (10.0, np.full(400, 10.0)))
    assert (equal_seeds.mean().value, equal_seeds.mean().low, equal_seeds.mean().high, equal_seeds.std) == (
        10,
        10,
        10,
        0,
    )
    different_seeds = seed_mean((8.0, np.full(400, 8.0)), (12.0, np.full(400, 12.0)))
    estimate = different_seeds.mean()
    assert estimate.value == 10
    # The replicates of a seed are constant, so only the resampled seeds vary.
    assert (estimate.low, estimate.high) == (8, 12)
    assert set(estimate.replicates) == {8.0, 10.0, 12.0}
    assert different_seeds.std == pytest.approx(np.sqrt(8))  # (2**2 + 2**2) / 1


def test_differences_are_taken_per_resample():
    noise = np.random.default_rng(0).normal(0, 5, 500)
    before, after = (
        seed_mean((20.0, 20 + noise), (30.0, 30 + noise)),
        seed_mean((15.0, 15 + noise), (25.0, 25 + noise)),
    )
    decrease = before.minus(after)
    assert decrease.points.tolist() == [5, 5]
    assert np.allclose(decrease.replicates, 5)  # the noise that both share cancels
    assert decrease.mean().low == pytest.approx(5)
    ratio = decrease.ratio_to(before)
    assert ratio.value == pytest.approx(5 / 25)
    # Both share the resampled images and seeds: each replicate is 5 over the replicate of `before`.
    assert np.allclose(ratio.replicates, 5 / before.mean().replicates)
    assert before.minus(before).ratio_to(before).value == 0


def test_a_ratio_to_zero_or_less_is_undefined():
    assert seed_mean((1.0, [1.0] * 40)).ratio_to(seed_mean((0.0, [0.0] * 40))).value is None
    assert seed_mean((1.0, [1.0] * 40)).ratio_to(seed_mean((-2.0, [-2.0] * 40))).value is None
    ratio = seed_mean((1.0, [1.0] * 40)).ratio_to(seed_mean((1.0, [1.0] * 30 + [0.0] * 5 + [-1.0] * 5)))
    # A quarter of the resamples have no positive denominator.
    assert (ratio.value, ratio.low, ratio.high) == (1.0, None, None)


def test_an_undefined_seed_makes_the_mean_undefined():
    from portrayal.mitigate.seed_means import SeedMean

    incomplete = seed_mean((1.0, [1.0] * 40), (None, []))
    assert incomplete.mean().value is None
    assert incomplete.std is None
    assert incomplete.minus(seed_mean((1.0, [1.0] * 40), (1.0, [1.0] * 40))).seeds[1].value is None
    assert isinstance(incomplete.minus(incomplete), SeedMean)


def test_undefined_resamples_leave_a_value_without_an_interval():
    few_undefined = seed_mean((1.0, [1.0] * 99 + [np.nan])).mean()
    assert (few_undefined.value, few_undefined.low, few_undefined.high, few_undefined.se) == (
        1.0,
        1.0,
        1.0,
        0.0,
    )
    many_undefined = seed_mean((1.0, [1.0] * 90 + [np.nan] * 10)).mean()
    assert (many_undefined.value, many_undefined.low, many_undefined.high, many_undefined.se) == (
        1.0,
        None,
        None,
        None,
    )
    no_resamples = seed_mean((1.0, [])).mean()
    assert (no_resamples.value, no_resamples.low, no_resamples.high, no_resamples.se) == (
        1.0,
        None,
        None,
        None,
    )


def test_the_interval_of_a_rate_has_a_width_and_stays_in_range():
    rate = Estimate(1.0, 0.9, 1.0, 0.0, np.empty(0))
    equal_seeds = seed_mean((1.0, [1.0] * 40), (1.0, [1.0] * 40), rate=rate).mean()
    assert (equal_seeds.value, equal_seeds.low, equal_seeds.high) == (1.0, 0.9, 1.0)
    different_seeds = seed_mean((0.9, [0.9] * 40), (1.0, [1.0] * 40), rate=rate).mean()
    assert different_seeds.low == pytest.approx(0.9)
    assert different_seeds.high == 1.0


# -- hand-made scores ------------------------------------------------------------------------------------------------

N_PER_CELL = 10  # images of a group with a concept


def evaluation_set(n_per_cell=N_PER_CELL, exact=True):
    from portrayal.mitigate.evaluation import EvaluationSet
    from portrayal.models.masked_vlm.retrieval.search import RetrievalPool

    cells = [(group, concept) for concept in CONCEPTS for group in GROUPS for _ in range(n_per_cell)]
    instances = tuple(
        Instance(f"{n:03}", group, concept, "activity", Path(f"{n}"), Path("x") if exact else None)
        for n, (group, concept) in enumerate(cells)
    )
    words = dict(zip(GROUPS, ("man", "woman"), strict=True))
    prompts = Prompts(words, {"activity": CONCEPTS}, default_templates()[:1])
    images = tuple(f"s{n}" for n in range(4))
    return EvaluationSet(
        instances, lambda _: None, prompts, RetrievalPool(4, lambda _: [], ["c"] * 8, np.repeat(np.arange(4), 2)),
        images, {}, {"held out": tuple("cab")}, 16,
    )  # fmt: skip


def model_outputs(
    bias, noise=0.0, seed=0, n_per_cell=N_PER_CELL, group_probs=(0.9, 0.0), other_group_share=(0.1, 0.95)
):
    """Outputs that associate fishing with men and cooking with women, and the decrease of P(T) for each image.

    The bias is `bias` if image and text are changed, half of it for the image alone, and a quarter for the text alone.
    `noise` is the standard deviation between images.
    """
    rng = np.random.default_rng(seed)
    n_images = 4 * n_per_cell
    image_noise = rng.normal(0, noise, n_images) if noise else np.zeros(n_images)
    # Sign of the association with the group of the image, by concept and group.
    signs = np.repeat([1.0, -1.0, -1.0, 1.0], n_per_cell)
    decrease = bias * signs + image_noise  # of P(T) when the group is changed
    group_probs = np.tile(np.array(group_probs, dtype=float), (n_images, 1))
    concept_probs = np.empty((n_images, 1, 2, 2))
    concept_probs[:, 0, 0, 0] = 0.5
    concept_probs[:, 0, 1, 1] = 0.5 - decrease * (group_probs[:, 0] - group_probs[:, 1] + 1) / 2
    concept_probs[:, 0, 1, 0] = 0.5 - decrease / 2 * (group_probs[:, 0] - group_probs[:, 1])
    concept_probs[:, 0, 0, 1] = 0.5 - decrease / 4
    other_group_share = np.tile(np.array(other_group_share, dtype=float), (n_images, 1))
    return ModelOutputs(
        concept_probs,
        group_probs,
        other_group_share,
        np.ones((n_images, 2, 2)) / 2,
        np.zeros((n_images, 2)),
        {},
    ), decrease


def expected_bias(decrease, n_per_cell=N_PER_CELL):
    """Mean over concepts of the absolute bias toward men, which is a mean over both groups, in percent."""
    toward_men = decrease * np.tile(np.repeat([1.0, -1.0], n_per_cell), 2)
    bias_by_concept = toward_men.reshape(2, 2, n_per_cell).mean(axis=2).mean(axis=1)
    return 100 * np.abs(bias_by_concept).mean()


def expected_floor(decrease, factor=1.0, n_per_cell=N_PER_CELL):
    """Expected bias under random signs, computed as CounterBias does."""
    from portrayal.metrics.counterbias.means import Means
    from portrayal.stats import resampler

    toward_men = 100 * factor * decrease * np.tile(np.repeat([1.0, -1.0], n_per_cell), 2)
    names = tuple(f"{n:03}" for n in range(4 * n_per_cell))
    group = np.tile(np.repeat([0, 1], n_per_cell), 2)
    concept = np.repeat([0, 1], 2 * n_per_cell)
    means = Means(toward_men[:, None], np.arange(4 * n_per_cell), concept, group, 2, resampler(names, 0, 60))
    return float(means.noise_floors(0)[0])


def rank_positions(n_above):
    from portrayal.models.masked_vlm.retrieval.recall import RankPositions

    n_above = np.array(n_above)
    return RankPositions(n_above, np.ones_like(n_above), np.ones_like(n_above), np.zeros_like(n_above))


def evaluation_scores(
    outputs, exact=None, n_correct=(2.0, 1.0, 0.0), tr=(0, 0, 3, 7), n_masked=(2.0, 2.0, 1.0), with_exact=True
):
    from portrayal.mitigate.evaluation import EvaluationScores, MaskedWordScores

    words = MaskedWordScores(np.array(n_masked), np.array(n_correct), np.array([1.0, 2.0, 3.0]))
    ranks = (rank_positions(tr), rank_positions([0, 0, 0, 0, 0, 0, 0, 20]))
    outputs_by_attack = {"pgd": outputs, **({"exact": exact or outputs} if with_exact else {})}
    return EvaluationScores(outputs_by_attack, {"zero-shot": ranks}, {"held out": words})


def comparison_results(scores_by_method, evaluated_set=None, n_resamples=60):
    from portrayal.mitigate.measurements import MitigationMeasurements

    settings = {"model": "m", "steps": 5}
    return MitigationMeasurements(
        evaluated_set or evaluation_set(), scores_by_method, "gender", settings, ATTACK, 0, n_resamples
    ).results()


def measurement(results, term, system, **settings):
    (row,) = (
        m
        for m in results.measurements
        if (m.term, m.system) == (term, system)
        and all(m.settings.get(name) == expected for name, expected in settings.items())
    )
    return row


def test_excess_and_drop_of_two_seeds_by_hand():
    outputs_by_method = {
        "vanilla": [model_outputs(0.20, 0.05, 1), model_outputs(0.24, 0.05, 2)],
        "fairvlp": [model_outputs(0.05, 0.05, 3), model_outputs(0.01, 0.05, 4)],
    }
    results = comparison_results(
        {
            name: [evaluation_scores(outputs) for outputs, _ in seed_outputs]
            for name, seed_outputs in outputs_by_method.items()
        }
    )
    factors = {"b@v-l": 1.0, "b@v": 0.5, "b@l": 0.25}
    for attack in ("pgd", "exact"):
        for term, factor in factors.items():
            settings = {"attack": attack, "kind": "activity"}
            excess = {}
            for name, seed_outputs in outputs_by_method.items():
                sizes = [factor * expected_bias(decrease) for _, decrease in seed_outputs]
                floors = [expected_floor(decrease, factor) for _, decrease in seed_outputs]
                assert measurement(results, term, name, **settings).value == pytest.approx(np.mean(sizes))
                assert measurement(results, "floor", name, of=term, **settings).value == pytest.approx(
                    np.mean(floors)
                )
                excess[name] = np.subtract(sizes, floors)
                row = measurement(results, "excess", name, of=term, **settings)
                assert row.value == pytest.approx(excess[name].mean())
                assert row.std_seed == pytest.approx(excess[name].std(ddof=1))
                assert row.low < row.value < row.high
            drop = excess["vanilla"] - excess["fairvlp"]
            row = measurement(results, "drop", "fairvlp", of=term, **settings)
            assert row.value == pytest.approx(drop.mean())
            assert row.value > 0  # less bias is a drop
            assert row.std_seed == pytest.approx(drop.std(ddof=1))
            drop_share = measurement(results, "drop-share", "fairvlp", of=term, **settings)
            assert drop_share.value == pytest.approx(drop.mean() / excess["vanilla"].mean())
            assert drop_share.low < drop_share.value < drop_share.high
    assert not [m for m in results.measurements if m.term.startswith("drop") and m.system == "vanilla"]
    assert 15 < measurement(results, "b@v-l", "vanilla", attack="pgd").value < 30


def test_one_seed_has_no_standard_deviation_and_attack_rows_have_attack_settings():
    results = comparison_results({"vanilla": [evaluation_scores(model_outputs(0.2)[0])]})
    row = measurement(results, "excess", "vanilla", of="b@v-l", attack="pgd")
    assert row.std_seed is None
    assert row.settings["attack_steps"] == 10
    assert row.settings["steps"] == 5
    assert "epsilon" not in measurement(results, "excess", "vanilla", of="b@v-l", attack="exact").settings


def test_there_are_no_differences_without_vanilla():
    results = comparison_results(
        {
            "fairvlp": [evaluation_scores(model_outputs(0.1)[0])],
            "dropout": [evaluation_scores(model_outputs(0.2)[0])],
        }
    )
    assert not {m.term for m in results.measurements} & {"drop", "drop-share", "change"}
    assert measurement(results, "excess", "fairvlp", of="b@v-l", attack="exact").value is not None


def test_results_do_not_depend_on_the_order_of_methods():
    scores_by_method = {
        "vanilla": [evaluation_scores(model_outputs(0.2, 0.05, 1)[0])],
        "fairvlp": [
            evaluation_scores(model_outputs(0.05, 0.05, 2)[0], n_correct=(1.0, 1.0, 1.0), tr=(0, 3, 3, 7))
        ],
    }
    results, reversed_results = (
        comparison_results(scores_by_method),
        comparison_results(dict(reversed(scores_by_method.items()))),
    )
    assert {m.id: m for m in results.measurements} == {m.id: m for m in reversed_results.measurements}
    assert len(results.measurements) == len(reversed_results.measurements)


def test_every_row_is_unique():
    scores_by_method = {
        name: [evaluation_scores(model_outputs(bias)[0])] * 2
        for name, bias in (("vanilla", 0.2), ("fairvlp", 0.1), ("dropout", 0.2))
    }
    measurements = comparison_results(scores_by_method).measurements
    keys = [
        (m.system, m.metric, m.term, m.group, m.item, m.unit,
         tuple(sorted((setting, str(value)) for setting, value in m.settings.items())))
        for m in measurements
    ]  # fmt: skip
    assert len(set(keys)) == len(keys) == len({m.id for m in measurements})


def test_a_failed_attack_of_one_seed_makes_rows_undefined_with_a_reason():
    good, failed = (
        model_outputs(0.2)[0],
        model_outputs(0.2, group_probs=(0.9, 0.85), other_group_share=(0.1, 0.1))[0],
    )
    scores_by_method = {
        "vanilla": [evaluation_scores(good), evaluation_scores(good)],
        "fairvlp": [evaluation_scores(failed, good), evaluation_scores(good, good)],
    }
    results = comparison_results(scores_by_method)
    for term, settings in (("excess", {"of": "b@v-l"}), ("b@v", {}), ("drop", {"of": "b@v"})):
        row = measurement(results, term, "fairvlp", attack="pgd", **settings)
        assert row.value is None
        assert row.reason == "not defined for every seed"
        assert measurement(results, term, "fairvlp", attack="exact", **settings).value is not None
    assert measurement(results, "drop-share", "fairvlp", attack="pgd", of="b@v").reason is not None
    # A text needs no attack.
    assert measurement(results, "excess", "fairvlp", attack="pgd", of="b@l").value is not None
    # The mean of 40 and 0, of 40 images.
    assert measurement(results, "undefined", "fairvlp", attack="pgd").value == 20
    assert measurement(results, "attack-success", "fairvlp", attack="pgd").value == pytest.approx(50)
    assert measurement(results, "p-after", "fairvlp", attack="pgd").value == pytest.approx((85 + 0) / 2)
    assert measurement(results, "p-before", "fairvlp", attack="pgd").value == pytest.approx(90)


def test_drop_share_is_undefined_without_bias():
    results = comparison_results(
        {
            "vanilla": [evaluation_scores(model_outputs(0.0)[0])],
            "fairvlp": [evaluation_scores(model_outputs(0.1)[0])],
        }
    )
    row = measurement(results, "drop-share", "fairvlp", attack="exact", of="b@v-l")
    assert row.value is None
    assert row.reason == "vanilla has no bias beyond its floor to be dropped"
    assert measurement(results, "drop", "fairvlp", attack="exact", of="b@v-l").value < 0


def test_masked_words_and_retrieval_by_hand():
    """3 of 5 words are predicted; the loss is 1 + 2 + 3 nats. 2 of 4 images have a caption at rank 1, 3 by rank 5."""
    before, after = (
        evaluation_scores(model_outputs(0.2)[0]),
        evaluation_scores(model_outputs(0.1)[0], n_correct=(2.0, 2.0, 1.0), tr=(0, 0, 0, 7)),
    )
    results = comparison_results({"vanilla": [before, before], "fairvlp": [after, before]})
    assert measurement(results, "words-right", "vanilla", texts="held out").value == pytest.approx(3 / 5)
    assert measurement(results, "words-lost", "vanilla", texts="held out").value == pytest.approx(6 / 5)
    assert measurement(results, "words-right", "fairvlp", texts="held out").value == pytest.approx(
        (1 + 3 / 5) / 2
    )
    change = measurement(results, "change", "fairvlp", of="words-right")
    assert change.value == pytest.approx((2 / 5 + 0) / 2)
    assert change.std_seed == pytest.approx(np.std([0.4, 0.0], ddof=1))
    assert (change.unit, change.better) == ("share", "higher")
    loss_change = measurement(results, "change", "fairvlp", of="words-lost")
    assert (loss_change.value, loss_change.unit, loss_change.better) == (0, "nats", "lower")
    recalls = {k: measurement(results, f"tr@{k}", "vanilla", fitted="zero-shot").value for k in (1, 5, 10)}
    assert recalls == {1: 0.5, 5: 0.75, 10: 1.0}
    assert measurement(results, "ir@10", "vanilla", fitted="zero-shot").value == pytest.approx(7 / 8)
    assert measurement(results, "ir@10", "vanilla", fitted="zero-shot").n == 8
    assert measurement(results, "change", "fairvlp", of="tr@1").value == pytest.approx(0.25 / 2)
    assert measurement(results, "change", "fairvlp", of="ir@1").value == 0


def test_group_accuracy_by_hand():
    """Images of women are classified as men, so the accuracy is one half: ignoring the group does not look fair."""
    misclassified = model_outputs(0.2)[0]
    is_female = np.array([instance.group == "female" for instance in evaluation_set().instances])
    misclassified = replace(
        misclassified, other_group_share=np.where(is_female[:, None], 0.8, misclassified.other_group_share)
    )
    results = comparison_results(
        {"vanilla": [evaluation_scores(model_outputs(0.2)[0])], "fairvlp": [evaluation_scores(misclassified)]}
    )
    assert measurement(results, "group-right", "vanilla").value == 1
    assert measurement(results, "group-right", "fairvlp").value == 0.5
    assert measurement(results, "change", "fairvlp", of="group-right").value == -0.5
    assert measurement(results, "p-before", "fairvlp", attack="exact").value == pytest.approx(90)


def test_intervals_of_rates_have_a_width_and_stay_in_range():
    perfect = evaluation_scores(model_outputs(0.2)[0], n_correct=(2.0, 2.0, 1.0), tr=(0, 0, 0, 0))
    results = comparison_results({"vanilla": [perfect, perfect]})
    for term in ("words-right", "group-right", "tr@1", "tr@10", "ir@1"):
        row = measurement(results, term, "vanilla")
        assert 0 <= row.low <= row.value <= row.high <= 1
        assert row.low < row.high
    assert measurement(results, "words-right", "vanilla").high == 1
    success = measurement(results, "attack-success", "vanilla", attack="exact")
    assert 0 <= success.low < success.value == success.high == 100


def test_without_exact_images_only_attack_rows_exist():
    scores_by_method = {
        name: [evaluation_scores(model_outputs(bias)[0], with_exact=False)]
        for name, bias in (("vanilla", 0.2), ("fairvlp", 0.1))
    }
    results = comparison_results(scores_by_method, evaluation_set(exact=False))
    assert {m.settings["attack"] for m in results.measurements if "attack" in m.settings} == {"pgd"}
    assert measurement(results, "group-right", "fairvlp").value == 1


def test_few_images_give_rows_without_intervals():
    """With one image per group and concept, most resamples lack a cell: the row has a value and a reason."""
    scores_by_method = {
        name: [evaluation_scores(model_outputs(bias, n_per_cell=1)[0])] * 2
        for name, bias in (("vanilla", 0.2), ("fairvlp", 0.1))
    }
    few_results = comparison_results(scores_by_method, evaluation_set(n_per_cell=1))
    row = measurement(few_results, "excess", "fairvlp", of="b@v-l", attack="exact")
    assert row.value is not None
    assert row.reason.startswith("too few")
    single_scores = {
        name: [evaluation_scores(model_outputs(0.2)[0], n_correct=(1.0,), n_masked=(2.0,))]
        for name in ("vanilla", "fairvlp")
    }
    for seed_scores in single_scores.values():
        seed_scores[0].masked_words["held out"].loss.resize(1, refcheck=False)
    single_results = comparison_results(
        single_scores, replace(evaluation_set(), text_images={"held out": ("a",)})
    )
    assert measurement(single_results, "words-right", "fairvlp").value == 0.5
    assert measurement(single_results, "words-lost", "fairvlp").low is None


def test_the_same_seed_gives_the_same_rows():
    scores_by_method = {
        "vanilla": [evaluation_scores(model_outputs(0.2, 0.05, 1)[0])],
        "fairvlp": [evaluation_scores(model_outputs(0.1, 0.05, 2)[0])],
    }
    assert (
        comparison_results(scores_by_method).measurements == comparison_results(scores_by_method).measurements
    )
    assert (
        comparison_results(scores_by_method, n_resamples=40).measurements
        != comparison_results(scores_by_method).measurements
    )
