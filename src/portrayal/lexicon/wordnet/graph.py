"""WordNet as a graph: what a word can mean, and which meanings are kinds of which others.

A synset is a meaning, and has a number. Its words share that meaning; a word has several, ranked by how often it
has them.
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

Part = Literal["noun", "verb", "adjective", "adverb"]
_REMEMBERED = 500_000  # forms of words; captions may hold any number of names
PARTS: tuple[Part, ...] = ("noun", "verb", "adjective", "adverb")

# Endings and what stands in their place, in WordNet's order (morphy(7)). Doubled consonants are among the exceptions.
ENDINGS: dict[Part, tuple[tuple[str, str], ...]] = {
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
    place: dict[str, int]  # where a word stands among them
    starts: list[int]  # where its synsets begin; they end where those of the next word begin
    synsets: list[int]  # the most frequent first
    counts: list[int]  # how often a word was seen, in any sense


class WordNet:
    """Look-ups answer with plain values; what is costly is remembered."""

    def __init__(self, table: pl.DataFrame, exceptions: pl.DataFrame):
        self._table = table
        self._exceptions: dict[Part, dict[str, list[str]]] = {part: {} for part in PARTS}
        for form, part, lemma in exceptions.iter_rows():
            self._exceptions[part].setdefault(form, []).append(lemma)
        self._lemmas: dict[Part, Lemmas] = {}
        self._of_form: dict[tuple[str, Part], str | None] = {}
        self._above: dict[int, frozenset[int]] = {}
        self._below: dict[int, frozenset[int]] = {}

    def senses(self, lemma: str, part: Part) -> tuple[int, ...]:
        """The synsets of a word, the most frequent first; none if WordNet does not know it.

        >>> net = wordnet()
        >>> [net.words(synset) for synset in net.senses("grin", "noun")]
        [('smile', 'smiling', 'grin', 'grinning')]
        """
        known = self._known(part)
        place = known.place.get(lemma)
        if place is None:
            return ()
        return tuple(known.synsets[known.starts[place] : known.starts[place + 1]])

    def first(self, lemma: str, part: Part) -> int | None:
        """The most frequent sense of a word; None if WordNet does not know it."""
        known = self._known(part)
        place = known.place.get(lemma)
        return None if place is None else known.synsets[known.starts[place]]

    def sense(self, lemma: str, part: Part, rank: int) -> int:
        """One sense of a word, counted from 1 as WordNet counts them: its "person.n.01" is `("person", "noun", 1)`.

        >>> wordnet().name(wordnet().sense("mouse", "noun", 1))
        'mouse'
        """
        known = self.senses(lemma, part)
        if not known:
            raise PortrayalError(f"WordNet has no {part} '{lemma}'.")
        if not 1 <= rank <= len(known):
            raise unknown_name(
                f"sense of the {part} '{lemma}'", str(rank), map(str, range(1, len(known) + 1))
            )
        return known[rank - 1]

    def lemma(self, form: str, part: Part) -> str | None:
        """The word that a form belongs to, by WordNet's exceptions and then by its endings; None if it is unknown.

        Where several words could have the form, the one that is seen most often has it.

        >>> [wordnet().lemma(form, "noun") for form in ("men", "skis", "fire hydrants", "dog", "qwerty")]
        ['man', 'ski', 'fire hydrant', 'dog', None]
        >>> [wordnet().lemma(form, "verb") for form in ("lying", "sat", "singing", "rides")]
        ['lie', 'sit', 'sing', 'ride']
        """
        key = form, part
        if key not in self._of_form:
            if len(self._of_form) >= _REMEMBERED:
                self._of_form.clear()
            self._of_form[key] = self._find_lemma(form, part)
        return self._of_form[key]

    def frequency(self, lemma: str, part: Part) -> int:
        """How often a word was seen in the texts that WordNet's authors tagged by hand; 0 if never.

        >>> wordnet().frequency("ride", "verb") > wordnet().frequency("ride", "noun") > 0
        True
        """
        known = self._known(part)
        place = known.place.get(lemma)
        return 0 if place is None else known.counts[place]

    def words(self, synset: int) -> tuple[str, ...]:
        """The words that share a meaning, lower case.

        >>> wordnet().words(wordnet().sense("couch", "noun", 1))
        ('sofa', 'couch', 'lounge')
        """
        return tuple(self._words[self._word_starts[synset] : self._word_starts[synset + 1]])

    def name(self, synset: int) -> str:
        """The first word of a synset."""
        return self._words[self._word_starts[synset]]

    def hypernyms(self, synset: int) -> tuple[int, ...]:
        """What a meaning is a kind of, one step up: of nouns and verbs."""
        return self._hypernyms[synset]

    def ancestors(self, synset: int) -> frozenset[int]:
        """Everything a meaning is a kind of, without itself.

        >>> net = wordnet()
        >>> {"canine", "animal", "entity"} <= {net.name(above) for above in net.ancestors(net.sense("dog", "noun", 1))}
        True
        """
        if synset not in self._above:
            self._above[synset] = _reached(synset, self._hypernyms)
        return self._above[synset]

    def is_a(self, synset: int, ancestor: int) -> bool:
        """Whether a meaning is another one or a kind of it."""
        return synset == ancestor or ancestor in self.ancestors(synset)

    def hyponyms(self, synset: int) -> frozenset[int]:
        """Every kind there is of a meaning, without itself.

        >>> net = wordnet()
        >>> net.sense("poodle", "noun", 1) in net.hyponyms(net.sense("dog", "noun", 1))
        True
        """
        if synset not in self._below:
            self._below[synset] = _reached(synset, self._hyponyms)
        return self._below[synset]

    def is_instance(self, synset: int) -> bool:
        """Whether this is one single thing with a proper name ("london"), no kind of thing."""
        return synset in self._instances

    def category(self, synset: int) -> str:
        """The broad field WordNet's authors filed a meaning under, for example "noun.person"."""
        return self._categories[synset]

    def usage(self, synset: int) -> tuple[int, ...]:
        """How a meaning is used, where WordNet says so: the synsets of "slang", "disparagement" and the like."""
        return self._usage.get(synset, ())

    def phrases_starting(self, token: str, part: Part) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The words of several tokens that begin with a token: the word, and its tokens.

        >>> [word for word, _ in wordnet().phrases_starting("toaster", "noun")]
        ['toaster oven']
        >>> [tokens for _, tokens in wordnet().phrases_starting("artist", "noun")]
        [('artist', "'s", 'loft'), ('artist', "'s", 'model'), ('artist', "'s", 'workroom')]
        """
        known = self._known(part).words
        start = bisect_left(known, f"{token} ")
        end = bisect_left(known, f"{token}(", start)  # after the apostrophe, before hyphens and letters
        for word in known[start:end]:
            tokens = tuple(tokenize(word))
            if tokens[0] == token and len(tokens) > 1:
                yield word, tokens

    def _find_lemma(self, form: str, part: Part) -> str | None:
        known = self._known(part).place
        head, space, last = form.rpartition(" ")  # "fire hydrants": it is the last word that changes
        made = [f"{head}{space}{lemma}" for lemma in self._exceptions[part].get(last, ())]
        made = [lemma for lemma in made if lemma in known]
        if form in known:
            made.append(form)  # "men" and "found" are words too, but "man" and "find" are seen more often
        if not made:
            made = [
                lemma
                for ending, instead in ENDINGS[part]
                if form.endswith(ending) and (lemma := form[: len(form) - len(ending)] + instead) in known
            ]
        return max(made, key=lambda lemma: self.frequency(lemma, part), default=None)

    def _known(self, part: Part) -> Lemmas:
        if part not in self._lemmas:
            of_words = (
                self._table.filter(pl.col("part") == part)
                .select("number", "words", "ranks", "counts")
                .explode("words", "ranks", "counts", empty_as_null=False, keep_nulls=False)
                .sort("words", "ranks")
            )
            of_lemmas = of_words.group_by("words", maintain_order=True).agg(pl.len(), pl.col("counts").sum())
            words = of_lemmas["words"].to_list()
            self._lemmas[part] = Lemmas(
                words,
                dict(zip(words, range(len(words)), strict=True)),
                _starts(of_lemmas["len"]),
                of_words["number"].to_list(),
                of_lemmas["counts"].to_list(),
            )
        return self._lemmas[part]

    @cached_property
    def _words(self) -> list[str]:
        return self._table["words"].explode(empty_as_null=False, keep_nulls=False).to_list()

    @cached_property
    def _word_starts(self) -> list[int]:
        return _starts(self._table["words"].list.len())

    @cached_property
    def _hypernyms(self) -> list[tuple[int, ...]]:
        above = self._table["hypernyms"]
        starts = _starts(above.list.len())
        flat = above.explode(empty_as_null=False, keep_nulls=False).to_list()
        return [tuple(flat[start:end]) for start, end in pairwise(starts)]

    @cached_property
    def _hyponyms(self) -> list[tuple[int, ...]]:
        below: list[list[int]] = [[] for _ in self._hypernyms]
        for synset, above in enumerate(self._hypernyms):
            for parent in above:
                below[parent].append(synset)
        return [tuple(children) for children in below]

    @cached_property
    def _instances(self) -> frozenset[int]:
        return frozenset(self._table.filter(pl.col("instance"))["number"].to_list())

    @cached_property
    def _categories(self) -> list[str]:
        return self._table["category"].to_list()

    @cached_property
    def _usage(self) -> dict[int, tuple[int, ...]]:
        used = self._table.filter(pl.col("usage").list.len() > 0).select("number", "usage")
        return {number: tuple(targets) for number, targets in used.iter_rows()}


@cache
def wordnet() -> WordNet:
    """WordNet 3.0, read once."""
    folder = resources.files("portrayal.lexicon.wordnet")
    with resources.as_file(folder / "wordnet.parquet") as path:
        table = pl.read_parquet(path)
    with resources.as_file(folder / "exceptions.parquet") as path:
        exceptions = pl.read_parquet(path)
    return WordNet(table, exceptions)


def _starts(lengths: pl.Series) -> list[int]:
    """Where each of some runs begins, and where the last one ends."""
    return [0, *lengths.cast(pl.Int64).cum_sum().to_list()]


def _reached(start: int, steps: list[tuple[int, ...]]) -> frozenset[int]:
    """What can be reached from a synset. No step is taken twice: some copies of WordNet have a circle of verbs."""
    reached: set[int] = set()
    waiting = list(steps[start])
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting.extend(steps[here])
    reached.discard(start)
    return frozenset(reached)
