"""Cautions: properties of a study that make some of its numbers hard to compare, and the rows they concern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from portrayal.errors import counted
from portrayal.results import HUMAN, TOO_FEW, single_spaced
from portrayal.study.study import Study
from portrayal.study.truncation import truncation_notes

# Topics of cautions. A metric's card lists the terms that depend on the first two.
REFERENCES, LENGTH, IMAGES, LABELS, GROUPS = "references", "length", "images", "labels", "groups"
OTHER_IMAGES = "other images"  # system captions and human captions of different images
TRUNCATED, OBJECTS, UNANNOTATED = "truncated", "objects", "unannotated"  # `metrics` adds the last two

# Ratio of reference counts, or of caption to reference length, from which scores against references mislead.
UNEVEN_RATIO = 2
# Ratio of caption to reference length. Lower than 1 / UNEVEN_RATIO: short captions are common and scores penalise them.
MIN_LENGTH_RATIO = 1 / 3
UNEVEN_SHARE = 0.01  # share of images with an unusual number of references
MISSING_SHARE = 0.1  # share of captioned images without a label, or without a reference
_MAX_SHOWN = 4  # maximum number of reference counts in a sentence


@dataclass(frozen=True)
class Caution:
    """A sentence with its topic and scope.

    Parameters
    ----------
    about : str
        Topic.
    sentence : str
        Text for readers.
    system, attribute, group : str, optional
        The rows that it concerns. None means all.
    """

    about: str
    sentence: str
    system: str | None = None
    attribute: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", single_spaced(self.sentence))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@lru_cache(maxsize=8)
def cautions(study: Study) -> tuple[Caution, ...]:
    """The cautions that apply to numbers of this study."""
    return (
        *_references(study), *_images(study), *_other_images(study), *_lengths(study), *_labels(study),
        *_groups(study), *_truncated(study),
    )  # fmt: skip


def _captioned(study: Study) -> pl.DataFrame:
    return study.captions.select("image_id").unique()


def _references(study: Study) -> Iterator[Caution]:
    """Cautions about uneven or missing references."""
    if not study.references.height or not study.captions.height:
        return
    captioned = _captioned(study)
    counts = study.references.group_by("image_id").len("references").join(captioned, on="image_id")
    if not counts.height:
        return
    sizes = counts.group_by("references").len("images").sort("images", "references", descending=True)
    usual = sizes["references"][0]
    number = pl.col("references")
    unlike = counts.filter((number * UNEVEN_RATIO <= usual) | (number >= UNEVEN_RATIO * usual)).height
    if unlike >= UNEVEN_SHARE * counts.height:
        least, most = counts["references"].min(), counts["references"].max()
        named = {*sizes["references"].head(_MAX_SHOWN - 2), least, most}
        shown = sizes.filter(number.is_in(named)).sort("references")
        parts = [f"{counted(images, 'image', 'has')} {how_many}" for how_many, images in shown.iter_rows()]
        others, none = counts.height - shown["images"].sum(), captioned.height - counts.height
        parts += [f"{others:,} another number"] if others else []
        parts += [f"{none:,} none"] if none else []
        summary = ", ".join(parts)
        yield Caution(
            REFERENCES,
            f"The number of references per image is uneven ({summary}), and scores against references rise with it.",
        )
    missing = captioned.height - counts.height
    if missing > MISSING_SHARE * captioned.height:
        yield Caution(
            REFERENCES,
            f"{missing:,} of {captioned.height:,} captioned images ({missing / captioned.height:.0%}) have no "
            "reference, and scores against references leave them out.",
        )


def _images(study: Study) -> Iterator[Caution]:
    """Cautions about systems that caption different images, even if the counts are equal."""
    systems = study.systems
    pairs = study.captions.select("image_id", "system").unique()
    by_all = pairs.group_by("image_id").len().filter(pl.col("len") == len(systems)).height
    counts = dict(pairs.group_by("system").len().iter_rows())
    if len(systems) > 1 and any(counts[system] != by_all for system in systems):
        summary = ", ".join(f"{system} {counts[system]:,}" for system in systems)
        for system in systems:
            yield Caution(
                IMAGES,
                f"The systems caption different images ({summary}; {by_all:,} by all of them), so a difference between "
                "systems may be one between images.",
                system=system,
            )


def _other_images(study: Study) -> Iterator[Caution]:
    """Cautions about systems whose images differ from those of the human captions."""
    described = study.captions_of(HUMAN).select("image_id").unique()
    if not described.height:
        return
    for system in study.systems:
        captioned = study.captions_of(system).select("image_id").unique()
        both = captioned.join(described, on="image_id").height
        most = max(captioned.height, described.height)
        if both < (1 - MISSING_SHARE) * most:
            yield Caution(
                OTHER_IMAGES,
                f"Human captions are of {described.height:,} images and captions of {system} of {captioned.height:,} "
                f"({both:,} of them the same), so a difference between them may be one between images; audited alone "
                "(--systems), a system is held against human captions of its own images.",
                system=system,
            )


def _lengths(study: Study) -> Iterator[Caution]:
    """Cautions about captions that are much longer or shorter than the references of the same images."""
    if not study.references.height:
        return
    words = pl.col("caption").str.count_matches(r"\S+").mean()
    for system in study.systems:
        captions = study.captions_of(system)
        system_words = captions.join(study.references, on="image_id", how="semi").select(words).item()
        reference_words = study.references.join(captions, on="image_id", how="semi").select(words).item()
        if (
            not system_words
            or not reference_words
            or MIN_LENGTH_RATIO < system_words / reference_words < UNEVEN_RATIO
        ):
            continue
        yield Caution(
            LENGTH,
            f"Captions of {system} have {system_words:.1f} words on average and references {reference_words:.1f}: "
            f"they are {system_words / reference_words:.1f} times as long, and numbers that depend on length (scores "
            "against references, how often people, words and objects are named) differ for that reason first.",
            system=system,
        )


def _labels(study: Study) -> Iterator[Caution]:
    """Cautions about attributes without a label for many captioned images."""
    captioned = _captioned(study)
    for attribute in study.attribute_names:
        unlabelled = captioned.join(study.labels(attribute), on="image_id", how="anti").height
        if unlabelled > MISSING_SHARE * captioned.height:
            yield Caution(
                LABELS,
                f"{unlabelled:,} of {captioned.height:,} captioned images ({unlabelled / captioned.height:.0%}) have "
                f"no label for {attribute}, and its numbers leave them out.",
                attribute=attribute,
            )


def _groups(study: Study) -> Iterator[Caution]:
    """Cautions about groups with few captioned images."""
    captioned = _captioned(study)
    if not captioned.height:
        return
    for attribute in study.attribute_names:
        labels = study.labels(attribute).join(captioned, on="image_id", how="semi")
        for group, images in labels.group_by(attribute).len().sort(attribute).iter_rows():
            if images < TOO_FEW:
                yield Caution(
                    GROUPS,
                    f"The group '{group}' of {attribute} has {images:,} captioned {_images_word(images)}, too few to "
                    f"rank (fewer than {TOO_FEW}).",
                    attribute=attribute,
                    group=group,
                )


def _truncated(study: Study) -> Iterator[Caution]:
    """Cautions about truncated captions."""
    for source, sentence in truncation_notes(study).items():
        yield Caution(TRUNCATED, sentence, system=source)


def _images_word(count: int) -> str:
    return "image" if count == 1 else "images"


def distinct_sentences(cautions: tuple[Caution, ...]) -> list[str]:
    """The distinct sentences of cautions."""
    return list(dict.fromkeys(caution.sentence for caution in cautions))
