"""WordNet as a graph of synsets and their hypernyms.

A synset is a meaning and has a number. Its words share that meaning. A word has several senses, ranked by frequency.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise
from typing import Literal, NamedTuple

import polars as pl

from portrayal.errors import PortrayalError, unknown_name
from portrayal.lexicon.tokens import tokenize

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb"]
_CACHE_SIZE = 500_000  # word forms; captions may contain any number of names
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")

# Endings and their replacements, in WordNet's order (morphy(7)). Doubled consonants are listed as exceptions.
ENDINGS: dict[PartOfSpeech, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "adjective": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adverb": (),
}  # fmt: skip


class Lemmas(NamedTuple):
    """The words of one part of speech in alphabetical order, and the synsets of each."""

    words: list[str]
    positions: dict[str, int]  # index of each word in `words`
    starts: list[int]  # offset of its first synset; the next word's offset ends them
    synsets: list[int]  # the most frequent first
    counts: list[int]  # how often a word occurs in the tagged texts, in any sense


class WordNet:
    """Look-ups in WordNet, which return plain values. Costly results are cached.

    Parameters
    ----------
    table : polars.DataFrame
        One row per synset.
    exceptions : polars.DataFrame
        Irregular forms with their lemmas.
    """

    def __init__(self, table: pl.DataFrame, exceptions: pl.DataFrame):
        self._table = table
        self._exceptions: dict[PartOfSpeech, dict[str, list[str]]] = {pos: {} for pos in PARTS_OF_SPEECH}
        for form, pos, lemma in exceptions.iter_rows():
            self._exceptions[pos].setdefault(form, []).append(lemma)
        self._lemmas: dict[PartOfSpeech, Lemmas] = {}
        self._lemma_cache: dict[tuple[str, PartOfSpeech], str | None] = {}
        self._ancestor_cache: dict[int, frozenset[int]] = {}
        self._hyponym_cache: dict[int, frozenset[int]] = {}

    def senses(self, lemma: str, pos: PartOfSpeech) -> tuple[int, ...]:
        """The synsets of a word, the most frequent first; empty if WordNet does not list it.

        >>> net = wordnet()
        >>> [net.words(synset) for synset in net.senses("grin", "noun")]
        [('smile', 'smiling', 'grin', 'grinning')]
        """
        lemmas = self._lemmas_of(pos)
        index = lemmas.positions.get(lemma)
        if index is None:
            return ()
        return tuple(lemmas.synsets[lemmas.starts[index] : lemmas.starts[index + 1]])

    def first_sense(self, lemma: str, pos: PartOfSpeech) -> int | None:
        """The most frequent sense of a word; None if WordNet does not list it."""
        lemmas = self._lemmas_of(pos)
        index = lemmas.positions.get(lemma)
        return None if index is None else lemmas.synsets[lemmas.starts[index]]

    def sense(self, lemma: str, pos: PartOfSpeech, rank: int) -> int:
        """The sense of a word with this rank, counted from 1: "person.n.01" is `("person", "noun", 1)`.

        >>> wordnet().name(wordnet().sense("mouse", "noun", 1))
        'mouse'
        """
        senses = self.senses(lemma, pos)
        if not senses:
            raise PortrayalError(f"WordNet has no {pos} '{lemma}'.")
        if not 1 <= rank <= len(senses):
            raise unknown_name(
                f"sense of the {pos} '{lemma}'", str(rank), map(str, range(1, len(senses) + 1))
            )
        return senses[rank - 1]

    def lemma(self, form: str, pos: PartOfSpeech) -> str | None:
        """The lemma of a word form, by WordNet's exceptions and then by its endings; None if it is unknown.

        If several lemmas are possible, the most frequent is returned.

        >>> [wordnet().lemma(form, "noun") for form in ("men", "skis", "fire hydrants", "dog", "qwerty")]
        ['man', 'ski', 'fire hydrant', 'dog', None]
        >>> [wordnet().lemma(form, "verb") for form in ("lying", "sat", "singing", "rides")]
        ['lie', 'sit', 'sing', 'ride']
        """
        key = form, pos
        if key not in self._lemma_cache:
            if len(self._lemma_cache) >= _CACHE_SIZE:
                self._lemma_cache.clear()
            self._lemma_cache[key] = self._find_lemma(form, pos)
        return self._lemma_cache[key]

    def frequency(self, lemma: str, pos: PartOfSpeech) -> int:
        """Number of occurrences of a word in the texts that WordNet's authors tagged by hand.

        >>> wordnet().frequency("ride", "verb") > wordnet().frequency("ride", "noun") > 0
        True
        """
        lemmas = self._lemmas_of(pos)
        index = lemmas.positions.get(lemma)
        return 0 if index is None else lemmas.counts[index]

    def words(self, synset: int) -> tuple[str, ...]:
        """The words of a synset in lower case.

        >>> wordnet().words(wordnet().sense("couch", "noun", 1))
        ('sofa', 'couch', 'lounge')
        """
        return tuple(self._words[self._word_starts[synset] : self._word_starts[synset + 1]])

    def name(self, synset: int) -> str:
        """The first word of a synset."""
        return self._words[self._word_starts[synset]]

    def hypernyms(self, synset: int) -> tuple[int, ...]:
        """The direct hypernyms of a synset (nouns and verbs)."""
        return self._hypernyms[synset]

    def ancestors(self, synset: int) -> frozenset[int]:
        """All direct and indirect hypernyms of a synset.

        >>> net = wordnet()
        >>> ancestors = net.ancestors(net.sense("dog", "noun", 1))
        >>> {"canine", "animal", "entity"} <= {net.name(synset) for synset in ancestors}
        True
        """
        if synset not in self._ancestor_cache:
            self._ancestor_cache[synset] = _transitive_closure(synset, self._hypernyms)
        return self._ancestor_cache[synset]

    def is_a(self, synset: int, ancestor: int) -> bool:
        """Whether a synset is `ancestor` or one of its hyponyms."""
        return synset == ancestor or ancestor in self.ancestors(synset)

    def hyponyms(self, synset: int) -> frozenset[int]:
        """All direct and indirect hyponyms of a synset.

        >>> net = wordnet()
        >>> net.sense("poodle", "noun", 1) in net.hyponyms(net.sense("dog", "noun", 1))
        True
        """
        if synset not in self._hyponym_cache:
            self._hyponym_cache[synset] = _transitive_closure(synset, self._hyponyms)
        return self._hyponym_cache[synset]

    def is_instance(self, synset: int) -> bool:
        """Whether a synset is an instance with a proper name ("london"), not a kind of thing."""
        return synset in self._instances

    def category(self, synset: int) -> str:
        """The lexicographer file of a synset, for example "noun.person"."""
        return self._categories[synset]

    def usage(self, synset: int) -> tuple[int, ...]:
        """The usage domains of a synset: synsets such as "slang" and "disparagement"."""
        return self._usage.get(synset, ())

    def phrases_starting(self, token: str, pos: PartOfSpeech) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the multi-token words that start with a token, each with its tokens.

        >>> [word for word, _ in wordnet().phrases_starting("toaster", "noun")]
        ['toaster oven']
        >>> [tokens for _, tokens in wordnet().phrases_starting("artist", "noun")]
        [('artist', "'s", 'loft'), ('artist', "'s", 'model'), ('artist', "'s", 'workroom')]
        """
        words = self._lemmas_of(pos).words
        start = bisect_left(words, f"{token} ")
        end = bisect_left(words, f"{token}(", start)  # after the apostrophe, before hyphens and letters
        for word in words[start:end]:
            tokens = tuple(tokenize(word))
            if tokens[0] == token and len(tokens) > 1:
                yield word, tokens

    def _find_lemma(self, form: str, pos: PartOfSpeech) -> str | None:
        index = self._lemmas_of(pos).positions
        head, space, last = form.rpartition(" ")  # "fire hydrants": only the last word is inflected
        candidates = [f"{head}{space}{lemma}" for lemma in self._exceptions[pos].get(last, ())]
        candidates = [lemma for lemma in candidates if lemma in index]
        if form in index:
            # "men" and "found" are lemmas too, but "man" and "find" are more frequent.
            candidates.append(form)
        if not candidates:
            candidates = [
                lemma
                for ending, replacement in ENDINGS[pos]
                if form.endswith(ending) and (lemma := form[: len(form) - len(ending)] + replacement) in index
            ]
        return max(candidates, key=lambda lemma: self.frequency(lemma, pos), default=None)

    def _lemmas_of(self, pos: PartOfSpeech) -> Lemmas:
        if pos not in self._lemmas:
            of_words = (
                self._table.filter(pl.col("part") == pos)
                .select("number", "words", "ranks", "counts")
                .explode("words", "ranks", "counts", empty_as_null=False, keep_nulls=False)
                .sort("words", "ranks")
            )
            of_lemmas = of_words.group_by("words", maintain_order=True).agg(pl.len(), pl.col("counts").sum())
            words = of_lemmas["words"].to_list()
            self._lemmas[pos] = Lemmas(
                words,
                dict(zip(words, range(len(words)), strict=True)),
                _starts(of_lemmas["len"]),
                of_words["number"].to_list(),
                of_lemmas["counts"].to_list(),
            )
        return self._lemmas[pos]

    @cached_property
    def _words(self) -> list[str]:
        return self._table["words"].explode(empty_as_null=False, keep_nulls=False).to_list()

    @cached_property
    def _word_starts(self) -> list[int]:
        return _starts(self._table["words"].list.len())

    @cached_property
    def _hypernyms(self) -> list[tuple[int, ...]]:
        hypernyms = self._table["hypernyms"]
        starts = _starts(hypernyms.list.len())
        flat = hypernyms.explode(empty_as_null=False, keep_nulls=False).to_list()
        return [tuple(flat[start:end]) for start, end in pairwise(starts)]

    @cached_property
    def _hyponyms(self) -> list[tuple[int, ...]]:
        children_of: list[list[int]] = [[] for _ in self._hypernyms]
        for synset, parents in enumerate(self._hypernyms):
            for parent in parents:
                children_of[parent].append(synset)
        return [tuple(children) for children in children_of]

    @cached_property
    def _instances(self) -> frozenset[int]:
        return frozenset(self._table.filter(pl.col("instance"))["number"].to_list())

    @cached_property
    def _categories(self) -> list[str]:
        return self._table["category"].to_list()

    @cached_property
    def _usage(self) -> dict[int, tuple[int, ...]]:
        rows = self._table.filter(pl.col("usage").list.len() > 0).select("number", "usage")
        return {number: tuple(targets) for number, targets in rows.iter_rows()}


@cache
def wordnet() -> WordNet:
    """WordNet 3.0 (cached)."""
    folder = resources.files("portrayal.lexicon.wordnet")
    with resources.as_file(folder / "wordnet.parquet") as path:
        table = pl.read_parquet(path)
    with resources.as_file(folder / "exceptions.parquet") as path:
        exceptions = pl.read_parquet(path)
    return WordNet(table, exceptions)


def _starts(lengths: pl.Series) -> list[int]:
    """Start offset of each run of these lengths, and the end of the last."""
    return [0, *lengths.cast(pl.Int64).cum_sum().to_list()]


def _transitive_closure(start: int, edges: list[tuple[int, ...]]) -> frozenset[int]:
    """All synsets that can be reached from a synset. Handles cycles: some copies of WordNet have a cycle of verbs."""
    reached: set[int] = set()
    waiting = list(edges[start])
    while waiting:
        synset = waiting.pop()
        if synset not in reached:
            reached.add(synset)
            waiting.extend(edges[synset])
    reached.discard(start)
    return frozenset(reached)
