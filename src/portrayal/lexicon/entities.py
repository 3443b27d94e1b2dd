"""Named entities in captions (places, people, organisations, products, events, works), found without a model."""

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
from portrayal.lexicon.wordnet.graph import PARTS_OF_SPEECH, WordNet, wordnet

_CAPITALISED = "capitalised"  # group of names that are common words in lower case
_MIN_LENGTH = 3  # shorter words of WordNet ("me" is Maine, "or" is Oregon) are rarely names in captions
_EXCLUDED_CATEGORIES = ("noun.time",)  # periods such as the Renaissance
_SENTENCE_STARTERS = frozenset(
    (".", "!", "?", ":", ";", '"', "'", "``", "“", "”", "‘", "(", "-", "--", "...")
)  # a capital after them does not indicate a name
_SPACE_BEFORE_CLITIC = re.compile(r" (\.|['’](?:s|m|d|re|ve|ll)\b)")  # "st . patrick 's"
# Function words, which WordNet does not list.
FUNCTION_WORDS = frozenset(
    "a an the and or but nor of in on at by to from for with without as into onto over under near behind beside "
    "between through during while after before against about above below across along around off out up down is are "
    "was were be been being am do does did has have had can could will would shall should may might must not no yes "
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs this that these "
    "those who whom whose which what where when why how if than then so because though although until since there "
    "here all any both each every some such same other another one two three four five six seven eight nine ten".split()
)


class PhraseSpan(NamedTuple):
    start: int  # the first token
    end: int  # after the last token
    is_name: bool  # false for listed phrases that are not names


class Gazetteer:
    """Phrase lookup, longest first. It is keyed by two tokens, because hundreds of names share their first word."""

    def __init__(self, entries: Iterable[tuple[str, bool]]):
        self._single: dict[str, bool] = {}
        self._longer: dict[tuple[str, str], list[tuple[tuple[str, ...], bool]]] = {}
        for text, is_name in entries:
            phrase = tuple(tokenize(text))
            if len(phrase) == 1:
                self._single[phrase[0]] = is_name
            else:
                self._longer.setdefault((phrase[0], phrase[1]), []).append((phrase, is_name))
        for phrases in self._longer.values():
            phrases.sort(key=lambda entry: -len(entry[0]))

    def find(self, tokens: Sequence[str]) -> list[PhraseSpan]:
        """Find phrases from left to right. A token belongs to at most one phrase."""
        spans: list[PhraseSpan] = []
        last_end = 0
        for start, pair in enumerate(zip_longest(tokens, tokens[1:], fillvalue="")):
            if start < last_end:
                continue
            for phrase, is_name in self._longer.get(pair, ()):
                end = start + len(phrase)
                if tuple(tokens[start:end]) == phrase:
                    spans.append(PhraseSpan(start, end, is_name))
                    last_end = end
                    break
            else:
                single = self._single.get(pair[0])
                if single is not None:
                    spans.append(PhraseSpan(start, start + 1, single))
        return spans


class EntityNames:
    """Finds names by a gazetteer and, in captions in sentence case, by capitals.

    The gazetteer holds the listed names and the proper names of WordNet that are not common words. A capitalised word
    is a name if no dictionary lists it and it does not start a sentence. Adjacent names are one name.

    Parameters
    ----------
    lexicon : Lexicon
        Listed names.
    net : WordNet
        Source of proper names and common words.
    """

    def __init__(self, lexicon: Lexicon, net: WordNet):
        self.lexicon = lexicon
        self._wordnet = net
        self._common_cache: dict[str, bool] = {}
        self._identity_words = frozenset(
            word
            for identity_lexicon in identity_words().lexicons.values()
            for words in identity_lexicon.groups.values()
            for word in words
        )
        names = {name for group, words in lexicon.groups.items() if group != _CAPITALISED for name in words}
        reserved = {*lexicon.groups.get(_CAPITALISED, ()), *lexicon.not_naming}
        proper, kinds = self._from_wordnet()
        names |= proper - reserved
        single_names = {name for name in names if " " not in name}
        # Kinds of things that are named after a name: Brussels sprouts, Boston terriers.
        named_kinds = {kind for kind in kinds - names if not single_names.isdisjoint(kind.split())}
        non_names = {*lexicon.not_naming, *named_kinds, *(f"{thing}s" for thing in named_kinds)} - names
        self._gazetteer = Gazetteer(
            [*((name, True) for name in names), *((phrase, False) for phrase in non_names)]
        )
        self._capitalised = Gazetteer((name, True) for name in lexicon.groups.get(_CAPITALISED, ()))

    @property
    def label(self) -> str:
        """Label in result settings."""
        return self.lexicon.label

    def find(self, caption: str, tokens: Sequence[str] | None = None) -> list[str]:
        """The distinct names of a caption in lower case.

        Parameters
        ----------
        caption : str
            The caption.
        tokens : sequence of str, optional
            Tokens of the caption by `tokenize`, if they are already known.

        Returns
        -------
        list of str

        Examples
        --------
        >>> names = entity_names()
        >>> names.find("a red bus passes big ben"), names.find("A man named Quigley plays Wii in New York City.")
        (['big ben'], ['quigley', 'wii', 'new york city'])
        >>> names.find("a Labrador with a Frisbee near a Christmas tree")
        []
        """
        words = tokenize(caption) if tokens is None else tokens
        spans = self._gazetteer.find(words)
        if caption[1:] != caption[1:].lower():
            cased = TOKEN.findall(caption)
            if len(cased) == len(words) and _has_sentence_case(cased):
                return _unique_names(words[start:end] for start, end in self._spans(cased, words, spans))
        return _unique_names(words[start:end] for start, end, is_name in spans if is_name) if spans else []

    def _spans(
        self, cased: Sequence[str], words: Sequence[str], gazetteer_spans: Sequence[PhraseSpan]
    ) -> list[tuple[int, int]]:
        """Token spans of the names in a caption in sentence case."""
        is_listed = [False] * len(words)
        is_non_name = [False] * len(words)
        for start, end, is_name in gazetteer_spans:
            for index in range(start, end):
                (is_listed if is_name else is_non_name)[index] = True
        for start, end, _ in self._capitalised.find(words):
            inside = range(start, end)
            if not _starts_sentence(cased, start) and all(
                _is_capitalised(cased[i]) and not is_non_name[i] for i in inside
            ):
                for index in inside:
                    is_listed[index] = True
        may_belong = [
            is_listed[i]
            or (_is_capitalised(cased[i]) and not is_non_name[i] and words[i] not in FUNCTION_WORDS)
            for i in range(len(words))
        ]
        makes_name = [
            is_listed[i] or (may_belong[i] and self._is_name_by_capital(cased, words, i))
            for i in range(len(words))
        ]
        name_spans: list[tuple[int, int]] = []
        start = 0
        while start < len(words):
            if not may_belong[start]:
                start += 1
                continue
            end = start
            while end < len(words) and may_belong[end]:
                end += 1
            first = start
            if _starts_sentence(cased, start) and not is_listed[start] and self._is_common(words[start]):
                first += 1  # "Young Obama": the first capital only starts the sentence
            if any(makes_name[first:end]):
                name_spans.append((first, end))
            start = end
        return name_spans

    def _is_name_by_capital(self, cased: Sequence[str], words: Sequence[str], index: int) -> bool:
        word = cased[index]
        if _starts_sentence(cased, index) or word[1:2].isupper() or "." in word:  # TV, BMX, STOP, t.v
            return False
        return not self._is_common(words[index])

    def _is_common(self, word: str) -> bool:
        """Whether a dictionary lists the word as a common word."""
        if word not in self._common_cache:
            parts = [part for part in re.split("[-/]", word) if len(part) > 1]  # "Asian-style", "T-ball"
            self._common_cache[word] = self._listed_as_common(word) or all(map(self._listed_as_common, parts))
        return self._common_cache[word]

    def _listed_as_common(self, word: str) -> bool:
        if word in self._identity_words or word in FUNCTION_WORDS:
            return True
        net = self._wordnet
        for part in PARTS_OF_SPEECH:
            lemma = net.lemma(word, part)
            if lemma is not None and not all(map(net.is_instance, net.senses(lemma, part))):
                return True
        return False

    def _from_wordnet(self) -> tuple[set[str], set[str]]:
        """Proper names that are not common words, and multi-word names of kinds of things.

        Surnames are left out, because in lower case they are mostly misspellings ("a peron", "golding a bat"). Capitals
        find them.
        """
        net = self._wordnet
        proper: set[str] = set()
        kinds: set[str] = set()
        for synset in net.hyponyms(net.sense("entity", "noun", 1)):
            words = net.words(synset)
            if not net.is_instance(synset):
                kinds.update(word for word in words if " " in word)
            elif (category := net.category(synset)) not in _EXCLUDED_CATEGORIES:
                proper.update(
                    word
                    for word in words
                    if len(word) >= _MIN_LENGTH and (" " in word or category != "noun.person")
                )
        return {name for name in proper if not self._listed_as_common(name)}, kinds - proper


@cache
def entity_names() -> EntityNames:
    """The shipped names with those of WordNet (cached)."""
    file = resources.files("portrayal.lexicon") / "words" / "entities" / "entities.toml"
    return EntityNames(parse_lexicon(file.read_text(encoding="utf-8"), file.name), wordnet())


def _has_sentence_case(cased: Sequence[str]) -> bool:
    """Whether a caption is in sentence case, neither Title Case nor ALL CAPITALS.

    >>> captions = ("a cat in Rome", "A Cat In Rome", "A Cat in Rome", "Big Ben")
    >>> [_has_sentence_case(TOKEN.findall(caption)) for caption in captions]
    [True, False, False, False]
    """
    words = [word for word in cased if word[0].isalpha() and word.lower() not in FUNCTION_WORDS]
    n_capitals = sum(map(_is_capitalised, words[1:] if _is_capitalised(cased[0]) else words))
    return 2 * sum(word[0].islower() for word in words) >= max(n_capitals, 1)


def _is_capitalised(word: str) -> bool:
    return word[0].isupper()


def _starts_sentence(cased: Sequence[str], index: int) -> bool:
    """Whether a sentence or a quotation starts here, so that a capital does not indicate a name."""
    return index == 0 or cased[index - 1] in _SENTENCE_STARTERS


def _unique_names(names: Iterable[Sequence[str]]) -> list[str]:
    """The distinct names as text."""
    return list(dict.fromkeys(_SPACE_BEFORE_CLITIC.sub(r"\1", " ".join(name)).rstrip(".") for name in names))
