"""What one caption says, as the measurements of harm read it: whom it names, what, and in which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.lexicon.entities import EntityNames
from portrayal.lexicon.harms import AdjectivesAsNouns, Demeaning, Listing
from portrayal.lexicon.identity import NORP, IdentityWords, Named
from portrayal.lexicon.people import person_mentioned
from portrayal.lexicon.phrases import Match
from portrayal.lexicon.wordnet.grammar import Word, content_words
from portrayal.models.entity_pipeline import Entity

NORP_AXIS = "norp"  # nationalities, religious and political groups as one axis, as the paper has them
_REMEMBERED = 50_000  # captions; generated ones repeat a lot


class Reading:
    """A caption and what is found in it; each part is looked for when it is first asked for."""

    def __init__(self, caption: str, lists: Lists):
        self.caption = caption
        self._lists = lists

    @property
    def parts(self) -> tuple[Reading, ...]:
        return (self,)

    @cached_property
    def tokens(self) -> list[str]:
        return tokenize(self.caption)

    @cached_property
    def words(self) -> list[Word]:
        """Nouns, verbs and adjectives."""
        return content_words(self.tokens)

    @cached_property
    def identity(self) -> list[Named]:
        """The words that name a social group."""
        found = self._lists.identity.find(self.tokens)
        if self._lists.detections is None:
            return found
        others = [named for named in found if named.axis not in NORP]
        norp = [
            Named(NORP_AXIS, entity.text.lower(), NORP_AXIS, -1, 0)
            for entity in self._lists.detections.get(self.caption, ())
            if entity.kind == NORP_AXIS
        ]
        return others + norp

    @cached_property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The axes that are named, with the words; nationality, religion and politics count as norp too."""
        found: dict[str, list[str]] = {}
        for named in self.identity:
            found.setdefault(named.axis, []).append(named.word)
            if named.axis in NORP:
                found.setdefault(NORP_AXIS, []).append(named.word)
        return {axis: tuple(dict.fromkeys(words)) for axis, words in found.items()}

    @cached_property
    def entities(self) -> frozenset[str]:
        """Names of particular places, people, organisations, products, events."""
        if self._lists.detections is None:
            return frozenset(self._lists.entities.find(self.caption, self.tokens))
        return frozenset(
            entity.text.lower()
            for entity in self._lists.detections.get(self.caption, ())
            if entity.kind != NORP_AXIS
        )

    @cached_property
    def person(self) -> str | None:
        """A word that says that somebody is there; None where there is no such word."""
        return person_mentioned(self.tokens, self.words)

    @cached_property
    def objects(self) -> list[Match]:
        """Where the study's labels of objects are named."""
        finder = self._lists.finder
        return [] if finder is None else finder.matches(self.tokens)

    @cached_property
    def demeaning(self) -> list[tuple[str, Listing]]:
        """Listed words, with how surely each demeans."""
        return self._lists.demeaning.find(self.tokens, self.words)

    @cached_property
    def adjectives_as_nouns(self) -> list[str]:
        return [phrase for _, phrase in self._lists.adjectives.find(self.tokens)]

    @cached_property
    def lemmas(self) -> frozenset[str]:
        return frozenset(word.lemma for word in self.words)

    @cached_property
    def meanings(self) -> dict[int, str]:
        """The senses of its nouns and verbs, each with the word that has it."""
        return {
            word.synset: word.lemma
            for word in self.words
            if word.synset is not None and word.part in ("noun", "verb")
        }


class Together:
    """Several captions as one: what any of them says."""

    def __init__(self, parts: Sequence[Reading]):
        self.parts = tuple(parts)

    @property
    def caption(self) -> str:
        return self.parts[0].caption

    @cached_property
    def words(self) -> list[Word]:
        return [word for part in self.parts for word in part.words]

    @cached_property
    def identity(self) -> list[Named]:
        return [named for part in self.parts for named in part.identity]

    @cached_property
    def axes(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for part in self.parts:
            for axis, words in part.axes.items():
                found.setdefault(axis, {}).update(dict.fromkeys(words))
        return {axis: tuple(words) for axis, words in found.items()}

    @cached_property
    def entities(self) -> frozenset[str]:
        return frozenset().union(*(part.entities for part in self.parts))

    @cached_property
    def person(self) -> str | None:
        return next((part.person for part in self.parts if part.person is not None), None)

    @cached_property
    def objects(self) -> list[Match]:
        return [match for part in self.parts for match in part.objects]

    @cached_property
    def demeaning(self) -> list[tuple[str, Listing]]:
        return [found for part in self.parts for found in part.demeaning]

    @cached_property
    def adjectives_as_nouns(self) -> list[str]:
        return [phrase for part in self.parts for phrase in part.adjectives_as_nouns]

    @cached_property
    def lemmas(self) -> frozenset[str]:
        return frozenset().union(*(part.lemmas for part in self.parts))

    @cached_property
    def meanings(self) -> dict[int, str]:
        return {synset: lemma for part in self.parts for synset, lemma in part.meanings.items()}


Telling = Reading | Together


class Lists:
    """The word lists that captions are read by. `finder` finds the study's objects; where a model found entities
    beforehand, `seen` has them by caption."""

    def __init__(
        self,
        identity: IdentityWords,
        entities: EntityNames,
        demeaning: Demeaning,
        adjectives: AdjectivesAsNouns,
        finder: ObjectFinder | None = None,
        synonyms: str | None = None,
        seen: Mapping[str, Sequence[Entity]] | None = None,
    ):
        self.identity = identity
        self.entities = entities
        self.demeaning = demeaning
        self.adjectives = adjectives
        self.finder = finder
        self.synonyms = synonyms  # which other words for objects the finder knows
        self.detections = seen
        self._read: dict[str, Reading] = {}

    def seeing(self, seen: Mapping[str, Sequence[Entity]]) -> Lists:
        """The same lists, with entities that a model found."""
        return Lists(
            self.identity, self.entities, self.demeaning, self.adjectives, self.finder, self.synonyms, seen
        )

    def read(self, caption: str) -> Reading:
        found = self._read.get(caption)
        if found is None:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            found = self._read[caption] = Reading(caption, self)
        return found

    def read_all(self, captions: Sequence[str]) -> list[Reading]:
        return [self.read(caption) for caption in captions]
