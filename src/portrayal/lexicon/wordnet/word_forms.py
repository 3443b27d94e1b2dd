"""Possible tags of a token without its context, from WordNet and the lists of grammar.toml."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from portrayal.lexicon.wordnet.graph import ENDINGS, PartOfSpeech, WordNet

# Tags of tokens, one letter each. Capitals and marks are function words and punctuation.
DETERMINER, QUANTITY, PRONOUN, PREPOSITION, CONJUNCTION, ADVERB = "D", "Q", "O", "P", "C", "R"
RELATIVE, CLAUSE_START = "W", "K"  # "that", before a verb; "while", before a clause
BE, HAVE, DO, MODAL = "X", "H", "U", "M"
TO, TO_AFTER_PARTICIPLE = "T", "Y"  # "to"; "to" after a participle: "tied to"
PUNCTUATION = "."
NOUN, PERSON, PLURAL, COORDINATED = "n", "m", "s", "c"  # COORDINATED: "a couple", "a man and a woman"
# ride, rides, riding, rode and ridden; cut
BASE, FINITE, GERUND, PARTICIPLE, BASE_OR_PAST = ("b", "f", "g", "p", "e")
ADJECTIVE, NOMINAL_ADJECTIVE = "a", "A"  # NOMINAL_ADJECTIVE: in place of a noun, "a man in red"
AMBIGUOUS = "?"  # decided by the context

NOUN_TAGS = NOUN + PERSON + PLURAL + COORDINATED
VERB_TAGS = BASE + FINITE + GERUND + PARTICIPLE + BASE_OR_PAST

_FUNCTION_TAGS = {
    "determiner": DETERMINER, "quantity": QUANTITY, "pronoun": PRONOUN, "preposition": PREPOSITION,
    "relative": RELATIVE, "clause": CLAUSE_START, "conjunction": CONJUNCTION, "be": BE, "have": HAVE, "do": DO,
    "modal": MODAL, "adverb": ADVERB,
}  # fmt: skip

# Frequency ratios above which a word has no other part of speech.
_ADJECTIVE_RATIO = 8
_NOUN_RATIO = 10
_VERB_RATIO = 30
_MIN_VERB_COUNT = 100  # minimum count for verbs: nouns of captions are rare in novels
_FINITE_DIVISOR = 6  # "drops" and "tracks" are mostly nouns in captions; "stands" is frequent enough
_CACHE_SIZE = 200_000  # tokens: English has fewer words, but captions may contain any number of names


class WordSense(NamedTuple):
    """A possible sense of a token."""

    lemma: str
    pos: PartOfSpeech
    synset: int | None


class Compound(NamedTuple):
    """A word of several tokens, of which the first two were matched."""

    rest: tuple[str, ...]
    sense: WordSense | None  # None: function words, "in front of"
    takes_object: bool  # it may be a verb and its object: "drinking water"
    verbal_plural: bool  # in the plural, its last word is a verb: "the bus stops"


class Token:
    """Possible tags of a token: a decided tag with its sense, or AMBIGUOUS with up to three senses."""

    __slots__ = (
        "activity", "adjective", "adverb", "attributive", "compounds", "default_pos", "noun", "noun_tag", "sense",
        "singular", "tag", "verb", "verb_tag",
    )  # fmt: skip

    def __init__(self, tag: str, sense: WordSense | None = None):
        self.tag = tag
        self.sense = sense
        self.noun: WordSense | None = None
        self.noun_tag = tag if tag in NOUN_TAGS else NOUN
        self.verb: WordSense | None = None
        self.verb_tag = ""  # one of VERB_TAGS, if it can be a verb
        self.adjective: WordSense | None = None
        self.attributive = False  # tagged as an adjective before a noun
        self.adverb = False
        self.activity = False
        self.default_pos: PartOfSpeech = "noun"
        self.singular: str | None = None
        self.compounds: dict[str, list[Compound]] | None = None


class TokenLookup(dict[str, Token]):
    """Cache of tokens by their text. Each is looked up in WordNet on first use."""

    def __init__(self, wordnet: WordNet, lists: dict[str, Any]):
        super().__init__()
        self._wordnet = wordnet
        function, also, compounds = lists["function"], lists["also"], lists["compounds"]
        self._function = {
            word: tag for name, tag in _FUNCTION_TAGS.items() for word in function[name].split()
        }
        self._function["to"] = TO
        self._function_or_noun = frozenset(function["noun"].split())
        self._only: dict[str, str] = {
            word: parts for parts, words in lists["only"].items() for word in words.split()
        }
        self._preferred: dict[str, PartOfSpeech] = {
            word: pos for pos in get_args(PartOfSpeech) for word in lists["rather"].get(pos, "").split()
        }
        self._also = {name: frozenset(words.split()) for name, words in also.items()}
        self._never_compounds = frozenset(compounds["never"])
        self._always_compounds = frozenset(compounds["meant"])
        self._describing = frozenset(compounds["describing"].split())
        self._no_object = frozenset(compounds["ing"].split())
        self._verbal_plurals = frozenset(compounds["acts"].split())
        self._owners = frozenset(compounds["owners"].split())
        self._person = wordnet.sense("person", "noun", 1)
        self._extra_compounds: dict[str, list[tuple[tuple[str, ...], WordSense | None]]] = {}
        for phrase in function["phrases"]:
            first, *rest = phrase.split()
            self._extra_compounds.setdefault(first, []).append((tuple(rest), None))
        for spelling in compounds["spelt"]:
            phrase, _, lemma = spelling.partition(" = ")
            first, *rest = phrase.split()
            self._extra_compounds.setdefault(first, []).append((tuple(rest), self.sense(lemma, "noun")))

    def __missing__(self, text: str) -> Token:
        if text.isdigit():  # not cached: the number of numbers is unlimited
            return Token(DETERMINER)
        token = self._function_token(text) or self._content_token(text)
        token.singular = self._noun_lemma(text)
        token.compounds = self._compounds(text, token) or None
        if len(self) >= _CACHE_SIZE:
            self.clear()
        self[text] = token
        return token

    def sense(self, lemma: str, pos: PartOfSpeech) -> WordSense:
        return WordSense(lemma, pos, self._wordnet.first_sense(lemma, pos))

    def _function_token(self, text: str) -> Token | None:
        """The token of a function word, number, mark or single letter; None for other words."""
        tag = self._function.get(text)
        if tag is not None:
            token = Token(tag)
            if text in self._function_or_noun:
                token.noun = self.sense(text, "noun")
            return token
        if text[0] in "'’" and len(text) > 1:
            return Token(DETERMINER if text[1:] == "s" else MODAL)
        if any(letter.isdigit() for letter in text):
            return Token(DETERMINER)
        if not text[0].isalpha():
            return Token(PUNCTUATION)
        return Token(ADVERB) if len(text) == 1 else None

    def _content_token(self, text: str) -> Token:
        wordnet, preferred = self._wordnet, self._preferred.get(text)
        lemmas = self._lemmas(text)
        verb_tag = self._verb_tag(text, lemmas["verb"]) if "verb" in lemmas else ""
        counts = {pos: wordnet.frequency(lemma, pos) for pos, lemma in lemmas.items()}
        if text not in self._only:
            for pos in self._rare_pos(text, lemmas, counts, verb_tag):
                del lemmas[pos]
        if wordnet.lemma(text, "adverb") and (not lemmas or text.endswith("ly")):
            adverb_count = wordnet.frequency(text, "adverb")
            if all(counts[pos] <= adverb_count for pos in lemmas):
                return Token(ADVERB)
        if not lemmas:
            return self._unknown_token(text)

        token = Token(AMBIGUOUS)
        if "noun" in lemmas:
            token.noun = self.sense(lemmas["noun"], "noun")
            token.noun_tag = self._noun_tag(text, token.noun)
        if "verb" in lemmas:
            token.verb = self.sense(lemmas["verb"], "verb")
            token.verb_tag = verb_tag
        if "adjective" in lemmas:
            token.adjective = self.sense(lemmas["adjective"], "adjective")
            token.adverb = text in self._also["adverb"]
            nouns = counts["noun"] if "noun" in lemmas else 0
            token.attributive = preferred == "adjective" or (
                preferred != "noun" and 2 * counts["adjective"] >= nouns
            )
        token.activity = text in self._also["activity"]
        token.default_pos = preferred or self._default_pos(lemmas, counts, token.verb_tag)
        if len(lemmas) == 1 and not token.adverb:
            token.sense = token.noun or token.verb or token.adjective
            token.tag = token.noun_tag if token.noun else token.verb_tag or ADJECTIVE
        return token

    def _lemmas(self, text: str) -> dict[PartOfSpeech, str]:
        lemmas: dict[PartOfSpeech, str | None] = {
            "noun": self._noun_lemma(text),
            "verb": self._wordnet.lemma(text, "verb"),
            "adjective": self._wordnet.lemma(text, "adjective"),
        }
        only = self._only.get(text)
        return {
            pos: lemma for pos, lemma in lemmas.items() if lemma is not None and (only is None or pos in only)
        }

    def _noun_lemma(self, text: str) -> str | None:
        """WordNet's lemma, but the singular of plurals that are lemmas too: "arms" is "arm", not weapons."""
        wordnet = self._wordnet
        lemma = wordnet.lemma(text, "noun")
        if lemma == text and text.endswith("s") and text not in self._also["own"]:
            min_count = max(wordnet.frequency(text, "noun"), 1)
            for ending, replacement in ENDINGS["noun"]:
                single = text[: len(text) - len(ending)] + replacement
                if text.endswith(ending) and wordnet.frequency(single, "noun") >= min_count:
                    return single
        return lemma

    def _verb_tag(self, text: str, verb: str) -> str:
        if text == verb:
            return BASE_OR_PAST if text in self._also["past"] else BASE
        if text.endswith("ing"):
            return GERUND
        return FINITE if text.endswith("s") and not text.endswith("ss") else PARTICIPLE

    def _noun_tag(self, text: str, noun: WordSense) -> str:
        if noun.lemma in self._also["several"]:
            return COORDINATED if noun.lemma == text else PLURAL
        if noun.lemma != text or text in self._also["plural"] or text in self._also["own"]:
            return PLURAL
        return PERSON if noun.synset is not None and self._wordnet.is_a(noun.synset, self._person) else NOUN

    def _rare_pos(
        self, text: str, lemmas: dict[PartOfSpeech, str], counts: dict[PartOfSpeech, int], verb_tag: str
    ) -> set[PartOfSpeech]:
        """Parts of speech that are so rare for a form that no context should select them."""
        preferred = self._preferred.get(text)
        nouns, verbs, adjectives = (counts.get(pos, -1) for pos in ("noun", "verb", "adjective"))
        rare: set[PartOfSpeech] = set()
        if "adjective" in lemmas:
            false_comparative = (
                lemmas["adjective"] != text and lemmas.get("noun") == text and nouns > 0
            )  # an "owner"
            if false_comparative or (adjectives == 0 and max(nouns, verbs) > 0 and preferred != "adjective"):
                rare.add("adjective")
                adjectives = -1
        if "noun" in lemmas and preferred is None:
            mostly_verb = verbs > _MIN_VERB_COUNT and verbs > _VERB_RATIO * (nouns + 1)
            if mostly_verb or adjectives > _ADJECTIVE_RATIO * nouns:
                rare.add("noun")
        if verb_tag in (BASE, FINITE, BASE_OR_PAST) and preferred != "verb" and nouns > _NOUN_RATIO * verbs:
            rare.add("verb")
        return rare

    def _default_pos(
        self, lemmas: dict[PartOfSpeech, str], counts: dict[PartOfSpeech, int], verb_tag: str
    ) -> PartOfSpeech:
        if verb_tag in (GERUND, PARTICIPLE):
            adjective = "adjective" in lemmas and counts["adjective"] > counts["verb"]
            return "adjective" if adjective else "verb"
        weights = {pos: counts[pos] for pos in lemmas}
        if verb_tag == FINITE:
            weights["verb"] = counts["verb"] // _FINITE_DIVISOR - 1
        return max(("noun", "adjective", "verb"), key=lambda pos: weights.get(pos, -2))

    def _unknown_token(self, text: str) -> Token:
        """The token of a word that WordNet does not list, by its parts or its ending."""
        _, hyphen, last = text.rpartition("-")
        if hyphen:
            for spelling in (text.replace("-", " "), text.replace("-", "")):
                lemma = self._wordnet.lemma(spelling, "noun")
                if lemma:
                    token = Token(NOUN if lemma == spelling else PLURAL, self.sense(lemma, "noun"))
                    token.noun = token.sense
                    return token
            tag = self[last].tag if last else ADJECTIVE
            if tag not in NOUN_TAGS and tag != GERUND:
                tag = ADJECTIVE
        elif self._only.get(text) == "adjective":
            tag = ADJECTIVE
        elif text.endswith("ly"):
            return Token(ADVERB)
        elif text.endswith("ing"):
            tag = GERUND
        elif text.endswith("ed"):
            tag = PARTICIPLE
        else:
            tag = PLURAL if text.endswith("s") and not text.endswith("ss") else NOUN
        pos: PartOfSpeech = "adjective" if tag == ADJECTIVE else "verb" if tag in VERB_TAGS else "noun"
        token = Token(tag, WordSense(text, pos, None))
        if pos == "verb":
            token.verb, token.verb_tag, token.default_pos = token.sense, tag, "verb"
        elif pos == "adjective":
            token.adjective = token.sense
        else:
            token.noun = token.sense
        return token

    def _compounds(self, text: str, token: Token) -> dict[str, list[Compound]]:
        """The compounds that start with this token, by their second token, the longest first."""
        compounds: dict[str, list[Compound]] = {}
        for rest, sense in self._extra_compounds.get(text, ()):
            compounds.setdefault(rest[0], []).append(Compound(rest[1:], sense, False, False))
        content = token.tag.islower() or token.tag == AMBIGUOUS
        takes_object = text.endswith("ing") and text not in self._no_object
        for lemma, words in self._wordnet.phrases_starting(text, "noun"):
            if lemma in self._always_compounds or (content and self._is_compound(lemma, words)):
                compound = Compound(
                    words[2:], self.sense(lemma, "noun"), takes_object, words[-1] in self._verbal_plurals
                )
                compounds.setdefault(words[1], []).append(compound)
        for options in compounds.values():
            options.sort(key=lambda compound: -len(compound.rest))
        return compounds

    def _is_compound(self, lemma: str, words: tuple[str, ...]) -> bool:
        """Whether a caption with these adjacent words uses WordNet's compound."""
        first, last = words[0], words[-1]
        if lemma in self._never_compounds or first in self._describing or last == "'s":
            return False
        if any(self._function.get(word, MODAL) != MODAL for word in words[1:]):  # "trash can"
            return False
        if words[1] == "'s" and first in self._owners:
            return False
        if not last.endswith("ing") or "noun" in (self._preferred.get(last), self._only.get(last)):
            return True
        return self._wordnet.lemma(last, "verb") is None  # "a baby sitting" on a chair is not one
