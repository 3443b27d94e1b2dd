"""A study of the lab on disk: what was planted, and with pictures a manifest of who does what in which."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.documents import read_json
from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.files import write_text
from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.images import SIZE, draw, looks, person_boxes
from portrayal.lab.study import describe_scenes
from portrayal.lab.world import ATTRIBUTES, LEANING, Scene, World, make_scenes, other_scene, scene_name
from portrayal.study import Study, write_study
from portrayal.study.folder import STUDY_FILE, refuse_to_overwrite

RECIPE_FILE = "lab.json"
MANIFEST_FILE = "manifest.csv"
LOOKS_FILE = "looks.csv"
IMAGES = "images"
OTHERS = "others"
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
    pictures: int | None = None  # pixels a side; None: no pictures
    counterfactuals: bool = False  # the pictures of the manifest once more, with people of the other group

    def make_scenes(self) -> list[Scene]:
        return make_scenes(self.scenes, self.seed, self.world)


def write_lab(recipe: Recipe, folder: Path) -> Study:
    """Make the study of a recipe and write it, with the recipe beside it, so that its scenes can be made again.

    Everything is made beside the folder first and moved into it at the end, so that a study which is there stays
    whole when the work is interrupted.
    """
    if recipe.pictures is not None and recipe.world.activities != "drawn":
        raise PortrayalError(
            "Only some activities have pictures; make pictures of a world whose activities are 'drawn'."
        )
    if recipe.counterfactuals and recipe.pictures is None:
        raise PortrayalError("Pictures with people of the other group come with pictures.")
    refuse_to_overwrite(folder)
    if (folder / STUDY_FILE).exists() and not (folder / RECIPE_FILE).exists():
        raise PortrayalError(f"{folder} holds a study that the lab did not make; choose another folder.")
    before = _written_by(read_recipe(folder)) if (folder / RECIPE_FILE).exists() else set()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
        study = _write(recipe, Path(made))
        after = _written_by(recipe)
        for name in sorted(after - before):
            if (folder / name).exists():
                raise PortrayalError(
                    f"{folder / name} is not of the lab; move it away, or choose another folder."
                )
        for name in before - after:
            (folder / name).unlink(missing_ok=True)
        for name in sorted(after, key=lambda name: name == STUDY_FILE):  # what names the others comes last
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (Path(made) / name).exists():
                (Path(made) / name).replace(folder / name)
            else:  # a table without rows has no file
                (folder / name).unlink(missing_ok=True)
        for pictures in (folder / IMAGES, folder / OTHERS):
            if pictures.is_dir() and not any(pictures.iterdir()):
                pictures.rmdir()
    return study if recipe.pictures is None else replace(study, images=folder / IMAGES)


def _write(recipe: Recipe, folder: Path) -> Study:
    scenes = recipe.make_scenes()
    study = describe_scenes(scenes, recipe.seed, recipe.annotators, recipe.captioners, recipe.name)
    if recipe.pictures is not None:
        draw_scenes(scenes, folder / IMAGES, recipe.pictures)
        if recipe.counterfactuals:
            draw_scenes(
                [other_scene(scene) for scene in scenes if _told(scene)], folder / OTHERS, recipe.pictures
            )
        write_text(folder / MANIFEST_FILE, manifest(scenes, recipe.counterfactuals))
        write_text(folder / LOOKS_FILE, looks_table(scenes))
        study = replace(study, people=_people(scenes), images=folder / IMAGES)
    write_study(study, folder)
    write_text(folder / RECIPE_FILE, json.dumps({"schema": SCHEMA, **asdict(recipe)}, indent=1) + "\n")
    return study


def _written_by(recipe: Recipe) -> set[str]:
    """The files of a recipe's study, which are all that another one may replace."""
    names = {
        STUDY_FILE,
        RECIPE_FILE,
        "attributes.csv",
        "captions.parquet",
        "references.parquet",
        "objects.parquet",
        "rankings.parquet",
    }
    if recipe.pictures is not None:
        pictures = {f"{IMAGES}/{scene_name(number)}.png" for number in range(recipe.scenes)}
        names |= {MANIFEST_FILE, LOOKS_FILE, "people.csv", *pictures}
        if recipe.counterfactuals:
            told = [scene for scene in recipe.make_scenes() if _told(scene)]
            names |= {f"{OTHERS}/{scene.identifier}.png" for scene in told}
    return names


def read_recipe(folder: Path) -> Recipe:
    """What a study of the lab was made from; `read_recipe(folder).make_scenes()` gives its scenes."""
    path = folder / RECIPE_FILE
    if not path.is_file():
        raise PortrayalError(f"{folder} is not a study of the lab: it has no {RECIPE_FILE}.")
    try:
        found: dict[str, Any] = read_json(path)
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


def manifest(scenes: Sequence[Scene], others: bool = False) -> str:
    """Which concept each picture shows with which group, as CounterBias reads it: image, group, concept, kind.

    Of one person each, whose group can be seen, since texts speak of one and an attack changes what can be seen. With
    `others`, a last column names the picture in which only the person's group differs.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("image", "group", "concept", "kind", *(("counterfactual",) if others else ())))
    for scene in scenes:
        if not _told(scene):
            continue
        image, group = f"{IMAGES}/{scene.identifier}.png", scene.person[LEANING]
        other = (f"{OTHERS}/{scene.identifier}.png",) if others else ()
        rows.writerow((image, group, scene.activity, "activity", *other))
        if scene.occupation is not None:
            rows.writerow((image, group, scene.occupation, "occupation", *other))
    return text.getvalue()


def _told(scene: Scene) -> bool:
    return scene.people == 1 and not scene.androgynous


def looks_table(scenes: Sequence[Scene]) -> str:
    """How people are drawn in each picture, as `score harms --appearance` reads it. Nobody is guessed at: the one who
    draws a beard knows that it is there.
    """
    text = io.StringIO()
    drawn = [{"image_id": scene.identifier} | looks(scene) for scene in scenes]
    rows = csv.DictWriter(text, list(drawn[0]), lineterminator="\n")
    rows.writeheader()
    rows.writerows(drawn)
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
