"""Language coverage: how many captions are in the language of the word lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from portrayal.lexicon.entities import FUNCTION_WORDS
from portrayal.lexicon.lexicon import ENGLISH, Lexicon
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize
from portrayal.lexicon.wordnet.graph import PARTS_OF_SPEECH, wordnet

MIN_CAPTIONS = 20  # with fewer captions, the share is not an estimate of the language
MAX_CAPTIONS = 500  # sample size per source
REFUSED_BELOW = 0.5  # share of covered captions; below it, a missing word is not evidence
CAUTION_BELOW = 0.9
# Minimum share of a caption's words that an English dictionary lists. The captions of eight English captioners have a
# 1st percentile of .78 or more; German, Dutch, French and Spanish captions have a median of .45 or less.
_MIN_KNOWN_SHARE = 2 / 3
# Shorter entries of WordNet are abbreviations, and also words of other languages ("un", "la", "de").
_MIN_WORD_LENGTH = 3
# Frequent words of other languages that WordNet also lists, in senses that are rare in captions.
_OTHER_LANGUAGES = frozenset(
    "con das del den der des die est las les los met mit par sin sur una van von".split()
)


@dataclass(frozen=True)
class Coverage:
    """Number of captions that are in the language of a word list.

    Parameters
    ----------
    covered : int
        Sampled captions in the language.
    captions : int
        Sampled captions that contain words.
    """

    covered: int
    captions: int

    @property
    def share(self) -> float | None:
        """Share of covered captions; None if there are fewer than `MIN_CAPTIONS`."""
        return self.covered / self.captions if self.captions >= MIN_CAPTIONS else None

    @property
    def is_refused(self) -> bool:
        """Whether coverage is too low to measure anything with the list."""
        return self.share is not None and self.share < REFUSED_BELOW

    @property
    def is_low(self) -> bool:
        """Whether coverage is low enough for a caution, but not refused."""
        return self.share is not None and REFUSED_BELOW <= self.share < CAUTION_BELOW


def coverage(captions: Sequence[str], lexicon: Lexicon | None = None) -> Coverage:
    """Count the captions that are in the language of a lexicon.

    A caption is English if an English dictionary lists enough of its words, whoever is mentioned. There is no
    dictionary of other languages: for such a lexicon all captions count if any of them contains one of its words, and
    none otherwise. Captions without words do not count. At most `MAX_CAPTIONS` captions are sampled, evenly spaced.

    Parameters
    ----------
    captions : sequence of str
        Captions of one source.
    lexicon : Lexicon, optional
        Word list whose language is tested. Default: English.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> coverage(["a dog on a beach", "ein Hund am Strand", "..."])
    Coverage(covered=1, captions=2)
    """
    step = -(-len(captions) // MAX_CAPTIONS) or 1
    sampled = [words for caption in captions[::step] if (words := _words(caption))]
    if lexicon is None or lexicon.language.partition("-")[0] == ENGLISH:
        return Coverage(sum(map(_is_english, sampled)), len(sampled))
    table = _phrase_table(lexicon)
    # Captions that mention nobody contain none of the words. One listed word shows that the language is the same.
    known = any(next(iter(table.find(words)), None) is not None for words in sampled)
    return Coverage(len(sampled) if known else 0, len(sampled))


def _words(caption: str) -> list[str]:
    return [token for token in tokenize(caption) if token.isalpha()]


def _is_english(words: Sequence[str]) -> bool:
    return sum(map(_is_known, words)) >= _MIN_KNOWN_SHARE * len(words)


@cache
def _is_known(word: str) -> bool:
    if word in FUNCTION_WORDS:
        return True
    if len(word) < _MIN_WORD_LENGTH or word in _OTHER_LANGUAGES:
        return False
    return any(wordnet().lemma(word, part) is not None for part in PARTS_OF_SPEECH)


@cache
def _phrase_table(lexicon: Lexicon) -> PhraseTable:
    words = [word for listed in lexicon.groups.values() for word in listed]
    return PhraseTable([(word, "") for word in dict.fromkeys((*words, *lexicon.neutral, *lexicon.mask_also))])
