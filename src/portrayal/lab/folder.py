"""A study of the lab on disk: what was planted, and with pictures a manifest of who does what in which."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.files import write_text
from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.make import describe_scenes
from portrayal.lab.pictures import SIZE, draw, person_boxes
from portrayal.lab.world import ATTRIBUTES, LEANING, Scene, World, make_scenes
from portrayal.study import Study, write_study
from portrayal.study.folder import refuse_to_overwrite

RECIPE_FILE = "lab.json"
MANIFEST_FILE = "manifest.csv"
IMAGES = "images"
SCHEMA = "portrayal.lab/1"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a study of the lab."""

    scenes: int = 1500
    seed: int = 0
    world: World = field(default_factory=World)
    annotators: Annotators = field(default_factory=Annotators)
    captioners: tuple[Captioner, ...] = DEMO_CAPTIONERS
    name: str = "the lab's world"

    def make_scenes(self) -> list[Scene]:
        return make_scenes(self.scenes, self.seed, self.world)


def write_lab(recipe: Recipe, folder: Path, *, pictures: bool = False, size: int = SIZE) -> Study:
    """Make the study of a recipe and write it, with the recipe beside it, so that its scenes can be made again."""
    if pictures and recipe.world.activities != "drawn":
        raise PortrayalError(
            "Only some activities have pictures; make pictures of a world whose activities are 'drawn'."
        )
    refuse_to_overwrite(folder)
    scenes = recipe.make_scenes()
    study = describe_scenes(scenes, recipe.seed, recipe.annotators, recipe.captioners, recipe.name)
    _remove_pictures(folder)
    if pictures:
        draw_scenes(scenes, folder / IMAGES, size)
        write_text(folder / MANIFEST_FILE, manifest(scenes))
        study = replace(study, people=_people(scenes), images=folder / IMAGES)
    write_study(study, folder)
    write_text(folder / RECIPE_FILE, json.dumps({"schema": SCHEMA, **asdict(recipe)}, indent=1) + "\n")
    return study


def read_recipe(folder: Path) -> Recipe:
    """What a study of the lab was made from; `read_recipe(folder).make_scenes()` gives its scenes."""
    path = folder / RECIPE_FILE
    if not path.is_file():
        raise PortrayalError(f"{folder} is not a study of the lab: it has no {RECIPE_FILE}.")
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("schema") != SCHEMA:
            raise ValueError(f"a schema other than {SCHEMA!r}")
        found["world"] = World(**found["world"])
        found["annotators"] = Annotators(**found["annotators"])
        found["captioners"] = tuple(Captioner(**one) for one in found["captioners"])
        return Recipe(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError([Problem(str(path), "a recipe of the lab", shown(str(error)))]) from None


def draw_scenes(scenes: Sequence[Scene], folder: Path, size: int = SIZE) -> None:
    """One picture a scene, named by the scene."""
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        draw(scene, size).save(folder / f"{scene.identifier}.png")


def manifest(scenes: Sequence[Scene]) -> str:
    """Which concept each picture shows with which group, as CounterBias reads it: image, group, concept, kind."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("image", "group", "concept", "kind"))
    for scene in scenes:
        image, group = f"{IMAGES}/{scene.identifier}.png", scene.person[LEANING]
        rows.writerow((image, group, scene.activity, "activity"))
        if scene.occupation is not None:
            rows.writerow((image, group, scene.occupation, "occupation"))
    return text.getvalue()


def _people(scenes: Sequence[Scene]) -> pl.DataFrame:
    rows = [
        {"image_id": scene.identifier, "person": number}
        | {attribute: scene.person[attribute] for attribute in ATTRIBUTES}
        | dict(zip(("x", "y", "width", "height"), box, strict=True))
        for scene in scenes
        for number, box in enumerate(person_boxes(scene))
    ]
    return pl.DataFrame(rows)


def _remove_pictures(folder: Path) -> None:
    """A study that replaces one of the lab keeps none of its pictures."""
    if (folder / RECIPE_FILE).is_file():
        (folder / MANIFEST_FILE).unlink(missing_ok=True)
        (folder / "people.csv").unlink(missing_ok=True)
        for picture in (folder / IMAGES).glob("scene-*.png"):
            picture.unlink()
