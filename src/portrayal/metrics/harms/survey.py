"""What has to be known of a whole study before its first image is read; it can be added up part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from portrayal.lexicon import tokenize
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.metrics.harms.erasure import COMMON
from portrayal.metrics.harms.label_senses import label_senses
from portrayal.metrics.shared.mentions import labelled_images, labelled_objects
from portrayal.study import Study


@dataclass
class Survey:
    """Groups, labels and how often people mention what."""

    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)  # attribute -> its groups
    images: int = 0  # that are captioned
    described: int = 0  # images with captions of people
    labelled: int = 0  # images with labels of objects
    labels: Counter[str] = field(default_factory=Counter)  # label -> images
    senses: Counter[int] = field(default_factory=Counter)  # sense -> images of which people mention it
    sources: set[str] = field(default_factory=set)  # who labelled objects

    @classmethod
    def of(cls, study: Study, senses: bool, attribute: str) -> Survey:
        """`senses` are costly, and not always needed. `attribute` may be several combined."""
        labelled, source = labelled_objects(study)
        by_label = labelled.unique(["image_id", "label"]).group_by("label").len()
        return cls(
            systems=dict.fromkeys(study.systems),
            groups={
                name: set(study.groups(name))
                for name in (*study.attribute_names, attribute)
                if study.has_attribute(name)
            },
            images=study.captions["image_id"].n_unique(),
            described=study.references["image_id"].n_unique(),
            labelled=len(labelled_images(study)),
            labels=Counter(dict(by_label.iter_rows())),
            senses=_senses(study) if senses else Counter(),
            sources=set() if source is None else {source},
        )

    def merge(self, other: Survey) -> None:
        self.systems |= other.systems
        for attribute, groups in other.groups.items():
            self.groups.setdefault(attribute, set()).update(groups)
        self.images += other.images
        self.described += other.described
        self.labelled += other.labelled
        self.labels.update(other.labels)
        self.senses.update(other.senses)
        self.sources |= other.sources

    @property
    def source(self) -> str | None:
        return ", ".join(sorted(self.sources)) or None

    def common(self) -> frozenset[int]:
        """The senses that people mention, or label, in more than one image of a hundred."""
        found = {sense for sense, images in self.senses.items() if images > COMMON * self.described}
        for label, images in self.labels.items():
            if images > COMMON * self.labelled:
                found |= label_senses(label).keys()
        return frozenset(found)


@lru_cache(maxsize=4)  # several attributes and speakers ask of one study
def _senses(study: Study) -> Counter[int]:
    counts: Counter[int] = Counter()
    for captions in study.references.group_by("image_id").agg(pl.col("caption"))["caption"].to_list():
        counts.update(_mentioned(captions))
    return counts


def _mentioned(captions: Sequence[str]) -> set[int]:
    words = (word for caption in captions for word in content_words(tokenize(caption)))
    return {word.synset for word in words if word.synset is not None and word.part in ("noun", "verb")}
