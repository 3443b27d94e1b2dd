"""Words that demean people, by sense, and their use about people in captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import PARTS_OF_SPEECH, WordListReader, load_word_list
from portrayal.lexicon.objects import plural
from portrayal.lexicon.people import is_person
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

if TYPE_CHECKING:
    from portrayal.lexicon.wordnet.grammar import Word

_BETWEEN_ADJECTIVES = frozenset(
    (",", "and", "looking", "very", "-")
)  # tokens between an adjective and its noun
_COPULAS = frozenset("is are was were be being been looks look looking acting called".split())


class DemeaningLevels(NamedTuple):
    """Whether a word demeans by all of its senses (lower), the most frequent one (best), any of them (upper)."""

    lower: bool
    best: bool
    upper: bool


@dataclass(frozen=True, eq=False)
class DemeaningLexicon:
    """Words that demean people, by WordNet senses. `too_common` words mean other things in captions."""

    levels: Mapping[tuple[str, str], DemeaningLevels]  # (lemma, part of speech) -> levels
    too_common: frozenset[str]
    label: str

    def senses(self, lemma: str, part: str) -> DemeaningLevels | None:
        """The levels of a word as a part of speech; None if it is not listed.

        >>> words = demeaning_words()
        >>> words.senses("idiot", "noun"), words.senses("idiot", "verb")
        (DemeaningLevels(lower=True, best=True, upper=True), None)
        >>> words.senses("dumb", "adjective"), words.senses("bitch", "noun")
        (DemeaningLevels(lower=False, best=True, upper=True), DemeaningLevels(lower=False, best=False, upper=True))
        """
        return self.levels.get((lemma, part))

    def find(self, tokens: Sequence[str], words: Iterable[Word]) -> list[tuple[str, DemeaningLevels]]:
        """Find the listed words of a caption, given its tokens and its content words.

        Phrases come first, whether or not WordNet joins them. A participle that is listed as an adjective counts also
        if it was tagged as a verb: "retarded" of a person does not mean delayed.

        An adjective counts if it describes a person: before a word for a person, or after it and a form of be. A noun
        does not count before another noun that is no person: a redneck shot glass demeans nobody.

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
        phrase_tokens: set[int] = set()
        for start, length, _, word in self._phrases.find(tokens):
            found.append((word, self.levels[word, "noun"]))
            phrase_tokens.update(range(start, start + length))
        for index, content_word in enumerate(words):
            if content_word.start in phrase_tokens:
                continue
            word, levels = content_word.lemma, self.senses(content_word.lemma, content_word.pos)
            is_adjective = content_word.pos == "adjective"
            if levels is None and content_word.pos == "verb":
                word, is_adjective = tokens[content_word.start], True
                levels = self.senses(word, "adjective")
            if levels is None:
                continue
            if (_describes_person if is_adjective else _stands_alone)(index, tokens, words):
                found.append((word, levels))
        return found

    @cached_property
    def _phrases(self) -> PhraseTable:
        phrases = [word for word, part in self.levels if part == "noun" and len(tokenize(word)) > 1]
        return PhraseTable((form, word) for word in phrases for form in (word, plural(word)))


def demeaning_words(path: str | Path | None = None) -> DemeaningLexicon:
    """Load the shipped words that demean people, or those of a file."""
    return load_word_list("demeaning", path, {"words", "too_common"}, _read_demeaning)


def _describes_person(index: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether an adjective describes a person."""
    own = words[index]
    end = own.start + own.length
    for other in words[index + 1 :]:  # the noun after it, possibly after other adjectives and commas
        if any(token not in _BETWEEN_ADJECTIVES for token in tokens[end : other.start]):
            break
        if other.pos == "noun":
            following = next((word for word in words if word.start == other.start + other.length), None)
            # "a fat girl friend", but not "an ugly baby giraffe"
            return is_person(following if following is not None and following.pos == "noun" else other)
        end = other.start + other.length
    if end == own.start + own.length and _COPULAS.isdisjoint(tokens[max(0, own.start - 2) : own.start]):
        return False
    before = [word for word in words[:index] if word.pos == "noun"]
    return bool(before) and is_person(before[-1])


def _stands_alone(index: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:  # noqa: ARG001
    """Whether a noun is no modifier: not before another noun, unless that is a person."""
    own = words[index]
    following = next((word for word in words[index + 1 :] if word.start == own.start + own.length), None)
    return following is None or following.pos != "noun" or is_person(following)


def _read_demeaning(reader: WordListReader) -> DemeaningLexicon:
    levels: dict[tuple[str, str], DemeaningLevels] = {}
    words = reader.table("words")
    if not words:
        reader.note("a table [words] of words and their senses", "none")
    for name, entries in words.items():
        word = " ".join(name.casefold().split())
        for entry in entries if isinstance(entries, list) else [entries]:
            expected = f"'{name}' as {{ part = ..., listed = [...], senses = ... }}"
            if not isinstance(entry, dict) or not _is_valid_entry(entry):
                reader.note(expected, shown(entry))
                continue
            part, numbers, senses = entry["part"], entry["listed"], entry["senses"]
            if (word, part) in levels:
                reader.note(f"each part of speech of '{name}' once", f"{part} twice")
            if senses:
                levels[word, part] = DemeaningLevels(len(set(numbers)) == senses, 1 in numbers, True)
                continue
            # WordNet lacks the word, and so has no lemma for its plural.
            for form in (word, plural(word)) if part == "noun" else (word,):
                levels[form, part] = DemeaningLevels(True, True, True)
    too_common = frozenset(
        reader.words("too_common", reader.data["too_common"]) if "too_common" in reader.data else ()
    )
    for word, _ in levels:
        if word in too_common:
            reader.note("words either listed or too common", f"{word!r} in both")
    return DemeaningLexicon(levels, too_common, reader.label)


def _is_valid_entry(entry: dict[str, Any]) -> bool:
    """Whether an entry is consistent: a word with senses lists some of them, a word without senses always counts."""
    numbers, senses, always = entry.get("listed"), entry.get("senses"), entry.get("always", False)
    if (
        entry.get("part") not in PARTS_OF_SPEECH
        or not isinstance(numbers, list)
        or not isinstance(senses, int)
    ):
        return False
    if set(entry) - {"part", "listed", "senses", "always"} or not isinstance(always, bool):
        return False
    if senses == 0:
        return always and not numbers
    return (
        not always
        and bool(numbers)
        and all(isinstance(number, int) and 1 <= number <= senses for number in numbers)
    )
