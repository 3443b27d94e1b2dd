"""Captions as tokens of a pretrained encoder, aligned with words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from portrayal.models.text_classifiers.tasks import FIRST_WORD, MASKED, UNKNOWN, IntArray, Texts


@dataclass(frozen=True, eq=False)
class EncoderTokens:
    """Tokenized captions."""

    codes: IntArray  # (captions, longest), padded
    lengths: IntArray
    word: IntArray  # (captions, longest): index of the token's word in the caption; -1 for special tokens

    @classmethod
    def of(cls, texts: Texts, tokenizer: Any, longest: int) -> EncoderTokens:
        names = {UNKNOWN: tokenizer.unk_token or "[UNK]"}
        for code, name in enumerate(texts.words, FIRST_WORD):
            names[code] = (tokenizer.mask_token or MASKED) if name == MASKED else name
        captions = [[names[code] for code in texts[index].tolist()] for index in range(len(texts))]
        encoded = tokenizer([" ".join(words) for words in captions], truncation=True, max_length=longest,
                         return_offsets_mapping=True)  # fmt: skip
        lengths = np.array([len(codes) for codes in encoded["input_ids"]], dtype=np.int64)
        size = (len(captions), int(lengths.max(initial=1)))
        codes = np.full(size, tokenizer.pad_token_id or 0, dtype=np.int64)
        word = np.full(size, -1, dtype=np.int64)
        for index, words in enumerate(captions):
            codes[index, : lengths[index]] = encoded["input_ids"][index]
            begins = np.cumsum([0, *(len(token_text) + 1 for token_text in words)])
            for token, (start, end) in enumerate(encoded["offset_mapping"][index]):
                if (
                    end > start
                    # Special tokens are empty. The end decides, since some tokens begin with the space before the
                    # word.
                ):
                    word[index, token] = np.searchsorted(begins, end - 1, side="right") - 1
        return cls(codes, lengths, word)
