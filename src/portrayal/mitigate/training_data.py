"""What a remedy is trained on: pictures with texts, and their counterparts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from portrayal.counterfactual.concepts import BIAS_PROMPT
from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon
from portrayal.mitigate.counterparts import TWIN, Twins, leanings, twins_of
from portrayal.models.masked_vlm.training import Pairs
from portrayal.models.masked_vlm.vocabulary import Reader


@dataclass(frozen=True)
class Whom:
    """Between which two groups a remedy is to make no difference, and how a model is asked about them."""

    groups: tuple[str, str]
    words: tuple[str, str]
    lexicon: Lexicon
    prompt: str = BIAS_PROMPT

    @classmethod
    def of(cls, lexicon: Lexicon, groups: Sequence[str] | None = None, prompt: str = BIAS_PROMPT) -> Whom:
        """The lexicon's first two groups, if none are named."""
        named = tuple(groups or tuple(lexicon.groups)[:2])
        if len(set(named)) != 2 or any(group not in lexicon.groups for group in named):
            raise PortrayalError(
                f"A remedy is between two groups of {', '.join(lexicon.groups)}, got {', '.join(named)}."
            )
        words = tuple(lexicon.standing_for(group) or group for group in named)
        return cls((named[0], named[1]), (words[0], words[1]), lexicon, prompt)


@dataclass(frozen=True)
class Prompt:
    """The question after the group, as numbers."""

    ids: Tensor  # (1, tokens)
    place: int  # of the mask
    words: tuple[int, int]  # of the groups

    @classmethod
    def read(cls, whom: Whom, reader: Reader) -> Prompt:
        ids = reader.question(whom.prompt)
        if ids.count(reader.mask) != 1:
            raise PortrayalError(f"The question after the group has one [MASK]: {whom.prompt!r}.")
        words = [reader.pieces(word) for word in whom.words]
        long = [word for word, pieces in zip(whom.words, words, strict=True) if len(pieces) > 1]
        if long:
            raise PortrayalError(
                f"An attack in training aims at a word of one piece, and the model writes {long[0]!r} in several."
            )
        return cls(torch.tensor([ids]), ids.index(reader.mask), (words[0][0], words[1][0]))

    def on(self, device: str) -> Prompt:
        return replace(self, ids=self.ids.to(device))


@dataclass(frozen=True)
class Material:
    pairs: Pairs
    captions: Twins
    sentences: Twins
    prompt: Prompt
    leaning: Tensor  # see `leanings`
    counterfactuals: Tensor | None = None  # the pictures once more, with somebody of the other group
    swapped: Tensor | None = None  # which have such another; None: all of them
    counts: Counter[str] | None = None  # of texts, by whether they have a counterpart

    @classmethod
    def made_from(
        cls,
        pictures: NDArray[np.uint8],
        captions: Sequence[Sequence[str]],
        sentences: Sequence[Sequence[str]],
        reader: Reader,
        whom: Whom,
        others: NDArray[np.uint8] | None = None,
        swapped: NDArray[np.bool_] | None = None,
    ) -> Material:
        pairs = Pairs.made_from(pictures, captions, sentences, reader)
        told, counts = twins_of(captions, pairs.captions, reader, whom.lexicon, whom.groups)
        said, more = twins_of(sentences, pairs.sentences, reader, whom.lexicon, whom.groups)
        counts.update(more)
        if not counts[TWIN]:
            raise PortrayalError(
                f"No text names one of {' and '.join(whom.groups)} alone and can be said of the other: there is "
                f"nothing to learn from."
            )
        leaning = leanings([(pairs.captions, told), (pairs.sentences, said)], len(reader), reader.pad)
        return cls(
            pairs, told, said, Prompt.read(whom, reader), leaning,
            None if others is None else torch.from_numpy(others),
            None if swapped is None else torch.from_numpy(swapped), counts,
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """Of what it has beside its pairs."""
        whole = hashlib.blake2b(repr(self.prompt.words).encode(), digest_size=8)
        twins = (self.captions.group, self.captions.ids, self.sentences.group, self.sentences.ids)
        for part in (*twins, self.prompt.ids, self.leaning, self.counterfactuals, self.swapped):
            if part is not None:
                whole.update(part.cpu().contiguous().numpy().tobytes())
        return whole.hexdigest()

    def on(self, device: str) -> Material:
        """All but the pairs, which the training moves itself."""
        return replace(
            self,
            captions=self.captions.on(device),
            sentences=self.sentences.on(device),
            prompt=self.prompt.on(device),
            leaning=self.leaning.to(device),
            counterfactuals=None if self.counterfactuals is None else self.counterfactuals.to(device),
            swapped=None if self.swapped is None else self.swapped.to(device),
        )
