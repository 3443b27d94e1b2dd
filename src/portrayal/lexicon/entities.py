"""Names of particular places, people, organisations, products, events and works in captions, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import NamedTuple

from portrayal.lexicon.identity import identity_words
from portrayal.lexicon.lexicon import Lexicon, parse_lexicon
from portrayal.lexicon.tokens import TOKEN, tokenize
from portrayal.lexicon.wordnet.graph import PARTS, WordNet, wordnet

_CAPITALISED = "capitalised"  # the group of names that are common words without a capital
_SHORTEST = 3  # shorter words of WordNet ("me" is Maine, "or" is Oregon) are hardly ever names in captions
_NOT_NAMED = ("noun.time",)  # periods, such as the Renaissance
_ENDS = frozenset(
    (".", "!", "?", ":", ";", '"', "'", "``", "“", "”", "‘", "(", "-", "--", "...")
)  # a capital after them says nothing
_JOINED = re.compile(r" (\.|['’](?:s|m|d|re|ve|ll)\b)")  # "st . patrick 's"
# Words with a grammatical function, which WordNet does not list.
FUNCTION_WORDS = frozenset(
    "a an the and or but nor of in on at by to from for with without as into onto over under near behind beside "
    "between through during while after before against about above below across along around off out up down is are "
    "was were be been being am do does did has have had can could will would shall should may might must not no yes "
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs this that these "
    "those who whom whose which what where when why how if than then so because though although until since there "
    "here all any both each every some such same other another one two three four five six seven eight nine ten".split()
)


class _Place(NamedTuple):
    start: int  # the first token
    end: int  # after the last one
    named: bool  # false where what stands here is no name


class _Gazetteer:
    """Phrases found longest first. They are looked up by two tokens, since hundreds of names begin with one word."""

    def __init__(self, entries: Iterable[tuple[str, bool]]):
        self._single: dict[str, bool] = {}
        self._longer: dict[tuple[str, str], list[tuple[tuple[str, ...], bool]]] = {}
        for text, named in entries:
            phrase = tuple(tokenize(text))
            if len(phrase) == 1:
                self._single[phrase[0]] = named
            else:
                self._longer.setdefault((phrase[0], phrase[1]), []).append((phrase, named))
        for phrases in self._longer.values():
            phrases.sort(key=lambda entry: -len(entry[0]))

    def find(self, tokens: Sequence[str]) -> list[_Place]:
        """From left to right; a token belongs to one phrase at most."""
        found: list[_Place] = []
        done = 0
        for start, pair in enumerate(zip_longest(tokens, tokens[1:], fillvalue="")):
            if start < done:
                continue
            for phrase, named in self._longer.get(pair, ()):
                end = start + len(phrase)
                if tuple(tokens[start:end]) == phrase:
                    found.append(_Place(start, end, named))
                    done = end
                    break
            else:
                single = self._single.get(pair[0])
                if single is not None:
                    found.append(_Place(start, start + 1, single))
        return found


class EntityNames:
    """Finds names by a gazetteer and, where a caption is written with ordinary capitals, by those.

    The gazetteer holds a list of its own and the proper names of WordNet that are not also common words. A capital
    makes a name of a word that no dictionary lists, unless it begins a sentence. Names side by side are one name.
    """

    def __init__(self, listed: Lexicon, net: WordNet):
        self.listed = listed
        self._net = net
        self._common: dict[str, bool] = {}
        self._groups = frozenset(
            word
            for lexicon in identity_words().lexicons.values()
            for words in lexicon.groups.values()
            for word in words
        )
        names = {name for group, words in listed.groups.items() if group != _CAPITALISED for name in words}
        reserved = {*listed.groups.get(_CAPITALISED, ()), *listed.not_naming}
        proper, kinds = self._from_wordnet()
        names |= proper - reserved
        firsts = {name for name in names if " " not in name}
        # Kinds of things that are called after a name: Brussels sprouts, Boston terriers.
        things = {kind for kind in kinds - names if not firsts.isdisjoint(kind.split())}
        nothing = {*listed.not_naming, *things, *(f"{thing}s" for thing in things)} - names
        self._gazetteer = _Gazetteer([*((name, True) for name in names), *((one, False) for one in nothing)])
        self._capitalised = _Gazetteer((name, True) for name in listed.groups.get(_CAPITALISED, ()))

    @property
    def label(self) -> str:
        """How settings name it."""
        return self.listed.label

    def find(self, caption: str, tokens: Sequence[str] | None = None) -> list[str]:
        """The names in a caption, lower case, each once; `tokens` are those of `tokenize`, where they are at hand.

        >>> names = entity_names()
        >>> names.find("a red bus passes big ben"), names.find("A man named Quigley plays Wii in New York City.")
        (['big ben'], ['quigley', 'wii', 'new york city'])
        >>> names.find("a Labrador with a Frisbee near a Christmas tree")
        []
        """
        words = tokenize(caption) if tokens is None else tokens
        places = self._gazetteer.find(words)
        if caption[1:] != caption[1:].lower():
            cased = TOKEN.findall(caption)
            if len(cased) == len(words) and _ordinary(cased):
                return _once(words[start:end] for start, end in self._spans(cased, words, places))
        return _once(words[start:end] for start, end, named in places if named) if places else []

    def _spans(
        self, cased: Sequence[str], words: Sequence[str], places: Sequence[_Place]
    ) -> list[tuple[int, int]]:
        """Where names begin and end, in a caption with ordinary capitals."""
        listed = [False] * len(words)
        nothing = [False] * len(words)
        for start, end, named in places:
            for index in range(start, end):
                (listed if named else nothing)[index] = True
        for start, end, _ in self._capitalised.find(words):
            inside = range(start, end)
            if not _begins(cased, start) and all(_capital(cased[i]) and not nothing[i] for i in inside):
                for index in inside:
                    listed[index] = True
        part_of = [
            listed[i] or (_capital(cased[i]) and not nothing[i] and words[i] not in FUNCTION_WORDS)
            for i in range(len(words))
        ]
        makes = [
            listed[i] or (part_of[i] and self._by_its_capital(cased, words, i)) for i in range(len(words))
        ]
        spans: list[tuple[int, int]] = []
        start = 0
        while start < len(words):
            if not part_of[start]:
                start += 1
                continue
            end = start
            while end < len(words) and part_of[end]:
                end += 1
            first = start
            if _begins(cased, start) and not listed[start] and self._is_common(words[start]):
                first += 1  # "Young Obama": the first capital is the sentence's
            if any(makes[first:end]):
                spans.append((first, end))
            start = end
        return spans

    def _by_its_capital(self, cased: Sequence[str], words: Sequence[str], index: int) -> bool:
        word = cased[index]
        if _begins(cased, index) or word[1:2].isupper() or "." in word:  # TV, BMX, STOP, t.v
            return False
        return not self._is_common(words[index])

    def _is_common(self, word: str) -> bool:
        """Whether a dictionary lists it as a word for something of which there are many."""
        if word not in self._common:
            parts = [part for part in re.split("[-/]", word) if len(part) > 1]  # "Asian-style", "T-ball"
            self._common[word] = self._listed_as_common(word) or all(map(self._listed_as_common, parts))
        return self._common[word]

    def _listed_as_common(self, word: str) -> bool:
        if word in self._groups or word in FUNCTION_WORDS:
            return True
        net = self._net
        for part in PARTS:
            lemma = net.lemma(word, part)
            if lemma is not None and not all(map(net.is_instance, net.senses(lemma, part))):
                return True
        return False

    def _from_wordnet(self) -> tuple[set[str], set[str]]:
        """Proper names that are no common words as well, and the kinds of things that have several words.

        Surnames are left to their capitals: in lower case they are mostly slips ("a peron", "golding a bat").
        """
        net = self._net
        proper: set[str] = set()
        kinds: set[str] = set()
        for synset in net.hyponyms(net.sense("entity", "noun", 1)):
            words = net.words(synset)
            if not net.is_instance(synset):
                kinds.update(word for word in words if " " in word)
            elif (category := net.category(synset)) not in _NOT_NAMED:
                proper.update(
                    word
                    for word in words
                    if len(word) >= _SHORTEST and (" " in word or category != "noun.person")
                )
        return {name for name in proper if not self._listed_as_common(name)}, kinds - proper


@cache
def entity_names() -> EntityNames:
    """The shipped list with WordNet's names, made once."""
    file = resources.files("portrayal.lexicon") / "words" / "entities" / "entities.toml"
    return EntityNames(parse_lexicon(file.read_text(encoding="utf-8"), file.name), wordnet())


def _ordinary(cased: Sequence[str]) -> bool:
    """Whether capitals mean something: neither Every Word Has One nor ALL LETTERS ARE.

    >>> [_ordinary(TOKEN.findall(text)) for text in ("a cat in Rome", "A Cat In Rome", "A Cat in Rome", "Big Ben")]
    [True, False, False, False]
    """
    words = [word for word in cased if word[0].isalpha() and word.lower() not in FUNCTION_WORDS]
    capitals = sum(map(_capital, words[1:] if _capital(cased[0]) else words))
    return 2 * sum(word[0].islower() for word in words) >= max(capitals, 1)


def _capital(word: str) -> bool:
    return word[0].isupper()


def _begins(cased: Sequence[str], index: int) -> bool:
    """Whether a sentence, or a quotation, begins here: a capital would say nothing."""
    return index == 0 or cased[index - 1] in _ENDS


def _once(names: Iterable[Sequence[str]]) -> list[str]:
    """The names as text, each once."""
    return list(dict.fromkeys(_JOINED.sub(r"\1", " ".join(name)).rstrip(".") for name in names))
