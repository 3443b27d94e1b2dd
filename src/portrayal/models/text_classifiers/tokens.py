"""Captions as the tokens of a pretrained encoder, and which word each token is a part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from portrayal.models.text_classifiers.tasks import FIRST, MASKED, UNKNOWN, Numbers, Texts


@dataclass(frozen=True, eq=False)
class Read:
    """Captions as an encoder's tokens."""

    codes: Numbers  # (captions, longest), filled up
    lengths: Numbers
    word: Numbers  # (captions, longest): which word of the caption a token is part of; -1 for none

    @classmethod
    def of(cls, texts: Texts, tokenizer: Any, longest: int) -> Read:
        names = {UNKNOWN: tokenizer.unk_token or "[UNK]"}
        for code, name in enumerate(texts.words, FIRST):
            names[code] = (tokenizer.mask_token or MASKED) if name == MASKED else name
        read = [[names[code] for code in texts[place].tolist()] for place in range(len(texts))]
        made = tokenizer([" ".join(words) for words in read], truncation=True, max_length=longest,
                         return_offsets_mapping=True)  # fmt: skip
        lengths = np.array([len(codes) for codes in made["input_ids"]], dtype=np.int64)
        size = (len(read), int(lengths.max(initial=1)))
        codes = np.full(size, tokenizer.pad_token_id or 0, dtype=np.int64)
        word = np.full(size, -1, dtype=np.int64)
        for place, words in enumerate(read):
            codes[place, : lengths[place]] = made["input_ids"][place]
            begins = np.cumsum([0, *(len(one) + 1 for one in words)])
            for token, (start, end) in enumerate(made["offset_mapping"][place]):
                if (
                    end > start
                ):  # not one of the encoder's own; its end, since some begin with the space before
                    word[place, token] = np.searchsorted(begins, end - 1, side="right") - 1
        return cls(codes, lengths, word)
