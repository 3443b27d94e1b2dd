"""The pictures of a folder, shown to a model batch by batch; what is finished is kept until all is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from PIL.Image import Image

from portrayal.cli.console import warn
from portrayal.cli.options import F
from portrayal.engine import Checkpoint, Progress, code_digest
from portrayal.errors import InputError, PortrayalError, Problems, counted, shown
from portrayal.files import content_digest
from portrayal.models.device import DEVICES
from portrayal.models.vision.images import read_picture
from portrayal.study.image_ids import PICTURE_ENDINGS, image_id

TOGETHER = 8
BY_NAME, BY_STEM = "name", "stem"
_ENTRY = "answers.json"


def picture_options(command: F) -> F:
    """--images, --out, --ids, --device and --skip-bad."""
    folder = click.Path(path_type=Path, file_okay=False, exists=True)
    file = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option(
            "--skip-bad", is_flag=True, help="Leave out pictures that cannot be read, and say how many."
        ),
        click.option(
            "--device",
            type=click.Choice(DEVICES),
            default="auto",
            show_default=True,
            help="Where models run.",
        ),
        click.option(
            "--ids",
            type=click.Choice([BY_NAME, BY_STEM]),
            default=BY_NAME,
            show_default=True,
            help="An image's id: its file's name, or that without its ending. Names of COCO become numbers in both.",
        ),
        click.option("--out", type=file, required=True, metavar="FILE", help="A new file, .csv or .jsonl."),
        click.option("--images", type=folder, required=True, metavar="DIR", help="The pictures."),
    ):
        command = option(command)
    return command


def pictures_in(folder: Path, with_ending: bool, problems: Problems) -> dict[str, Path]:
    """Image id to file, in the order of the ids. The id is the file's name; COCO's names become plain numbers."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in PICTURE_ENDINGS or not path.is_file():
            continue
        image = image_id(path.name if with_ending else path.stem)
        if image is None:
            problems.note(folder, "file names in Unicode", shown(path.name))
        elif image in found:
            problems.note(path, "one file for each image", f"image {image!r} in {found[image].name} too")
        else:
            found[image] = path
    if not found and not problems.rows:
        raise PortrayalError(
            f"{folder} holds no pictures: expected files ending in {', '.join(PICTURE_ENDINGS)}."
        )
    return dict(sorted(found.items()))


def readable(pictures: Mapping[str, Path], problems: Problems, report_progress: Progress) -> dict[str, Path]:
    """Those that can be read. All are tried before a model is, so that none is found bad after hours of work."""
    good: dict[str, Path] = {}
    for number, (image, path) in enumerate(pictures.items(), 1):
        try:
            read_picture(path)
            good[image] = path
        except InputError as error:
            problems.rows.extend(error.problems)
        report_progress("reading the pictures", number, len(pictures))
    problems.settle()
    if not good:
        raise PortrayalError("None of the pictures can be read.")
    return good


@dataclass(frozen=True)
class Asked:
    """A model that is asked about pictures. `load` is called only if there is anything left to ask."""

    title: str  # for the progress
    model: str
    settings: Sequence[object]  # all that decides the answers, beside the model and the pictures
    load: Callable[[], Callable[[Sequence[Image]], Sequence[Any]]]

    def answers(self, pictures: Mapping[str, Path], kept: Path, report_progress: Progress) -> dict[str, Any]:
        """For each image the answer, which is something JSON can hold; `kept` is the folder of what is finished."""
        checkpoint: Checkpoint[list[Any]] = Checkpoint(kept, _save, _load)
        images = list(pictures)
        answer: Callable[[Sequence[Image]], Sequence[Any]] | None = None
        found: dict[str, Any] = {}
        report_progress(self.title, 0, len(images))
        for start in range(0, len(images), TOGETHER):
            some = {image: pictures[image] for image in images[start : start + TOGETHER]}
            key = self._key(some)
            said = checkpoint.get(key)
            if said is None:
                answer = answer or self.load()
                said = list(answer([read_picture(path) for path in some.values()]))
                checkpoint.put(key, said)
            for done, (image, one) in enumerate(zip(some, said, strict=True), start + 1):
                found[image] = one
                report_progress(self.title, done, len(images))
        return found

    @cached_property
    def _content(self) -> str:
        """What the model is: a folder's name does not say."""
        return content_digest(Path(self.model)) if Path(self.model).exists() else self.model

    def _key(self, some: Mapping[str, Path]) -> str:
        """Changes with the model, its settings, the files, and this program."""
        files = [(image, path.stat().st_size, path.stat().st_mtime_ns) for image, path in some.items()]
        text = json.dumps([code_digest(), self._content, *map(str, self.settings), files])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _save(answers: list[Any], folder: Path) -> None:
    (folder / _ENTRY).write_text(json.dumps(answers), encoding="utf-8")


def _load(folder: Path) -> list[Any]:
    answers: list[Any] = json.loads((folder / _ENTRY).read_text(encoding="utf-8"))
    return answers


def tell_left_out(problems: Problems) -> None:
    """Under --skip-bad nothing is lost in silence."""
    if problems.rows:
        warn(f"{counted(len(problems.rows), 'picture', 'was')} left out. The first: {problems.rows[0]}")


def model_name(name: str) -> str:
    """The last part of a model's name or folder, by which captions and objects know it.

    >>> model_name("Salesforce/blip-image-captioning-base"), model_name("models/mine/")
    ('blip-image-captioning-base', 'mine')
    """
    return Path(name).name or Path(name).resolve().name
