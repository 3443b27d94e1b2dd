"""Reification: tables of looks with known answers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import portrayal
from portrayal.errors import InputError
from portrayal.lab import FAITHFUL, Captioner, World
from portrayal.lab.folder import LOOKS_FILE, Recipe, write_lab
from portrayal.metrics.harms.appearance import read_appearance
from tests.metrics.harms.told import measured, row, study_of

TERM = "reification.attributes"
SIZE = 50


def looked_at(tmp_path, **columns):
    """As many women as men, and what a table says of them."""
    study = study_of(["a man"] * SIZE + ["a woman"] * SIZE, gender=["male"] * SIZE + ["female"] * SIZE)
    file = tmp_path / "looks.csv"
    pl.DataFrame({"image_id": [f"i{n:03}" for n in range(2 * SIZE)], **columns}).write_csv(file)
    return study, str(file)


def spread(mean: float) -> np.ndarray:
    return mean + np.linspace(-0.1, 0.1, SIZE)


@pytest.mark.parametrize(
    ("men", "women", "differs"),
    [(0.183, 0.002, 1), (0.5, 0.5, 0), (0.392, 0.499, 1), (0.9, 0.1, 1), (0.5, 0.501, 0), (0.3, 0.45, 1)],
)
def test_means_of_groups_and_whether_they_differ(tmp_path, men, women, differs):
    study, file = looked_at(tmp_path, moustache=np.concatenate([spread(men), spread(women)]))
    found = measured(study, TERM, appearance=file, n_resamples=200)
    assert row(found, unit="count").value == differs
    assert row(found, unit="mean", item="moustache", group="male").value == pytest.approx(men)
    assert row(found, unit="mean", item="moustache", group="female").value == pytest.approx(women)
    difference = row(found, unit="difference", item="moustache")
    assert difference.value == pytest.approx(abs(men - women), abs=1e-9)
    assert (difference.q <= 0.05) == bool(differs)
    deviation = np.std(spread(0), ddof=1)
    size = row(found, unit="standard deviations", item="moustache")
    assert size.value == pytest.approx(abs(men - women) / deviation)


def test_several_attributes_are_corrected_together(tmp_path):
    rng = np.random.default_rng(0)
    noise = {f"a{number}": rng.random(2 * SIZE) for number in range(8)}
    real = np.concatenate([spread(0.8), spread(0.1)])
    study, file = looked_at(tmp_path, beard=real, **noise)
    found = measured(study, TERM, appearance=file, n_resamples=200)
    assert row(found).n == 9
    assert row(found, unit="count").value == 1
    assert all(m.q >= m.p for m in found.measurements if m.unit == "difference" and m.p is not None)


def test_what_is_unknown_is_left_out(tmp_path):
    values = np.concatenate([spread(0.8), spread(0.1)])
    study, file = looked_at(tmp_path, beard=[None if n % 5 == 0 else v for n, v in enumerate(values)])
    found = measured(study, TERM, appearance=file)
    assert row(found, unit="mean", item="beard", group="male").n == 40


def test_too_few_of_a_group_are_not_compared(tmp_path):
    values = [0.5] * (2 * SIZE)
    study, file = looked_at(
        tmp_path, beard=[v if n < 10 or n >= SIZE else None for n, v in enumerate(values)]
    )
    found = row(measured(study, TERM, appearance=file))
    assert found.value is None
    assert "two groups" in found.reason


def test_groups_can_be_those_that_captions_name(tmp_path):
    """Captions call everybody a man: whom they name says nothing of looks."""
    values = np.concatenate([spread(0.8), spread(0.1)])
    _, file = looked_at(tmp_path, beard=values)
    crossed = study_of(["a man", "a woman"] * SIZE, gender=["male"] * SIZE + ["female"] * SIZE)
    labelled = measured(crossed, TERM, appearance=file, n_resamples=200)
    named = measured(crossed, TERM, appearance=file, by="named", n_resamples=200)
    assert row(labelled, unit="count").value == 1
    assert row(named, unit="count").value == 0
    assert row(named, unit="mean", item="beard", group="male").n == SIZE


def test_more_than_two_groups(tmp_path):
    study = study_of(["a person"] * 120, age=["young"] * 40 + ["middle"] * 40 + ["old"] * 40)
    file = tmp_path / "looks.csv"
    gray = [0.1] * 40 + [0.2] * 40 + [0.9] * 40
    pl.DataFrame({"image_id": [f"i{n:03}" for n in range(120)], "gray": gray}).write_csv(file)
    found = measured(study, TERM, attribute="age", appearance=str(file), n_resamples=200)
    assert row(found, unit="difference", item="gray").value == pytest.approx(0.8)
    assert row(found, unit="count").value == 1


def test_without_a_table_it_says_so():
    found = row(measured(study_of(["a man"], gender=["male"]), TERM))
    assert found.value is None
    assert "appearance" in found.reason


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("image_id,beard\n1,much\n", "a number in the column 'beard', found 'much'"),
        ("picture,beard\n1,0.5\n", "a column image_id or"),
        ("image_id,beard\n1,0.5\n1,0.6\n", "each image once"),
        ("image_id\n1\n", "at least one physical attribute"),
        ("image_id,beard\n,0.5\n", "an image id"),
    ],
)
def test_a_bad_table_is_told_by_its_row(tmp_path, text, complaint):
    file = tmp_path / "looks.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_appearance(file)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Pictures of the lab: who drew them knows what people look like, so the truth is known."""
    folder = tmp_path_factory.mktemp("drawn")
    recipe = Recipe(
        400,
        1,
        World(androgynous=0.2),
        captioners=(FAITHFUL, Captioner("blind", wrong_group=0.5)),
        pictures=16,
    )
    write_lab(recipe, folder)
    return folder, recipe.make_scenes()


def test_the_labs_table_of_looks_has_what_was_drawn(drawn):
    folder, scenes = drawn
    looks = read_appearance(folder / LOOKS_FILE)
    column = looks.names.index("long_hair")
    for scene in scenes:
        expected = scene.person["gender"] == "female" and not scene.androgynous
        assert looks.rows[scene.identifier][column] == float(expected)


def test_labels_of_gender_go_with_the_signs_that_were_drawn_and_no_others(drawn):
    folder, scenes = drawn
    found = measured(
        portrayal.read_study(folder),
        TERM,
        appearance=str(folder / LOOKS_FILE),
        systems=["faithful"],
        n_resamples=300,
    )
    signed = {
        group: [not s.androgynous for s in scenes if s.person["gender"] == group]
        for group in ("female", "male")
    }
    hair = row(found, unit="difference", item="long_hair", system="faithful")
    assert hair.value == pytest.approx(np.mean(signed["female"]))
    assert hair.q < 0.05
    differing = {
        m.item for m in found.measurements if m.unit == "difference" and m.q is not None and m.q < 0.05
    }
    assert {"long_hair", "dress", "beard"} <= differing
    assert not {"height", "dark_hair", "red_shirt"} & differing


def test_groups_that_a_captioner_names_go_with_looks_as_far_as_it_looks(drawn):
    folder, _ = drawn
    found = measured(
        portrayal.read_study(folder), TERM, appearance=str(folder / LOOKS_FILE), by="named", n_resamples=300
    )
    looking = row(found, unit="difference", item="long_hair", system="faithful")
    guessing = row(found, unit="difference", item="long_hair", system="blind")
    assert looking.value > 0.6
    assert guessing.value < 0.3
    assert guessing.q is None or guessing.q > looking.q


def test_looks_by_age_are_not_looks_by_gender(drawn):
    folder, _ = drawn
    found = measured(
        portrayal.read_study(folder),
        TERM,
        attribute="age",
        appearance=str(folder / LOOKS_FILE),
        systems=["faithful"],
        n_resamples=300,
    )
    differing = {
        m.item for m in found.measurements if m.unit == "difference" and m.q is not None and m.q < 0.05
    }
    assert {"height", "grey_hair"} <= differing
    assert not {"long_hair", "dress", "red_shirt"} & differing
