"""The nouns, verbs and adjectives of a caption, by rules: no tagger has to be installed.

A form that can be several things (`stands`, `painting`, `orange`) is decided by what stands before and after it, and
where that says nothing, by how often WordNet has seen it as a noun or as a verb. Everything that depends on a token
alone is worked out once per token (forms.py), so that a caption costs little more than look-ups.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from portrayal.lexicon.wordnet.graph import Part, WordNet, wordnet
from portrayal.lexicon.wordnet.word_forms import (
    ADJECTIVE,
    ADVERB,
    ALONE,
    BASE,
    BE,
    CLAUSE,
    CONJUNCTION,
    DETERMINER,
    DO,
    EITHER,
    FINITE,
    GERUND,
    HAVE,
    MARK,
    MODAL,
    NOUN,
    NOUNS,
    PARTICIPLE,
    PERSON,
    PLURAL,
    PREPOSITION,
    PRONOUN,
    QUANTITY,
    RELATIVE,
    SEVERAL,
    TO,
    TOWARD,
    UNSURE,
    VERBS,
    Compound,
    Token,
    Tokens,
)


class Word(NamedTuple):
    """A content word of a caption."""

    lemma: str  # as WordNet has it, perhaps of several words ("fire hydrant")
    part: Part
    synset: int | None  # its most frequent sense; None where WordNet does not know the word
    start: int  # the first token
    length: int  # how many tokens


def content_words(tokens: Sequence[str]) -> list[Word]:
    """The content words of a caption, from left to right, given the tokens of `tokenize`.

    >>> from portrayal.lexicon.tokens import tokenize
    >>> def said(caption): return [(word.lemma, word.part) for word in content_words(tokenize(caption))]
    >>> said("A man stands next to the fire hydrants.")
    [('man', 'noun'), ('stand', 'verb'), ('fire hydrant', 'noun')]
    >>> said("two young girls are painting a wall")
    [('young', 'adjective'), ('girl', 'noun'), ('paint', 'verb'), ('wall', 'noun')]
    """
    return grammar().content_words(tokens)


# Kinds that say the same to their neighbours.
OBJECT = DETERMINER + QUANTITY + PRONOUN  # begins an object: "holds a", "holds it"
GOES_ON = OBJECT + PREPOSITION + TO + ADVERB  # what follows a verb
DESCRIBED = DETERMINER + QUANTITY + ADJECTIVE  # what stands before a noun
SUBJECT = NOUNS + PRONOUN + RELATIVE
HELPERS = BE + HAVE + DO
NO_NOUN = GOES_ON + RELATIVE + CLAUSE + CONJUNCTION + HELPERS + MODAL + MARK + GERUND + FINITE

END = Token(MARK)
_OF_SUBJECT = frozenset(("all", "both", "each"))  # "they are all standing"


class Around(NamedTuple):
    """What stands around a token."""

    before: str
    after: str  # UNSURE where it is not known yet
    closes: bool  # no noun follows
    verb: str  # the form of the last verb of the clause; MARK if there was none
    first: bool  # nothing stands before


class Grammar:
    """The rules, with what is known of each token."""

    def __init__(self, net: WordNet, lists: dict[str, Any]):
        self._tokens = Tokens(net, lists)
        self._main = {
            kind: self._tokens.reading(lemma, "verb")
            for kind, lemma in ((BE, "be"), (HAVE, "have"), (DO, "do"))
        }

    def content_words(self, tokens: Sequence[str]) -> list[Word]:
        known = self._tokens
        seen = [known[text] for text in tokens]
        count = len(seen)
        seen.append(END)
        found: list[Word] = []
        before = MARK  # what the last token was; adverbs do not count
        verb = MARK  # the form of the last verb of this clause
        joined = False  # after "a man and": with the noun that follows, they are several
        place = 0
        while place < count:
            token = seen[place]
            if token.compounds is not None and place + 1 < count:
                compound = _compound(token.compounds, place, tokens, seen, before)
                if compound is not None:
                    length = 2 + len(compound.rest)
                    if compound.reading is None:
                        before = PREPOSITION
                    else:
                        found.append(Word(*compound.reading, place, length))
                        before = SEVERAL if joined else seen[place + length - 1].as_noun
                        joined = False
                    place += length
                    continue
            kind, reading = token.kind, token.reading
            if kind == UNSURE:
                kind = _decide(token, before, verb, seen, place)
                if kind in NOUNS:
                    reading = token.noun
                elif kind in VERBS:
                    reading = token.verb
                elif kind == ADJECTIVE:
                    reading = token.adjective
            if reading is not None:
                found.append(Word(*reading, place, 1))
                if kind in VERBS:
                    verb, joined = kind, False
                elif kind == ADJECTIVE:
                    if before == PREPOSITION:
                        kind = ALONE
                elif joined:
                    kind, joined = SEVERAL, False
                before = kind
            elif kind in HELPERS:
                before, verb, joined = kind, FINITE, False
                if not _helps(kind, tokens, seen, place):
                    found.append(Word(*self._main[kind], place, 1))
                    if kind != BE:
                        before = BASE
            elif kind in (CLAUSE, RELATIVE):
                before, verb, joined = kind, MARK, False
            elif (
                token.noun is not None and before in DETERMINER + QUANTITY and seen[place + 1].kind in "P.CX"
            ):
                found.append(Word(*token.noun, place, 1))
                before = NOUN
            elif kind != ADVERB:
                joined = (kind == CONJUNCTION and before in NOUNS) or (
                    joined and kind in DETERMINER + QUANTITY
                )
                before = TOWARD if kind == TO and before == PARTICIPLE else kind
            place += 1
        return found


def _compound(
    compounds: dict[str, list[Compound]], place: int, tokens: Sequence[str], seen: list[Token], before: str
) -> Compound | None:
    """The longest word of several tokens that begins here, if it is meant as one."""
    second, single = tokens[place + 1], seen[place + 1].singular
    found = None
    for compound in compounds.get(second, ()):
        rest = compound.rest
        if rest:
            last = place + 1 + len(rest)
            if last >= len(tokens) or tuple(tokens[place + 2 : last]) != rest[:-1]:
                continue
            if tokens[last] != rest[-1] and seen[last].singular != rest[-1]:
                continue
        found = compound
        break
    if found is None and single is not None and single != second:
        for compound in compounds.get(single, ()):
            if not compound.rest:  # only a last word may stand in the plural
                found = compound
    if found is None or found.reading is None:
        return found
    token = seen[place]
    if found.takes_object and before not in DESCRIBED + PREPOSITION:
        return None
    if found.acts and seen[place + 1 + len(found.rest)].as_noun == PLURAL:
        return None
    if before in TO + MODAL and token.form == BASE and token.likely == "verb":
        return None
    return found


def _helps(kind: str, tokens: Sequence[str], seen: list[Token], place: int) -> bool:
    """Whether "is", "has" or "does" only helps a verb that follows, perhaps after "not" or "all"."""
    ahead = place + 1
    if seen[ahead].kind == PRONOUN:
        ahead += 1
    while seen[ahead].kind == ADVERB or (seen[ahead].kind == QUANTITY and tokens[ahead] in _OF_SUBJECT):
        ahead += 1
    token = seen[ahead]
    other, form, likely = token.kind, token.form, token.likely
    if kind == BE:
        helped = GERUND + PARTICIPLE + EITHER
        return other in BE + helped or (
            other == UNSURE and form != "" and form in helped and likely != "adjective"
        )
    helped = PARTICIPLE + EITHER if kind == HAVE else BASE + EITHER
    also = BE + HAVE if kind == HAVE else HAVE
    return other in also + helped or (other == UNSURE and form != "" and form in helped and likely == "verb")


def _decide(token: Token, before: str, verb: str, seen: list[Token], place: int) -> str:
    """What a token is that can be several things."""
    follower = seen[place + 1]
    after = follower.kind
    if after == UNSURE:
        closes = follower.likely == "verb" and (follower.form == GERUND or follower.form == FINITE)
    else:
        closes = after in NO_NOUN
    if token.verb is not None:
        around = Around(before, after, closes, verb, place == 0)
        if _AS_VERB[token.form](token, around):
            return token.form
    if token.adjective is None:
        return token.form if token.noun is None else token.as_noun
    if token.adverb and before in VERBS + NOUNS and after in "P.CWKTR":
        return ADVERB
    if token.noun is None:
        return ADJECTIVE
    if closes:
        if before == BE:
            return ADJECTIVE
        if after == CONJUNCTION:  # "an orange and white cat"
            beyond = seen[place + 2]
            if beyond.adjective is not None and beyond.form != GERUND:
                return ADJECTIVE
        return token.as_noun
    return ADJECTIVE if token.describes or after == ADJECTIVE else token.as_noun


def _gerund(token: Token, around: Around) -> bool:
    """Whether "riding" is a verb."""
    before, after, closes, *_ = around
    if before == BE:
        return True
    if token.likely == "noun":  # "a man painting a wall", "a woman painting walls"
        if after in OBJECT:
            return before in SUBJECT + CLAUSE + CONJUNCTION + MARK
        return not closes and before in PERSON + PLURAL + SEVERAL + PRONOUN
    if token.noun is None:
        return token.likely == "verb"
    if token.activity:
        return (closes and before != DETERMINER) or before not in "DQaPC."
    return token.likely == "verb" and not (closes and before in DETERMINER + ADJECTIVE)


def _finite(token: Token, around: Around) -> bool:
    """Whether "rides" is a verb."""
    before, after, closes, verb, _ = around
    likely = token.likely == "verb"
    if before in (PRONOUN, RELATIVE):
        return True
    if before == PERSON:  # "a man cooks food"
        return likely or after in GOES_ON or (verb == MARK and not closes)
    if before in (NOUN, SEVERAL):
        return likely or after in OBJECT
    if not likely:
        return False
    if before in (PLURAL, ALONE):  # "a man in shorts plays with"
        return verb != FINITE or after in GOES_ON
    if before == QUANTITY:
        return closes
    if before == CONJUNCTION:  # "sits and watches TV"
        return verb == FINITE or (verb != MARK and after in GOES_ON)
    return before == MARK and verb == FINITE


def _base(token: Token, around: Around) -> bool:
    """Whether "ride" is a verb; "cut" may be in the past."""
    before, after, closes, verb, first = around
    likely = token.likely == "verb"
    if before in MODAL + DO or (token.noun is None and token.adjective is None):
        return True
    if before in (TO, TOWARD):
        return (
            likely or after in OBJECT or token.noun is None or (before == TO and after in PREPOSITION + MARK)
        )
    past = token.form == EITHER
    if past and (before in BE + HAVE or (likely and closes and before in SUBJECT)):
        return True
    if before in PLURAL + SEVERAL + PRONOUN:
        return likely or after in OBJECT
    if not likely:
        return False
    if before == RELATIVE:
        return True
    if before == PERSON:  # "watching a man ride a horse"
        return after in OBJECT + PREPOSITION + TO
    if before == QUANTITY:
        return after in OBJECT
    if before == CONJUNCTION:
        return verb == BASE or (past and after in OBJECT)
    return first and after in OBJECT


def _participle(token: Token, around: Around) -> bool:
    """Whether "left" is a verb."""
    before, after, closes, *_ = around
    likely = token.likely == "verb"
    if token.noun is None:
        return likely or before in HAVE + DO
    if before in (BE, HAVE):
        return True
    return before in SUBJECT and ((likely and closes) or after in DETERMINER + QUANTITY)


_AS_VERB: dict[str, Callable[[Token, Around], bool]] = {
    GERUND: _gerund,
    FINITE: _finite,
    BASE: _base,
    EITHER: _base,
    PARTICIPLE: _participle,
}


@cache
def grammar() -> Grammar:
    """The rules for English captions, read once."""
    text = (resources.files("portrayal.lexicon.wordnet") / "grammar.toml").read_text(encoding="utf-8")
    return Grammar(wordnet(), tomllib.loads(text))
