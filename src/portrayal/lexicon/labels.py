"""Which labels of an image are people: they are no objects, in whatever metric."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.lexicon import load_lexicon, load_listed
from portrayal.lexicon.nobody import Nobody, lists
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

# Parts of a person, as Open Images labels them: "Human face".
_AFTER_HEAD = frozenset("in on at with without by near from wearing".split())
_PARTS = frozenset("arm beard body ear eye face foot hair hand head leg mouth nose".split())


@cache
def is_person_label(label: str) -> bool:
    """Whether a label names people: person, woman, baseball player; not teddy bear, cowboy hat or mannequin.

    The last word decides, or the one before "of" and what follows it; or the whole label where it is listed (boy scout)
    or a part of a person (human face). Words that name a thing as often as a person (pitcher, monarch) are objects:
    detectors and annotators label what they see.

    >>> [label for label in ("Person", "baseball player", "crowd of people", "cowboy hat", "pitcher", "groom")
    ...  if is_person_label(label)]
    ['Person', 'baseball player', 'crowd of people', 'groom']
    """
    tokens = tokenize(label.replace("_", " "))
    if not tokens or tokens[0] == "toy":
        return False
    tokens = _head(tokens)
    last = len(tokens) - 1
    if " ".join(tokens) in _people() or (tokens[0] == "human" and tokens[last] in _PARTS):
        return True
    return tokens[last] in _people() and not Nobody(tokens).at(last)


def mentions_of_people(tokens: Sequence[str]) -> int:
    """How often the tokens of a caption name somebody by a noun: "male player" does once, "cowboy hat" never.

    >>> [mentions_of_people(tokenize(text)) for text in ("a man and two male players", "she wears a cowboy hat")]
    [2, 0]
    """
    nobody, count, end = Nobody(tokens), 0, -1
    for match in _nouns().find(tokens):
        if not nobody.at(match.start, match.length):
            count += match.start != end  # the next word says more of the same person
            end = match.start + match.length
    return count


@cache
def _nouns() -> PhraseTable:
    return PhraseTable((word, "") for word in _people() - lists().pronouns)


def _head(tokens: list[str]) -> list[str]:
    """What is told of, without what is told of it: "man in suit", "woman holding umbrella", "person (female)"."""
    ends = (
        place for place, token in enumerate(tokens)
        if place and (token in _AFTER_HEAD or token.endswith("ing") or token == "(" or token[0].isdigit())
    )  # fmt: skip
    return tokens[: next(ends, len(tokens))]


@cache
def _people() -> frozenset[str]:
    gender, age = load_lexicon("gender"), load_listed("age")
    named = {word for lexicon in (gender, age) for words in lexicon.naming.values() for word in words}
    people = named | set(load_lexicon("person").neutral) | set(load_listed("people").neutral)
    return frozenset(people) - set(age.before_person) - lists().never_people - lists().objects_too
