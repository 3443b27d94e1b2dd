"""The captions behind a guess: what was guessed, how surely, and what each word added."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear import Array, Guesses
from portrayal.metrics.shared.classifier.word_contributions import parts_of_caption
from portrayal.models.text_classifiers.integrated_gradients import scaled

FEW = 100  # captions kept behind a number whose captions stand behind another one in full
_COLUMNS = ("image_id", "caption", "detail")


class Told:
    """Every caption that was tested, by the first guess of it. What is told of one is made when it is asked for."""

    def __init__(self, guesses: Sequence[Guesses], groups: Sequence[str]):
        self._guesses, self._groups = guesses, groups
        self._directions: dict[int, Array] = {}
        self._made: dict[tuple[int, int], tuple[str, str, dict[str, Any]]] = {}

    @cached_property
    def _first(self) -> list[tuple[int, int]]:
        """Which guess, and which of its captions."""
        seen: dict[tuple[str, str], tuple[int, int]] = {}
        for which, one in enumerate(self._guesses):
            for number, place in enumerate(one.test.tolist()):
                seen.setdefault((one.corpus.images[place], one.corpus.captions[place]), (which, number))
        return list(seen.values())

    def rows(
        self,
        group: int | None = None,
        *,
        word: str | None = None,
        most: int | None = FEW,
        more: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> pl.DataFrame:
        """Captions of a group, or with a word; of many those of some images, the same ones for every speaker.

        `more` says more of an image.
        """
        chosen = self._first if word is None else self._saying.get(word, [])
        if group is not None:
            chosen = [(which, number) for which, number in chosen if self._labels[which][number] == group]
        if most is not None and len(chosen) > most:
            chosen = self._of_some_images(chosen, most)
        found = [self._row(which, number, more) for which, number in chosen]
        return pl.DataFrame(found, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")

    def _of_some_images(self, chosen: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        """All captions of as many images as make up so many captions, in their order."""
        times = Counter(self._image(*one) for one in chosen)
        kept: set[str] = set()
        left = most
        for image in sorted(times, key=lambda name: hashlib.blake2b(name.encode(), digest_size=8).digest()):
            left -= times[image]
            if left < 0:
                break
            kept.add(image)
        return [one for one in chosen if self._image(*one) in kept]

    def _image(self, which: int, number: int) -> str:
        one = self._guesses[which]
        return str(one.corpus.images[one.test[number]])

    @cached_property
    def _means(self) -> dict[str, float]:
        """Of every test of an image."""
        scores: dict[str, list[float]] = {}
        for one in self._guesses:
            for place, score in zip(one.test.tolist(), one.score.tolist(), strict=True):
                scores.setdefault(one.corpus.images[place], []).append(score)
        return {image: sum(found) / len(found) for image, found in scores.items()}

    @cached_property
    def _labels(self) -> list[list[int]]:
        return [one.group.tolist() for one in self._guesses]

    @cached_property
    def _saying(self) -> dict[str, list[tuple[int, int]]]:
        """Word to the captions that have it."""
        saying: dict[str, list[tuple[int, int]]] = {}
        for which, number in self._first:
            one = self._guesses[which]
            for word in set(one.corpus.words[one.test[number]]):
                saying.setdefault(word, []).append((which, number))
        return saying

    def _row(
        self, which: int, number: int, more: Callable[[str], Mapping[str, Any]] | None
    ) -> tuple[str, str, str]:
        if (which, number) not in self._made:  # a caption stands behind each of its words
            self._made[which, number] = self._describe(which, number)
        image, caption, detail = self._made[which, number]
        if more is not None:
            detail = {**detail, **more(image)}
        return image, caption, json.dumps(detail, ensure_ascii=False)

    def _describe(self, which: int, number: int) -> tuple[str, str, dict[str, Any]]:
        one = self._guesses[which]
        place, guessed = one.test[number], int(one.guessed[number])
        detail: dict[str, Any] = {
            "labelled": self._groups[one.group[number]],
            "guessed": self._groups[guessed],
            "sure": round(float(one.likely[number, guessed]), 3),
            "score": round(float(one.score[number]), 3),
            "mean score": round(self._means[one.corpus.images[place]], 5),
        }
        parts = self._parts(which, number)
        if parts is None:
            detail["read"] = " ".join(one.corpus.words[place])
        else:
            detail["total"] = round(sum(part for _, part in parts), 3)
            detail["parts"] = [[word, round(float(part), 3)] for word, part in parts]
        return one.corpus.images[place], one.corpus.captions[place], detail

    def _parts(self, which: int, number: int) -> list[tuple[str, float]] | None:
        """What each word of a caption adds for its true group; None where that was not asked."""
        one = self._guesses[which]
        if one.weights is None:
            if one.parts is None:
                return None
            words = one.corpus.words[one.test[number]]
            return list(zip(words, scaled(one.parts[number]).tolist(), strict=True))
        if which not in self._directions:
            self._directions[which] = one.directions()
        return parts_of_caption(one, number, self._directions[which])


def repeated(
    captions: Sequence[str], images: Sequence[str], times: NDArray[np.float64], most: int = FEW
) -> pl.DataFrame:
    """Captions that are said of several images, the most repeated first: one image for each text."""
    first: dict[str, tuple[str, str, int]] = {}
    for image, caption, often in zip(images, captions, times, strict=True):
        if often > 1:
            first.setdefault(caption, (image, caption, int(often)))
    ranked = sorted(first.values(), key=lambda row: (-row[2], row[1]))[:most]
    rows = [(image, caption, json.dumps({"said of images": often})) for image, caption, often in ranked]
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
