"""Mentions of groups in captions, as arrays that the counting metrics share."""

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
    Lexicon,
    Mention,
    MentionFinder,
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
from portrayal.study.formats.raw_table import NO_LABEL
from portrayal.study.tables import SEVERAL_LABELS


@dataclass(frozen=True)
class CaptionMentions:
    """The captions of one source with the groups they mention, sorted by image.

    Attributes
    ----------
    images
        Names of the images.
    image_index
        Index into `images` of each caption.
    captions
        Texts of the captions.
    weight
        One over the number of captions of the image, so that each image counts once.
    groups
        Groups of the lexicon.
    named
        Boolean array (captions, groups): whether the caption names the group.
    per_caption
        Mentions of each caption.
    """

    images: tuple[str, ...]
    image_index: NDArray[np.int64]
    captions: tuple[str, ...]
    weight: NDArray[np.float64]
    groups: tuple[str, ...]
    named: NDArray[np.bool_]
    per_caption: tuple[tuple[Mention, ...], ...]

    def only(self, images: Sequence[str]) -> CaptionMentions:
        """The captions of these images."""
        chosen = set(images)
        keep = np.array([name in chosen for name in self.images], dtype=bool)[self.image_index]
        kept, image_index = sorted_clusters([self.images[i] for i in self.image_index[keep]])
        return CaptionMentions(
            kept,
            image_index,
            tuple(caption for caption, keep_caption in zip(self.captions, keep, strict=True) if keep_caption),
            self.weight[keep],
            self.groups,
            self.named[keep],
            tuple(
                caption_mentions
                for caption_mentions, keep_caption in zip(self.per_caption, keep, strict=True)
                if keep_caption
            ),
        )

    def sum_per_image(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the captions of each image: (captions, k) to (images, k)."""
        sums = np.zeros((len(self.images), columns.shape[1]))
        np.add.at(sums, self.image_index, columns)
        return sums

    def mean_per_image(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean over the captions of each image: (captions, k) to (images, k)."""
        return self.sum_per_image(columns * self.weight[:, None])

    @cached_property
    def averaging_matrix(self) -> sparse.csr_array:
        """Sparse matrix (images, captions) that averages over the captions of each image: `mean_per_image`."""
        entries = (self.weight, (self.image_index, np.arange(len(self.captions))))
        return sparse.csr_array(entries, shape=(len(self.images), len(self.captions)))

    @cached_property
    def names_any(self) -> NDArray[np.bool_]:
        """Whether each caption names any group."""
        return np.asarray(self.named.any(axis=1), dtype=bool)

    @cached_property
    def n_groups(self) -> NDArray[np.int64]:
        """Number of groups that each caption names."""
        return np.asarray(self.named.sum(axis=1), dtype=np.int64)

    def evidence(self, mask: NDArray[np.bool_], table: pl.DataFrame | None = None) -> pl.DataFrame:
        """The selected captions as evidence: rows of `table` (an `evidence_table`, by default without more details)."""
        return (self._plain_evidence if table is None else table).filter(pl.Series(mask, dtype=pl.Boolean))

    def evidence_table(self, **details: Sequence[Any]) -> pl.DataFrame:
        """Evidence rows of all captions: the groups and words that each names, and further details."""
        rows = []
        for index, caption_mentions in enumerate(self.per_caption):
            detail: dict[str, Any] = {name: values[index] for name, values in details.items()}
            detail["named"] = [
                group for group, is_named in zip(self.groups, self.named[index], strict=True) if is_named
            ]
            detail["words"] = [mention.word for mention in caption_mentions]
            rows.append(json.dumps(detail, ensure_ascii=False))
        columns = {
            "image_id": [self.images[index] for index in self.image_index],
            "caption": list(self.captions),
            "detail": rows,
        }
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))

    @cached_property
    def _plain_evidence(self) -> pl.DataFrame:
        return self.evidence_table()


def choose_lexicon(lexicon: str | Lexicon | None, attribute: str) -> Lexicon:
    """The requested lexicon, or the default lexicon of the attribute."""
    words = load_lexicon(lexicon) if lexicon is not None else lexicon_for(attribute)
    if not words.groups:
        raise Undefined(f"The lexicon '{words.name}' names no group; give one that does with --lexicon.")
    return words


@lru_cache(maxsize=32)
def find_mentions(study: Study, source: str, lexicon: Lexicon) -> CaptionMentions:
    """The captions of one source and the groups they mention; cached, since several metrics use them."""
    table = study.captions_of(source).sort("image_id", "sample")
    images, image_index = sorted_clusters(table["image_id"].to_list())
    captions = tuple(table["caption"].to_list())
    finder = MentionFinder(lexicon)
    cache: dict[str, tuple[Mention, ...]] = {}  # generated captions repeat often
    for caption in captions:
        if caption not in cache:
            cache[caption] = tuple(finder.find(caption))
    mentions = tuple(cache[caption] for caption in captions)
    groups = tuple(lexicon.groups)
    column = {group: index for index, group in enumerate(groups)}
    named = np.zeros((len(captions), len(groups)), dtype=bool)
    for row, caption_mentions in enumerate(mentions):
        for mention in caption_mentions:
            named[row, column[mention.group]] = True
    counts = np.bincount(image_index, minlength=len(images))
    weight = 1.0 / counts[image_index] if len(image_index) else np.empty(0)
    return CaptionMentions(images, image_index, captions, weight, groups, named, mentions)


def labelled_objects(study: Study) -> tuple[pl.DataFrame, str | None]:
    """Object labels of a study and their source: human labels, or those of models where there are none.

    Attributes, relations and words found in captions are not included.
    """
    objects = study.annotations.filter(pl.col("kind") == "object")
    human = objects.filter(pl.col("source") == HUMAN)
    chosen = human if human.height else objects
    return chosen, ", ".join(sorted(set(chosen["source"]))) or None


def labelled_images(study: Study) -> frozenset[str]:
    """The images annotated by the source of `labelled_objects`, with or without an object in them."""
    sources = labelled_objects(study)[0]["source"].unique()
    rows = study.annotations.filter(
        pl.col("kind").is_in(["object", NO_LABEL]) & pl.col("source").is_in(sources.implode())
    )
    return frozenset(rows["image_id"])


def without_people(objects: pl.DataFrame) -> pl.DataFrame:
    """The object labels other than people.

    A value of several labels counts as people only where each word does: "ski person" still contains a ski.
    """
    labels = objects["label"].unique()
    people = [label for label in labels if is_person_label(label)]
    people_only = [label for label in people if all(map(is_person_label, tokenize(label)))]
    multiple = pl.col("source") == SEVERAL_LABELS
    return objects.filter(
        ~pl.when(multiple).then(pl.col("label").is_in(people_only)).otherwise(pl.col("label").is_in(people))
    )


def object_finder(labels: Sequence[str], synonyms: str | None) -> tuple[ObjectFinder, str]:
    """A finder of the labels in captions, by the user's synonyms or the shipped ones, and the name of the synonyms."""
    if synonyms is None:
        return ObjectFinder(labels), "shipped"
    words = read_synonyms(Path(synonyms))
    return ObjectFinder(labels, words), synonyms_label(words, Path(synonyms))


def check_groups_differ(names: Mapping[str, str | None], attribute: str) -> None:
    """Raise an error where two labels mean one group (M and male). `names`: the group that each label means."""
    shared = [group for group in names if names[group] and list(names.values()).count(names[group]) > 1]
    if shared:
        alike = [group for group in shared if names[group] == names[shared[0]]]
        raise Undefined(
            f"The groups {', '.join(map(repr, alike))} of '{attribute}' all mean '{names[shared[0]]}'; make them one "
            f"with portrayal import ... --map {attribute}:{','.join(f'{group}={names[group]}' for group in alike)}, "
            f"or with [mapped.{attribute}] in study.toml."
        )


def lexicon_names(groups: Sequence[str], lexicon: Lexicon, attribute: str) -> dict[str, str | None]:
    """The lexicon's group for each group of the study, by any of its names; None where it has no words.

    >>> lexicon_names(["F", "M"], load_lexicon("gender"), "sex")
    {'F': 'female', 'M': 'male'}
    """
    names = {group: lexicon.groups_by_name.get(name_key(group)) for group in groups}
    check_groups_differ(names, attribute)
    if not any(names.values()):
        mapping = ",".join(f"{group}=..." for group in groups)
        raise Undefined(
            f"The lexicon '{lexicon.name}' has words for {', '.join(lexicon.groups) or 'no group'}, but the "
            f"study's groups of '{attribute}' are {', '.join(groups) or 'none'}; say which is which with portrayal "
            f"import ... --map {attribute}:{mapping}, or give a lexicon that names them (--lexicon)."
        )
    return names
