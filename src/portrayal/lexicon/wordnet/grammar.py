"""Rule-based tagging of the nouns, verbs and adjectives of a caption, without an installed tagger.

An ambiguous form (`stands`, `painting`, `orange`) is disambiguated by the tokens before and after it, and otherwise by
its frequency as a noun and as a verb in WordNet. Everything that depends on a token alone is computed once per token
(word_forms.py), so that a caption costs little more than look-ups.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from portrayal.lexicon.wordnet.graph import PartOfSpeech, WordNet, wordnet
from portrayal.lexicon.wordnet.word_forms import (
    ADJECTIVE,
    ADVERB,
    AMBIGUOUS,
    BASE,
    BASE_OR_PAST,
    BE,
    CLAUSE_START,
    CONJUNCTION,
    COORDINATED,
    DETERMINER,
    DO,
    FINITE,
    GERUND,
    HAVE,
    MODAL,
    NOMINAL_ADJECTIVE,
    NOUN,
    NOUN_TAGS,
    PARTICIPLE,
    PERSON,
    PLURAL,
    PREPOSITION,
    PRONOUN,
    PUNCTUATION,
    QUANTITY,
    RELATIVE,
    TO,
    TO_AFTER_PARTICIPLE,
    VERB_TAGS,
    Compound,
    Token,
    TokenLookup,
)


class Word(NamedTuple):
    """A content word of a caption."""

    lemma: str  # as in WordNet, possibly of several words ("fire hydrant")
    pos: PartOfSpeech
    synset: int | None  # its most frequent sense; None if WordNet does not list the word
    start: int  # the first token
    length: int  # how many tokens


def content_words(tokens: Sequence[str]) -> list[Word]:
    """The content words of a caption, from left to right.

    Parameters
    ----------
    tokens : sequence of str
        Tokens of the caption by `tokenize`.

    Returns
    -------
    list of Word

    Examples
    --------
    >>> from portrayal.lexicon.tokens import tokenize
    >>> def tagged(caption): return [(word.lemma, word.pos) for word in content_words(tokenize(caption))]
    >>> tagged("A man stands next to the fire hydrants.")
    [('man', 'noun'), ('stand', 'verb'), ('fire hydrant', 'noun')]
    >>> tagged("two young girls are painting a wall")
    [('young', 'adjective'), ('girl', 'noun'), ('paint', 'verb'), ('wall', 'noun')]
    """
    return grammar().content_words(tokens)


# Sets of tags that have the same effect on their neighbours.
OBJECT_STARTS = DETERMINER + QUANTITY + PRONOUN  # start of an object: "holds a", "holds it"
VERB_FOLLOWERS = OBJECT_STARTS + PREPOSITION + TO + ADVERB  # tags that follow a verb
NOUN_PREMODIFIERS = DETERMINER + QUANTITY + ADJECTIVE  # tags before a noun
SUBJECT_TAGS = NOUN_TAGS + PRONOUN + RELATIVE
AUXILIARIES = BE + HAVE + DO
NOT_NOUN = (
    VERB_FOLLOWERS
    + RELATIVE
    + CLAUSE_START
    + CONJUNCTION
    + AUXILIARIES
    + MODAL
    + PUNCTUATION
    + GERUND
    + FINITE
)

END = Token(PUNCTUATION)
_FLOATING_QUANTIFIERS = frozenset(("all", "both", "each"))  # "they are all standing"


class TokenContext(NamedTuple):
    """Context of a token: the tags of its neighbours."""

    previous: str
    following: str  # AMBIGUOUS if it is not decided yet
    ends_noun_phrase: bool  # no noun follows
    last_verb: str  # tag of the last verb of the clause; PUNCTUATION if there is none
    first: bool  # it is the first token


class Grammar:
    """The tagging rules with the token look-up."""

    def __init__(self, wordnet: WordNet, lists: dict[str, Any]):
        self._tokens = TokenLookup(wordnet, lists)
        self._main = {
            tag: self._tokens.sense(lemma, "verb") for tag, lemma in ((BE, "be"), (HAVE, "have"), (DO, "do"))
        }

    def content_words(self, tokens: Sequence[str]) -> list[Word]:
        """The content words of a caption, from left to right."""
        lookup = self._tokens
        parsed = [lookup[text] for text in tokens]
        count = len(parsed)
        parsed.append(END)
        words: list[Word] = []
        previous = PUNCTUATION  # tag of the last token, ignoring adverbs
        last_verb = PUNCTUATION  # tag of the last verb of this clause
        coordinated = False  # after "a man and": the noun that follows makes a plural subject
        index = 0
        while index < count:
            token = parsed[index]
            if token.compounds is not None and index + 1 < count:
                compound = _match_compound(token.compounds, index, tokens, parsed, previous)
                if compound is not None:
                    length = 2 + len(compound.rest)
                    if compound.sense is None:
                        previous = PREPOSITION
                    else:
                        words.append(Word(*compound.sense, index, length))
                        previous = COORDINATED if coordinated else parsed[index + length - 1].noun_tag
                        coordinated = False
                    index += length
                    continue
            tag, sense = token.tag, token.sense
            if tag == AMBIGUOUS:
                tag = _disambiguate(token, previous, last_verb, parsed, index)
                if tag in NOUN_TAGS:
                    sense = token.noun
                elif tag in VERB_TAGS:
                    sense = token.verb
                elif tag == ADJECTIVE:
                    sense = token.adjective
            if sense is not None:
                words.append(Word(*sense, index, 1))
                if tag in VERB_TAGS:
                    last_verb, coordinated = tag, False
                elif tag == ADJECTIVE:
                    if previous == PREPOSITION:
                        tag = NOMINAL_ADJECTIVE
                elif coordinated:
                    tag, coordinated = COORDINATED, False
                previous = tag
            elif tag in AUXILIARIES:
                previous, last_verb, coordinated = tag, FINITE, False
                if not _is_auxiliary(tag, tokens, parsed, index):
                    words.append(Word(*self._main[tag], index, 1))
                    if tag != BE:
                        previous = BASE
            elif tag in (CLAUSE_START, RELATIVE):
                previous, last_verb, coordinated = tag, PUNCTUATION, False
            elif (
                token.noun is not None
                and previous in DETERMINER + QUANTITY
                and parsed[index + 1].tag in "P.CX"
            ):
                words.append(Word(*token.noun, index, 1))
                previous = NOUN
            elif tag != ADVERB:
                coordinated = (tag == CONJUNCTION and previous in NOUN_TAGS) or (
                    coordinated and tag in DETERMINER + QUANTITY
                )
                previous = TO_AFTER_PARTICIPLE if tag == TO and previous == PARTICIPLE else tag
            index += 1
        return words


def _match_compound(
    compounds: dict[str, list[Compound]],
    index: int,
    tokens: Sequence[str],
    parsed: list[Token],
    previous: str,
) -> Compound | None:
    """The longest compound that starts here, if the caption uses it as a compound."""
    second, single = tokens[index + 1], parsed[index + 1].singular
    match = None
    for compound in compounds.get(second, ()):
        rest = compound.rest
        if rest:
            last = index + 1 + len(rest)
            if last >= len(tokens) or tuple(tokens[index + 2 : last]) != rest[:-1]:
                continue
            if tokens[last] != rest[-1] and parsed[last].singular != rest[-1]:
                continue
        match = compound
        break
    if match is None and single is not None and single != second:
        for compound in compounds.get(single, ()):
            if not compound.rest:  # only the last word may be plural
                match = compound
    if match is None or match.sense is None:
        return match
    token = parsed[index]
    if match.takes_object and previous not in NOUN_PREMODIFIERS + PREPOSITION:
        return None
    if match.verbal_plural and parsed[index + 1 + len(match.rest)].noun_tag == PLURAL:
        return None
    if previous in TO + MODAL and token.verb_tag == BASE and token.default_pos == "verb":
        return None
    return match


def _is_auxiliary(tag: str, tokens: Sequence[str], parsed: list[Token], index: int) -> bool:
    """Whether "is", "has" or "does" is the auxiliary of a verb that follows, possibly after "not" or "all"."""
    next_index = index + 1
    if parsed[next_index].tag == PRONOUN:
        next_index += 1
    while parsed[next_index].tag == ADVERB or (
        parsed[next_index].tag == QUANTITY and tokens[next_index] in _FLOATING_QUANTIFIERS
    ):
        next_index += 1
    token = parsed[next_index]
    next_tag, verb_tag, default_pos = token.tag, token.verb_tag, token.default_pos
    if tag == BE:
        main_verb_tags = GERUND + PARTICIPLE + BASE_OR_PAST
        return next_tag in BE + main_verb_tags or (
            next_tag == AMBIGUOUS
            and verb_tag != ""
            and verb_tag in main_verb_tags
            and default_pos != "adjective"
        )
    main_verb_tags = PARTICIPLE + BASE_OR_PAST if tag == HAVE else BASE + BASE_OR_PAST
    auxiliary_tags = BE + HAVE if tag == HAVE else HAVE
    return next_tag in auxiliary_tags + main_verb_tags or (
        next_tag == AMBIGUOUS and verb_tag != "" and verb_tag in main_verb_tags and default_pos == "verb"
    )


def _disambiguate(token: Token, previous: str, last_verb: str, parsed: list[Token], index: int) -> str:
    """The tag of an ambiguous token."""
    next_token = parsed[index + 1]
    following = next_token.tag
    if following == AMBIGUOUS:
        ends_noun_phrase = next_token.default_pos == "verb" and (
            next_token.verb_tag == GERUND or next_token.verb_tag == FINITE
        )
    else:
        ends_noun_phrase = following in NOT_NOUN
    if token.verb is not None:
        context = TokenContext(previous, following, ends_noun_phrase, last_verb, index == 0)
        if _IS_VERB[token.verb_tag](token, context):
            return token.verb_tag
    if token.adjective is None:
        return token.verb_tag if token.noun is None else token.noun_tag
    if token.adverb and previous in VERB_TAGS + NOUN_TAGS and following in "P.CWKTR":
        return ADVERB
    if token.noun is None:
        return ADJECTIVE
    if ends_noun_phrase:
        if previous == BE:
            return ADJECTIVE
        if following == CONJUNCTION:  # "an orange and white cat"
            beyond = parsed[index + 2]
            if beyond.adjective is not None and beyond.verb_tag != GERUND:
                return ADJECTIVE
        return token.noun_tag
    return ADJECTIVE if token.attributive or following == ADJECTIVE else token.noun_tag


def _gerund_is_verb(token: Token, context: TokenContext) -> bool:
    """Whether "riding" is a verb."""
    previous, following, ends_noun_phrase, *_ = context
    if previous == BE:
        return True
    if token.default_pos == "noun":  # "a man painting a wall", "a woman painting walls"
        if following in OBJECT_STARTS:
            return previous in SUBJECT_TAGS + CLAUSE_START + CONJUNCTION + PUNCTUATION
        return not ends_noun_phrase and previous in PERSON + PLURAL + COORDINATED + PRONOUN
    if token.noun is None:
        return token.default_pos == "verb"
    if token.activity:
        return (ends_noun_phrase and previous != DETERMINER) or previous not in "DQaPC."
    return token.default_pos == "verb" and not (ends_noun_phrase and previous in DETERMINER + ADJECTIVE)


def _finite_is_verb(token: Token, context: TokenContext) -> bool:
    """Whether "rides" is a verb."""
    previous, following, ends_noun_phrase, last_verb, _ = context
    default_pos = token.default_pos == "verb"
    if previous in (PRONOUN, RELATIVE):
        return True
    if previous == PERSON:  # "a man cooks food"
        return (
            default_pos or following in VERB_FOLLOWERS or (last_verb == PUNCTUATION and not ends_noun_phrase)
        )
    if previous in (NOUN, COORDINATED):
        return default_pos or following in OBJECT_STARTS
    if not default_pos:
        return False
    if previous in (PLURAL, NOMINAL_ADJECTIVE):  # "a man in shorts plays with"
        return last_verb != FINITE or following in VERB_FOLLOWERS
    if previous == QUANTITY:
        return ends_noun_phrase
    if previous == CONJUNCTION:  # "sits and watches TV"
        return last_verb == FINITE or (last_verb != PUNCTUATION and following in VERB_FOLLOWERS)
    return previous == PUNCTUATION and last_verb == FINITE


def _base_is_verb(token: Token, context: TokenContext) -> bool:
    """Whether "ride" is a verb; "cut" may be in the past."""
    previous, following, ends_noun_phrase, last_verb, first = context
    default_pos = token.default_pos == "verb"
    if previous in MODAL + DO or (token.noun is None and token.adjective is None):
        return True
    if previous in (TO, TO_AFTER_PARTICIPLE):
        return (
            default_pos
            or following in OBJECT_STARTS
            or token.noun is None
            or (previous == TO and following in PREPOSITION + PUNCTUATION)
        )
    past = token.verb_tag == BASE_OR_PAST
    if past and (previous in BE + HAVE or (default_pos and ends_noun_phrase and previous in SUBJECT_TAGS)):
        return True
    if previous in PLURAL + COORDINATED + PRONOUN:
        return default_pos or following in OBJECT_STARTS
    if not default_pos:
        return False
    if previous == RELATIVE:
        return True
    if previous == PERSON:  # "watching a man ride a horse"
        return following in OBJECT_STARTS + PREPOSITION + TO
    if previous == QUANTITY:
        return following in OBJECT_STARTS
    if previous == CONJUNCTION:
        return last_verb == BASE or (past and following in OBJECT_STARTS)
    return first and following in OBJECT_STARTS


def _participle_is_verb(token: Token, context: TokenContext) -> bool:
    """Whether "left" is a verb."""
    previous, following, ends_noun_phrase, *_ = context
    default_pos = token.default_pos == "verb"
    if token.noun is None:
        return default_pos or previous in HAVE + DO
    if previous in (BE, HAVE):
        return True
    return previous in SUBJECT_TAGS and (
        (default_pos and ends_noun_phrase) or following in DETERMINER + QUANTITY
    )


_IS_VERB: dict[str, Callable[[Token, TokenContext], bool]] = {
    GERUND: _gerund_is_verb,
    FINITE: _finite_is_verb,
    BASE: _base_is_verb,
    BASE_OR_PAST: _base_is_verb,
    PARTICIPLE: _participle_is_verb,
}


@cache
def grammar() -> Grammar:
    """The rules for English captions (cached)."""
    text = (resources.files("portrayal.lexicon.wordnet") / "grammar.toml").read_text(encoding="utf-8")
    return Grammar(wordnet(), tomllib.loads(text))
