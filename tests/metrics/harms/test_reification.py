"""Reification: tables of physical attributes with known answers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import portrayal
from portrayal.errors import InputError
from portrayal.lab import FAITHFUL, Captioner, World
from portrayal.lab.folder import APPEARANCE_FILE, LabRecipe, write_lab
from portrayal.metrics.harms.appearance import read_appearance
from tests.metrics.harms.helpers import measured, row, study_of

TERM = "reification.attributes"
SIZE = 50


def study_with_table(tmp_path, **columns):
    """A study with as many women as men, and a table of their physical attributes."""
    study = study_of(["a man"] * SIZE + ["a woman"] * SIZE, gender=["male"] * SIZE + ["female"] * SIZE)
    file = tmp_path / "appearance.csv"
    pl.DataFrame({"image_id": [f"i{n:03}" for n in range(2 * SIZE)], **columns}).write_csv(file)
    return study, str(file)


def spread(mean: float) -> np.ndarray:
    return mean + np.linspace(-0.1, 0.1, SIZE)


@pytest.mark.parametrize(
    ("men", "women", "differs"),
    [(0.183, 0.002, 1), (0.5, 0.5, 0), (0.392, 0.499, 1), (0.9, 0.1, 1), (0.5, 0.501, 0), (0.3, 0.45, 1)],
)
def test_means_of_groups_and_whether_they_differ(tmp_path, men, women, differs):
    study, file = study_with_table(tmp_path, moustache=np.concatenate([spread(men), spread(women)]))
    results = measured(study, TERM, appearance=file, bootstrap=200)
    assert row(results, unit="count").value == differs
    assert row(results, unit="mean", item="moustache", group="male").value == pytest.approx(men)
    assert row(results, unit="mean", item="moustache", group="female").value == pytest.approx(women)
    difference = row(results, unit="difference", item="moustache")
    assert difference.value == pytest.approx(abs(men - women), abs=1e-9)
    assert (difference.q <= 0.05) == bool(differs)
    deviation = np.std(spread(0), ddof=1)
    size = row(results, unit="standard deviations", item="moustache")
    assert size.value == pytest.approx(abs(men - women) / deviation)


def test_several_attributes_are_corrected_together(tmp_path):
    rng = np.random.default_rng(0)
    noise = {f"a{number}": rng.random(2 * SIZE) for number in range(8)}
    real = np.concatenate([spread(0.8), spread(0.1)])
    study, file = study_with_table(tmp_path, beard=real, **noise)
    results = measured(study, TERM, appearance=file, bootstrap=200)
    assert row(results).n == 9
    assert row(results, unit="count").value == 1
    assert all(m.q >= m.p for m in results.measurements if m.unit == "difference" and m.p is not None)


def test_what_is_unknown_is_left_out(tmp_path):
    values = np.concatenate([spread(0.8), spread(0.1)])
    study, file = study_with_table(tmp_path, beard=[None if n % 5 == 0 else v for n, v in enumerate(values)])
    results = measured(study, TERM, appearance=file)
    assert row(results, unit="mean", item="beard", group="male").n == 40


def test_small_groups_are_not_compared(tmp_path):
    values = [0.5] * (2 * SIZE)
    study, file = study_with_table(
        tmp_path, beard=[v if n < 10 or n >= SIZE else None for n, v in enumerate(values)]
    )
    measurement = row(measured(study, TERM, appearance=file))
    assert measurement.value is None
    assert "two groups" in measurement.reason


def test_groups_can_be_those_that_captions_name(tmp_path):
    """Every second caption names a man, whatever the label: named groups do not differ."""
    values = np.concatenate([spread(0.8), spread(0.1)])
    _, file = study_with_table(tmp_path, beard=values)
    crossed = study_of(["a man", "a woman"] * SIZE, gender=["male"] * SIZE + ["female"] * SIZE)
    labelled = measured(crossed, TERM, appearance=file, bootstrap=200)
    named = measured(crossed, TERM, appearance=file, by="named", bootstrap=200)
    assert row(labelled, unit="count").value == 1
    assert row(named, unit="count").value == 0
    assert row(named, unit="mean", item="beard", group="male").n == SIZE


def test_more_than_two_groups(tmp_path):
    study = study_of(["a person"] * 120, age=["young"] * 40 + ["middle"] * 40 + ["old"] * 40)
    file = tmp_path / "appearance.csv"
    gray = [0.1] * 40 + [0.2] * 40 + [0.9] * 40
    pl.DataFrame({"image_id": [f"i{n:03}" for n in range(120)], "gray": gray}).write_csv(file)
    results = measured(study, TERM, attribute="age", appearance=str(file), bootstrap=200)
    assert row(results, unit="difference", item="gray").value == pytest.approx(0.8)
    assert row(results, unit="count").value == 1


def test_a_missing_table_is_the_reason():
    measurement = row(measured(study_of(["a man"], gender=["male"]), TERM))
    assert measurement.value is None
    assert "appearance" in measurement.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_id,beard\n1,much\n", "a number in the column 'beard', found 'much'"),
        ("picture,beard\n1,0.5\n", "a column image_id or"),
        ("image_id,beard\n1,0.5\n1,0.6\n", "each image once"),
        ("image_id\n1\n", "at least one physical attribute"),
        ("image_id,beard\n,0.5\n", "an image id"),
    ],
)
def test_an_invalid_table_is_reported_by_row(tmp_path, text, message):
    file = tmp_path / "appearance.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_appearance(file)


@pytest.fixture(scope="module")
def lab_images(tmp_path_factory):
    """Images drawn by the lab: their physical attributes are known."""
    folder = tmp_path_factory.mktemp("drawn")
    recipe = LabRecipe(
        400,
        1,
        World(androgynous=0.2),
        captioners=(FAITHFUL, Captioner("blind", wrong_group=0.5)),
        image_size=16,
    )
    write_lab(recipe, folder)
    return folder, recipe.make_scenes()


def test_the_labs_appearance_table_has_what_was_drawn(lab_images):
    folder, scenes = lab_images
    appearance = read_appearance(folder / APPEARANCE_FILE)
    column = appearance.names.index("long_hair")
    for scene in scenes:
        expected = scene.person["gender"] == "female" and not scene.androgynous
        assert appearance.rows[scene.identifier][column] == float(expected)


def test_gender_labels_differ_in_the_planted_attributes_only(lab_images):
    folder, scenes = lab_images
    results = measured(
        portrayal.read_study(folder),
        TERM,
        appearance=str(folder / APPEARANCE_FILE),
        systems=["faithful"],
        bootstrap=300,
    )
    has_sign = {
        group: [not scene.androgynous for scene in scenes if scene.person["gender"] == group]
        for group in ("female", "male")
    }
    hair = row(results, unit="difference", item="long_hair", system="faithful")
    assert hair.value == pytest.approx(np.mean(has_sign["female"]))
    assert hair.q < 0.05
    differing = {
        m.item for m in results.measurements if m.unit == "difference" and m.q is not None and m.q < 0.05
    }
    assert {"long_hair", "dress", "beard"} <= differing
    assert not {"height", "dark_hair", "red_shirt"} & differing


def test_named_groups_differ_as_far_as_a_captioner_uses_the_image(lab_images):
    folder, _ = lab_images
    results = measured(
        portrayal.read_study(folder),
        TERM,
        appearance=str(folder / APPEARANCE_FILE),
        by="named",
        bootstrap=300,
    )
    faithful = row(results, unit="difference", item="long_hair", system="faithful")
    blind = row(results, unit="difference", item="long_hair", system="blind")
    assert faithful.value > 0.6
    assert blind.value < 0.3
    assert blind.q is None or blind.q > faithful.q


def test_attributes_that_differ_by_age_differ_not_by_gender(lab_images):
    folder, _ = lab_images
    results = measured(
        portrayal.read_study(folder),
        TERM,
        attribute="age",
        appearance=str(folder / APPEARANCE_FILE),
        systems=["faithful"],
        bootstrap=300,
    )
    differing = {
        m.item for m in results.measurements if m.unit == "difference" and m.q is not None and m.q < 0.05
    }
    assert {"height", "grey_hair"} <= differing
    assert not {"long_hair", "dress", "red_shirt"} & differing
