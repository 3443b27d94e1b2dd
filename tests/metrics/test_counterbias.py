"""CounterBias: rows against tables worked out by hand, and a model that can be worked out."""

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
from tests.counterfactual.toy import BY_RED, BY_TEXT, SHARP, toy, write_image

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)
PLACES = {"control_words": ("beach", "park")}


def value(results, term, item=None, group=None, **settings):
    result = [
        m
        for m in results.measurements
        if (m.term, m.item, m.group) == (term, item, group)
        and all(
            m.settings.get(name) == first
            for name, first in {"template": "all", **settings}.items()
            if first is not ...
        )
    ]
    (first,) = result
    return first


# -- hand-made tables of probabilities ------------------------------------------------------------------------------


def rows_of(groups, concepts, target, present, placebo=False):
    """One template. `target`: (instances, images, texts)."""
    instances = [
        Instance(f"{n}.png", group, concept, "activity", Path(f"{n}.png"))
        for n, (group, concept) in enumerate(zip(groups, concepts, strict=True))
    ]
    target, present = np.array(target)[:, None], np.array(present)
    many, images = len(instances), present.shape[1]
    assert placebo == (images == 3)
    outputs = ModelOutputs(
        target, present, 1 - present, np.ones((many, images, 2)) / 2, np.zeros((many, images)), {}
    )
    words = {"male": "man", "female": "woman"}
    prompts = Prompts(words, {"activity": tuple(dict.fromkeys(concepts))}, default_templates()[:1])
    findings = ResultBuilder(CARD, "gender", {"groups": ["male", "female"], "stop_at": 0.9, "attack": "pgd"})
    ties = {"fishing": "male", "cooking": "female"}
    CounterbiasMeasurements(findings, "m", instances, outputs, prompts, ties, seed=0, n_resamples=50).write()
    return findings.results()


def table(fact, text, image, both):
    """P(T) with what is changed."""
    return [[fact, text], [image, both]]


def test_signs_and_balanced_means_by_hand():
    """A man fishing: .8 falls to .4 with both (P(B) from 1 to 0): +40. A woman: .5 rises to .7, twice: 20 each, toward
    men, since she makes it less likely. Balanced (40 + 20) / 2; pooled (40 + 20 + 20) / 3."""
    results = rows_of(
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
    results = rows_of(
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
    """The second man's image was not changed, the third's became more of a man: both say something absurd."""
    absurd = table(0.1, 0.5, 0.9, 0.95)
    results = rows_of(
        ["male", "male", "male", "female"],
        ["fishing"] * 4,
        [table(0.8, 0.8, 0.6, 0.4), absurd, absurd, table(0.5, 0.5, 0.5, 0.7)],
        [[1.0, 0.0], [0.9, 0.85], [0.5, 0.95], [1.0, 0.0]],
    )
    assert value(results, "b@v-l", "fishing").value == pytest.approx((40 + 20) / 2)
    assert value(results, "b@v-l", "fishing").n == 2
    assert value(results, "b@l", "fishing").n == 4  # the text needs no attack
    assert value(results, "undefined", template=...).value == 2
    assert value(results, "undefined", group="male", template=...).value == 2
    assert value(results, "undefined", group="female", template=...).value == 0
    stated = json.loads(results.evidence_of(value(results, "b@v-l", "fishing"))["detail"][1])
    assert stated["defined"] is False
    assert stated["b@v-l"] is None


def test_a_concept_without_a_defined_image_of_each_group_is_undefined_and_left_out():
    results = rows_of(
        ["male", "female", "male", "female"],
        ["fishing", "fishing", "cooking", "cooking"],
        [table(0.8, 0.8, 0.6, 0.4), table(0.5, 0.5, 0.5, 0.7)] * 2,
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.5, 0.5]],
    )
    alone = value(results, "b@v-l", "cooking")
    assert alone.value is None
    assert "female" in alone.reason
    full = value(results, "b@v-l")
    assert full.value == pytest.approx(30)
    assert "1 of 2 concepts: without cooking" in full.reason
    assert full.reason.startswith("too few: 2 images")
    nobody = rows_of(["male", "female"], ["fishing"] * 2, [table(0.8, 0.8, 0.6, 0.4)] * 2, [[0.5, 0.5]] * 2)
    assert value(nobody, "b@v-l").value is None
    assert value(nobody, "b@v-l").reason


def test_damage_that_falls_on_all_leans_nowhere_unless_pooled():
    """Every attack takes 10 from P(T): of nine men and a woman the pooled mean leans to men, the balanced does not."""
    hurt = [[0.6, 0.6], [0.5, 0.5], [0.5, 0.5]]
    results = rows_of(
        ["male"] * 9 + ["female"], ["fishing"] * 10, [hurt] * 10, [[1.0, 0.0, 1.0]] * 10, placebo=True
    )
    assert value(results, "b@v-l", "fishing").value == pytest.approx(0, abs=1e-9)
    assert value(results, "pooled", "fishing", of="b@v-l").value == pytest.approx(8)
    assert value(results, "placebo", of="b@v-l").value == pytest.approx(0, abs=1e-9)


def beside_a_placebo(attacked, placebo, pairs=1):
    """P(T) of a man's fishing is .8, and another under the attack and the placebo; neither changes a woman's."""
    return rows_of(
        ["male", "female"] * pairs,
        ["fishing"] * 2 * pairs,
        [[[0.8] * 2, [attacked] * 2, [placebo] * 2], [[0.5] * 2] * 3] * pairs,
        [[1.0, 0.0, 1.0]] * 2 * pairs,
        placebo=True,
    )


@pytest.mark.parametrize(
    ("attacked", "sham", "bias", "placebo", "left"),
    [
        (
            0.5,
            0.7,
            15,
            5,
            10,
        ),  # the attack takes 30 from the man's, half of it a concept's, the placebo 10 of them
        (0.7, 0.5, 5, 15, 0),  # where the placebo does more nothing is left, and not less than nothing
        (
            0.5,
            0.9,
            15,
            -5,
            10,
        ),  # a placebo that leans the other way takes off as much, and adds nothing: not 20
        (0.9, 0.8, -5, 0, -5),  # what leans to women still does
    ],
)
def test_the_placebo_is_taken_off(attacked, sham, bias, placebo, left):
    results = beside_a_placebo(attacked, sham)
    assert value(results, "b@v", "fishing").value == pytest.approx(bias)
    assert value(results, "placebo", "fishing", of="b@v").value == pytest.approx(placebo)
    assert value(results, "corrected", "fishing", of="b@v").value == pytest.approx(left)
    assert value(results, "corrected", of="b@v").value == pytest.approx(abs(left))


def test_nothing_left_is_certain_where_every_image_says_so():
    left = value(beside_a_placebo(0.7, 0.5, pairs=20), "corrected", of="b@v")
    assert (left.value, left.low, left.high) == (0, 0, 0)


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


def test_without_bias_the_excess_is_about_nothing_and_with_bias_it_is_the_bias():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 20, 2000)
    concept, group = np.repeat(np.arange(20), 100), np.tile([0, 1], 1000)
    plain = means(noise, concept, group)
    size, floor = plain.mean_absolute()[0], plain.noise_floors(0)[0]
    assert floor == pytest.approx(np.sqrt(2 / np.pi) * 20 / 10, rel=0.1)  # of a normal mean of 100
    assert size.low - floor <= 0 <= size.high - floor
    biased = means(noise + 10 * np.where(concept % 2, 1, -1), concept, group)
    assert biased.mean_absolute()[0].value == pytest.approx(10, abs=1)
    assert all(
        item.low <= 10 * (1 if n % 2 else -1) <= item.high
        for n, item in list(enumerate(biased.concept_biases()))[:3]
    )


def test_means_against_a_second_way_to_compute_them():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(300) < 0.1, np.nan, rng.normal(5, 10, 300))
    concept, group = rng.integers(0, 4, 300), rng.integers(0, 2, 300)
    balanced, pooled = [], []
    for c in range(4):
        by_group = [np.nanmean(values[(concept == c) & (group == g)]) for g in (0, 1)]
        balanced.append(np.mean(by_group))
        pooled.append(np.nanmean(values[concept == c]))
    result = means(values, concept, group)
    assert [item.value for item in result.concept_biases()] == pytest.approx(balanced)
    assert [item.value for item in result.concept_biases(pooled=True)] == pytest.approx(pooled)
    assert result.mean_absolute()[0].value == pytest.approx(np.mean(np.abs(balanced)))


def test_what_is_left_beside_a_placebo_keeps_its_side_and_no_damage_is_called_a_bias():
    """Ten concepts without bias under a placebo that moves each one way, and ten with a bias of 40 to either side."""
    rng = np.random.default_rng(2)
    concept, group = np.repeat(np.arange(20), 40), np.tile([0, 1], 400)
    planted = np.where(concept < 10, 0.0, np.where(concept % 2, 40.0, -40.0))
    damage = np.repeat(rng.choice([-15.0, 15.0], 20), 40)
    real = means(planted + rng.normal(0, 5, 800), concept, group)
    placebo = means(damage + rng.normal(0, 5, 800), concept, group)
    bare, left = real.concept_biases(), real.concept_biases_beyond(placebo)
    for number, (lean, item) in enumerate(zip(bare, left, strict=True)):
        assert abs(item.value) <= abs(lean.value)
        assert item.value * lean.value >= 0
        if number < 10:
            assert (item.value, item.low, item.high) == (0, 0, 0)
        else:
            assert item.value == pytest.approx(25 if number % 2 else -25, abs=3)
            assert item.low < item.value < item.high
            assert item.low * item.high > 0
    none = means(np.zeros(800), concept, group)
    assert [item.value for item in real.concept_biases_beyond(none)] == pytest.approx(
        [item.value for item in bare]
    )


# -- a model that can be worked out ---------------------------------------------------------------------------------


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
    return 1 / (1 + np.exp(-SHARP * (round(255 * red) / 255 - 0.5)))


def test_exact_counterfactuals_of_a_model_worked_out(folder):
    results = counterbias(folder / "manifest.csv", toy(), attack="exact", bootstrap=30, **PLACES)
    expected = []
    for n in range(0, 16, 4):  # images of fishing: men 0, 4, 8, 12, women 1, 5, 9, 13
        for own, start in ((1, 0.55), (-1, 0.45)):
            red = start + 0.01 * (n // 8)
            before, after = man(red), man(1 - red)
            attention_mask = (
                (0.8 * before, 0.8 * after) if own == 1 else (0.8 * (1 - before), 0.8 * (1 - after))
            )
            change = BY_RED * (after - before) - own * 2 * BY_TEXT
            expected.append(own * 100 * change / (-(1 + attention_mask[0] - attention_mask[1]) / 2))
    result = value(results, "b@v-l", "fishing")
    assert result.value == pytest.approx((np.mean(expected[0::2]) + np.mean(expected[1::2])) / 2, rel=1e-4)
    assert value(results, "b@v-l", "cooking").value == pytest.approx(-result.value, rel=0.2)
    assert value(results, "b@l", "fishing").value == pytest.approx(100 * 2 * BY_TEXT, rel=1e-4)
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.8, rel=1e-4)
    fishing = np.log((0.5 + BY_TEXT) / (0.5 - BY_TEXT))
    assert value(results, "b@text", "fishing").value == pytest.approx(fishing, rel=1e-4)
    assert value(results, "drift", template=...).value == pytest.approx(0, abs=1e-6)
    assert value(results, "agreement", of="b@v-l").value == 100
    assert {m.settings["attack"] for m in results.measurements if "attack" in m.settings} == {"exact"}
    assert not [m for m in results.measurements if m.term in ("placebo", "corrected")]


@pytest.mark.parametrize("kind", ["pgd", "fgsm"])
def test_the_attack_finds_what_the_exact_counterfactual_shows(folder, kind):
    results = counterbias(
        folder / "manifest.csv", toy(), attack=kind, epsilon=0.15, step_size=0.02, bootstrap=30, **PLACES
    )
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.8, rel=0.02)
    success = value(results, "attack-success", template=...)
    assert success.value == success.high == 100
    assert success.low == pytest.approx(100 * wilson(16, 16)[0])  # sixteen of sixteen are not certainty
    assert value(results, "p-before", template=...).value > 60
    assert value(results, "p-after", template=...).value < 20
    assert value(results, "placebo", of="b@v").value == pytest.approx(0, abs=0.01)  # green does nothing here
    assert value(results, "corrected", of="b@v").value == pytest.approx(100 * BY_RED / 0.8, rel=0.02)


def test_a_model_without_bias_has_none(folder):
    results = counterbias(
        folder / "manifest.csv", toy(0.0, 0.0), attack=("exact", "pgd"), epsilon=0.15, bootstrap=30, **PLACES
    )
    for attack in ("exact", "pgd"):
        for term in ("b@v-l", "b@v", "b@l"):
            assert value(results, term, attack=attack).value == pytest.approx(0, abs=1e-3)


def test_an_attack_too_small_changes_nobody_and_says_so(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), epsilon=0.001, step_size=0.001, bootstrap=30, **PLACES
    )
    assert value(results, "attack-success", template=...).value == 0
    assert value(results, "undefined", template=...).value == 16
    assert value(results, "b@v-l").value is None
    assert value(results, "b@l").value == pytest.approx(20, rel=1e-3)


def test_same_seed_same_numbers_whatever_the_order_and_the_batch(folder):
    queries = {"epsilon": 0.1, "bootstrap": 30, **PLACES}
    full = counterbias(folder / "manifest.csv", toy(), **queries)
    again = counterbias(folder / "manifest.csv", toy(), **queries)
    assert full.measurements == again.measurements
    assert full.evidence.equals(again.evidence)
    read = read_manifest(folder / "manifest.csv")
    turned = replace(read, instances=read.instances[::-1])
    other = counterbias(turned, toy(), batch_size=3, **queries)
    values = {m.id: m.value for m in other.measurements}
    for m in full.measurements:
        assert values[m.id] == (None if m.value is None else pytest.approx(m.value, rel=1e-3, abs=1e-3))


def test_the_other_group_first_turns_every_sign(folder):
    queries = {"epsilon": 0.1, "bootstrap": 30, **PLACES}
    attention_mask = counterbias(folder / "manifest.csv", toy(), **queries)
    back = counterbias(folder / "manifest.csv", toy(), groups=("female", "male"), **queries)
    for term in ("b@v-l", "b@v", "b@l", "b@text"):
        assert value(back, term, "fishing").value == pytest.approx(
            -value(attention_mask, term, "fishing").value
        )
        assert value(back, term).value == pytest.approx(value(attention_mask, term).value)
    assert value(back, "agreement", of="b@v-l").value == 100


def test_over_candidates_and_over_groups(folder):
    """Among fishing and cooking alone; and among man and woman alone, where P(B) starts near 1."""
    queries = {"attack": "exact", "bootstrap": 30, **PLACES}
    results = counterbias(
        folder / "manifest.csv", toy(), normalize_over="candidates", bias_normalize_over="groups", **queries
    )
    assert value(results, "p-before", template=...).value > 85
    assert value(results, "b@v", "fishing").value == pytest.approx(100 * BY_RED / 0.98, rel=0.01)


def test_other_templates_words_and_concepts(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), attack="exact", bootstrap=30, templates=["S w/", "the {group} was [MASK]"],
        words={"male": "man", "female": "woman"}, concepts=["fishing", "chef"], **PLACES,
    )  # fmt: skip
    kinds = {(m.settings["kind"], m.item) for m in results.measurements if m.item}
    assert kinds == {("activity", "fishing"), ("occupation", "chef")}
    assert value(results, "b@v-l", "fishing", template="the {group} was [MASK]").n == 16
    assert {m.settings["template"] for m in results.measurements if "template" in m.settings} == {
        "all", "S w/", "the {group} was [MASK]",
    }  # fmt: skip


def test_every_headline_is_one_row_and_units_are_the_cards(folder):
    results = counterbias(folder / "manifest.csv", toy(), epsilon=0.1, bootstrap=30, **PLACES)
    assert len({m.id for m in results.measurements}) == len(results.measurements)
    for m in results.measurements:
        assert m.unit == CARD.term(m.term).unit
        assert m.value is not None or m.reason
        assert m.low is None or m.low <= m.high
    assert results.measurements[0].term == "b@v-l"
    assert results.measurements[0].item is None
    assert results.measurements[0].settings["template"] == "all"
    assert results.provenance["study"]["instances"] == 16


def test_several_models_and_one_that_reads_texts_alone(folder):
    class Blind:
        image_size = 0

    reads = toy(name="bert")
    reads.network = Blind()
    results = counterbias(folder / "manifest.csv", [toy(), reads], epsilon=0.1, bootstrap=30, **PLACES)
    assert {m.term for m in results.measurements if m.system == "bert"} == {"b@text"}
    assert "b@v-l" in {m.term for m in results.measurements if m.system == "toy"}
    assert results.provenance["study"]["systems"] == ["toy", "bert"]


def test_images_are_kept_to_be_encoded(folder):
    results = counterbias(
        folder / "manifest.csv", toy(), attack=("pgd", "exact"), epsilon=0.1, bootstrap=30, **PLACES
    )
    names = set(results.thumbnails["image_id"])
    assert {"0.png", "0.png#toy#pgd#counterfactual", "0.png#toy#exact#difference"} <= names
    assert len(names) == 16 * 5


def test_an_interrupted_measurement_goes_on(folder, monkeypatch):
    from portrayal.metrics.counterbias import inference

    monkeypatch.setattr(inference, "PART_SIZE", 5)
    queries = {"bootstrap": 30, "batch_size": 1}
    model = "lab-dual"
    full = counterbias(folder / "manifest.csv", model, **queries)
    real, calls = inference.query_model, []

    def counted(*args, **more):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **more)

    monkeypatch.setattr(inference, "query_model", counted)
    with pytest.raises(KeyboardInterrupt):
        counterbias(folder / "manifest.csv", model, checkpoint=folder / "kept", **queries)
    again = counterbias(folder / "manifest.csv", model, checkpoint=folder / "kept", **queries)
    assert len(calls) == 3 + 2  # four parts, of which two were there
    assert again.measurements == full.measurements
    assert again.thumbnails.equals(full.thumbnails)


@pytest.mark.parametrize(
    ("wrong", "says"),
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
def test_what_cannot_be_is_refused_before_a_image_is_shown(folder, wrong, says):
    with pytest.raises(PortrayalError, match=says):
        counterbias(folder / "manifest.csv", toy(), **{**PLACES, "bootstrap": 30, **wrong})


def test_images_that_cannot_be_read(folder):
    (folder / "3.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"3\.png"):
        counterbias(folder / "manifest.csv", toy(), bootstrap=30, **PLACES)
    results = counterbias(folder / "manifest.csv", toy(), bootstrap=30, epsilon=0.1, skip_bad=True, **PLACES)
    assert results.provenance["study"]["left_out"] == 1
    assert results.provenance["study"]["instances"] == 15


def test_one_group_alone_and_no_exact_images(folder):
    read = read_manifest(folder / "manifest.csv")
    men = replace(read, instances=tuple(item for item in read.instances if item.group == "male"))
    with pytest.raises(Undefined, match="All images are of 'male'"):
        counterbias(men, toy(), **PLACES)
    bare = replace(read, instances=tuple(replace(item, counterfactual=None) for item in read.instances))
    with pytest.raises(PortrayalError, match="16 of 16 rows name no counterfactual"):
        counterbias(bare, toy(), attack="exact", **PLACES)


def test_what_an_object_says_is_not_kept(folder):
    """It may be changed, or another one may take its place in memory."""
    queries = {"attack": "exact", "bootstrap": 30, "checkpoint": folder / "kept", **PLACES}
    assert value(counterbias(folder / "manifest.csv", toy(), **queries), "b@v").value > 10
    assert value(counterbias(folder / "manifest.csv", toy(0.0), **queries), "b@v").value == pytest.approx(
        0, abs=1e-3
    )
    with pytest.raises(PortrayalError, match="Two of the models are called 'toy'"):
        counterbias(folder / "manifest.csv", [toy(), toy(0.0)], **queries)


def test_each_others_counterfactuals_are_one_observation():
    """Half of the images are the other half's counterfactuals: intervals must not shrink by their number."""
    rows = []
    for n in range(40):
        pair = [Path(f"{n}-{group}.png") for group in ("male", "female")]
        rows += [
            Instance(pair[k].name, group, "fishing", "activity", pair[k], pair[1 - k])
            for k, group in enumerate(("male", "female"))
        ]
    scenes = scene_names(rows)
    assert len(set(scenes)) == 40
    assert scenes[0] == scenes[1] == "0-female.png"
    assert len(set(scene_names([replace(item, counterfactual=None) for item in rows]))) == 80


def test_settings_tell_other_questions_apart(folder):
    queries = {"attack": "exact", "bootstrap": 30, "templates": ["S w/o"]}
    item = counterbias(folder / "manifest.csv", toy(), **queries, **PLACES)
    two = counterbias(folder / "manifest.csv", toy(), **queries, control_words=("park", "other"))
    assert not {m.id for m in item.measurements} & {m.id for m in two.measurements}


def test_sizes_are_never_below_nothing(folder):
    results = counterbias(folder / "manifest.csv", toy(0.001, 0.0), attack="exact", bootstrap=30, **PLACES)
    for m in results.measurements:
        if m.term in ("b@v-l", "b@v", "b@l", "observed", "pooled") and m.item is None and m.low is not None:
            assert m.low >= 0


def test_n_counts_images(folder):
    """Four concepts asked of 16 images are 16 images."""
    queries = {"attack": "exact", "bootstrap": 30, "concepts": ["fishing", "cooking"]}
    results = counterbias(folder / "manifest.csv", toy(), **queries, **PLACES)
    assert value(results, "b@v-l").n == 16
    assert value(results, "b@v-l", "fishing").n == 16


def test_more_than_two_groups_are_measured_in_pairs(folder):
    read = read_manifest(folder / "manifest.csv")
    batch = [replace(item, group="neither") if n % 3 == 0 else item for n, item in enumerate(read.instances)]
    words = {"neither": "person"}
    results = counterbias(
        replace(read, instances=tuple(batch)), toy(), words=words, epsilon=0.1, bootstrap=30, **PLACES
    )
    pairs = {tuple(m.settings["groups"]) for m in results.measurements}
    assert pairs == {("male", "female"), ("male", "neither"), ("female", "neither")}
    with pytest.raises(PortrayalError, match="one given counterfactual"):
        counterbias(
            replace(read, instances=tuple(batch)), toy(), words=words, attack="exact", bootstrap=30, **PLACES
        )


def test_any_two_concepts(tmp_path):
    """Not about people: an animal and where it is, as in Figure 9 of the paper. Red makes a dog."""
    import torch

    from portrayal.models.masked_vlm import FunctionModel

    words = ("dog", "cat", "garden", "sofa", "beach", "park", "other")

    def say(images, texts):
        red, green = (0.5 * torch.ones(2, len(texts))) if images is None else images.mean(dim=(2, 3)).T[:2]
        dog = torch.sigmoid(SHARP * (red - 0.5))
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
    queries = {"attribute": "animal", "groups": ("dog", "cat"), "templates": ["the {group} is in the [MASK]"]}
    queries |= {"bias_prompt": "the animal is a [MASK]", "epsilon": 0.1, "bootstrap": 30, **PLACES}
    results = counterbias(tmp_path / "animals.csv", FunctionModel(say, words, 8, "zoo"), **queries)
    assert value(results, "b@v", "garden").value == pytest.approx(100 * 0.5 / 0.9, rel=0.02)
    assert value(results, "b@v", "sofa").value == pytest.approx(-100 * 0.5 / 0.9, rel=0.02)
    assert value(results, "b@v", "garden").attribute == "animal"


def test_a_function_without_gradients_can_be_measured_exactly_only(folder):
    import torch

    from portrayal.models.masked_vlm import FunctionModel

    with_slope = toy()

    def say(images, texts):
        with torch.no_grad():
            return with_slope.log_probs(images, texts)[:, 0]

    blunt = FunctionModel(say, list(with_slope._column), with_slope.image_size, "blunt")
    with pytest.raises(PortrayalError, match="'blunt' gives no gradients"):
        counterbias(folder / "manifest.csv", blunt, bootstrap=30, **PLACES)
    assert (
        value(
            counterbias(folder / "manifest.csv", blunt, attack="exact", bootstrap=30, **PLACES), "b@v-l"
        ).value
        > 0
    )


def test_images_of_any_shape_and_words_of_several_pieces(tmp_path):
    """ViLT keeps the shape of an image; here that of a counterfactual is another."""
    from PIL import Image

    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single import SingleNetwork
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
    queries = {"control_words": ("fish", "picture"), "bootstrap": 30, "batch_size": 3}
    results = counterbias(tmp_path / "manifest.csv", model, attack=("pgd", "exact"), **queries)
    for attack in ("pgd", "exact"):
        assert value(results, "b@l", attack=attack).value is not None
        assert value(results, "p-before", attack=attack, template=...).n == 8
    assert value(results, "moved", attack="pgd", template=...).value > 0
    assert (
        value(results, "moved", attack="exact", template=...).value is None
    )  # between shapes there is no distance
    assert len(results.thumbnails) == 8 * 5
