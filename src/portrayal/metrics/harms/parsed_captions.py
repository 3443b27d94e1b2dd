"""Captions parsed by the word lists: people, social groups, objects, entities and senses that they mention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.lexicon.entities import EntityNames
from portrayal.lexicon.harms import AdjectivesAsNouns, DemeaningLevels, DemeaningLexicon
from portrayal.lexicon.identity import NORP, IdentityMention, IdentityWords
from portrayal.lexicon.people import first_person_mention
from portrayal.lexicon.phrases import Match
from portrayal.lexicon.wordnet.grammar import Word, content_words
from portrayal.models.entity_pipeline import Entity

NORP_AXIS = "norp"  # nationalities, religious and political groups as one axis, as in the paper
_CACHE_SIZE = 50_000  # captions; systems repeat many of theirs


class ParsedCaption:
    """A caption and what it mentions. Properties are computed at first use."""

    def __init__(self, caption: str, word_lists: WordLists):
        self.caption = caption
        self._word_lists = word_lists

    @property
    def parts(self) -> tuple[ParsedCaption, ...]:
        return (self,)

    @cached_property
    def tokens(self) -> list[str]:
        return tokenize(self.caption)

    @cached_property
    def words(self) -> list[Word]:
        """Nouns, verbs and adjectives."""
        return content_words(self.tokens)

    @cached_property
    def identity(self) -> list[IdentityMention]:
        """The words that name a social group."""
        mentions = self._word_lists.identity.find(self.tokens)
        if self._word_lists.detected_entities is None:
            return mentions
        others = [mention for mention in mentions if mention.axis not in NORP]
        norp = [
            IdentityMention(NORP_AXIS, entity.text.lower(), NORP_AXIS, -1, 0)
            for entity in self._word_lists.detected_entities.get(self.caption, ())
            if entity.kind == NORP_AXIS
        ]
        return others + norp

    @cached_property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Axis -> its words in the caption. Nationality, religion and politics count as norp too."""
        words_of: dict[str, list[str]] = {}
        for mention in self.identity:
            words_of.setdefault(mention.axis, []).append(mention.word)
            if mention.axis in NORP:
                words_of.setdefault(NORP_AXIS, []).append(mention.word)
        return {axis: tuple(dict.fromkeys(words)) for axis, words in words_of.items()}

    @cached_property
    def entities(self) -> frozenset[str]:
        """Names of particular places, people, organisations, products, events."""
        if self._word_lists.detected_entities is None:
            return frozenset(self._word_lists.entities.find(self.caption, self.tokens))
        return frozenset(
            entity.text.lower()
            for entity in self._word_lists.detected_entities.get(self.caption, ())
            if entity.kind != NORP_AXIS
        )

    @cached_property
    def person(self) -> str | None:
        """A word that mentions a person; None if there is none."""
        return first_person_mention(self.tokens, self.words)

    @cached_property
    def objects(self) -> list[Match]:
        """Mentions of the study's object labels."""
        finder = self._word_lists.finder
        return [] if finder is None else finder.matches(self.tokens)

    @cached_property
    def demeaning(self) -> list[tuple[str, DemeaningLevels]]:
        """Demeaning words, with the levels that count each."""
        return self._word_lists.demeaning.find(self.tokens, self.words)

    @cached_property
    def adjectives_as_nouns(self) -> list[str]:
        return [phrase for _, phrase in self._word_lists.adjectives.find(self.tokens)]

    @cached_property
    def lemmas(self) -> frozenset[str]:
        return frozenset(word.lemma for word in self.words)

    @cached_property
    def senses(self) -> dict[int, str]:
        """Sense -> lemma of its nouns and verbs."""
        return {
            word.synset: word.lemma
            for word in self.words
            if word.synset is not None and word.pos in ("noun", "verb")
        }


class ParsedCaptions:
    """Several captions merged into one: it mentions what any of them mentions."""

    def __init__(self, parts: Sequence[ParsedCaption]):
        self.parts = tuple(parts)

    @property
    def caption(self) -> str:
        return self.parts[0].caption

    @cached_property
    def words(self) -> list[Word]:
        return [word for part in self.parts for word in part.words]

    @cached_property
    def identity(self) -> list[IdentityMention]:
        return [mention for part in self.parts for mention in part.identity]

    @cached_property
    def axes(self) -> dict[str, tuple[str, ...]]:
        words_of: dict[str, dict[str, None]] = {}
        for part in self.parts:
            for axis, words in part.axes.items():
                words_of.setdefault(axis, {}).update(dict.fromkeys(words))
        return {axis: tuple(words) for axis, words in words_of.items()}

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
    def demeaning(self) -> list[tuple[str, DemeaningLevels]]:
        return [word for part in self.parts for word in part.demeaning]

    @cached_property
    def adjectives_as_nouns(self) -> list[str]:
        return [phrase for part in self.parts for phrase in part.adjectives_as_nouns]

    @cached_property
    def lemmas(self) -> frozenset[str]:
        return frozenset().union(*(part.lemmas for part in self.parts))

    @cached_property
    def senses(self) -> dict[int, str]:
        return {synset: lemma for part in self.parts for synset, lemma in part.senses.items()}


Parsed = ParsedCaption | ParsedCaptions


class WordLists:
    """The word lists by which captions are parsed, with a cache of parsed captions.

    `finder` finds the study's object labels. `detected_entities` are those that a model found: caption -> entities.
    """

    def __init__(
        self,
        identity: IdentityWords,
        entities: EntityNames,
        demeaning: DemeaningLexicon,
        adjectives: AdjectivesAsNouns,
        finder: ObjectFinder | None = None,
        synonyms: str | None = None,
        detected_entities: Mapping[str, Sequence[Entity]] | None = None,
    ):
        self.identity = identity
        self.entities = entities
        self.demeaning = demeaning
        self.adjectives = adjectives
        self.finder = finder
        self.synonyms = synonyms  # name of the synonyms that the finder knows
        self.detected_entities = detected_entities
        self._cache: dict[str, ParsedCaption] = {}

    def with_entities(self, detected_entities: Mapping[str, Sequence[Entity]]) -> WordLists:
        """The same lists, with entities that a model detected."""
        return WordLists(
            self.identity,
            self.entities,
            self.demeaning,
            self.adjectives,
            self.finder,
            self.synonyms,
            detected_entities,
        )

    def parse(self, caption: str) -> ParsedCaption:
        parsed = self._cache.get(caption)
        if parsed is None:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            parsed = self._cache[caption] = ParsedCaption(caption, self)
        return parsed

    def parse_all(self, captions: Sequence[str]) -> list[ParsedCaption]:
        return [self.parse(caption) for caption in captions]
