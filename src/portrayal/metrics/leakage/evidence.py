"""The images behind leakage: the labels said of each, those that are true, and what an attacker guesses from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.leakage.label_noise import Array
from portrayal.metrics.leakage.labels import Named
from portrayal.metrics.shared.classifier.evaluation import Voice

FEW = 100  # images kept behind a number whose images stand behind another one in full
SAID, TRUE, DEGRADED = "said", "true", "degraded"


@dataclass(frozen=True)
class Told:
    """What can be told of each image; what an attacker made of it is worked out once."""

    named: Named
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    _read: dict[int, tuple[Voice, Array, Array]] = field(default_factory=dict)

    def rows(self, places: NDArray[np.int64], voices: Mapping[str, Voice]) -> pl.DataFrame:
        """A row for each caption of these images, or for each image. `voices`: what was guessed from which labels."""
        made: list[tuple[str, str, str]] = []
        for place in places.tolist():
            detail: dict[str, Any] = {
                "labelled": self.groups[self.named.group[place]],
                SAID: self._listed(self.named.said[place]),
                TRUE: self._listed(self.named.truth[place]),
            }
            for name, voice in voices.items():
                detail |= self._guess(name, voice, place)
            told = json.dumps(detail, ensure_ascii=False)
            made += [
                (self.named.images[place], caption, told) for caption in self.named.captions[place] or ("",)
            ]
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(made, schema=dict.fromkeys(columns, pl.String), orient="row")

    def _guess(self, name: str, voice: Voice, place: int) -> dict[str, Any]:
        """The first repeat's guess, how sure it is, and how often it is right over all repeats."""
        likely, right = self._of_images(voice)
        guessed = int(likely[place].argmax())
        after = "" if name == SAID else f" ({name})"
        told: dict[str, Any] = {} if name != DEGRADED else {DEGRADED: list(voice.corpus.words[place])}
        return told | {
            f"guessed{after}": self.groups[guessed],
            f"sure{after}": round(float(likely[place, guessed]), 3),
            f"right{after}": round(float(right[place]), 3),
        }

    def _of_images(self, voice: Voice) -> tuple[Array, Array]:
        if id(voice) not in self._read:
            first = voice.guesses[0][0]
            likely = np.empty_like(first.likely)
            likely[first.test] = first.likely
            right = np.zeros(len(likely))
            for (one,) in voice.guesses:
                right[one.test] += one.score / len(voice.guesses)
            self._read[id(voice)] = (voice, likely, right)
        return self._read[id(voice)][1:]

    def _listed(self, shares: Array) -> list[str]:
        """Labels, with their share where only some captions name them."""
        return [
            self.labels[place] if shares[place] > 0.999 else f"{self.labels[place]} {shares[place]:.0%}"
            for place in np.flatnonzero(shares)
        ]
