"""Whether word lists can read captions at all: how many captions are in the language of the lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from portrayal.lexicon.entities import FUNCTION_WORDS
from portrayal.lexicon.lexicon import ENGLISH, Lexicon
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize
from portrayal.lexicon.wordnet.graph import PARTS, wordnet

FEWEST = 20  # captions, below which a share says nothing about a language
READ = 500  # captions of one source that are read for the estimate
REFUSED_BELOW = 0.5  # share of covered captions: with fewer, what is not found says nothing
CAUTION_BELOW = 0.9
# Share of a caption's words that an English dictionary must list. The captions of eight English captioners have a 1st
# percentile of .78 or more; German, Dutch, French and Spanish captions have a median of .45 or less.
_KNOWN_WORDS = 2 / 3
_SHORTEST = 3  # shorter entries of WordNet are abbreviations, and words of other languages ("un", "la", "de")
# Frequent words of other languages that WordNet lists too, in senses that captions hardly have.
_ELSEWHERE = frozenset("con das del den der des die est las les los met mit par sin sur una van von".split())


@dataclass(frozen=True)
class Coverage:
    """How many of some captions a word list can read."""

    covered: int
    captions: int

    @property
    def share(self) -> float | None:
        """None where there are too few captions to say."""
        return self.covered / self.captions if self.captions >= FEWEST else None

    @property
    def refused(self) -> bool:
        return self.share is not None and self.share < REFUSED_BELOW

    @property
    def doubtful(self) -> bool:
        """Low enough for a caution, and not so low that the list is of no use."""
        return self.share is not None and REFUSED_BELOW <= self.share < CAUTION_BELOW


def coverage(captions: Sequence[str], lexicon: Lexicon | None = None) -> Coverage:
    """How many captions are in the language of a lexicon; without a lexicon, in English.

    An English caption is one whose words an English dictionary lists, whoever is mentioned. There is no dictionary of
    other languages, so all captions count for such a lexicon where any of them holds one of its words, and none
    otherwise. Captions without words do not count; of many
    captions some are read, spread evenly.

    >>> coverage(["a dog on a beach", "ein Hund am Strand", "..."])
    Coverage(covered=1, captions=2)
    """
    step = -(-len(captions) // READ) or 1
    read = [words for caption in captions[::step] if (words := _words(caption))]
    if lexicon is None or lexicon.language.partition("-")[0] == ENGLISH:
        return Coverage(sum(map(_is_english, read)), len(read))
    table = _listed(lexicon)
    # Captions that mention nobody hold none of the words. One known word shows that the list can read the source.
    known = any(next(iter(table.find(words)), None) is not None for words in read)
    return Coverage(len(read) if known else 0, len(read))


def _words(caption: str) -> list[str]:
    return [token for token in tokenize(caption) if token.isalpha()]


def _is_english(words: Sequence[str]) -> bool:
    return sum(map(_is_known, words)) >= _KNOWN_WORDS * len(words)


@cache
def _is_known(word: str) -> bool:
    if word in FUNCTION_WORDS:
        return True
    if len(word) < _SHORTEST or word in _ELSEWHERE:
        return False
    return any(wordnet().lemma(word, part) is not None for part in PARTS)


@cache
def _listed(lexicon: Lexicon) -> PhraseTable:
    words = [word for listed in lexicon.groups.values() for word in listed]
    return PhraseTable([(word, "") for word in dict.fromkeys((*words, *lexicon.neutral, *lexicon.mask_also))])
