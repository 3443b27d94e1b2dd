"""What quality reads of a study: one speaker's captions, people's captions of the same images, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from portrayal.lexicon import read_synonyms
from portrayal.lexicon.person_labels import is_person_label
from portrayal.metrics.quality.chair import PERSON, Mentions, hallucinated
from portrayal.metrics.quality.columns import Captions
from portrayal.metrics.quality.ngrams import Array
from portrayal.metrics.quality.plain_words import plain_words
from portrayal.metrics.shared.mentions import labelled_images, labelled_objects, object_finder
from portrayal.results import HUMAN
from portrayal.stats import sorted_clusters
from portrayal.study import Study


@dataclass(frozen=True)
class Told:
    """One speaker's captions in the order of images, and the references of these images."""

    text: tuple[str, ...]
    written: tuple[str, ...]
    compared: Captions


@lru_cache(maxsize=8)
def read_speaker(study: Study, source: str) -> Told:
    spoken = study.spoken(source).sort("image_id", "sample")
    images, image = sorted_clusters(spoken["image_id"].to_list())
    text = tuple(spoken["caption"].to_list())
    place = {name: number for number, name in enumerate(images)}
    written, words = _references(study)
    of = np.array([place.get(name, -1) for name in written["image_id"]], dtype=np.int64)
    use = np.flatnonzero(of >= 0)
    everyone = written["caption"].to_list()
    known: dict[str, list[str]] = {}
    own = np.arange(len(text)) if source == HUMAN else None  # both are in the order of images, then of people
    return Told(
        text,
        tuple(everyone[number] for number in use),
        Captions(
            images,
            image,
            tuple(known.setdefault(one, known.get(one) or plain_words(one)) for one in text),
            tuple(words[number] for number in use),
            of[use],
            own,
        ),
    )


@lru_cache(maxsize=2)
def _references(study: Study) -> tuple[pl.DataFrame, tuple[list[str], ...]]:
    """People's captions in the order of images, and their words: every speaker is held against the same."""
    written = study.references.sort("image_id", maintain_order=True)
    return written, tuple(plain_words(caption) for caption in written["caption"].to_list())


@dataclass(frozen=True)
class Objects:
    """What is known to be in images."""

    mentions: Mentions
    labelled: Mapping[str, frozenset[str]]
    truth: str
    synonyms: str
    source: str | None  # who labelled

    @classmethod
    def of(cls, study: Study, truth: str, synonyms: str | None, confidence: float) -> Objects | None:
        """Captions are searched for the labels that the study has, and those of the user's own list."""
        seen, source = labelled_objects(study)
        seen = seen.filter(pl.col("confidence").is_null() | (pl.col("confidence") >= confidence))
        if not seen.height:
            return None
        labels = set(seen["label"]) | (set(read_synonyms(Path(synonyms))) if synonyms else set())
        # A list of the user's own says itself which words are for people.
        people = set() if synonyms else {label for label in labels if is_person_label(label)}
        finder, known = object_finder(sorted(labels - people), synonyms)
        by_image: dict[str, set[str]] = {image: set() for image in labelled_images(study)}
        for image, label in seen.select("image_id", "label").iter_rows():
            by_image.setdefault(image, set()).add(PERSON if label in people else label)
        labelled = {image: frozenset(some) for image, some in by_image.items()}
        return cls(Mentions(finder, bool(people)), labelled, truth, known, source)

    def false(self, told: Told) -> tuple[list[tuple[str, ...]], list[list[str]], Array]:
        """Per caption what it mentions and what of that is not there; and the images of which that is known."""
        compared = told.compared
        trusted = self.labelled if self.truth != "captions" else {}
        labelled = [trusted.get(image, frozenset()) for image in compared.images]
        named: list[list[tuple[int, tuple[str, ...]]]] = [[] for _ in compared.images]
        if self.truth != "labels":
            for number, (image, caption) in enumerate(
                zip(compared.reference_image, told.written, strict=True)
            ):
                named[image].append((number, self.mentions.of(caption)))
        said, bad = [], []
        for number, (image, caption) in enumerate(zip(compared.image, told.text, strict=True)):
            mentioned = self.mentions.of(caption)
            there = set(labelled[image])
            for writer, some in named[image]:
                if compared.own is None or compared.own[number] != writer:
                    there.update(some)
            said.append(mentioned)
            bad.append(hallucinated(mentioned, there))
        others = 1 if compared.own is not None else 0  # people are held against what somebody else says
        known = [
            image in trusted or len(named[place]) > others for place, image in enumerate(compared.images)
        ]
        return said, bad, np.array(known, dtype=np.float64)
