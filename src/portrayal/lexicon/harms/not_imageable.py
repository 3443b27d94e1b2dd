"""What words of a caption claim: words for what a picture cannot show, and words that claim no thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import PARTS, Checked, loaded


@dataclass(frozen=True, eq=False)
class NotImageable(Mapping[str, frozenset[str]]):
    """What a picture cannot show: words by kind. A kind may be of one part of speech."""

    kinds: Mapping[str, frozenset[str]]
    parts: Mapping[str, str]
    label: str

    def kind(self, lemma: str, part: str | None = None) -> str | None:
        """The kind of a word; None where a picture may show it. Without a part of speech, of any.

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


class Words(frozenset[str]):
    """The words of one file."""

    label: str

    def __new__(cls, words: Iterable[str] = (), label: str = "") -> Words:
        made = super().__new__(cls, words)
        made.label = label
        return made


def not_imageable(path: str | Path | None = None) -> NotImageable:
    """The shipped words for what a picture cannot show, or those of a file.

    >>> list(not_imageable())
    ['judgement', 'mood', 'occupation', 'relation', 'verbs']
    """
    return loaded("not_imageable", path, {"kinds", "parts"}, _not_imageable)


def framing_words(path: str | Path | None = None) -> Words:
    """Words that speak of the picture, of place and of amount, and claim no thing.

    >>> {"photo", "group", "show"} <= framing_words(), "dog" in framing_words()
    (True, False)
    """
    return loaded("framing", path, {"nouns", "verbs"}, _framing)


def _not_imageable(file: Checked) -> NotImageable:
    kinds = {kind: frozenset(words) for kind, words in file.lists("kinds").items()}
    if not kinds:
        file.note("a table [kinds] with one list of words per kind", "none")
    parts = file.table("parts")
    for kind, part in parts.items():
        if kind not in kinds or part not in PARTS:
            file.note(f"[parts] with one of {', '.join(PARTS)} for a kind", f"{kind} = {shown(part)}")
    return NotImageable(kinds, parts, file.label)


def _framing(file: Checked) -> Words:
    lists = [*file.lists("nouns").values(), *file.lists("verbs").values()]
    if not lists:
        file.note("a table [nouns] or [verbs] of lists of words", "none")
    return Words((word for words in lists for word in words), file.label)
