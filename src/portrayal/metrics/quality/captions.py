"""Inputs of quality from a study: captions of one source, references of the same images, and their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from portrayal.lexicon import read_synonyms
from portrayal.lexicon.person_labels import is_person_label
from portrayal.metrics.quality.chair import PERSON, ObjectMentions, hallucinated_mentions
from portrayal.metrics.quality.columns import TokenizedCaptions
from portrayal.metrics.quality.ngrams import Array
from portrayal.metrics.quality.plain_words import plain_words
from portrayal.metrics.shared.caption_mentions import labelled_images, labelled_objects, object_finder
from portrayal.results import HUMAN
from portrayal.stats import sorted_clusters
from portrayal.study import Study


@dataclass(frozen=True)
class SourceCaptions:
    """The captions of one source, sorted by image, and the references of these images."""

    captions: tuple[str, ...]
    references: tuple[str, ...]
    tokens: TokenizedCaptions


@lru_cache(maxsize=8)
def read_source(study: Study, source: str) -> SourceCaptions:
    table = study.captions_of(source).sort("image_id", "sample")
    images, image_index = sorted_clusters(table["image_id"].to_list())
    text = tuple(table["caption"].to_list())
    index_of = {name: number for number, name in enumerate(images)}
    reference_table, reference_words = _references(study)
    image_of_reference = np.array(
        [index_of.get(name, -1) for name in reference_table["image_id"]], dtype=np.int64
    )
    used = np.flatnonzero(image_of_reference >= 0)
    reference_texts = reference_table["caption"].to_list()
    words_of: dict[str, list[str]] = {}
    own_reference = (
        np.arange(len(text)) if source == HUMAN else None
    )  # both are sorted by image, then by annotator
    return SourceCaptions(
        text,
        tuple(reference_texts[number] for number in used),
        TokenizedCaptions(
            images,
            image_index,
            tuple(
                words_of.setdefault(caption, words_of.get(caption) or plain_words(caption))
                for caption in text
            ),
            tuple(reference_words[number] for number in used),
            image_of_reference[used],
            own_reference,
        ),
    )


@lru_cache(maxsize=2)
def _references(study: Study) -> tuple[pl.DataFrame, tuple[list[str], ...]]:
    """The references sorted by image, and their words; cached, since every source uses the same."""
    table = study.references.sort("image_id", maintain_order=True)
    return table, tuple(plain_words(caption) for caption in table["caption"].to_list())


@dataclass(frozen=True)
class ImageObjects:
    """The objects that are known to be in images."""

    mentions: ObjectMentions
    labels: Mapping[str, frozenset[str]]
    truth: str
    synonyms: str
    source: str | None  # source of the labels

    @classmethod
    def from_study(
        cls, study: Study, truth: str, synonyms: str | None, confidence: float
    ) -> ImageObjects | None:
        """The objects of a study; captions are searched for its labels and for those of the user's synonyms."""
        object_labels, source = labelled_objects(study)
        object_labels = object_labels.filter(
            pl.col("confidence").is_null() | (pl.col("confidence") >= confidence)
        )
        if not object_labels.height:
            return None
        labels = set(object_labels["label"]) | (set(read_synonyms(Path(synonyms))) if synonyms else set())
        # A user's list defines itself which words are for people.
        people = set() if synonyms else {label for label in labels if is_person_label(label)}
        finder, synonyms_name = object_finder(sorted(labels - people), synonyms)
        by_image: dict[str, set[str]] = {image: set() for image in labelled_images(study)}
        for image, label in object_labels.select("image_id", "label").iter_rows():
            by_image.setdefault(image, set()).add(PERSON if label in people else label)
        labelled = {image: frozenset(image_labels) for image, image_labels in by_image.items()}
        return cls(ObjectMentions(finder, bool(people)), labelled, truth, synonyms_name, source)

    def hallucinations(self, source: SourceCaptions) -> tuple[list[tuple[str, ...]], list[list[str]], Array]:
        """Per caption the mentioned objects and the hallucinated ones; per image whether its objects are known."""
        tokens = source.tokens
        labels_of = self.labels if self.truth != "captions" else {}
        present_labels = [labels_of.get(image, frozenset()) for image in tokens.images]
        named: list[list[tuple[int, tuple[str, ...]]]] = [[] for _ in tokens.images]
        if self.truth != "labels":
            for number, (image, caption) in enumerate(
                zip(tokens.reference_image, source.references, strict=True)
            ):
                named[image].append((number, self.mentions.find(caption)))
        mentioned_per_caption, false_per_caption = [], []
        for number, (image, caption) in enumerate(zip(tokens.image_index, source.captions, strict=True)):
            mentioned = self.mentions.find(caption)
            present = set(present_labels[image])
            for reference, named_objects in named[image]:
                if tokens.own_reference is None or tokens.own_reference[number] != reference:
                    present.update(named_objects)
            mentioned_per_caption.append(mentioned)
            false_per_caption.append(hallucinated_mentions(mentioned, present))
        n_own = 1 if tokens.own_reference is not None else 0  # a human caption is compared with the others
        is_known = [
            image in labels_of or len(named[index]) > n_own for index, image in enumerate(tokens.images)
        ]
        return mentioned_per_caption, false_per_caption, np.array(is_known, dtype=np.float64)
