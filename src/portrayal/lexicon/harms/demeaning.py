"""Words that demean people, by sense, and where a caption says them of somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import PARTS, Checked, loaded
from portrayal.lexicon.objects import plural
from portrayal.lexicon.people import is_person
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

if TYPE_CHECKING:
    from portrayal.lexicon.wordnet.grammar import Word

_BETWEEN = frozenset((",", "and", "looking", "very", "-"))  # an adjective and what it describes
_IS = frozenset("is are was were be being been looks look looking acting called".split())


class Listing(NamedTuple):
    """How surely a word demeans: by all senses it has, by its most common one, by any of them."""

    lower: bool
    best: bool
    upper: bool


@dataclass(frozen=True, eq=False)
class Demeaning:
    """Words that demean people, by WordNet's senses. `too_common` ones are not listed: captions mean other things."""

    listings: Mapping[tuple[str, str], Listing]  # by lemma and part of speech
    too_common: frozenset[str]
    label: str

    def senses(self, lemma: str, part: str) -> Listing | None:
        """How a word is listed as a part of speech; None where it is not.

        >>> words = demeaning_words()
        >>> words.senses("idiot", "noun"), words.senses("idiot", "verb")
        (Listing(lower=True, best=True, upper=True), None)
        >>> words.senses("dumb", "adjective"), words.senses("bitch", "noun")
        (Listing(lower=False, best=True, upper=True), Listing(lower=False, best=False, upper=True))
        """
        return self.listings.get((lemma, part))

    def find(self, tokens: Sequence[str], words: Iterable[Word]) -> list[tuple[str, Listing]]:
        """The listed words of a caption, given its tokens and its content words.

        Words of several tokens come first, whether or not WordNet joins them. A participle that is listed as an
        adjective counts where grammar takes it for a verb: who is called retarded is not being held up.

        An adjective counts when it is said of a person: in front of a word for one, or after it and a form of be. A
        noun does not count in front of another noun that is no person: a redneck shot glass demeans nobody.

        >>> from portrayal.lexicon.wordnet.grammar import content_words
        >>> for caption in ("a crippled man called a son of a bitch", "a fat cat", "the man is ugly", "a dunce hat"):
        ...     tokens = tokenize(caption)
        ...     print([word for word, _ in demeaning_words().find(tokens, content_words(tokens))])
        ['son of a bitch', 'crippled']
        []
        ['ugly']
        []
        """
        words = list(words)
        found = []
        taken: set[int] = set()
        for start, length, _, word in self._joined.find(tokens):
            found.append((word, self.listings[word, "noun"]))
            taken.update(range(start, start + length))
        for place, one in enumerate(words):
            if one.start in taken:
                continue
            word, listing = one.lemma, self.senses(one.lemma, one.part)
            describes = one.part == "adjective"
            if listing is None and one.part == "verb":
                word, describes = tokens[one.start], True
                listing = self.senses(word, "adjective")
            if listing is None:
                continue
            if (_of_person if describes else _is_no_modifier)(place, tokens, words):
                found.append((word, listing))
        return found

    @cached_property
    def _joined(self) -> PhraseTable:
        several = [word for word, part in self.listings if part == "noun" and len(tokenize(word)) > 1]
        return PhraseTable((form, word) for word in several for form in (word, plural(word)))


def demeaning_words(path: str | Path | None = None) -> Demeaning:
    """The shipped words that demean people, or those of a file."""
    return loaded("demeaning", path, {"words", "too_common"}, _demeaning)


def _of_person(place: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether an adjective is said of a person."""
    own = words[place]
    end = own.start + own.length
    for other in words[place + 1 :]:  # what follows it, other adjectives and commas between
        if any(token not in _BETWEEN for token in tokens[end : other.start]):
            break
        if other.part == "noun":
            following = next((word for word in words if word.start == other.start + other.length), None)
            # "a fat girl friend", but not "an ugly baby giraffe"
            return is_person(following if following is not None and following.part == "noun" else other)
        end = other.start + other.length
    if end == own.start + own.length and _IS.isdisjoint(tokens[max(0, own.start - 2) : own.start]):
        return False
    before = [word for word in words[:place] if word.part == "noun"]
    return bool(before) and is_person(before[-1])


def _is_no_modifier(place: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:  # noqa: ARG001
    """Whether a noun stands for itself: not in front of another noun, unless that is a person."""
    own = words[place]
    following = next((word for word in words[place + 1 :] if word.start == own.start + own.length), None)
    return following is None or following.part != "noun" or is_person(following)


def _demeaning(file: Checked) -> Demeaning:
    listings: dict[tuple[str, str], Listing] = {}
    listed = file.table("words")
    if not listed:
        file.note("a table [words] of words and their senses", "none")
    for name, entries in listed.items():
        word = " ".join(name.casefold().split())
        for entry in entries if isinstance(entries, list) else [entries]:
            expected = f"'{name}' as {{ part = ..., listed = [...], senses = ... }}"
            if not isinstance(entry, dict) or not _known_senses(entry):
                file.note(expected, shown(entry))
                continue
            part, numbers, senses = entry["part"], entry["listed"], entry["senses"]
            if (word, part) in listings:
                file.note(f"each part of speech of '{name}' once", f"{part} twice")
            if senses:
                listings[word, part] = Listing(len(set(numbers)) == senses, 1 in numbers, True)
                continue
            # WordNet cannot tell the plural of a word that it lacks.
            for form in (word, plural(word)) if part == "noun" else (word,):
                listings[form, part] = Listing(True, True, True)
    too_common = frozenset(
        file.words("too_common", file.data["too_common"]) if "too_common" in file.data else ()
    )
    for word, _ in listings:
        if word in too_common:
            file.note("words either listed or too common", f"{word!r} in both")
    return Demeaning(listings, too_common, file.label)


def _known_senses(entry: dict[str, Any]) -> bool:
    """Whether an entry's numbers fit each other: a word that has senses lists some, one that has none always counts."""
    numbers, senses, always = entry.get("listed"), entry.get("senses"), entry.get("always", False)
    if entry.get("part") not in PARTS or not isinstance(numbers, list) or not isinstance(senses, int):
        return False
    if set(entry) - {"part", "listed", "senses", "always"} or not isinstance(always, bool):
        return False
    if senses == 0:
        return always and not numbers
    return (
        not always and bool(numbers) and all(isinstance(one, int) and 1 <= one <= senses for one in numbers)
    )
