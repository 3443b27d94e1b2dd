"""Training data of a mitigation method: images with texts, and their counterparts."""

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
from portrayal.mitigate.counterfactual_texts import (
    HAS_COUNTERPART,
    Counterparts,
    logit_adjustment,
    make_counterparts,
)
from portrayal.models.masked_vlm.training import ImageTextPairs
from portrayal.models.masked_vlm.vocabulary import Tokenizer


@dataclass(frozen=True)
class GroupPair:
    """The two groups whose difference is mitigated, with their words and the prompt for the group."""

    groups: tuple[str, str]
    words: tuple[str, str]
    lexicon: Lexicon
    prompt: str = BIAS_PROMPT

    @classmethod
    def of(
        cls, lexicon: Lexicon, groups: Sequence[str] | None = None, prompt: str = BIAS_PROMPT
    ) -> GroupPair:
        """Return a pair of groups of a lexicon, by default its first two."""
        chosen = tuple(groups or tuple(lexicon.groups)[:2])
        if len(set(chosen)) != 2 or any(group not in lexicon.groups for group in chosen):
            raise PortrayalError(
                f"Mitigation is between two groups of {', '.join(lexicon.groups)}, got {', '.join(chosen)}."
            )
        words = tuple(lexicon.word_for(group) or group for group in chosen)
        return cls((chosen[0], chosen[1]), (words[0], words[1]), lexicon, prompt)


@dataclass(frozen=True)
class GroupPrompt:
    """The tokenized prompt for the group."""

    # (1, tokens)
    ids: Tensor
    mask_index: int
    # Token ids of the groups' words.
    words: tuple[int, int]

    @classmethod
    def tokenize(cls, group_pair: GroupPair, tokenizer: Tokenizer) -> GroupPrompt:
        ids = tokenizer.encode_prompt(group_pair.prompt)
        if ids.count(tokenizer.mask_id) != 1:
            raise PortrayalError(f"The prompt for the group has one [MASK]: {group_pair.prompt!r}.")
        words = [tokenizer.tokenize_word(word) for word in group_pair.words]
        multi_piece = [word for word, pieces in zip(group_pair.words, words, strict=True) if len(pieces) > 1]
        if multi_piece:
            raise PortrayalError(
                f"An attack in training targets a word of one token, and the tokenizer splits {multi_piece[0]!r}."
            )
        return cls(torch.tensor([ids]), ids.index(tokenizer.mask_id), (words[0][0], words[1][0]))

    def to(self, device: str) -> GroupPrompt:
        return replace(self, ids=self.ids.to(device))


@dataclass(frozen=True)
class TrainingData:
    """Images with texts, their counterparts, and counterfactual images where a method needs them."""

    pairs: ImageTextPairs
    captions: Counterparts
    sentences: Counterparts
    prompt: GroupPrompt
    # See `counterparts.logit_adjustment`.
    logit_adjustment: Tensor
    # The images with a person of the other group.
    counterfactuals: Tensor | None = None
    # Which images have a counterfactual; None: all.
    has_counterfactual: Tensor | None = None
    # Number of texts, by whether they have a counterpart.
    counts: Counter[str] | None = None

    @classmethod
    def from_texts(
        cls,
        images: NDArray[np.uint8],
        captions: Sequence[Sequence[str]],
        sentences: Sequence[Sequence[str]],
        tokenizer: Tokenizer,
        group_pair: GroupPair,
        counterfactuals: NDArray[np.uint8] | None = None,
        has_counterfactual: NDArray[np.bool_] | None = None,
    ) -> TrainingData:
        pairs = ImageTextPairs.from_texts(images, captions, sentences, tokenizer)
        caption_counterparts, counts = make_counterparts(
            captions, pairs.captions, tokenizer, group_pair.lexicon, group_pair.groups
        )
        sentence_counterparts, sentence_counts = make_counterparts(
            sentences, pairs.sentences, tokenizer, group_pair.lexicon, group_pair.groups
        )
        counts.update(sentence_counts)
        if not counts[HAS_COUNTERPART]:
            raise PortrayalError(
                f"No text names exactly one of {' and '.join(group_pair.groups)} and has a counterpart: there is "
                f"nothing to train on."
            )
        adjustment = logit_adjustment(
            [(pairs.captions, caption_counterparts), (pairs.sentences, sentence_counterparts)],
            len(tokenizer),
            tokenizer.pad_id,
        )
        return cls(
            pairs, caption_counterparts, sentence_counterparts, GroupPrompt.tokenize(group_pair, tokenizer), adjustment,
            None if counterfactuals is None else torch.from_numpy(counterfactuals),
            None if has_counterfactual is None else torch.from_numpy(has_counterfactual), counts,
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """Digest of everything but the pairs."""
        hasher = hashlib.blake2b(repr(self.prompt.words).encode(), digest_size=8)
        counterparts = (self.captions.group, self.captions.ids, self.sentences.group, self.sentences.ids)
        for part in (
            *counterparts,
            self.prompt.ids,
            self.logit_adjustment,
            self.counterfactuals,
            self.has_counterfactual,
        ):
            if part is not None:
                hasher.update(part.cpu().contiguous().numpy().tobytes())
        return hasher.hexdigest()

    def to(self, device: str) -> TrainingData:
        """Return the data on a device, except the pairs, which the training moves itself."""
        return replace(
            self,
            captions=self.captions.to(device),
            sentences=self.sentences.to(device),
            prompt=self.prompt.to(device),
            logit_adjustment=self.logit_adjustment.to(device),
            counterfactuals=None if self.counterfactuals is None else self.counterfactuals.to(device),
            has_counterfactual=None
            if self.has_counterfactual is None
            else self.has_counterfactual.to(device),
        )
