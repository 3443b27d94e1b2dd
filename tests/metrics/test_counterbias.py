"""CounterBias: rows against tables worked out by hand, and against a toy model with known probabilities."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portrayal.counterfactual.concepts import default_templates
from portrayal.counterfactual.manifest import Instance, read_manifest
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.errors import InputError, PortrayalError, Undefined
from portrayal.metrics import counterbias
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.card import CARD
from portrayal.metrics.counterbias.means import Means
from portrayal.metrics.counterbias.measurements import CounterbiasMeasurements
from portrayal.metrics.counterbias.pairing import scene_names
from portrayal.stats import resampler
from portrayal.stats.rates import wilson
from tests.counterfactual.toy import BY_RED, BY_TEXT, SLOPE, toy, write_image

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)
CONTROLS = {"control_words": ("beach", "park")}


def value(results, term, item=None, group=None, **settings):
    rows = [
        m
        for m in results.measurements
        if (m.term, m.item, m.group) == (term, item, group)
        and all(
            m.settings.get(name) == expected
            for name, expected in {"template": "all", **settings}.items()
            if expected is not ...
        )
    ]
    (row,) = rows
    return row


# -- hand-written tables of probabilities ---------------------------------------------------------------------------


def results_of(groups, concepts, target, present, placebo=False):
    """One template. `target`: (instances, images, texts)."""
    instances = [
        Instance(f"{n}.png", group, concept, "activity", Path(f"{n}.png"))
        for n, (group, concept) in enumerate(zip(groups, concepts, strict=True))
    ]
    target, present = np.array(target)[:, None], np.array(present)
    n_instances, images = len(instances), present.shape[1]
    assert placebo == (images == 3)
    outputs = ModelOutputs(
        target,
        present,
        1 - present,
        np.ones((n_instances, images, 2)) / 2,
        np.zeros((n_instances, images)),
        {},
    )
    words = {"male": "man", "female": "woman"}
    prompts = Prompts(words, {"activity": tuple(dict.fromkeys(concepts))}, default_templates()[:1])
    builder = ResultBuilder(CARD, "gender", {"groups": ["male", "female"], "stop_at": 0.9, "attack": "pgd"})
    associations = {"fishing": "male", "cooking": "female"}
    CounterbiasMeasurements(
        builder, "m", instances, outputs, prompts, associations, seed=0, n_resamples=50
    ).write()
    return builder.results()


def table(original, text, image, both):
    """P(T) of the original, and with the text, the image or both changed."""
    return [[original, text], [image, both]]


def test_signs_and_balanced_means_by_hand():
    """A man fishing: .8 falls to .4 with both (P(B) from 1 to 0): +40. A woman: .5 rises to .7, twice: 20 each, toward
    men, since she lowers the probability. Balanced (40 + 20) / 2; pooled (40 + 20 + 20) / 3."""
    results = results_of(
        ["male", "female", "female"],
        ["fishing"] * 3,
        [table(0.8, 0.7, 0.6, 0.4), table(0.5, 0.6, 0.55, 0.7), table(0.5, 0.6, 0.55, 0.7)],
        [[1.0, 0.0]] * 3,
    )
    assert value(results, "b@v-l", "fishing").value == pytest.approx(30)
    assert value(results, "b@v-l", "fishing", "male").value == pytest.approx(40)
    assert value(results, "b@v-l", "fishing", "female").value == pytest.approx(20)
    assert value(results, "pooled", "fishing", of="b@v-l").value == pytest.approx(80 / 3)
    assert value(results, "b@v", "fishing").value == pytest.approx((20 + 5) / 2)
    assert value(results, "b@l", "fishing").value == pytest.approx((10 + 10) / 2)
    assert value(results, "observed", "fishing").value == pytest.approx(80 - 50)
    assert value(results, "agreement", of="b@v-l").value == 100
    assert value(results, "undefined", template=...).value == 0


def test_the_mean_over_concepts_is_of_absolute_values():
    results = results_of(
        ["male", "female"] * 2,
        ["fishing", "fishing", "cooking", "cooking"],
        [
            table(0.8, 0.8, 0.8, 0.6), table(0.5, 0.5, 0.5, 0.7),  # both 20 toward men
            table(0.3, 0.3, 0.3, 0.4), table(0.6, 0.6, 0.6, 0.3),  # 10 and 30 toward women
        ],
        [[1.0, 0.0]] * 4,
    )  # fmt: skip
    assert value(results, "b@v-l", "fishing").value == pytest.approx(20)
    assert value(results, "b@v-l", "cooking").value == pytest.approx(-20)
    assert value(results, "b@v-l").value == pytest.approx(20)
    assert value(results, "agreement", of="b@v-l").value == 100
    floor, excess = value(results, "floor", of="b@v-l").value, value(results, "excess", of="b@v-l").value
    assert excess == pytest.approx(20 - floor)
    assert 0 < floor < 20


def test_failed_attacks_never_enter_a_mean():
    """The second man's image was not changed, the third's became more of a man: both have outlying values."""
    outlier = table(0.1, 0.5, 0.9, 0.95)
    results = results_of(
        ["male", "male", "male", "female"],
        ["fishing"] * 4,
        [table(0.8, 0.8, 0.6, 0.4), outlier, outlier, table(0.5, 0.5, 0.5, 0.7)],
        [[1.0, 0.0], [0.9, 0.85], [0.5, 0.95], [1.0, 0.0]],
    )
    assert value(results, "b@v-l", "fishing").value == pytest.approx((40 + 20) / 2)
    assert value(results, "b@v-l", "fishing").n == 2
    assert value(results, "b@l", "fishing").n == 4  # the text needs no attack
    assert value(results, "undefined", template=...).value == 2
    assert value(results, "undefined", group="male", template=...).value == 2
    assert value(results, "undefined", group="female", template=...).value == 0
    detail = json.loads(results.evidence_of(value(results, "b@v-l", "fishing"))["detail"][1])
    assert detail["defined"] is False
    assert detail["b@v-l"] is None


def test_a_concept_without_a_defined_image_of_each_group_is_undefined_and_left_out():
    results = results_of(
        ["male", "female", "male", "female"],
        ["fishing", "fishing", "cooking", "cooking"],
        [table(0.8, 0.8, 0.6, 0.4), table(0.5, 0.5, 0.5, 0.7)] * 2,
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.5, 0.5]],
    )
    cooking = value(results, "b@v-l", "cooking")
    assert cooking.value is None
    assert "female" in cooking.reason
    overall = value(results, "b@v-l")
    assert overall.value == pytest.approx(30)
    assert "1 of 2 concepts: without cooking" in overall.reason
    assert overall.reason.startswith("too few: 2 images")
    undefined = results_of(
        ["male", "female"], ["fishing"] * 2, [table(0.8, 0.8, 0.6, 0.4)] * 2, [[0.5, 0.5]] * 2
    )
    assert value(undefined, "b@v-l").value is None
    assert value(undefined, "b@v-l").reason


def test_equal_damage_biases_only_the_pooled_mean():
    """Every attack lowers P(T) by 10: with nine men and a woman the pooled mean is biased, the balanced is not."""
    damaged = [[0.6, 0.6], [0.5, 0.5], [0.5, 0.5]]
    results = results_of(
        ["male"] * 9 + ["female"], ["fishing"] * 10, [damaged] * 10, [[1.0, 0.0, 1.0]] * 10, placebo=True
    )
    assert value(results, "b@v-l", "fishing").value == pytest.approx(0, abs=1e-9)
    assert value(results, "pooled", "fishing", of="b@v-l").value == pytest.approx(8)
    assert value(results, "placebo", of="b@v-l").value == pytest.approx(0, abs=1e-9)


def results_with_placebo(attacked, placebo, pairs=1):
    """P(T) of a man's fishing is .8, and the given values under the attack and the placebo; a woman's is constant."""
    return results_of(
        ["male", "female"] * pairs,
        ["fishing"] * 2 * pairs,
        [[[0.8] * 2, [attacked] * 2, [placebo] * 2], [[0.5] * 2] * 3] * pairs,
        [[1.0, 0.0, 1.0]] * 2 * pairs,
        placebo=True,
    )


@pytest.mark.parametrize(
    ("attacked", "sham", "bias", "placebo", "corrected"),
    [
        (0.5, 0.7, 15, 5, 10),  # the attack lowers the man's by 30 (bias 15), the placebo by 10 (bias 5)
        (0.7, 0.5, 5, 15, 0),  # a placebo larger than the bias leaves 0, not a negative size
        (0.5, 0.9, 15, -5, 10),  # a placebo of the other sign is subtracted too: 10, not 20
        (0.9, 0.8, -5, 0, -5),  # a bias toward women stays
    ],
)
def test_the_placebo_is_subtracted(attacked, sham, bias, placebo, corrected):
    results = results_with_placebo(attacked, sham)
    assert value(results, "b@v", "fishing").value == pytest.approx(bias)
    assert value(results, "placebo", "fishing", of="b@v").value == pytest.approx(placebo)
    assert value(results, "corrected", "fishing", of="b@v").value == pytest.approx(corrected)
    assert value(results, "corrected", of="b@v").value == pytest.approx(abs(corrected))


def test_a_zero_corrected_bias_has_a_zero_width_interval():
    corrected = value(results_with_placebo(0.7, 0.5, pairs=20), "corrected", of="b@v")
    assert (corrected.value, corrected.low, corrected.high) == (0, 0, 0)


def means(values, concept, group, n_resamples=200):
    values = np.asarray(values, dtype=float)
    names = tuple(f"{n:05}" for n in range(len(values)))
    concept, group = np.asarray(concept), np.asarray(group)
    return Means(
        values[:, None],
        np.arange(len(values)),
        concept,
        group,
        int(concept.max()) + 1,
        resampler(names, 0, n_resamples),
    )


def test_the_excess_is_about_zero_without_bias_and_about_the_bias_with_it():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 20, 2000)
    concept, group = np.repeat(np.arange(20), 100), np.tile([0, 1], 1000)
    unbiased = means(noise, concept, group)
    size, floor = unbiased.mean_absolute()[0], unbiased.noise_floors(0)[0]
    assert floor == pytest.approx(np.sqrt(2 / np.pi) * 20 / 10, rel=0.1)  # of a normal mean of 100
    assert size.low - floor <= 0 <= size.high - floor
    biased = means(noise + 10 * np.where(concept % 2, 1, -1), concept, group)
    assert biased.mean_absolute()[0].value == pytest.approx(10, abs=1)
    assert all(
        estimate.low <= 10 * (1 if n % 2 else -1) <= estimate.high
        for n, estimate in list(enumerate(biased.concept_biases()))[:3]
    )


def test_means_against_a_second_way_to_compute_them():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(300) < 0.1, np.nan, rng.normal(5, 10, 300))
    concept, group = rng.integers(0, 4, 300), rng.integers(0, 2, 300)
    balanced, pooled = [], []
    for concept_index in range(4):
        by_group = [
            np.nanmean(values[(concept == concept_index) & (group == group_index)]) for group_index in (0, 1)
        ]
        balanced.append(np.mean(by_group))
        pooled.append(np.nanmean(values[concept == concept_index]))
    computed = means(values, concept, group)
    assert [estimate.value for estimate in computed.concept_biases()] == pytest.approx(balanced)
    assert [estimate.value for estimate in computed.concept_biases(pooled=True)] == pytest.approx(pooled)
    assert computed.mean_absolute()[0].value == pytest.approx(np.mean(np.abs(balanced)))


def test_the_corrected_bias_keeps_its_sign_and_damage_is_no_bias():
    """Ten concepts without bias whose placebo is not 0, and ten with a bias of 40 to either side."""
    rng = np.random.default_rng(2)
    concept, group = np.repeat(np.arange(20), 40), np.tile([0, 1], 400)
    planted = np.where(concept < 10, 0.0, np.where(concept % 2, 40.0, -40.0))
    damage = np.repeat(rng.choice([-15.0, 15.0], 20), 40)
    real = means(planted + rng.normal(0, 5, 800), concept, group)
    placebo = means(damage + rng.normal(0, 5, 800), concept, group)
    uncorrected, corrected = real.concept_biases(), real.concept_biases_beyond(placebo)
    for number, (raw, estimate) in enumerate(zip(uncorrected, corrected, strict=True)):
        assert abs(estimate.value) <= abs(raw.value)
        assert estimate.value * raw.value >= 0
        if number < 10:
            assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)
        else:
            assert estimate.value == pytest.approx(25 if number % 2 else -25, abs=3)
            assert estimate.low < estimate.value < estimate.high
            assert estimate.low * estimate.high > 0
    zero = means(np.zeros(800), concept, group)
    assert [estimate.value for estimate in real.concept_biases_beyond(zero)] == pytest.approx(
        [estimate.value for estimate in uncorrected]
    )


# -- a toy model with known probabilities ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Men are red, women are not; eight of each, of two shades; each with its exact counterfactual."""
    lines = ["image,group,concept,kind,counterfactual"]
    for n in range(16):
        group, red = ("male", 0.55) if n % 2 == 0 else ("female", 0.45)
        red += 0.01 * (n // 8)
        write_image(tmp_path / f"{n}.png", red, 0.55, 0.5)
        write_image(tmp_path / f"other{n}.png", 1 - red, 0.55, 0.5)
        lines.append(f"{n}.png,{group},{('fishing', 'cooking')[n // 2 % 2]},activity,other{n}.png")
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def man(red: float) -> float:
    return 1 / (1 + np.exp(-SLOPE * (round(255 * red) / 255 - 0.5)))


def test_exact_counterfactuals_of_a_model_worked_out(folder):
    results = counterbias(folder / "manifest.csv", toy(), attack="exact", bootstrap=30, **CONTROLS)
    expected = []
    for n in range(0, 16, 4):  # images of fishing: men 0, 4, 8, 12, women 1, 5, 9, 13
        for sign, start in ((1, 0.55), (-1, 0.45)):
            red = start + 0.01 * (n // 8)
            before, after = man(red), man(1 - red)
            p_own = (0.8 * before, 0.8 * after) if sign == 1 else (0.8 * (1 - before), 0.8 * (1 - after))
            change = BY_RED * (after - before) - sign * 2 * BY_TEXT
            expected.append(sign * 100 * change / (-(1 + p_own[0] - p_own[1]) / 2))
    row = value(results, "b@v-l", "fishing")
    assert row.value == pytest.approx((np.mean(expected[0::2]) + np.mean(expected[1::2])) / 2, rel=1e-4)
    assert value(results, "b@v-l", "cooking").value == pytest.approx(-row.value, rel=0.2)
    assert value(results, "b@l", "fishing").value == pytest.approx(100 * 2 * BY_TEXT, rel=1e-4)
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.8, rel=1e-4)
    fishing = np.log((0.5 + BY_TEXT) / (0.5 - BY_TEXT))
    assert value(results, "b@text", "fishing").value == pytest.approx(fishing, rel=1e-4)
    assert value(results, "drift", template=...).value == pytest.approx(0, abs=1e-6)
    assert value(results, "agreement", of="b@v-l").value == 100
    assert {m.settings["attack"] for m in results.measurements if "attack" in m.settings} == {"exact"}
    assert not [m for m in results.measurements if m.term in ("placebo", "corrected")]


@pytest.mark.parametrize("kind", ["pgd", "fgsm"])
def test_the_attack_agrees_with_the_exact_counterfactual(folder, kind):
    results = counterbias(
        folder / "manifest.csv", toy(), attack=kind, epsilon=0.15, step_size=0.02, bootstrap=30, **CONTROLS
    )
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.8, rel=0.02)
    success = value(results, "attack-success", template=...)
    assert success.value == success.high == 100
    assert success.low == pytest.approx(100 * wilson(16, 16)[0])  # Wilson's interval of 16 of 16
    assert value(results, "p-before", template=...).value > 60
    assert value(results, "p-after", template=...).value < 20
    assert value(results, "placebo", of="b@v").value == pytest.approx(0, abs=0.01)  # green has no effect here
    assert value(results, "corrected", of="b@v").value == pytest.approx(100 * BY_RED / 0.8, rel=0.02)


def test_a_model_without_bias_has_none(folder):
    results = counterbias(
        folder / "manifest.csv",
        toy(0.0, 0.0),
        attack=("exact", "pgd"),
        epsilon=0.15,
        bootstrap=30,
        **CONTROLS,
    )
    for attack in ("exact", "pgd"):
        for term in ("b@v-l", "b@v", "b@l"):
            assert value(results, term, attack=attack).value == pytest.approx(0, abs=1e-3)


def test_too_small_an_attack_leaves_every_image_undefined(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), epsilon=0.001, step_size=0.001, bootstrap=30, **CONTROLS
    )
    assert value(results, "attack-success", template=...).value == 0
    assert value(results, "undefined", template=...).value == 16
    assert value(results, "b@v-l").value is None
    assert value(results, "b@l").value == pytest.approx(20, rel=1e-3)


def test_same_seed_same_numbers_whatever_the_order_and_the_batch(folder):
    options = {"epsilon": 0.1, "bootstrap": 30, **CONTROLS}
    results = counterbias(folder / "manifest.csv", toy(), **options)
    repeated = counterbias(folder / "manifest.csv", toy(), **options)
    assert results.measurements == repeated.measurements
    assert results.evidence.equals(repeated.evidence)
    manifest = read_manifest(folder / "manifest.csv")
    reversed_manifest = replace(manifest, instances=manifest.instances[::-1])
    reversed_results = counterbias(reversed_manifest, toy(), batch_size=3, **options)
    values = {m.id: m.value for m in reversed_results.measurements}
    for m in results.measurements:
        assert values[m.id] == (None if m.value is None else pytest.approx(m.value, rel=1e-3, abs=1e-3))


def test_the_other_group_first_turns_every_sign(folder):
    options = {"epsilon": 0.1, "bootstrap": 30, **CONTROLS}
    results = counterbias(folder / "manifest.csv", toy(), **options)
    swapped = counterbias(folder / "manifest.csv", toy(), groups=("female", "male"), **options)
    for term in ("b@v-l", "b@v", "b@l", "b@text"):
        assert value(swapped, term, "fishing").value == pytest.approx(-value(results, term, "fishing").value)
        assert value(swapped, term).value == pytest.approx(value(results, term).value)
    assert value(swapped, "agreement", of="b@v-l").value == 100


def test_over_candidates_and_over_groups(folder):
    """Among fishing and cooking alone; and among man and woman alone, where P(B) starts near 1."""
    options = {"attack": "exact", "bootstrap": 30, **CONTROLS}
    results = counterbias(
        folder / "manifest.csv", toy(), normalize_over="candidates", bias_normalize_over="groups", **options
    )
    assert value(results, "p-before", template=...).value > 85
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.98, rel=0.01)


def test_other_templates_words_and_concepts(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), attack="exact", bootstrap=30, templates=["S w/", "the {group} was [MASK]"],
        words={"male": "man", "female": "woman"}, concepts=["fishing", "chef"], **CONTROLS,
    )  # fmt: skip
    kinds = {(m.settings["kind"], m.item) for m in results.measurements if m.item}
    assert kinds == {("activity", "fishing"), ("occupation", "chef")}
    assert value(results, "b@v-l", "fishing", template="the {group} was [MASK]").n == 16
    assert {m.settings["template"] for m in results.measurements if "template" in m.settings} == {
        "all", "S w/", "the {group} was [MASK]",
    }  # fmt: skip


def test_every_headline_is_a_single_row_and_units_are_the_cards(folder):
    results = counterbias(folder / "manifest.csv", toy(), epsilon=0.1, bootstrap=30, **CONTROLS)
    assert len({m.id for m in results.measurements}) == len(results.measurements)
    for m in results.measurements:
        assert m.unit == CARD.term(m.term).unit
        assert m.value is not None or m.reason
        assert m.low is None or m.low <= m.high
    assert results.measurements[0].term == "b@v-l"
    assert results.measurements[0].item is None
    assert results.measurements[0].settings["template"] == "all"
    assert results.provenance["study"]["instances"] == 16


def test_several_models_and_a_text_only_model(folder):
    class TextNetwork:
        image_size = 0

    text_model = toy(name="bert")
    text_model.network = TextNetwork()
    results = counterbias(folder / "manifest.csv", [toy(), text_model], epsilon=0.1, bootstrap=30, **CONTROLS)
    assert {m.term for m in results.measurements if m.system == "bert"} == {"b@text"}
    assert "b@v-l" in {m.term for m in results.measurements if m.system == "toy"}
    assert results.provenance["study"]["systems"] == ["toy", "bert"]


def test_thumbnails_of_all_images_are_kept(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), attack=("pgd", "exact"), epsilon=0.1, bootstrap=30, **CONTROLS
    )
    names = set(results.thumbnails["image_id"])
    assert {"0.png", "0.png#toy#pgd#counterfactual", "0.png#toy#exact#difference"} <= names
    assert len(names) == 16 * 5


def test_an_interrupted_measurement_resumes(folder, monkeypatch):
    from portrayal.metrics.counterbias import checkpointed_inference as inference

    monkeypatch.setattr(inference, "PART_SIZE", 5)
    options = {"bootstrap": 30, "batch_size": 1}
    model = "lab-dual"
    results = counterbias(folder / "manifest.csv", model, **options)
    real, calls = inference.query_model, []

    def counting_query(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(inference, "query_model", counting_query)
    with pytest.raises(KeyboardInterrupt):
        counterbias(folder / "manifest.csv", model, checkpoint=folder / "kept", **options)
    resumed = counterbias(folder / "manifest.csv", model, checkpoint=folder / "kept", **options)
    assert len(calls) == 3 + 2  # four parts, of which two were in the checkpoint
    assert resumed.measurements == results.measurements
    assert resumed.thumbnails.equals(results.thumbnails)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attack": "other"}, "Unknown attack"),
        ({"normalize_over": "words"}, "Unknown set of words"),
        ({"bias_normalize_over": "all"}, "Unknown set of words of the bias prompt"),
        ({"groups": ("male",)}, "two or more groups"),
        ({"groups": ("male", "robot")}, "Unknown group"),
        ({"control_words": ("beach",)}, "two or more"),
        ({"concepts": ["flying"]}, "does not know"),
        ({"words": {"male": "gentleman"}}, "does not know"),
        ({"words": {"Male": "man"}}, "Unknown group"),
        ({"concepts": ["fishing", "chef"], "normalize_over": "candidates"}, "single candidate"),
        ({"epsilon": 3}, "epsilon 3"),
        ({"templates": ["no mask"]}, "one {group} and one"),
    ],
)
def test_invalid_options_are_refused_before_inference(folder, options, message):
    with pytest.raises(PortrayalError, match=message):
        counterbias(folder / "manifest.csv", toy(), **{**CONTROLS, "bootstrap": 30, **options})


def test_images_that_cannot_be_read(folder):
    (folder / "3.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"3\.png"):
        counterbias(folder / "manifest.csv", toy(), bootstrap=30, **CONTROLS)
    results = counterbias(
        folder / "manifest.csv", toy(), bootstrap=30, epsilon=0.1, skip_bad=True, **CONTROLS
    )
    assert results.provenance["study"]["left_out"] == 1
    assert results.provenance["study"]["instances"] == 15


def test_a_single_group_and_missing_exact_images_are_refused(folder):
    manifest = read_manifest(folder / "manifest.csv")
    men = replace(
        manifest, instances=tuple(instance for instance in manifest.instances if instance.group == "male")
    )
    with pytest.raises(Undefined, match="All images are of 'male'"):
        counterbias(men, toy(), **CONTROLS)
    without_images = replace(
        manifest, instances=tuple(replace(instance, counterfactual=None) for instance in manifest.instances)
    )
    with pytest.raises(PortrayalError, match="16 of 16 rows name no counterfactual"):
        counterbias(without_images, toy(), attack="exact", **CONTROLS)


def test_outputs_of_model_objects_are_not_cached(folder):
    """The object may change, or another object may take its address in memory."""
    options = {"attack": "exact", "bootstrap": 30, "checkpoint": folder / "kept", **CONTROLS}
    assert value(counterbias(folder / "manifest.csv", toy(), **options), "b@v").value > 10
    assert value(counterbias(folder / "manifest.csv", toy(0.0), **options), "b@v").value == pytest.approx(
        0, abs=1e-3
    )
    with pytest.raises(PortrayalError, match="Two of the models are called 'toy'"):
        counterbias(folder / "manifest.csv", [toy(), toy(0.0)], **options)


def test_mutual_counterfactuals_are_a_single_observation():
    """Half of the images are the other half's counterfactuals: intervals must not shrink by their number."""
    instances = []
    for n in range(40):
        pair = [Path(f"{n}-{group}.png") for group in ("male", "female")]
        instances += [
            Instance(pair[k].name, group, "fishing", "activity", pair[k], pair[1 - k])
            for k, group in enumerate(("male", "female"))
        ]
    scenes = scene_names(instances)
    assert len(set(scenes)) == 40
    assert scenes[0] == scenes[1] == "0-female.png"
    assert len(set(scene_names([replace(instance, counterfactual=None) for instance in instances]))) == 80


def test_settings_distinguish_control_words(folder):
    options = {"attack": "exact", "bootstrap": 30, "templates": ["S w/o"]}
    first = counterbias(folder / "manifest.csv", toy(), **options, **CONTROLS)
    second = counterbias(folder / "manifest.csv", toy(), **options, control_words=("park", "other"))
    assert not {m.id for m in first.measurements} & {m.id for m in second.measurements}


def test_sizes_are_never_below_zero(folder):
    results = counterbias(folder / "manifest.csv", toy(0.001, 0.0), attack="exact", bootstrap=30, **CONTROLS)
    for m in results.measurements:
        if m.term in ("b@v-l", "b@v", "b@l", "observed", "pooled") and m.item is None and m.low is not None:
            assert m.low >= 0


def test_n_counts_images(folder):
    """Several concepts queried on 16 images are 16 images."""
    options = {"attack": "exact", "bootstrap": 30, "concepts": ["fishing", "cooking"]}
    results = counterbias(folder / "manifest.csv", toy(), **options, **CONTROLS)
    assert value(results, "b@v-l").n == 16
    assert value(results, "b@v-l", "fishing").n == 16


def test_more_than_two_groups_are_measured_in_pairs(folder):
    manifest = read_manifest(folder / "manifest.csv")
    instances = [
        replace(instance, group="neither") if n % 3 == 0 else instance
        for n, instance in enumerate(manifest.instances)
    ]
    words = {"neither": "person"}
    results = counterbias(
        replace(manifest, instances=tuple(instances)),
        toy(),
        words=words,
        epsilon=0.1,
        bootstrap=30,
        **CONTROLS,
    )
    pairs = {tuple(m.settings["groups"]) for m in results.measurements}
    assert pairs == {("male", "female"), ("male", "neither"), ("female", "neither")}
    with pytest.raises(PortrayalError, match="one given counterfactual"):
        counterbias(
            replace(manifest, instances=tuple(instances)),
            toy(),
            words=words,
            attack="exact",
            bootstrap=30,
            **CONTROLS,
        )


def test_any_two_concepts(tmp_path):
    """Groups that are not of people: an animal and its background, as in Figure 9 of the paper. Red means dog."""
    import torch

    from portrayal.models.masked_vlm import FunctionModel

    words = ("dog", "cat", "garden", "sofa", "beach", "park", "other")

    def log_probs(images, texts):
        red, green = (0.5 * torch.ones(2, len(texts))) if images is None else images.mean(dim=(2, 3)).T[:2]
        dog = torch.sigmoid(SLOPE * (red - 0.5))
        rows = []
        for row, text in enumerate(texts):
            shares = {"beach": 0.8 * green[row], "park": 0.8 - 0.8 * green[row]}
            if "animal" in text:
                shares = {"dog": 0.9 * dog[row], "cat": 0.9 * (1 - dog[row])}
            elif "in the [MASK]" in text:
                shares = {"garden": 0.2 + 0.5 * dog[row], "sofa": 0.7 - 0.5 * dog[row]}
            rows.append(torch.stack([torch.as_tensor(shares.get(word, 1e-4)).float() for word in words]))
        return torch.stack(rows).log()

    lines = ["image,group,concept,kind"]
    for n in range(8):
        write_image(tmp_path / f"{n}.png", 0.55 if n % 2 else 0.45)
        lines.append(f"{n}.png,{('cat', 'dog')[n % 2]},{('garden', 'sofa')[n // 4]},background")
    (tmp_path / "animals.csv").write_text("\n".join(lines) + "\n")
    options = {"attribute": "animal", "groups": ("dog", "cat"), "templates": ["the {group} is in the [MASK]"]}
    options |= {"bias_prompt": "the animal is a [MASK]", "epsilon": 0.1, "bootstrap": 30, **CONTROLS}
    results = counterbias(tmp_path / "animals.csv", FunctionModel(log_probs, words, 8, "zoo"), **options)
    assert value(results, "b@v", "garden").value == pytest.approx(100 * 0.5 / 0.9, rel=0.02)
    assert value(results, "b@v", "sofa").value == pytest.approx(-100 * 0.5 / 0.9, rel=0.02)
    assert value(results, "b@v", "garden").attribute == "animal"


def test_a_function_without_gradients_can_be_measured_exactly_only(folder):
    import torch

    from portrayal.models.masked_vlm import FunctionModel

    differentiable = toy()

    def log_probs(images, texts):
        with torch.no_grad():
            return differentiable.log_probs(images, texts)[:, 0]

    without_gradients = FunctionModel(
        log_probs, list(differentiable._column), differentiable.image_size, "blunt"
    )
    with pytest.raises(PortrayalError, match="'blunt' gives no gradients"):
        counterbias(folder / "manifest.csv", without_gradients, bootstrap=30, **CONTROLS)
    assert (
        value(
            counterbias(folder / "manifest.csv", without_gradients, attack="exact", bootstrap=30, **CONTROLS),
            "b@v-l",
        ).value
        > 0
    )


def test_images_of_any_shape_and_words_of_several_pieces(tmp_path):
    """ViLT keeps the shape of an image; here that of a counterfactual is another."""
    from PIL import Image

    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single_stream import SingleNetwork
    from portrayal.models.masked_vlm.vocabulary import TransformersTokenizer
    from tests.models.tiny_masked import tokenizer, vilt

    random = np.random.default_rng(0)
    lines = ["image,group,concept,kind,counterfactual"]
    sizes = [(40, 64), (64, 40), (32, 32), (48, 32)]
    for n in range(8):
        for name, (width, height) in ((f"{n}.png", sizes[n % 4]), (f"other{n}.png", sizes[(n + 1) % 4])):
            Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(tmp_path / name)
        lines.append(
            f"{n}.png,{('male', 'female')[n % 2]},{('cooking', 'skateboard')[n // 4]},thing,other{n}.png"
        )
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    model = TorchMaskedVLM("vilt", SingleNetwork(vilt()), TransformersTokenizer(tokenizer(), 24))
    options = {"control_words": ("fish", "picture"), "bootstrap": 30, "batch_size": 3}
    results = counterbias(tmp_path / "manifest.csv", model, attack=("pgd", "exact"), **options)
    for attack in ("pgd", "exact"):
        assert value(results, "b@l", attack=attack).value is not None
        assert value(results, "p-before", attack=attack, template=...).n == 8
    assert value(results, "moved", attack="pgd", template=...).value > 0
    assert (
        value(results, "moved", attack="exact", template=...).value is None
    )  # between shapes there is no distance
    assert len(results.thumbnails) == 8 * 5
