"""Images: only the person changes in a counterfactual, and the same scene gives the same bytes everywhere."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from portrayal.errors import PortrayalError
from portrayal.lab import Scene, World, make_scenes
from portrayal.lab.images import contact_sheet, counterfactual, draw, person_boxes, world_rows
from portrayal.lab.world import (
    ATTRIBUTES,
    COLOURS,
    DRAWN_ACTIVITIES,
    DRAWN_OCCUPATIONS,
    EXTRAS,
    OCCUPATION_PAIRS,
    PLACES,
)
from tests.lab.test_study import run_in_another_process

SCENES = make_scenes(150, seed=11)


def pixels(scene: Scene, size: int = 96) -> np.ndarray:
    return np.asarray(draw(scene, size)).astype(int)


def outside_people(scenes: list[Scene], size: int) -> np.ndarray:
    """Which pixels no person of any of these scenes may touch."""
    background = np.ones((size, size), dtype=bool)
    for scene in scenes:
        for x, y, width, height in person_boxes(scene):
            rows = slice(int(np.floor(y * size)), int(np.ceil((y + height) * size)))
            background[rows, int(np.floor(x * size)) : int(np.ceil((x + width) * size))] = False
    return background


@pytest.mark.parametrize("size", [96, 64, 211])
@pytest.mark.parametrize("attribute", list(ATTRIBUTES))
def test_a_counterfactual_differs_only_in_the_person(attribute, size):
    n_changed = 0
    for scene in SCENES[: 150 if size == 96 else 25]:
        for group in ATTRIBUTES[attribute]:
            other = scene.with_person(**{attribute: group})
            before = pixels(scene, size)
            after = np.asarray(counterfactual(scene, size, **{attribute: group})).astype(int)
            background = outside_people([scene, other], size)
            assert background.mean() > 0.3
            assert (before[background] == after[background]).all()
            if other == scene:
                assert (before == after).all()
            elif not (attribute == "gender" and scene.androgynous):
                n_changed += 1
                assert (before != after).any(), scene
    assert n_changed >= 20


def test_people_without_signs_of_gender_have_the_same_image():
    for scene in SCENES[:20]:
        androgynous = replace(scene, androgynous=True)
        assert (
            pixels(androgynous.with_person(gender="male")) == pixels(androgynous.with_person(gender="female"))
        ).all()


def plain(**changes) -> Scene:
    scene_of_a_single_person = next(scene for scene in SCENES if scene.people == 1)
    return replace(scene_of_a_single_person, extras=(), occupation=None, place="park", **changes)


def test_the_activities_of_a_pair_share_their_ambiguous_image_and_differ_in_full():
    for first, second in zip(DRAWN_ACTIVITIES[::2], DRAWN_ACTIVITIES[1::2], strict=True):
        for cue in ("ambiguous", "absent"):
            pair = [pixels(plain(activity=activity, cue=cue)) for activity in (first, second)]
            assert (pair[0] == pair[1]).all()
        full = [pixels(plain(activity=activity, cue="full")) for activity in (first, second)]
        assert (full[0] != full[1]).any(axis=2).sum() > 150


def test_every_drawn_concept_has_a_distinct_image():
    """Every activity, occupation, place, extra and colour has an image of its own."""
    scenes_by_kind = {
        "activities": [plain(activity=activity, cue="full") for activity in DRAWN_ACTIVITIES],
        "unclear": [plain(activity=activity, cue="ambiguous") for activity in DRAWN_ACTIVITIES[::2]],
        "occupations": [
            replace(plain(cue="absent"), occupation=occupation, occupation_cue="full")
            for occupation_pair in OCCUPATION_PAIRS[:DRAWN_OCCUPATIONS]
            for occupation in occupation_pair.concepts.values()
        ],
        "places": [replace(plain(cue="absent"), place=place) for place in PLACES],
        "extras": [replace(plain(cue="absent"), extras=(label,)) for label in EXTRAS],
        "colours": [plain(colour=colour) for colour in COLOURS],
        "people": [
            plain(androgynous=False).with_person(gender=gender, age=age, skin=skin)
            for gender in ATTRIBUTES["gender"]
            for age in ATTRIBUTES["age"]
            for skin in ATTRIBUTES["skin"]
        ],
    }
    assert len(scenes_by_kind["activities"]) >= 16
    assert len(scenes_by_kind["occupations"]) >= 8
    for kind, scenes in scenes_by_kind.items():
        for first, second in combinations([pixels(scene) for scene in scenes], 2):
            assert (np.abs(first - second).max(axis=2) > 40).sum() > 25, kind


def test_the_same_scene_gives_the_same_bytes_in_every_process():
    code = (
        "import hashlib; from portrayal.lab import make_scenes; from portrayal.lab.images import draw\n"
        "print(hashlib.sha256(b''.join(draw(s).tobytes() for s in make_scenes(40, 11))).hexdigest())"
    )
    expected = hashlib.sha256(b"".join(draw(scene).tobytes() for scene in SCENES[:40])).hexdigest()
    assert run_in_another_process(code) == expected


def test_boxes_are_fractions_and_hold_the_people():
    for scene in SCENES:
        boxes = person_boxes(scene)
        assert len(boxes) == scene.people
        for x, y, width, height in boxes:
            assert 0 <= x < x + width <= 1.000001
            assert 0 <= y < y + height <= 1.000001


def test_what_cannot_be_drawn_is_refused():
    scene = next(
        s for s in make_scenes(200, 0, World(activities="all")) if s.activity not in DRAWN_ACTIVITIES
    )
    with pytest.raises(PortrayalError, match="has words but no image"):
        draw(scene)
    with pytest.raises(PortrayalError, match="side of 16 pixels or more"):
        draw(SCENES[0], 8)


def test_a_sheet_shows_everything_drawn():
    rows = world_rows()
    titles = " ".join(title for title, _ in rows)
    assert all(activity in titles for activity in DRAWN_ACTIVITIES)
    sheet = contact_sheet(rows, 32)
    assert sheet.width >= 12 * 32
    assert len(rows) >= 13
