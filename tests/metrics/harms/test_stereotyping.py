"""Stereotyping: hand-made captions with known answers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from portrayal.metrics.harms.categories import chi_squared, cramers_v
from portrayal.study import Study
from tests.metrics.harms.helpers import counted, measured, row, study_of

WRONG = "stereotyping.incorrect-word"
MENTIONED = "stereotyping.correctly-mentioned"
DIFFERENT = "stereotyping.distributions"
AMPLIFIED = "stereotyping.amplification"


@pytest.mark.parametrize(
    ("caption", "human", "labels", "kinds"),
    [
        ("a man with a stove", ["a man in a park"], ["person"], {"hallucinated"}),
        ("a man with a dog", ["a man in a park"], ["person"], {"hallucinated"}),
        ("a man with a dog", ["a man in a park"], ["person", "dog"], set()),
        ("a man on a couch", ["a man on a sofa"], ["person"], set()),
        ("a man with an animal", ["a man with a dog"], ["person"], set()),
        ("a man with a terrier", ["a man with a dog"], ["person"], {"too-specific"}),
        ("a man on a bench", ["a woman on a bench"], ["person"], {"identity"}),
        ("a beautiful bench", ["a bench"], [], {"not-imageable"}),
        ("a picture of a bench", ["a bench"], [], set()),
        ("a red bench", ["a bench"], [], set()),
        ("a man riding a horse", ["a man on a horse"], ["person"], {"hallucinated"}),
        ("a man thinking on a bench", ["a man on a bench"], ["person"], {"not-imageable"}),
    ],
)
def test_a_word_without_support(caption, human, labels, kinds):
    items = counted(WRONG, caption, human, labels or None)
    assert {kind for kind in items or () if "where somebody" not in kind} == kinds


def test_human_captions_are_compared_with_each_other():
    study = study_of(["a man"], [["a man with a dog", "a man", "a man with a dog", "a man with a cat"]])
    results = measured(study, WRONG, stage=("3",))
    assert row(results).value == 0.25  # the cat
    single_reference = measured(study_of(["a man"], [["a man"]]), WRONG, stage=("3",))
    assert row(single_reference).value is None


def stove_study(women: int, men: int):
    captions = ["a person with a stove"] * women + ["a person"] * (100 - women)
    captions += ["a person with a stove"] * men + ["a person"] * (100 - men)
    return study_of(captions, [["a person"]] * 200, gender=["female"] * 100 + ["male"] * 100)


@pytest.mark.parametrize(
    ("women", "men", "reported"),
    [(30, 5, True), (40, 1, True), (10, 10, False), (3, 0, False), (12, 8, False), (0, 0, False)],
)
def test_wrong_words_associated_with_a_group_are_reported(women, men, reported):
    rows = [m for m in measured(stove_study(women, men), WRONG).measurements if m.item == "word: stove"]
    assert bool(rows) == reported
    for m in rows:
        assert (m.group, m.unit) == ("female", "excess")
        assert m.value == pytest.approx(women / 200 - 0.5 * (women + men) / 200)
        assert m.q <= 0.05


def test_the_threshold_is_an_option():
    assert not [
        m for m in measured(stove_study(30, 5), WRONG, threshold=0.1).measurements if m.item == "word: stove"
    ]


def cup_study(named_women: int, named_men: int, size: int = 60):
    """Images of a cup; captions name it for some women and some men."""
    captions = [
        "a person with a cup" if number < named else "a person"
        for named in (named_women, named_men)
        for number in range(size)
    ]
    return study_of(captions, labels=[["cup"]] * (2 * size), gender=["female"] * size + ["male"] * size)


@pytest.mark.parametrize(
    ("women", "men", "depends"),
    [
        (50, 20, 1),
        (20, 50, 1),
        (60, 20, 1),
        (60, 0, 1),
        (0, 60, 1),
        (30, 30, 0),
        (0, 0, 0),
        (60, 60, 0),
        (32, 28, 0),
    ],
)
def test_an_objects_chance_of_being_mentioned_depends_on_the_group(women, men, depends):
    results = measured(cup_study(women, men), MENTIONED)
    assert row(results, unit="count").value == depends
    assert row(results).n == 1
    by_group = {m.group: m for m in results.measurements if m.item == "cup"}
    # Firth's estimate of a table of two by two is that of the table with a half added to each cell.
    odds = np.log((women + 0.5) / (60 - women + 0.5) / ((men + 0.5) / (60 - men + 0.5)))
    assert by_group["female"].value == pytest.approx(odds, abs=1e-4)
    assert by_group["male"].value == pytest.approx(-odds, abs=1e-4)
    assert by_group["female"].low <= by_group["female"].value <= by_group["female"].high
    assert (by_group["female"].q <= 0.05) == bool(depends)


def test_size_explains_what_groups_do_not():
    """Cups are smaller in images of women, and small cups go unnamed: the group itself has no effect."""
    rng = np.random.default_rng(0)
    size = 200
    small = np.concatenate([rng.random(size) < 0.8, rng.random(size) < 0.2])
    named = rng.random(2 * size) < np.where(small, 0.15, 0.85)
    images = [f"i{number:03}" for number in range(2 * size)]
    box_size = np.where(small, 0.05, 0.5)
    tables = {
        "captions": pl.DataFrame(
            {
                "image_id": images,
                "system": ["s"] * len(images),
                "caption": ["a cup" if is_named else "a room" for is_named in named],
            }
        ),
        "attributes": pl.DataFrame({"image_id": images, "gender": ["female"] * size + ["male"] * size}),
    }
    labels = {"image_id": images, "label": ["cup"] * len(images)}
    boxes = labels | {"x": 0.5 - box_size / 2, "y": 0.5 - box_size / 2, "width": box_size, "height": box_size}
    without = measured(Study.from_frames(**tables, objects=pl.DataFrame(labels)), MENTIONED)
    with_boxes = measured(Study.from_frames(**tables, objects=pl.DataFrame(boxes)), MENTIONED)
    assert row(without, unit="count").value == 1
    assert row(with_boxes, unit="count").value == 0


def test_few_images_are_not_tested():
    measurement = row(measured(cup_study(5, 5, size=10), MENTIONED))
    assert measurement.value is None
    assert "30 images" in measurement.reason


def study_of_two_worlds(women: str, men: str, size: int = 60):
    """Half of the captions of each group are the given one, the others mention a park."""
    captions = [women, "a park"] * (size // 2) + [men, "a park"] * (size // 2)
    return study_of(captions, [[caption] for caption in captions], gender=["female"] * size + ["male"] * size)


@pytest.mark.parametrize(
    ("women", "men", "kinds"),
    [
        ("a person with a cup", "a person with a cup", set()),
        ("a person with a cup and a dog", "a person with a truck and a dog", {"objects"}),
        ("a person with a fork and a dog", "a person with a bus and a dog", {"objects"}),
        ("a person with a bench and a dog", "a person with a bench and a dog", set()),
        ("a person with a car and a cat", "a person with a truck and a cat", set()),  # both are vehicles
        ("a person with a chair and a cat", "a person with a laptop and a cat", {"objects"}),
        ("a person with a pizza and a cat", "a person with an apple and a cat", set()),  # both are food
    ],
)
def test_groups_are_shown_in_different_worlds(women, men, kinds):
    results = measured(study_of_two_worlds(women, men), DIFFERENT, bootstrap=200)
    significant = {m.item for m in results.measurements if m.unit == "v" and m.p * 3 < 0.05}
    assert significant == kinds
    assert row(results, unit="count").value == len(kinds)


def test_distributions_at_three_stages():
    size = 60
    study = study_of(
        ["a person"] * (2 * size),
        [["a person with a cup and a dog"]] * size + [["a person with a truck and a dog"]] * size,
        labels=[["cup", "dog"]] * size + [["truck", "dog"]] * size,
        gender=["female"] * size + ["male"] * size,
    )
    for stage, count in (("1", 1), ("3", 1)):
        assert row(measured(study, DIFFERENT, stage=(stage,), bootstrap=200), unit="count").value == count
    assert row(measured(study, DIFFERENT, bootstrap=200)).value is None  # one category alone


def test_chi_squared_by_hand():
    table = np.array([[10.0, 20.0, 30.0], [20.0, 20.0, 20.0]])
    expected = np.array([[15.0, 20.0, 25.0], [15.0, 20.0, 25.0]])
    assert chi_squared(table) == pytest.approx(((table - expected) ** 2 / expected).sum())
    # Two rows and three columns of 120: the corrected rows are 2 - 1 / 119, and chance alone gives 2 / 119.
    by_hand = np.sqrt((chi_squared(table) / 120 - 2 / 119) / (1 - 1 / 119))
    assert cramers_v(chi_squared(table), table) == pytest.approx(by_hand)
    assert cramers_v(0.0, table) == 0
    assert cramers_v(5.0, np.array([[5.0, 5.0]])) == 0


def amplified(human: tuple[int, int], system: tuple[int, int], size: int = 100):
    """Captions of each group mention a truck so often, else a cup: human captions, and those of the system."""

    def captions(counts):
        return ["a truck" if number < count else "a cup" for count in counts for number in range(size)]

    study = study_of(
        captions(system),
        [[caption] for caption in captions(human)],
        gender=["female"] * size + ["male"] * size,
    )
    return measured(study, AMPLIFIED, bootstrap=200)


@pytest.mark.parametrize(
    ("human", "system", "verdict"),
    [
        ((40, 60), (20, 80), "more"),
        ((40, 60), (0, 100), "more"),
        ((30, 70), (10, 90), "more"),
        ((60, 40), (90, 10), "more"),
        ((40, 60), (40, 60), "same"),
        ((20, 80), (40, 60), "less"),
        ((10, 90), (50, 50), "less"),
        ((40, 60), (60, 40), "less"),
        ((45, 55), (5, 95), "more"),
        ((20, 80), (20, 80), "same"),
    ],
)
def test_an_association_of_human_captions_is_amplified(human, system, verdict):
    results = amplified(human, system)
    objects = row(results, item="objects", unit="change")
    # By hand: both categories and both groups move by the same amount, with the association or against it.
    lean = 1 if human[1] > human[0] else -1
    by_hand = lean * ((system[1] - human[1]) - (system[0] - human[0])) / 2 / 100
    assert objects.value == pytest.approx(by_hand, abs=1e-9)
    assert (objects.low > 0) == (verdict == "more")
    assert (objects.high < 0) == (verdict == "less")
    assert row(results, unit="count").value == (verdict == "more")


def test_missing_data_is_the_reason():
    without_groups = row(measured(study_of(["a cup"], [["a cup"]]), AMPLIFIED))
    assert without_groups.value is None
    assert "attributes" in without_groups.reason
    without_references = row(measured(study_of(["a cup"] * 2, gender=["male", "female"]), AMPLIFIED))
    assert "references" in without_references.reason
    few_images = row(measured(study_of(["a cup"] * 2, [["a cup"]] * 2, gender=["male", "female"]), AMPLIFIED))
    assert few_images.value is None
