"""Write and read a study of the lab: its recipe and, with images, a manifest of the concepts in each image."""

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
from portrayal.lab.images import SIZE, appearance, draw, person_boxes
from portrayal.lab.study import describe_scenes
from portrayal.lab.world import (
    ATTRIBUTES,
    BIASED_ATTRIBUTE,
    Scene,
    World,
    counterfactual_scene,
    make_scenes,
    scene_name,
)
from portrayal.study import Study, write_study
from portrayal.study.folder import STUDY_FILE, refuse_to_overwrite

RECIPE_FILE = "lab.json"
MANIFEST_FILE = "manifest.csv"
APPEARANCE_FILE = "appearance.csv"
IMAGES = "images"
COUNTERFACTUALS = "counterfactuals"
SCHEMA = "portrayal.lab/1"


@dataclass(frozen=True)
class LabRecipe:
    """The parameters that determine a study of the lab.

    Parameters
    ----------
    scenes
        Number of scenes.
    seed
        Seed of all random numbers.
    world, annotators, captioners
        The dials of the world, of the annotators and of each captioner.
    name
        Name of the study.
    image_size
        Side of an image in pixels; None writes no images.
    counterfactuals
        Also render each image of the manifest with people of the other group.
    """

    scenes: int = 1500
    seed: int = 0
    world: World = field(default_factory=World)
    annotators: Annotators = field(default_factory=Annotators)
    captioners: tuple[Captioner, ...] = DEMO_CAPTIONERS
    name: str = "the lab's world"
    image_size: int | None = None
    counterfactuals: bool = False

    def make_scenes(self) -> list[Scene]:
        return make_scenes(self.scenes, self.seed, self.world)


def write_lab(recipe: LabRecipe, folder: Path) -> Study:
    """Make the study of a recipe, write it with the recipe, and return it.

    The recipe allows `read_recipe(folder).make_scenes()` to make the scenes again. Files are written to a temporary
    folder first and moved at the end, so that an interruption leaves an existing study unchanged.
    """
    if recipe.image_size is not None and recipe.world.activities != "drawn":
        raise PortrayalError(
            "Only some activities have images; render images of a world whose activities are 'drawn'."
        )
    if recipe.counterfactuals and recipe.image_size is None:
        raise PortrayalError("Counterfactual images require images: set 'image_size'.")
    refuse_to_overwrite(folder)
    if (folder / STUDY_FILE).exists() and not (folder / RECIPE_FILE).exists():
        raise PortrayalError(f"{folder} holds a study that the lab did not make; choose another folder.")
    before = _files_of(read_recipe(folder)) if (folder / RECIPE_FILE).exists() else set()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        study = _write(recipe, Path(temporary))
        after = _files_of(recipe)
        for name in sorted(after - before):
            if (folder / name).exists():
                raise PortrayalError(
                    f"{folder / name} was not written by the lab; move it away, or choose another folder."
                )
        for name in before - after:
            (folder / name).unlink(missing_ok=True)
        # The study file names the others, so it is moved last.
        for name in sorted(after, key=lambda name: name == STUDY_FILE):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (Path(temporary) / name).exists():
                (Path(temporary) / name).replace(folder / name)
            else:
                # A table without rows has no file.
                (folder / name).unlink(missing_ok=True)
        for images in (folder / IMAGES, folder / COUNTERFACTUALS):
            if images.is_dir() and not any(images.iterdir()):
                images.rmdir()
    return study if recipe.image_size is None else replace(study, images=folder / IMAGES)


def _write(recipe: LabRecipe, folder: Path) -> Study:
    scenes = recipe.make_scenes()
    study = describe_scenes(scenes, recipe.seed, recipe.annotators, recipe.captioners, recipe.name)
    if recipe.image_size is not None:
        draw_scenes(scenes, folder / IMAGES, recipe.image_size)
        if recipe.counterfactuals:
            draw_scenes(
                [counterfactual_scene(scene) for scene in scenes if _in_manifest(scene)],
                folder / COUNTERFACTUALS,
                recipe.image_size,
            )
        write_text(folder / MANIFEST_FILE, manifest(scenes, recipe.counterfactuals))
        write_text(folder / APPEARANCE_FILE, appearance_table(scenes))
        study = replace(study, people=_people(scenes), images=folder / IMAGES)
    write_study(study, folder)
    write_text(folder / RECIPE_FILE, json.dumps({"schema": SCHEMA, **asdict(recipe)}, indent=1) + "\n")
    return study


def _files_of(recipe: LabRecipe) -> set[str]:
    """Return the names of the files of a recipe's study: the only files that another study may replace."""
    names = {
        STUDY_FILE,
        RECIPE_FILE,
        "attributes.csv",
        "captions.parquet",
        "references.parquet",
        "objects.parquet",
        "rankings.parquet",
    }
    if recipe.image_size is not None:
        image_files = {f"{IMAGES}/{scene_name(number)}.png" for number in range(recipe.scenes)}
        names |= {MANIFEST_FILE, APPEARANCE_FILE, "people.csv", *image_files}
        if recipe.counterfactuals:
            manifest_scenes = [scene for scene in recipe.make_scenes() if _in_manifest(scene)]
            names |= {f"{COUNTERFACTUALS}/{scene.identifier}.png" for scene in manifest_scenes}
    return names


def read_recipe(folder: Path) -> LabRecipe:
    """Read the recipe of a study of the lab; `read_recipe(folder).make_scenes()` makes its scenes again."""
    path = folder / RECIPE_FILE
    if not path.is_file():
        raise PortrayalError(f"{folder} is not a study of the lab: it has no {RECIPE_FILE}.")
    try:
        fields_of_recipe: dict[str, Any] = read_json(path)
        if fields_of_recipe.pop("schema") != SCHEMA:
            raise ValueError(f"a schema other than {SCHEMA!r}")
        fields_of_recipe["world"] = World(**fields_of_recipe["world"])
        fields_of_recipe["annotators"] = Annotators(**fields_of_recipe["annotators"])
        fields_of_recipe["captioners"] = tuple(
            Captioner(**captioner) for captioner in fields_of_recipe["captioners"]
        )
        return LabRecipe(**fields_of_recipe)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError([Problem(str(path), "a recipe of the lab", shown(str(error)))]) from None


def draw_scenes(scenes: Sequence[Scene], folder: Path, size: int = SIZE) -> None:
    """Write one image per scene, named after the scene."""
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        draw(scene, size).save(folder / f"{scene.identifier}.png")


def manifest(scenes: Sequence[Scene], counterfactuals: bool = False) -> str:
    """Return the manifest for CounterBias as CSV, with the columns image, group, concept and kind.

    It lists images of one person whose group is visible, since prompts speak of one person and an attack changes what
    is visible. With `counterfactuals`, a last column names the image in which only the person's group differs.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("image", "group", "concept", "kind", *(("counterfactual",) if counterfactuals else ())))
    for scene in scenes:
        if not _in_manifest(scene):
            continue
        image, group = f"{IMAGES}/{scene.identifier}.png", scene.person[BIASED_ATTRIBUTE]
        counterfactual = (f"{COUNTERFACTUALS}/{scene.identifier}.png",) if counterfactuals else ()
        rows.writerow((image, group, scene.activity, "activity", *counterfactual))
        if scene.occupation is not None:
            rows.writerow((image, group, scene.occupation, "occupation", *counterfactual))
    return text.getvalue()


def _in_manifest(scene: Scene) -> bool:
    return scene.people == 1 and not scene.androgynous


def appearance_table(scenes: Sequence[Scene]) -> str:
    """Return the appearance of the people in each image as CSV, the input of `score harms --appearance`.

    No classifier is involved: the values are those that the renderer used, such as whether it drew a beard.
    """
    text = io.StringIO()
    figures = [{"image_id": scene.identifier} | appearance(scene) for scene in scenes]
    rows = csv.DictWriter(text, list(figures[0]), lineterminator="\n")
    rows.writeheader()
    rows.writerows(figures)
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
