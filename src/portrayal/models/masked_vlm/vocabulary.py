"""Tokenizers of masked models: whole words, and wrappers of the subword tokenizers of Transformers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from portrayal.errors import PortrayalError, shown

MASK = "[MASK]"
_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK)
_WORD = re.compile(r"\[mask\]|[^\W_]+(?:['’-][^\W_]+)*")


class Tokenizer(ABC):
    """Converts a text into token ids. Masks are written [MASK]."""

    pad_id: int
    mask_id: int
    max_length: int  # maximum number of tokens of a text, including special tokens
    has_end_token: bool = True  # whether a text ends with a special token

    @abstractmethod
    def __len__(self) -> int:
        """Return the size of the vocabulary."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, including the start and end tokens."""

    @abstractmethod
    def tokenize_word(self, word: str) -> list[int]:
        """Return the token ids of a word inside a sentence; raise if it is unknown."""

    def is_same_at_start(self, word: str) -> bool:  # noqa: ARG002
        """Return whether a word has the same tokens at the start of a text as inside it."""
        return True

    @abstractmethod
    def id_to_token(self, token_id: int) -> str:
        """Return the token with this id."""

    def encode_prompt(self, text: str) -> list[int]:
        """Return the token ids of a text with a mask; raise if the text is too long."""
        ids = self.encode(text)
        if len(ids) > self.max_length:
            raise PortrayalError(
                f"A text is longer than the model takes: expected at most {self.max_length} tokens, found "
                f"{len(ids)} in {shown(text)}."
            )
        return ids

    def encode_caption(self, text: str) -> list[int]:
        """Return the token ids of a caption, truncated to the maximum length; the end token is kept."""
        ids = self.encode(text)
        if len(ids) <= self.max_length:
            return ids
        return [*ids[: self.max_length - 1], ids[-1]] if self.has_end_token else ids[: self.max_length]


class WordTokenizer(Tokenizer):
    """A tokenizer of whole words in lower case; words outside the vocabulary share one unknown token."""

    def __init__(self, words: Iterable[str], max_length: int = 48):
        self.words = (*_SPECIAL_TOKENS, *words)
        self._id_by_word = {word: token_id for token_id, word in enumerate(self.words)}
        if len(self._id_by_word) != len(self.words):
            raise PortrayalError("The words of a vocabulary must be distinct.")
        self.pad_id, self._unknown_id, self._start_id, self._end_id, self.mask_id = range(
            len(_SPECIAL_TOKENS)
        )
        self.max_length = max_length

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """
        >>> WordTokenizer(["a", "man", "is"]).encode("A man is [MASK].")
        [2, 5, 6, 7, 4, 3]
        """
        ids = [self._id_by_word.get(word, self._unknown_id) for word in split_words(text)]
        return [self._start_id, *ids, self._end_id]

    def tokenize_word(self, word: str) -> list[int]:
        token_id = self._id_by_word.get(word.lower())
        if token_id is None or token_id < len(_SPECIAL_TOKENS):
            raise PortrayalError(f"The word {shown(word)} is not in the model's vocabulary of whole words.")
        return [token_id]

    def id_to_token(self, token_id: int) -> str:
        return self.words[token_id]

    @classmethod
    def load(cls, file: Path, max_length: int) -> WordTokenizer:
        words = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if tuple(words[: len(_SPECIAL_TOKENS)]) != _SPECIAL_TOKENS:
            raise PortrayalError(
                f"{file}: expected a vocabulary that starts with {', '.join(_SPECIAL_TOKENS)}."
            )
        return cls(words[len(_SPECIAL_TOKENS) :], max_length)

    def save(self, file: Path) -> None:
        file.write_text("\n".join(self.words) + "\n", encoding="utf-8")


class TransformersTokenizer(Tokenizer):
    """A tokenizer of Transformers."""

    def __init__(self, tokenizer: Any, max_length: int):
        if tokenizer.mask_token_id is None or tokenizer.pad_token_id is None:
            raise PortrayalError(
                "The tokenizer of a masked model needs a mask token and a padding token; this one lacks one."
            )
        self._tokenizer = tokenizer
        self.pad_id, self.mask_id = int(tokenizer.pad_token_id), int(tokenizer.mask_token_id)
        self.max_length = max_length

    def __len__(self) -> int:
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        masked = text.replace(MASK, self._tokenizer.mask_token)
        ids: list[int] = self._tokenizer(masked, add_special_tokens=True)["input_ids"]
        return ids

    def tokenize_word(self, word: str) -> list[int]:
        # Encoded after another word, since some tokenizers encode the first word of a text differently.
        prefix = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        ids: list[int] = self._tokenizer(f"a {word}", add_special_tokens=False)["input_ids"]
        word_ids = ids[len(prefix) :]
        if not word_ids or {self._tokenizer.unk_token_id, *self._tokenizer.all_special_ids} & set(word_ids):
            raise PortrayalError(f"The word {shown(word)} cannot be written in the model's tokens.")
        return word_ids

    def is_same_at_start(self, word: str) -> bool:
        initial_ids: list[int] = self._tokenizer(word, add_special_tokens=False)["input_ids"]
        return initial_ids == self.tokenize_word(word)

    def id_to_token(self, token_id: int) -> str:
        return str(self._tokenizer.convert_ids_to_tokens(token_id))

    def save(self, folder: Path) -> None:
        self._tokenizer.save_pretrained(str(folder))


class AlbefTokenizer(TransformersTokenizer):
    """The tokenizer of ALBEF and TCL: cleaned text, with a start token and no end token."""

    has_end_token = False

    def tokenize_word(self, word: str) -> list[int]:
        return super().tokenize_word(clean_text(word))

    def is_same_at_start(self, word: str) -> bool:
        return super().is_same_at_start(clean_text(word))

    def encode(self, text: str) -> list[int]:
        mask_token = self._tokenizer.mask_token
        parts = [clean_text(part) for part in text.split(MASK)]
        masked = f" {mask_token} ".join(parts).strip()
        ids: list[int] = self._tokenizer(masked, add_special_tokens=False)["input_ids"]
        return [int(self._tokenizer.cls_token_id), *ids]


def clean_text(text: str) -> str:
    """Return the text in lower case, without punctuation, with spaces for dashes and slashes.

    >>> clean_text("A <person>'s well-worn shoe, on the left/right.")
    'a persons well worn shoe on the left right'
    """
    text = text.lower().replace("<person>", "person")
    text = re.sub("[-/]", " ", re.sub(r"[,.'!?\"()*#:;~]", "", text))
    return " ".join(text.split())


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; [MASK] is a word.

    >>> split_words("The man's T-shirt, [MASK].")
    ['the', "man's", 't-shirt', '[MASK]']
    """
    return [MASK if word == "[mask]" else word for word in _WORD.findall(text.lower())]


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> list[list[int]]:
    """Return the rows padded to equal length."""
    max_length = max(map(len, rows))
    return [[*row, *[pad_id] * (max_length - len(row))] for row in rows]
