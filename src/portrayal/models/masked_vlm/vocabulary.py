"""From text to numbers: a vocabulary of whole words, and the word pieces of Transformers' tokenizers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from portrayal.errors import PortrayalError, shown

MASK = "[MASK]"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK)
_WORD = re.compile(r"\[mask\]|[^\W_]+(?:['’-][^\W_]+)*")


class Reader(ABC):
    """Turns a text into numbers. Masks are written [MASK]."""

    pad: int
    mask: int
    longest: int  # how many numbers a model takes, the first and last included
    ends: bool = True  # whether a text has a number for its end

    @abstractmethod
    def __len__(self) -> int:
        """How many words or pieces it knows."""

    @abstractmethod
    def read(self, text: str) -> list[int]:
        """The numbers of a text, with those for its beginning and end."""

    @abstractmethod
    def pieces(self, word: str) -> list[int]:
        """The numbers of a word inside a sentence; one that is unknown is refused."""

    def same_at_start(self, word: str) -> bool:  # noqa: ARG002
        """Whether a word is written at the beginning of a text as inside of it."""
        return True

    @abstractmethod
    def word(self, number: int) -> str:
        """What a number stands for."""

    def question(self, text: str) -> list[int]:
        """The numbers of a text with a mask, all of which counts: one that is too long is refused."""
        numbers = self.read(text)
        if len(numbers) > self.longest:
            raise PortrayalError(
                f"A text is longer than the model takes: expected at most {self.longest} words or pieces, found "
                f"{len(numbers)} in {shown(text)}."
            )
        return numbers

    def caption(self, text: str) -> list[int]:
        """The numbers of a caption; what is too long is cut, as in training, and still has its end."""
        numbers = self.read(text)
        if len(numbers) <= self.longest:
            return numbers
        return [*numbers[: self.longest - 1], numbers[-1]] if self.ends else numbers[: self.longest]


class Vocabulary(Reader):
    """Whole words in small letters; all others are one unknown word."""

    def __init__(self, words: Iterable[str], longest: int = 48):
        self.words = (*_SPECIAL, *words)
        self._number = {word: number for number, word in enumerate(self.words)}
        if len(self._number) != len(self.words):
            raise PortrayalError("A vocabulary has each of its words once.")
        self.pad, self._unknown, self._first, self._last, self.mask = range(len(_SPECIAL))
        self.longest = longest

    def __len__(self) -> int:
        return len(self.words)

    def read(self, text: str) -> list[int]:
        """
        >>> Vocabulary(["a", "man", "is"]).read("A man is [MASK].")
        [2, 5, 6, 7, 4, 3]
        """
        found = [self._number.get(word, self._unknown) for word in split_words(text)]
        return [self._first, *found, self._last]

    def pieces(self, word: str) -> list[int]:
        number = self._number.get(word.lower())
        if number is None or number < len(_SPECIAL):
            raise PortrayalError(f"The word {shown(word)} is not in the model's vocabulary of whole words.")
        return [number]

    def word(self, number: int) -> str:
        return self.words[number]

    @classmethod
    def load(cls, file: Path, longest: int) -> Vocabulary:
        words = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if tuple(words[: len(_SPECIAL)]) != _SPECIAL:
            raise PortrayalError(f"{file}: expected a vocabulary that begins with {', '.join(_SPECIAL)}.")
        return cls(words[len(_SPECIAL) :], longest)

    def save(self, file: Path) -> None:
        file.write_text("\n".join(self.words) + "\n", encoding="utf-8")


class WordPieces(Reader):
    """A tokenizer of Transformers."""

    def __init__(self, tokenizer: Any, longest: int):
        if tokenizer.mask_token_id is None or tokenizer.pad_token_id is None:
            raise PortrayalError("A tokenizer of a masked model has a mask and a filler; this one lacks one.")
        self._tokenizer = tokenizer
        self.pad, self.mask = int(tokenizer.pad_token_id), int(tokenizer.mask_token_id)
        self.longest = longest

    def __len__(self) -> int:
        return len(self._tokenizer)

    def read(self, text: str) -> list[int]:
        own = text.replace(MASK, self._tokenizer.mask_token)
        numbers: list[int] = self._tokenizer(own, add_special_tokens=True)["input_ids"]
        return numbers

    def pieces(self, word: str) -> list[int]:
        # A word in a sentence is not one at its beginning for every tokenizer, so it is read after another.
        before = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        both: list[int] = self._tokenizer(f"a {word}", add_special_tokens=False)["input_ids"]
        found = both[len(before) :]
        if not found or {self._tokenizer.unk_token_id, *self._tokenizer.all_special_ids} & set(found):
            raise PortrayalError(f"The word {shown(word)} cannot be written in the model's word pieces.")
        return found

    def same_at_start(self, word: str) -> bool:
        first: list[int] = self._tokenizer(word, add_special_tokens=False)["input_ids"]
        return first == self.pieces(word)

    def word(self, number: int) -> str:
        return str(self._tokenizer.convert_ids_to_tokens(number))

    def save(self, folder: Path) -> None:
        self._tokenizer.save_pretrained(str(folder))


class AlbefPieces(WordPieces):
    """Texts as ALBEF and TCL were trained on them: cleaned, with a number for the beginning but not for the end."""

    ends = False

    def pieces(self, word: str) -> list[int]:
        return super().pieces(cleaned(word))

    def same_at_start(self, word: str) -> bool:
        return super().same_at_start(cleaned(word))

    def read(self, text: str) -> list[int]:
        own = self._tokenizer.mask_token
        parts = [cleaned(part) for part in text.split(MASK)]
        inside = f" {own} ".join(parts).strip()
        numbers: list[int] = self._tokenizer(inside, add_special_tokens=False)["input_ids"]
        return [int(self._tokenizer.cls_token_id), *numbers]


def cleaned(text: str) -> str:
    """Small letters, no punctuation, and spaces for dashes and strokes.

    >>> cleaned("A <person>'s well-worn shoe, on the left/right.")
    'a persons well worn shoe on the left right'
    """
    text = text.lower().replace("<person>", "person")
    text = re.sub("[-/]", " ", re.sub(r"[,.'!?\"()*#:;~]", "", text))
    return " ".join(text.split())


def split_words(text: str) -> list[str]:
    """
    >>> split_words("The man's T-shirt, [MASK].")
    ['the', "man's", 't-shirt', '[MASK]']
    """
    return [MASK if word == "[mask]" else word for word in _WORD.findall(text.lower())]


def padded(rows: Sequence[Sequence[int]], pad: int) -> list[list[int]]:
    """All as long as the longest."""
    longest = max(map(len, rows))
    return [[*row, *[pad] * (longest - len(row))] for row in rows]
