"""portrayal objects"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from PIL.Image import Image

from portrayal.cli.console import clear_interrupt_message, echo, progress
from portrayal.cli.images import (
    BY_NAME,
    BatchInference,
    find_images,
    image_options,
    model_name,
    readable_images,
    warn_skipped_images,
)
from portrayal.cli.row_files import checkpoint_folder, require_new_file, write_rows
from portrayal.errors import InputError, PortrayalError, Problem, Problems, counted
from portrayal.models.device import resolve_device
from portrayal.models.packaged import packaged_path
from portrayal.models.vision import Detection, Vote, agreed_detections, image_model_kind, load_image_model
from portrayal.models.vision.vote import Similarity
from portrayal.results import HUMAN

_DEFAULT_VOTE = Vote()
_EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_PROBABILITY = click.FloatRange(0, 1)


@click.command("objects")
@click.option(
    "--model",
    "models",
    required=True,
    multiple=True,
    metavar="NAME",
    help="Image classifier, object detector or zero-shot model such as CLIP: a Hugging Face name, a folder, or "
    "efficientnet-lite0 (repeatable).",
)
@image_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=_DEFAULT_VOTE.top_k,
    show_default=True,
    metavar="N",
    help="Number of labels per model and image: those with the highest confidence.",
)
@click.option(
    "--exclude-word",
    "excluded_words",
    multiple=True,
    default=_DEFAULT_VOTE.excluded_words,
    show_default=True,
    metavar="WORD",
    help="Exclude labels that contain this word (repeatable).",
)
@click.option(
    "--min-confidence",
    type=_PROBABILITY,
    default=_DEFAULT_VOTE.min_confidence,
    show_default=True,
    help="Minimum confidence of a label.",
)
@click.option(
    "--min-similarity",
    type=click.FloatRange(-1, 1),
    default=_DEFAULT_VOTE.min_similarity,
    show_default=True,
    help="With several models: minimum cosine similarity of two labels that count as the same object.",
)
@click.option(
    "--vectors",
    metavar="NAME",
    help="Word vectors for the cosine similarity: a file or an installed package. [default: none; only identical "
    "labels count as the same object]",
)
@click.option(
    "--labels",
    type=_EXISTING_FILE,
    metavar="FILE",
    help="Candidate labels of zero-shot models such as CLIP, one per line.",
)
def command(
    models: tuple[str, ...],
    images: Path,
    out: Path,
    ids: str,
    device: str,
    skip_bad: bool,
    top: int,
    excluded_words: tuple[str, ...],
    min_confidence: float,
    min_similarity: float,
    vectors: str | None,
    labels: Path | None,
) -> None:
    """Label the objects in the images of a folder with one model, or with several models that must agree.

    Writes the columns image_id, label, kind, source and confidence, which `portrayal import ... --objects FILE` reads.
    Progress is checkpointed; run the same command again to resume.
    """
    require_new_file(out)
    sources = _source_names(models)
    if vectors is not None and len(models) == 1:
        raise click.UsageError("--vectors compares labels of several models, but one is given.")
    if vectors is not None and not Path(packaged_path(vectors)).exists():
        raise PortrayalError(
            f"There are no word vectors '{vectors}': neither a file nor an installed package."
        )
    resolve_device(device)  # raises an error before all images are read
    kinds = {model: image_model_kind(model) for model in models}
    zero_shot_labels = _read_labels(labels) if labels else None
    if zero_shot_labels and "zero-shot" not in kinds.values():
        raise click.UsageError("--labels is for zero-shot models such as CLIP, but none is given.")
    vote = Vote(top, excluded_words, min_confidence, min_similarity)
    problems = Problems(skip_bad)
    checkpoint = checkpoint_folder(out)
    with progress("objects") as report_progress:
        files = readable_images(find_images(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("objects", unit="images", stages=True) as report_progress:
        detections: dict[str, dict[str, list[Detection]]] = {image: {} for image in files}
        for model, source in sources.items():
            model_labels = zero_shot_labels if kinds[model] == "zero-shot" else None
            inference = BatchInference(
                f"detecting objects with {source}",
                model,
                (model_labels, top),
                _loader(model, device, model_labels, top),
            )
            for image, detected in inference.run(files, checkpoint, report_progress).items():
                detections[image][source] = [Detection(label, confidence) for label, confidence in detected]
    rows = _rows(detections, vote, _similarity(vectors, detections))
    if not rows:
        raise PortrayalError(
            f"No object was detected in {len(files):,} images; lower --min-confidence"
            + (" or --min-similarity." if len(models) > 1 else ".")
        )
    write_rows(out, rows)
    # Only after the file is written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    warn_skipped_images(problems)
    n_images_with_objects = len({row["image_id"] for row in rows})
    echo(
        f"{counted(len(rows), 'object')} in {n_images_with_objects:,} of {counted(len(files), 'image')}: {out}"
    )


def _source_names(models: Sequence[str]) -> dict[str, str]:
    """Return the source name of each model: the last part of its name, or the whole name if that is not unique."""
    if len(set(models)) < len(models):
        raise click.UsageError("each --model may be given once; one is given twice.")
    last_parts = [model_name(model) for model in models]
    source_by_model = {
        model: last_part if last_parts.count(last_part) == 1 else model
        for model, last_part in zip(models, last_parts, strict=True)
    }
    if HUMAN in source_by_model.values():
        raise PortrayalError(f"No model may be called '{HUMAN}', which stands for human labels.")
    return source_by_model


def _read_labels(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "text in UTF-8", "something else")]) from None
    labels = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(labels) < 2:
        raise InputError([Problem(str(path), "at least two labels, one a line", f"{len(labels)}")])
    return labels


def _loader(
    model: str, device: str, labels: list[str] | None, top: int
) -> Callable[[], Callable[[Sequence[Image]], list[Any]]]:
    """Return a function that loads the model and returns its (label, confidence) pairs for images."""

    def load() -> Callable[[Sequence[Image]], list[Any]]:
        detector = load_image_model(model, device, labels)
        return lambda images: [
            [(detection.label, detection.confidence) for detection in detected[:top]]
            for detected in detector.detect(images)
        ]

    return load


def _similarity(
    vectors: str | None, detections: Mapping[str, Mapping[str, Sequence[Detection]]]
) -> Similarity:
    """Return a function that compares two labels by the cosine of their mean word vectors; None for unknown words."""
    if vectors is None:
        return lambda _first, _second: None
    from portrayal.models.word_vectors import cosine, load_vectors

    labels = {
        detection.label
        for image_detections in detections.values()
        for detected in image_detections.values()
        for detection in detected
    }
    words = {label: label.replace("-", " ").split() for label in labels}
    word_vectors = load_vectors(vectors, only={word for label in labels for word in words[label]})
    mean_vectors = {label: word_vectors.mean(words[label]) for label in labels}
    return lambda first, second: cosine(mean_vectors[first], mean_vectors[second])


def _rows(
    detections: Mapping[str, Mapping[str, Sequence[Detection]]], vote: Vote, similarity: Similarity
) -> list[dict[str, object]]:
    return [
        {
            "image_id": image,
            "label": detection.label,
            "kind": "object",
            "source": source,
            "confidence": round(detection.confidence, 6),
        }
        for image, image_detections in detections.items()
        for source, agreed in agreed_detections(image_detections, vote, similarity).items()
        for detection in agreed
    ]
