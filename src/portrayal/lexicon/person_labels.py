"""Which labels of an image are people: they are no objects, in whatever metric."""

from __future__ import annotations

from functools import cache

from portrayal.lexicon.lexicon import load_lexicon, load_listed
from portrayal.lexicon.non_mentions import Nobody, lists
from portrayal.lexicon.tokens import tokenize

# What follows these says more of somebody: "man in suit".
_AFTER_HEAD = frozenset("in on at with without by near from wearing".split())
# Parts of a person, as Open Images labels them: "Human face".
_PARTS = frozenset("arm beard body ear eye face foot hair hand head leg mouth nose".split())


@cache
def is_person_label(label: str) -> bool:
    """Whether a label names people: person, woman, baseball player; not teddy bear, cowboy hat or mannequin.

    The last word decides: the one before what is said of somebody ("man in suit"), and before "of" or after it. Or the
    whole label is listed (boy scout), or a part of a person (human face). Words that name a thing as often as a person
    (pitcher, monarch) are objects: detectors and annotators label what they see.

    >>> [label for label in ("Person", "baseball player", "crowd of people", "cowboy hat", "pitcher", "groom")
    ...  if is_person_label(label)]
    ['Person', 'baseball player', 'crowd of people', 'groom']
    """
    tokens = tokenize(label.replace("_", " "))
    if not tokens or tokens[0] == "toy":
        return False
    tokens = _head(tokens)
    last = len(tokens) - 1
    if " ".join(tokens) in words_for_people() or (tokens[0] == "human" and tokens[last] in _PARTS):
        return True
    return tokens[last] in words_for_people() and not Nobody(tokens).at(last)


def _head(tokens: list[str]) -> list[str]:
    """The noun phrase without what follows it: "man" of "man in suit", of "man holding umbrella" and of "man (old)"."""
    ends = (
        place for place, token in enumerate(tokens)
        if place and (token in _AFTER_HEAD or token.endswith("ing") or token == "(" or token[0].isdigit())
    )  # fmt: skip
    return tokens[: next(ends, len(tokens))]


@cache
def words_for_people() -> frozenset[str]:
    """Words and phrases for people, pronouns among them, that do not name a thing as often."""
    gender, age = load_lexicon("gender"), load_listed("age")
    named = {word for lexicon in (gender, age) for words in lexicon.naming.values() for word in words}
    people = named | set(load_lexicon("person").neutral) | set(load_listed("people").neutral)
    return frozenset(people) - set(age.before_person) - lists().never_people - lists().objects_too
