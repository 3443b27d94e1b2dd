"""Words for what an image cannot show, and framing words, which claim nothing about the image's content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import PARTS_OF_SPEECH, WordListReader, load_word_list


@dataclass(frozen=True, eq=False)
class NotImageableWords(Mapping[str, frozenset[str]]):
    """Words for what an image cannot show, by kind. A kind may be limited to one part of speech."""

    kinds: Mapping[str, frozenset[str]]
    parts: Mapping[str, str]
    label: str

    def kind(self, lemma: str, part: str | None = None) -> str | None:
        """The kind of a word as a part of speech, or as any; None if an image can show it.

        >>> words = not_imageable()
        >>> words.kind("happy"), words.kind("love", "verb"), words.kind("love", "noun"), words.kind("red")
        ('mood', 'verbs', None, None)
        """
        for kind, words in self.kinds.items():
            if lemma in words and part in (None, self.parts.get(kind, part)):
                return kind
        return None

    def __getitem__(self, kind: str) -> frozenset[str]:
        return self.kinds[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)


class WordSet(frozenset[str]):
    """The words of one file, with its label."""

    label: str

    def __new__(cls, words: Iterable[str] = (), label: str = "") -> WordSet:
        self = super().__new__(cls, words)
        self.label = label
        return self


def not_imageable(path: str | Path | None = None) -> NotImageableWords:
    """Load the shipped words for what an image cannot show, or those of a file.

    >>> list(not_imageable())
    ['judgement', 'mood', 'occupation', 'relation', 'verbs']
    """
    return load_word_list("not_imageable", path, {"kinds", "parts"}, _read_not_imageable)


def framing_words(path: str | Path | None = None) -> WordSet:
    """Load words about the image itself, place and amount, which claim no object.

    >>> {"photo", "group", "show"} <= framing_words(), "dog" in framing_words()
    (True, False)
    """
    return load_word_list("framing", path, {"nouns", "verbs"}, _read_framing)


def _read_not_imageable(reader: WordListReader) -> NotImageableWords:
    kinds = {kind: frozenset(words) for kind, words in reader.lists("kinds").items()}
    if not kinds:
        reader.note("a table [kinds] with one list of words per kind", "none")
    parts = reader.table("parts")
    for kind, part in parts.items():
        if kind not in kinds or part not in PARTS_OF_SPEECH:
            reader.note(
                f"[parts] with one of {', '.join(PARTS_OF_SPEECH)} for a kind", f"{kind} = {shown(part)}"
            )
    return NotImageableWords(kinds, parts, reader.label)


def _read_framing(reader: WordListReader) -> WordSet:
    lists = [*reader.lists("nouns").values(), *reader.lists("verbs").values()]
    if not lists:
        reader.note("a table [nouns] or [verbs] of lists of words", "none")
    return WordSet((word for words in lists for word in words), reader.label)
