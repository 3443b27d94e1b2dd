"""What a token can be before its neighbours are seen: by WordNet, and by the lists of grammar.toml."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from portrayal.lexicon.wordnet.graph import ENDINGS, Part, WordNet

# What a token is, as a letter. Capitals and marks are words without content.
DETERMINER, QUANTITY, PRONOUN, PREPOSITION, CONJUNCTION, ADVERB = "D", "Q", "O", "P", "C", "R"
RELATIVE, CLAUSE = "W", "K"  # "that", before a verb; "while", before a clause
BE, HAVE, DO, MODAL = "X", "H", "U", "M"
TO, TOWARD = "T", "Y"  # "to"; TOWARD where it follows a participle: "tied to"
MARK = "."
NOUN, PERSON, PLURAL, SEVERAL = "n", "m", "s", "c"  # SEVERAL: "a couple", "a man and a woman"
BASE, FINITE, GERUND, PARTICIPLE, EITHER = (
    "b",
    "f",
    "g",
    "p",
    "e",
)  # ride, rides, riding, rode and ridden; cut
ADJECTIVE, ALONE = "a", "A"  # ALONE: it may stand for a noun, "a man in red"
UNSURE = "?"  # its neighbours decide

NOUNS = NOUN + PERSON + PLURAL + SEVERAL
VERBS = BASE + FINITE + GERUND + PARTICIPLE + EITHER

_FUNCTION = {
    "determiner": DETERMINER, "quantity": QUANTITY, "pronoun": PRONOUN, "preposition": PREPOSITION,
    "relative": RELATIVE, "clause": CLAUSE, "conjunction": CONJUNCTION, "be": BE, "have": HAVE, "do": DO,
    "modal": MODAL, "adverb": ADVERB,
}  # fmt: skip

# How much more often a word must have been seen as one thing before it is nothing else.
_SURELY_ADJECTIVE = 8
_SURELY_NOUN = 10
_SURELY_VERB = 30
_ENOUGH = 100  # and how often, for verbs: nouns of captions are rare in novels
_FINITE = 6  # "drops" and "tracks" are mostly nouns in captions; "stands" is seen often enough
_REMEMBERED = 200_000  # tokens: English has fewer words, but captions may hold any number of names


class Reading(NamedTuple):
    """One thing a token can be."""

    lemma: str
    part: Part
    synset: int | None


class Compound(NamedTuple):
    """A word of several tokens, of which the first two have been found."""

    rest: tuple[str, ...]
    reading: Reading | None  # None: words without content, "in front of"
    takes_object: bool  # it may be a verb and its object: "drinking water"
    acts: bool  # in the plural, its last word is a verb: "the bus stops"


class Token:
    """What a token can be: a settled kind with its reading, or UNSURE and up to three readings."""

    __slots__ = (
        "activity", "adjective", "adverb", "as_noun", "compounds", "describes", "form", "kind", "likely", "noun",
        "reading", "singular", "verb",
    )  # fmt: skip

    def __init__(self, kind: str, reading: Reading | None = None):
        self.kind = kind
        self.reading = reading
        self.noun: Reading | None = None
        self.as_noun = kind if kind in NOUNS else NOUN
        self.verb: Reading | None = None
        self.form = ""  # one of VERBS, where it can be a verb
        self.adjective: Reading | None = None
        self.describes = False  # as an adjective, where a noun follows
        self.adverb = False
        self.activity = False
        self.likely: Part = "noun"
        self.singular: str | None = None
        self.compounds: dict[str, list[Compound]] | None = None


class Tokens(dict[str, Token]):
    """Tokens by their text, each looked up in WordNet when it is first met."""

    def __init__(self, net: WordNet, lists: dict[str, Any]):
        super().__init__()
        self._net = net
        function, also, compounds = lists["function"], lists["also"], lists["compounds"]
        self._function = {word: kind for name, kind in _FUNCTION.items() for word in function[name].split()}
        self._function["to"] = TO
        self._function_or_noun = frozenset(function["noun"].split())
        self._only: dict[str, str] = {
            word: parts for parts, words in lists["only"].items() for word in words.split()
        }
        self._rather: dict[str, Part] = {
            word: part for part in get_args(Part) for word in lists["rather"].get(part, "").split()
        }
        self._also = {name: frozenset(words.split()) for name, words in also.items()}
        self._never = frozenset(compounds["never"])
        self._meant = frozenset(compounds["meant"])
        self._describing = frozenset(compounds["describing"].split())
        self._no_object = frozenset(compounds["ing"].split())
        self._acts = frozenset(compounds["acts"].split())
        self._owners = frozenset(compounds["owners"].split())
        self._person = net.sense("person", "noun", 1)
        self._added: dict[str, list[tuple[tuple[str, ...], Reading | None]]] = {}
        for phrase in function["phrases"]:
            first, *rest = phrase.split()
            self._added.setdefault(first, []).append((tuple(rest), None))
        for spelt in compounds["spelt"]:
            phrase, _, lemma = spelt.partition(" = ")
            first, *rest = phrase.split()
            self._added.setdefault(first, []).append((tuple(rest), self.reading(lemma, "noun")))

    def __missing__(self, text: str) -> Token:
        if text.isdigit():  # there is no end of numbers
            return Token(DETERMINER)
        token = self._without_content(text) or self._with_content(text)
        token.singular = self._noun(text)
        token.compounds = self._compounds(text, token) or None
        if len(self) >= _REMEMBERED:
            self.clear()
        self[text] = token
        return token

    def reading(self, lemma: str, part: Part) -> Reading:
        return Reading(lemma, part, self._net.first(lemma, part))

    def _without_content(self, text: str) -> Token | None:
        """A function word, a number, a mark, or a letter by itself."""
        kind = self._function.get(text)
        if kind is not None:
            token = Token(kind)
            if text in self._function_or_noun:
                token.noun = self.reading(text, "noun")
            return token
        if text[0] in "'’" and len(text) > 1:
            return Token(DETERMINER if text[1:] == "s" else MODAL)
        if any(letter.isdigit() for letter in text):
            return Token(DETERMINER)
        if not text[0].isalpha():
            return Token(MARK)
        return Token(ADVERB) if len(text) == 1 else None

    def _with_content(self, text: str) -> Token:
        net, rather = self._net, self._rather.get(text)
        lemmas = self._lemmas(text)
        form = self._form(text, lemmas["verb"]) if "verb" in lemmas else ""
        counts = {part: net.frequency(lemma, part) for part, lemma in lemmas.items()}
        if text not in self._only:
            for part in self._unlikely(text, lemmas, counts, form):
                del lemmas[part]
        if net.lemma(text, "adverb") and (not lemmas or text.endswith("ly")):
            often = net.frequency(text, "adverb")
            if all(counts[part] <= often for part in lemmas):
                return Token(ADVERB)
        if not lemmas:
            return self._unknown(text)

        token = Token(UNSURE)
        if "noun" in lemmas:
            token.noun = self.reading(lemmas["noun"], "noun")
            token.as_noun = self._number(text, token.noun)
        if "verb" in lemmas:
            token.verb = self.reading(lemmas["verb"], "verb")
            token.form = form
        if "adjective" in lemmas:
            token.adjective = self.reading(lemmas["adjective"], "adjective")
            token.adverb = text in self._also["adverb"]
            nouns = counts["noun"] if "noun" in lemmas else 0
            token.describes = rather == "adjective" or (rather != "noun" and 2 * counts["adjective"] >= nouns)
        token.activity = text in self._also["activity"]
        token.likely = rather or self._most_likely(lemmas, counts, token.form)
        if len(lemmas) == 1 and not token.adverb:
            token.reading = token.noun or token.verb or token.adjective
            token.kind = token.as_noun if token.noun else token.form or ADJECTIVE
        return token

    def _lemmas(self, text: str) -> dict[Part, str]:
        found: dict[Part, str | None] = {
            "noun": self._noun(text),
            "verb": self._net.lemma(text, "verb"),
            "adjective": self._net.lemma(text, "adjective"),
        }
        only = self._only.get(text)
        return {
            part: lemma
            for part, lemma in found.items()
            if lemma is not None and (only is None or part in only)
        }

    def _noun(self, text: str) -> str | None:
        """WordNet's lemma; but "arms" are several arms, though it has a word "arms" for weapons."""
        net = self._net
        lemma = net.lemma(text, "noun")
        if lemma == text and text.endswith("s") and text not in self._also["own"]:
            often = max(net.frequency(text, "noun"), 1)
            for ending, instead in ENDINGS["noun"]:
                single = text[: len(text) - len(ending)] + instead
                if text.endswith(ending) and net.frequency(single, "noun") >= often:
                    return single
        return lemma

    def _form(self, text: str, verb: str) -> str:
        if text == verb:
            return EITHER if text in self._also["past"] else BASE
        if text.endswith("ing"):
            return GERUND
        return FINITE if text.endswith("s") and not text.endswith("ss") else PARTICIPLE

    def _number(self, text: str, noun: Reading) -> str:
        if noun.lemma in self._also["several"]:
            return SEVERAL if noun.lemma == text else PLURAL
        if noun.lemma != text or text in self._also["plural"] or text in self._also["own"]:
            return PLURAL
        return PERSON if noun.synset is not None and self._net.is_a(noun.synset, self._person) else NOUN

    def _unlikely(self, text: str, lemmas: dict[Part, str], counts: dict[Part, int], form: str) -> set[Part]:
        """What a form is so rarely that no neighbour should make it that."""
        rather = self._rather.get(text)
        nouns, verbs, adjectives = (counts.get(part, -1) for part in ("noun", "verb", "adjective"))
        unlikely: set[Part] = set()
        if "adjective" in lemmas:
            compared = lemmas["adjective"] != text and lemmas.get("noun") == text and nouns > 0  # an "owner"
            if compared or (adjectives == 0 and max(nouns, verbs) > 0 and rather != "adjective"):
                unlikely.add("adjective")
                adjectives = -1
        if "noun" in lemmas and rather is None:
            surely_verb = verbs > _ENOUGH and verbs > _SURELY_VERB * (nouns + 1)
            if surely_verb or adjectives > _SURELY_ADJECTIVE * nouns:
                unlikely.add("noun")
        if form in (BASE, FINITE, EITHER) and rather != "verb" and nouns > _SURELY_NOUN * verbs:
            unlikely.add("verb")
        return unlikely

    def _most_likely(self, lemmas: dict[Part, str], counts: dict[Part, int], form: str) -> Part:
        if form in (GERUND, PARTICIPLE):
            adjective = "adjective" in lemmas and counts["adjective"] > counts["verb"]
            return "adjective" if adjective else "verb"
        weights = {part: counts[part] for part in lemmas}
        if form == FINITE:
            weights["verb"] = counts["verb"] // _FINITE - 1
        return max(("noun", "adjective", "verb"), key=lambda part: weights.get(part, -2))

    def _unknown(self, text: str) -> Token:
        """A word that WordNet does not have: by its parts, or by its ending."""
        _, hyphen, last = text.rpartition("-")
        if hyphen:
            for spelling in (text.replace("-", " "), text.replace("-", "")):
                lemma = self._net.lemma(spelling, "noun")
                if lemma:
                    token = Token(NOUN if lemma == spelling else PLURAL, self.reading(lemma, "noun"))
                    token.noun = token.reading
                    return token
            kind = self[last].kind if last else ADJECTIVE
            if kind not in NOUNS and kind != GERUND:
                kind = ADJECTIVE
        elif self._only.get(text) == "adjective":
            kind = ADJECTIVE
        elif text.endswith("ly"):
            return Token(ADVERB)
        elif text.endswith("ing"):
            kind = GERUND
        elif text.endswith("ed"):
            kind = PARTICIPLE
        else:
            kind = PLURAL if text.endswith("s") and not text.endswith("ss") else NOUN
        part: Part = "adjective" if kind == ADJECTIVE else "verb" if kind in VERBS else "noun"
        token = Token(kind, Reading(text, part, None))
        if part == "verb":
            token.verb, token.form, token.likely = token.reading, kind, "verb"
        elif part == "adjective":
            token.adjective = token.reading
        else:
            token.noun = token.reading
        return token

    def _compounds(self, text: str, token: Token) -> dict[str, list[Compound]]:
        """The words of several tokens that begin with this one, by their second token; the longest first."""
        made: dict[str, list[Compound]] = {}
        for rest, reading in self._added.get(text, ()):
            made.setdefault(rest[0], []).append(Compound(rest[1:], reading, False, False))
        content = token.kind.islower() or token.kind == UNSURE
        takes_object = text.endswith("ing") and text not in self._no_object
        for lemma, words in self._net.phrases_starting(text, "noun"):
            if lemma in self._meant or (content and self._is_meant(lemma, words)):
                compound = Compound(
                    words[2:], self.reading(lemma, "noun"), takes_object, words[-1] in self._acts
                )
                made.setdefault(words[1], []).append(compound)
        for options in made.values():
            options.sort(key=lambda compound: -len(compound.rest))
        return made

    def _is_meant(self, lemma: str, words: tuple[str, ...]) -> bool:
        """Whether a caption with these words in a row means WordNet's compound."""
        first, last = words[0], words[-1]
        if lemma in self._never or first in self._describing or last == "'s":
            return False
        if any(self._function.get(word, MODAL) != MODAL for word in words[1:]):  # "trash can"
            return False
        if words[1] == "'s" and first in self._owners:
            return False
        if not last.endswith("ing") or "noun" in (self._rather.get(last), self._only.get(last)):
            return True
        return self._net.lemma(last, "verb") is None  # "a baby sitting" on a chair is none
