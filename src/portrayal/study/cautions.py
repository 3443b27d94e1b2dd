"""Cautions: what about a study makes some of its numbers hard to compare, with the rows each of them concerns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from portrayal.errors import counted
from portrayal.results import HUMAN, TOO_FEW, one_spaced
from portrayal.study.study import Study
from portrayal.study.truncation import shortenings

# What a caution is about. A metric's card says which of its terms depend on the first two.
REFERENCES, LENGTH, IMAGES, LABELS, GROUPS = "references", "length", "images", "labels", "groups"
OTHER_IMAGES = "other images"  # a system and human captions
SHORTENED, OBJECTS, UNANNOTATED = "shortened", "objects", "unannotated"  # the last two are found by `metrics`

UNLIKE = 2  # times as many references, or as long: from here on scores against references mislead
SHORT = 1 / 3  # of the references' length: brevity is common, and penalised openly by the scores
SOME = 0.01  # share of images that must have few or many references
MANY = 0.1  # share of captioned images without a label, or without a reference
_SHOWN = 4  # different numbers of references that a sentence names


@dataclass(frozen=True)
class Caution:
    """One sentence, what it is about, and whom it concerns: a system, an attribute, a group; None: all of them."""

    about: str
    sentence: str
    system: str | None = None
    attribute: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", one_spaced(self.sentence))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@lru_cache(maxsize=8)
def cautions(study: Study) -> tuple[Caution, ...]:
    """What a reader of this study's numbers must know, one caution for each thing."""
    return (
        *_references(study), *_images(study), *_of_other_images(study), *_lengths(study), *_labels(study),
        *_groups(study), *_cut(study),
    )  # fmt: skip


def _captioned(study: Study) -> pl.DataFrame:
    return study.captions.select("image_id").unique()


def _references(study: Study) -> Iterator[Caution]:
    """Images with one reference beside images with five, and images with none."""
    if not study.references.height or not study.captions.height:
        return
    captioned = _captioned(study)
    counts = study.references.group_by("image_id").len("references").join(captioned, on="image_id")
    if not counts.height:
        return
    sizes = counts.group_by("references").len("images").sort("images", "references", descending=True)
    usual = sizes["references"][0]
    number = pl.col("references")
    unlike = counts.filter((number * UNLIKE <= usual) | (number >= UNLIKE * usual)).height
    if unlike >= SOME * counts.height:
        least, most = counts["references"].min(), counts["references"].max()
        named = {*sizes["references"].head(_SHOWN - 2), least, most}
        shown = sizes.filter(number.is_in(named)).sort("references")
        parts = [f"{counted(images, 'image', 'has')} {how_many}" for how_many, images in shown.iter_rows()]
        others, none = counts.height - shown["images"].sum(), captioned.height - counts.height
        parts += [f"{others:,} another number"] if others else []
        parts += [f"{none:,} none"] if none else []
        told = ", ".join(parts)
        yield Caution(
            REFERENCES,
            f"The number of references per image is uneven ({told}), and scores against references rise with it.",
        )
    missing = captioned.height - counts.height
    if missing > MANY * captioned.height:
        yield Caution(
            REFERENCES,
            f"{missing:,} of {captioned.height:,} captioned images ({missing / captioned.height:.0%}) have no "
            "reference, and scores against references leave them out.",
        )


def _images(study: Study) -> Iterator[Caution]:
    """Systems that caption different images, whether or not there are as many."""
    systems = study.systems
    pairs = study.captions.select("image_id", "system").unique()
    by_all = pairs.group_by("image_id").len().filter(pl.col("len") == len(systems)).height
    counts = dict(pairs.group_by("system").len().iter_rows())
    if len(systems) > 1 and any(counts[system] != by_all for system in systems):
        told = ", ".join(f"{system} {counts[system]:,}" for system in systems)
        for system in systems:
            yield Caution(
                IMAGES,
                f"The systems caption different images ({told}; {by_all:,} by all of them), so a difference between "
                "systems may be one between images.",
                system=system,
            )


def _of_other_images(study: Study) -> Iterator[Caution]:
    """Systems of which human captions describe other images: each side's numbers are then of its own images."""
    described = study.spoken(HUMAN).select("image_id").unique()
    if not described.height:
        return
    for system in study.systems:
        captioned = study.spoken(system).select("image_id").unique()
        both = captioned.join(described, on="image_id").height
        most = max(captioned.height, described.height)
        if both < (1 - MANY) * most:
            yield Caution(
                OTHER_IMAGES,
                f"Human captions are of {described.height:,} images and captions of {system} of {captioned.height:,} "
                f"({both:,} of them the same), so a difference between them may be one between images; audited alone "
                "(--systems), a system is held against human captions of its own images.",
                system=system,
            )


def _lengths(study: Study) -> Iterator[Caution]:
    """Captions that are several times as long as the references of the same images, or as short."""
    if not study.references.height:
        return
    words = pl.col("caption").str.count_matches(r"\S+").mean()
    for system in study.systems:
        spoken = study.spoken(system)
        own = spoken.join(study.references, on="image_id", how="semi").select(words).item()
        people = study.references.join(spoken, on="image_id", how="semi").select(words).item()
        if not own or not people or SHORT < own / people < UNLIKE:
            continue
        yield Caution(
            LENGTH,
            f"Captions of {system} have {own:.1f} words on average and references {people:.1f}: they are "
            f"{own / people:.1f} times as long, and numbers that depend on length (scores against references, how "
            "often people, words and objects are named) differ for that reason first.",
            system=system,
        )


def _labels(study: Study) -> Iterator[Caution]:
    """A large share of captioned images without a label."""
    captioned = _captioned(study)
    for attribute in study.attribute_names:
        unlabelled = captioned.join(study.labels(attribute), on="image_id", how="anti").height
        if unlabelled > MANY * captioned.height:
            yield Caution(
                LABELS,
                f"{unlabelled:,} of {captioned.height:,} captioned images ({unlabelled / captioned.height:.0%}) have "
                f"no label for {attribute}, and its numbers leave them out.",
                attribute=attribute,
            )


def _groups(study: Study) -> Iterator[Caution]:
    """Groups of few captioned images."""
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


def _cut(study: Study) -> Iterator[Caution]:
    """Captions of which only the beginning is read."""
    for source, sentence in shortenings(study).items():
        yield Caution(SHORTENED, sentence, system=source)


def _images_word(count: int) -> str:
    return "image" if count == 1 else "images"


def distinct(found: tuple[Caution, ...]) -> list[str]:
    """The sentences, each once."""
    return list(dict.fromkeys(caution.sentence for caution in found))
