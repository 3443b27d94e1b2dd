"""Which groups captions name: the view of a study that the counting metrics share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from portrayal.errors import Undefined
from portrayal.lexicon import (
    Finder,
    Lexicon,
    Mention,
    ObjectFinder,
    lexicon_for,
    load_lexicon,
    name_key,
    read_synonyms,
    synonyms_label,
    tokenize,
)
from portrayal.lexicon.person_labels import is_person_label
from portrayal.results import HUMAN
from portrayal.stats import sorted_clusters
from portrayal.study import Study
from portrayal.study.formats.raw_table import NOTHING
from portrayal.study.tables import SEVERAL_LABELS


@dataclass(frozen=True)
class CaptionMentions:
    """The captions of one speaker, in the order of their images' names.

    `image` says which of `images` a caption belongs to. `weight` is one over the number of the image's
    captions: an image counts once, however many captions it has. `named` has a column per group of the
    lexicon.
    """

    images: tuple[str, ...]
    image: NDArray[np.int64]
    captions: tuple[str, ...]
    weight: NDArray[np.float64]
    groups: tuple[str, ...]
    named: NDArray[np.bool_]
    mentions: tuple[tuple[Mention, ...], ...]

    def only(self, images: Sequence[str]) -> CaptionMentions:
        """The captions of some images."""
        wanted = set(images)
        keep = np.array([name in wanted for name in self.images], dtype=bool)[self.image]
        kept, places = sorted_clusters([self.images[i] for i in self.image[keep]])
        return CaptionMentions(
            kept,
            places,
            tuple(caption for caption, good in zip(self.captions, keep, strict=True) if good),
            self.weight[keep],
            self.groups,
            self.named[keep],
            tuple(found for found, good in zip(self.mentions, keep, strict=True) if good),
        )

    def count_per_image(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over each image's captions: (captions, k) to (images, k)."""
        sums = np.zeros((len(self.images), columns.shape[1]))
        np.add.at(sums, self.image, columns)
        return sums

    def share_per_image(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same with every image counting once, however many captions it has."""
        return self.count_per_image(columns * self.weight[:, None])

    @cached_property
    def to_image(self) -> sparse.csr_array:
        """Multiplies (captions, k) into (images, k), every image counting once: `share_per_image` for sparse counts."""
        entries = (self.weight, (self.image, np.arange(len(self.captions))))
        return sparse.csr_array(entries, shape=(len(self.images), len(self.captions)))

    @cached_property
    def names_any(self) -> NDArray[np.bool_]:
        """Which captions name a group at all."""
        return np.asarray(self.named.any(axis=1), dtype=bool)

    @cached_property
    def how_many(self) -> NDArray[np.int64]:
        """How many groups each caption names."""
        return np.asarray(self.named.sum(axis=1), dtype=np.int64)

    def evidence(self, which: NDArray[np.bool_], table: pl.DataFrame | None = None) -> pl.DataFrame:
        """The captions selected, out of a table made by `described` (by default the plain one)."""
        return (self._plain if table is None else table).filter(pl.Series(which, dtype=pl.Boolean))

    def described(self, **details: Sequence[Any]) -> pl.DataFrame:
        """Every caption with the groups and words it names, and whatever else is said of it, as evidence has it."""
        rows = []
        for index, found in enumerate(self.mentions):
            detail: dict[str, Any] = {name: values[index] for name, values in details.items()}
            detail["named"] = [
                group for group, yes in zip(self.groups, self.named[index], strict=True) if yes
            ]
            detail["words"] = [mention.word for mention in found]
            rows.append(json.dumps(detail, ensure_ascii=False))
        columns = {
            "image_id": [self.images[index] for index in self.image],
            "caption": list(self.captions),
            "detail": rows,
        }
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))

    @cached_property
    def _plain(self) -> pl.DataFrame:
        return self.described()


def choose_lexicon(lexicon: str | Lexicon | None, attribute: str) -> Lexicon:
    """The lexicon asked for, or the default of the attribute."""
    words = load_lexicon(lexicon) if lexicon is not None else lexicon_for(attribute)
    if not words.groups:
        raise Undefined(f"The lexicon '{words.name}' names no group; give one that does with --lexicon.")
    return words


@lru_cache(maxsize=32)
def find_mentions(study: Study, source: str, lexicon: Lexicon) -> CaptionMentions:
    """Everything one speaker says, and whom it names. Kept, since several metrics ask the same."""
    spoken = study.spoken(source).sort("image_id", "sample")
    images, image = sorted_clusters(spoken["image_id"].to_list())
    captions = tuple(spoken["caption"].to_list())
    finder = Finder(lexicon)
    known: dict[str, tuple[Mention, ...]] = {}  # generated captions repeat a lot
    for caption in captions:
        if caption not in known:
            known[caption] = tuple(finder.mentions(caption))
    mentions = tuple(known[caption] for caption in captions)
    groups = tuple(lexicon.groups)
    column = {group: index for index, group in enumerate(groups)}
    named = np.zeros((len(captions), len(groups)), dtype=bool)
    for row, found in enumerate(mentions):
        for mention in found:
            named[row, column[mention.group]] = True
    counts = np.bincount(image, minlength=len(images))
    weight = 1.0 / counts[image] if len(image) else np.empty(0)
    return CaptionMentions(images, image, captions, weight, groups, named, mentions)


def labelled_objects(study: Study) -> tuple[pl.DataFrame, str | None]:
    """The objects of a study (not attributes or relations) that people labelled, else models; and who did.

    Words found in captions are not among them.
    """
    objects = study.annotated.filter(pl.col("kind") == "object")
    human = objects.filter(pl.col("source") == HUMAN)
    chosen = human if human.height else objects
    return chosen, ", ".join(sorted(set(chosen["source"]))) or None


def labelled_images(study: Study) -> frozenset[str]:
    """The images that the sources of `labelled_objects` annotated, whether or not there is an object in them."""
    sources = labelled_objects(study)[0]["source"].unique()
    rows = study.annotated.filter(
        pl.col("kind").is_in(["object", NOTHING]) & pl.col("source").is_in(sources.implode())
    )
    return frozenset(rows["image_id"])


def without_people(objects: pl.DataFrame) -> pl.DataFrame:
    """The labels of objects that are no people: who is shown is no object beside them.

    A line of several labels is people only where each of its words is: "ski person" still holds a ski.
    """
    labels = objects["label"].unique()
    people = [label for label in labels if is_person_label(label)]
    nothing_else = [label for label in people if all(map(is_person_label, tokenize(label)))]
    several = pl.col("source") == SEVERAL_LABELS
    return objects.filter(
        ~pl.when(several).then(pl.col("label").is_in(nothing_else)).otherwise(pl.col("label").is_in(people))
    )


def object_finder(labels: Sequence[str], synonyms: str | None) -> tuple[ObjectFinder, str]:
    """Finds the labels in captions, by the user's own other words for them or the shipped ones; and which it is."""
    if synonyms is None:
        return ObjectFinder(labels), "shipped"
    words = read_synonyms(Path(synonyms))
    return ObjectFinder(labels, words), synonyms_label(words, Path(synonyms))


def refuse_one_group_twice(names: Mapping[str, str | None], attribute: str) -> None:
    """Two labels that mean one group (M and male) are no two groups. `names` has what each label means."""
    shared = [group for group in names if names[group] and list(names.values()).count(names[group]) > 1]
    if shared:
        first = [group for group in shared if names[group] == names[shared[0]]]
        raise Undefined(
            f"The groups {', '.join(map(repr, first))} of '{attribute}' all mean '{names[shared[0]]}'; make them one "
            f"with portrayal import ... --map {attribute}:{','.join(f'{group}={names[group]}' for group in first)}, "
            f"or with [mapped.{attribute}] in study.toml."
        )


def lexicon_names(groups: Sequence[str], lexicon: Lexicon, attribute: str) -> dict[str, str | None]:
    """The study's groups with the lexicon's name for each, by any of its names; None where it has no words.

    >>> lexicon_names(["F", "M"], load_lexicon("gender"), "sex")
    {'F': 'female', 'M': 'male'}
    """
    names = {group: lexicon.names_of_groups.get(name_key(group)) for group in groups}
    refuse_one_group_twice(names, attribute)
    if not any(names.values()):
        typed = ",".join(f"{group}=..." for group in groups)
        raise Undefined(
            f"The lexicon '{lexicon.name}' has words for {', '.join(lexicon.groups) or 'no group'}, but the "
            f"study's groups of '{attribute}' are {', '.join(groups) or 'none'}; say which is which with portrayal "
            f"import ... --map {attribute}:{typed}, or give a lexicon that names them (--lexicon)."
        )
    return names
