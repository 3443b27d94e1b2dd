"""Captions as the tokens of a pretrained encoder, each with the index of its word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from portrayal.models.text_classifiers.tasks import FIRST_WORD, MASKED, UNKNOWN, IntArray, Texts


@dataclass(frozen=True, eq=False)
class EncoderTokens:
    """Tokenized captions."""

    token_ids: IntArray  # (captions, longest), padded
    lengths: IntArray  # number of tokens of each caption
    word_index: IntArray  # (captions, longest): index of each token's word; -1 for special tokens

    @classmethod
    def encode(cls, texts: Texts, tokenizer: Any, max_length: int) -> EncoderTokens:
        """Tokenize captions; special tokens of the tokenizer stand for unknown and masked words."""
        word_by_code = {UNKNOWN: tokenizer.unk_token or "[UNK]"}
        for code, word in enumerate(texts.words, FIRST_WORD):
            word_by_code[code] = (tokenizer.mask_token or MASKED) if word == MASKED else word
        captions = [[word_by_code[code] for code in texts[index].tolist()] for index in range(len(texts))]
        encoded = tokenizer([" ".join(words) for words in captions], truncation=True, max_length=max_length,
                         return_offsets_mapping=True)  # fmt: skip
        lengths = np.array([len(token_ids) for token_ids in encoded["input_ids"]], dtype=np.int64)
        shape = (len(captions), int(lengths.max(initial=1)))
        token_ids = np.full(shape, tokenizer.pad_token_id or 0, dtype=np.int64)
        word_index = np.full(shape, -1, dtype=np.int64)
        for index, words in enumerate(captions):
            token_ids[index, : lengths[index]] = encoded["input_ids"][index]
            word_starts = np.cumsum([0, *(len(token_text) + 1 for token_text in words)])
            for token, (start, end) in enumerate(encoded["offset_mapping"][index]):
                # Special tokens are empty. The word is found by the end of the token, since some tokens begin with the
                # space before the word.
                if end > start:
                    word_index[index, token] = np.searchsorted(word_starts, end - 1, side="right") - 1
        return cls(token_ids, lengths, word_index)
