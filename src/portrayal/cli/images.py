"""Checkpointed inference over the images of a folder, batch by batch."""

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

from portrayal.cli.console import print_warning
from portrayal.cli.options import F
from portrayal.engine import Checkpoint, Progress, code_digest
from portrayal.errors import InputError, PortrayalError, Problems, counted, shown
from portrayal.files import content_digest
from portrayal.models.device import DEVICES
from portrayal.models.vision.images import read_image
from portrayal.study.image_ids import IMAGE_SUFFIXES, image_id

BATCH_SIZE = 8
BY_NAME, BY_STEM = "name", "stem"
_BATCH_FILE = "answers.json"


def image_options(command: F) -> F:
    """Add --images, --out, --ids, --device and --skip-bad."""
    folder = click.Path(path_type=Path, file_okay=False, exists=True)
    file = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option(
            "--skip-bad",
            is_flag=True,
            help="Skip unreadable images and report how many, instead of stopping.",
        ),
        click.option(
            "--device",
            type=click.Choice(DEVICES),
            default="auto",
            show_default=True,
            help="Device for inference; auto: a GPU if there is one.",
        ),
        click.option(
            "--ids",
            type=click.Choice([BY_NAME, BY_STEM]),
            default=BY_NAME,
            show_default=True,
            help="Image id: the file name with (name) or without (stem) its extension. COCO file names become their "
            "numbers either way.",
        ),
        click.option(
            "--out",
            type=file,
            required=True,
            metavar="FILE",
            help="Output file, .csv or .jsonl; must not exist.",
        ),
        click.option("--images", type=folder, required=True, metavar="DIR", help="Folder of images."),
    ):
        command = option(command)
    return command


def find_images(folder: Path, with_ending: bool, problems: Problems) -> dict[str, Path]:
    """Return image ids and files, sorted by id. The id is the file name; COCO file names become plain numbers."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in IMAGE_SUFFIXES or not path.is_file():
            continue
        image = image_id(path.name if with_ending else path.stem)
        if image is None:
            problems.note(folder, "file names in Unicode", shown(path.name))
        elif image in files:
            problems.note(path, "one file for each image", f"image {image!r} in {files[image].name} too")
        else:
            files[image] = path
    if not files and not problems.rows:
        raise PortrayalError(
            f"{folder} holds no images: expected files ending in {', '.join(IMAGE_SUFFIXES)}."
        )
    return dict(sorted(files.items()))


def readable_images(
    files: Mapping[str, Path], problems: Problems, report_progress: Progress
) -> dict[str, Path]:
    """Return the files that can be read. All are tried before inference starts, so that no hours of work are lost."""
    readable: dict[str, Path] = {}
    for number, (image, path) in enumerate(files.items(), 1):
        try:
            read_image(path)
            readable[image] = path
        except InputError as error:
            problems.rows.extend(error.problems)
        report_progress("reading the images", number, len(files))
    problems.settle()
    if not readable:
        raise PortrayalError("None of the images can be read.")
    return readable


@dataclass(frozen=True)
class BatchInference:
    """Run a model over image files with a checkpoint per batch. `load` is called only if a batch is not cached."""

    title: str  # shown as progress
    model: str
    settings: Sequence[object]  # everything that decides the outputs, besides the model and the images
    load: Callable[[], Callable[[Sequence[Image]], Sequence[Any]]]

    def run(
        self, files: Mapping[str, Path], checkpoint_folder: Path, report_progress: Progress
    ) -> dict[str, Any]:
        """Return the model's output by image id; outputs are JSON-serializable."""
        checkpoint: Checkpoint[list[Any]] = Checkpoint(checkpoint_folder, _save, _load)
        images = list(files)
        model: Callable[[Sequence[Image]], Sequence[Any]] | None = None
        outputs: dict[str, Any] = {}
        report_progress(self.title, 0, len(images))
        for start in range(0, len(images), BATCH_SIZE):
            batch = {image: files[image] for image in images[start : start + BATCH_SIZE]}
            key = self._key(batch)
            batch_outputs = checkpoint.get(key)
            if batch_outputs is None:
                model = model or self.load()
                batch_outputs = list(model([read_image(path) for path in batch.values()]))
                checkpoint.put(key, batch_outputs)
            for done, (image, output) in enumerate(zip(batch, batch_outputs, strict=True), start + 1):
                outputs[image] = output
                report_progress(self.title, done, len(images))
        return outputs

    @cached_property
    def _model_digest(self) -> str:
        """Digest of the model's files if it is a folder, since the path does not identify the content."""
        return content_digest(Path(self.model)) if Path(self.model).exists() else self.model

    def _key(self, batch: Mapping[str, Path]) -> str:
        """Return a checkpoint key that changes with the model, its settings, the files and this package's code."""
        files = [(image, path.stat().st_size, path.stat().st_mtime_ns) for image, path in batch.items()]
        text = json.dumps([code_digest(), self._model_digest, *map(str, self.settings), files])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _save(outputs: list[Any], folder: Path) -> None:
    (folder / _BATCH_FILE).write_text(json.dumps(outputs), encoding="utf-8")


def _load(folder: Path) -> list[Any]:
    outputs: list[Any] = json.loads((folder / _BATCH_FILE).read_text(encoding="utf-8"))
    return outputs


def warn_skipped_images(problems: Problems) -> None:
    """Print how many images --skip-bad has skipped, and the first one."""
    if problems.rows:
        print_warning(
            f"{counted(len(problems.rows), 'image', 'was')} left out. The first: {problems.rows[0]}"
        )


def model_name(name: str) -> str:
    """Return the last part of a model's name or folder, used as system or source name.

    >>> model_name("Salesforce/blip-image-captioning-base"), model_name("models/mine/")
    ('blip-image-captioning-base', 'mine')
    """
    return Path(name).name or Path(name).resolve().name
