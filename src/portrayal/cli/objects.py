"""portrayal objects"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from PIL.Image import Image

from portrayal.cli.console import finished, progress, say
from portrayal.cli.images import (
    BY_NAME,
    Asked,
    model_name,
    picture_options,
    pictures_in,
    readable,
    tell_left_out,
)
from portrayal.cli.row_files import journal_beside, refuse_file, write_rows
from portrayal.errors import InputError, PortrayalError, Problem, Problems, counted
from portrayal.models.device import best_device
from portrayal.models.packaged import located
from portrayal.models.vision import Seen, Vote, agreed, kind_of, load_seer
from portrayal.models.vision.vote import Similarity
from portrayal.results import HUMAN

_DEFAULT = Vote()
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_SHARE = click.FloatRange(0, 1)


@click.command("objects")
@click.option(
    "--model",
    "models",
    required=True,
    multiple=True,
    metavar="NAME",
    help="A classifier, a detector or a model like CLIP: a Hugging Face name, a folder, or efficientnet-lite0 "
    "(repeatable).",
)
@picture_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=_DEFAULT.top,
    show_default=True,
    metavar="N",
    help="Labels taken of each model, the surest.",
)
@click.option(
    "--person",
    multiple=True,
    default=_DEFAULT.person,
    show_default=True,
    metavar="WORD",
    help="Labels with this word are dropped (repeatable).",
)
@click.option(
    "--threshold", type=_SHARE, default=_DEFAULT.threshold, show_default=True, help="Least confidence."
)
@click.option(
    "--agree",
    type=click.FloatRange(-1, 1),
    default=_DEFAULT.agree,
    show_default=True,
    help="With several models: the least cosine at which labels of two of them agree.",
)
@click.option(
    "--vectors",
    metavar="NAME",
    help="Word vectors for that cosine, a file or a package; without them only equal labels agree.",
)
@click.option(
    "--labels", type=_FILE, metavar="FILE", help="What models like CLIP choose from, one label a line."
)
def command(
    models: tuple[str, ...],
    images: Path,
    out: Path,
    ids: str,
    device: str,
    skip_bad: bool,
    top: int,
    person: tuple[str, ...],
    threshold: float,
    agree: float,
    vectors: str | None,
    labels: Path | None,
) -> None:
    """Name the objects in the pictures of a folder, by one model or by several that have to agree.

    Writes image_id, label, kind, source and confidence, which `portrayal import ... --objects FILE` reads. What is
    finished is kept when the command is interrupted; the same command goes on from there.
    """
    refuse_file(out)
    sources = _sources(models)
    if vectors is not None and len(models) == 1:
        raise click.UsageError("--vectors is about labels of several models, and one is given.")
    if vectors is not None and not Path(located(vectors)).exists():
        raise PortrayalError(
            f"There are no word vectors '{vectors}': neither a file nor an installed package."
        )
    best_device(device)  # to complain before all pictures have been read
    kinds = {model: kind_of(model) for model in models}
    chosen = _label_lines(labels) if labels else None
    if chosen and "zero-shot" not in kinds.values():
        raise click.UsageError("--labels is for models like CLIP, and none is given.")
    vote = Vote(top, person, threshold, agree)
    problems = Problems(skip_bad)
    kept = journal_beside(out)
    with progress("objects") as report_progress:
        pictures = readable(pictures_in(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("objects", kept="images", stages=True) as report_progress:
        seen: dict[str, dict[str, list[Seen]]] = {image: {} for image in pictures}
        for model, source in sources.items():
            own = chosen if kinds[model] == "zero-shot" else None
            asked = Asked(f"looking with {source}", model, (own, top), _loader(model, device, own, top))
            for image, found in asked.answers(pictures, kept, report_progress).items():
                seen[image][source] = [Seen(label, sure) for label, sure in found]
    rows = _rows(seen, vote, _similarity(vectors, seen))
    if not rows:
        raise PortrayalError(
            f"No object is left of what was seen in {len(pictures):,} pictures; ask for less with --threshold"
            + (" or --agree." if len(models) > 1 else ".")
        )
    write_rows(out, rows)
    shutil.rmtree(kept, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    tell_left_out(problems)
    with_any = len({row["image_id"] for row in rows})
    say(f"{counted(len(rows), 'object')} in {with_any:,} of {counted(len(pictures), 'picture')}: {out}")


def _sources(models: Sequence[str]) -> dict[str, str]:
    """Model to the name by which its objects are known: the last part, or the whole where that is not enough."""
    if len(set(models)) < len(models):
        raise click.UsageError("each --model counts once; one is given twice.")
    short = [model_name(model) for model in models]
    names = {
        model: last if short.count(last) == 1 else model for model, last in zip(models, short, strict=True)
    }
    if HUMAN in names.values():
        raise PortrayalError(f"No model may be called '{HUMAN}', which stands for people's labels.")
    return names


def _label_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "text in UTF-8", "something else")]) from None
    found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(found) < 2:
        raise InputError([Problem(str(path), "at least two labels, one a line", f"{len(found)}")])
    return found


def _loader(
    model: str, device: str, labels: list[str] | None, top: int
) -> Callable[[], Callable[[Sequence[Image]], list[Any]]]:
    def load() -> Callable[[Sequence[Image]], list[Any]]:
        seer = load_seer(model, device, labels)
        return lambda pictures: [
            [(one.label, one.confidence) for one in found[:top]] for found in seer.see(pictures)
        ]

    return load


def _similarity(vectors: str | None, seen: Mapping[str, Mapping[str, Sequence[Seen]]]) -> Similarity:
    """The cosine of two labels, each the mean of its words; unknown where there are no vectors."""
    if vectors is None:
        return lambda _one, _other: None
    from portrayal.models.word_vectors import cosine, load_vectors

    labels = {one.label for sources in seen.values() for found in sources.values() for one in found}
    words = {label: label.replace("-", " ").split() for label in labels}
    known = load_vectors(vectors, only={word for label in labels for word in words[label]})
    means = {label: known.mean(words[label]) for label in labels}
    return lambda one, other: cosine(means[one], means[other])


def _rows(
    seen: Mapping[str, Mapping[str, Sequence[Seen]]], vote: Vote, similarity: Similarity
) -> list[dict[str, object]]:
    return [
        {
            "image_id": image,
            "label": one.label,
            "kind": "object",
            "source": source,
            "confidence": round(one.confidence, 6),
        }
        for image, sources in seen.items()
        for source, found in agreed(sources, vote, similarity).items()
        for one in found
    ]
