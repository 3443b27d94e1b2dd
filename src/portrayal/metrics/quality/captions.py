"""Inputs of the metric from a study: captions of one source, references of the same images, and their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from portrayal.lexicon import read_synonyms
from portrayal.lexicon.person_labels import is_person_label
from portrayal.metrics.quality.chair import PERSON, ObjectMentionFinder, hallucinated_mentions
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
    """The captions of a source, with their references and tokens."""
    table = study.captions_of(source).sort("image_id", "sample")
    images, image_index = sorted_clusters(table["image_id"].to_list())
    captions = tuple(table["caption"].to_list())
    index_by_image = {image: index for index, image in enumerate(images)}
    reference_table, reference_words = _references(study)
    reference_image = np.array(
        [index_by_image.get(image, -1) for image in reference_table["image_id"]], dtype=np.int64
    )
    reference_indices = np.flatnonzero(reference_image >= 0)
    reference_texts = reference_table["caption"].to_list()
    words_by_caption: dict[str, list[str]] = {}
    # Human captions and references are the same texts, both sorted by image and annotator.
    identical_reference = np.arange(len(captions)) if source == HUMAN else None
    return SourceCaptions(
        captions,
        tuple(reference_texts[index] for index in reference_indices),
        TokenizedCaptions(
            images,
            image_index,
            tuple(
                words_by_caption.setdefault(caption, words_by_caption.get(caption) or plain_words(caption))
                for caption in captions
            ),
            tuple(reference_words[index] for index in reference_indices),
            reference_image[reference_indices],
            identical_reference,
        ),
    )


@lru_cache(maxsize=2)
def _references(study: Study) -> tuple[pl.DataFrame, tuple[list[str], ...]]:
    """The references sorted by image, and their words. Cached, since all sources have the same references."""
    table = study.references.sort("image_id", maintain_order=True)
    return table, tuple(plain_words(caption) for caption in table["caption"].to_list())


@dataclass(frozen=True)
class ImageObjects:
    """The objects that are known to be in images.

    `labels_by_image` has the labelled objects. `truth` says whether labels, references or both count, `synonyms` which
    list of synonyms is used, and `source` where the labels come from.
    """

    mention_finder: ObjectMentionFinder
    labels_by_image: Mapping[str, frozenset[str]]
    truth: str
    synonyms: str
    source: str | None

    @classmethod
    def from_study(
        cls, study: Study, truth: str, synonyms: str | None, confidence: float
    ) -> ImageObjects | None:
        """The objects of a study, or None without labels.

        Captions are searched for the names of all labelled objects and for the names in the user's list of synonyms.
        """
        object_labels, source = labelled_objects(study)
        object_labels = object_labels.filter(
            pl.col("confidence").is_null() | (pl.col("confidence") >= confidence)
        )
        if not object_labels.height:
            return None
        object_names = set(object_labels["label"]) | (
            set(read_synonyms(Path(synonyms))) if synonyms else set()
        )
        # A user's list of synonyms decides itself which words are for people.
        people = set() if synonyms else {label for label in object_names if is_person_label(label)}
        finder, synonyms_name = object_finder(sorted(object_names - people), synonyms)
        label_sets: dict[str, set[str]] = {image: set() for image in labelled_images(study)}
        for image, label in object_labels.select("image_id", "label").iter_rows():
            label_sets.setdefault(image, set()).add(PERSON if label in people else label)
        labels_by_image = {image: frozenset(image_labels) for image, image_labels in label_sets.items()}
        return cls(ObjectMentionFinder(finder, bool(people)), labels_by_image, truth, synonyms_name, source)

    def hallucinations(self, source: SourceCaptions) -> tuple[list[tuple[str, ...]], list[list[str]], Array]:
        """The mentioned and the hallucinated objects of each caption, and 1 for each image whose objects are known."""
        tokens = source.tokens
        labels_by_image = self.labels_by_image if self.truth != "captions" else {}
        labels_per_image = [labels_by_image.get(image, frozenset()) for image in tokens.images]
        reference_mentions: list[list[tuple[int, tuple[str, ...]]]] = [[] for _ in tokens.images]
        if self.truth != "labels":
            for reference_index, (image, caption) in enumerate(
                zip(tokens.reference_image, source.references, strict=True)
            ):
                reference_mentions[image].append((reference_index, self.mention_finder.find(caption)))
        mentioned, hallucinated = [], []
        for caption_index, (image, caption) in enumerate(
            zip(tokens.image_index, source.captions, strict=True)
        ):
            caption_mentions = self.mention_finder.find(caption)
            present_objects = set(labels_per_image[image])
            for reference_index, reference_objects in reference_mentions[image]:
                if (
                    tokens.identical_reference is None
                    or tokens.identical_reference[caption_index] != reference_index
                ):
                    present_objects.update(reference_objects)
            mentioned.append(caption_mentions)
            hallucinated.append(hallucinated_mentions(caption_mentions, present_objects))
        # A human caption is compared with the other references of its image.
        n_identical_references = 1 if tokens.identical_reference is not None else 0
        has_known_objects = [
            image in labels_by_image or len(reference_mentions[index]) > n_identical_references
            for index, image in enumerate(tokens.images)
        ]
        return mentioned, hallucinated, np.array(has_known_objects, dtype=np.float64)
