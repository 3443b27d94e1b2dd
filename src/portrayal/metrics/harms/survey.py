"""Facts of a whole study that measurements need before the first image. Surveys of parts can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from portrayal.lexicon import tokenize
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.metrics.harms.erasure import COMMON_SHARE
from portrayal.metrics.harms.label_senses import label_senses
from portrayal.metrics.shared.caption_mentions import labelled_images, labelled_objects
from portrayal.study import Study


@dataclass
class Survey:
    """Groups, labels, and how many images each label and each mentioned sense is in."""

    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)  # attribute -> its groups
    images: int = 0  # with captions of a system
    images_with_references: int = 0
    images_with_labels: int = 0  # of objects
    labels: Counter[str] = field(default_factory=Counter)  # label -> images
    senses: Counter[int] = field(default_factory=Counter)  # sense -> images whose human captions mention it
    label_sources: set[str] = field(default_factory=set)  # who labelled objects

    @classmethod
    def of(cls, study: Study, senses: bool, attribute: str) -> Survey:
        """Survey a study. Counting `senses` is slow; skip it where no measurement needs them."""
        objects, source = labelled_objects(study)
        by_label = objects.unique(["image_id", "label"]).group_by("label").len()
        return cls(
            systems=dict.fromkeys(study.systems),
            groups={
                name: set(study.groups(name))
                for name in (*study.attribute_names, attribute)
                if study.has_attribute(name)
            },
            images=study.captions["image_id"].n_unique(),
            images_with_references=study.references["image_id"].n_unique(),
            images_with_labels=len(labelled_images(study)),
            labels=Counter(dict(by_label.iter_rows())),
            senses=_mentioned_senses(study) if senses else Counter(),
            label_sources=set() if source is None else {source},
        )

    def merge(self, other: Survey) -> None:
        self.systems |= other.systems
        for attribute, groups in other.groups.items():
            self.groups.setdefault(attribute, set()).update(groups)
        self.images += other.images
        self.images_with_references += other.images_with_references
        self.images_with_labels += other.images_with_labels
        self.labels.update(other.labels)
        self.senses.update(other.senses)
        self.label_sources |= other.label_sources

    @property
    def label_source(self) -> str | None:
        return ", ".join(sorted(self.label_sources)) or None

    def common_senses(self) -> frozenset[int]:
        """The senses that humans mention or label in more than 1 % of images."""
        common = {
            sense
            for sense, images in self.senses.items()
            if images > COMMON_SHARE * self.images_with_references
        }
        for label, images in self.labels.items():
            if images > COMMON_SHARE * self.images_with_labels:
                common |= label_senses(label).keys()
        return frozenset(common)


@lru_cache(maxsize=4)  # several attributes and sources share one study
def _mentioned_senses(study: Study) -> Counter[int]:
    counts: Counter[int] = Counter()
    for captions in study.references.group_by("image_id").agg(pl.col("caption"))["caption"].to_list():
        counts.update(_image_senses(captions))
    return counts


def _image_senses(captions: Sequence[str]) -> set[int]:
    words = (word for caption in captions for word in content_words(tokenize(caption)))
    return {word.synset for word in words if word.synset is not None and word.pos in ("noun", "verb")}
