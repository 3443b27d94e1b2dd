"""Image labels that name people. No metric counts them as objects."""

from __future__ import annotations

from functools import cache

from portrayal.lexicon.lexicon import load_identity_list, load_lexicon
from portrayal.lexicon.non_mentions import NonMentions, non_mention_words
from portrayal.lexicon.tokens import tokenize

# These words start a postmodifier: "man in suit".
_POSTMODIFIER_STARTS = frozenset("in on at with without by near from wearing".split())
# Body parts as labelled in Open Images: "Human face".
_BODY_PARTS = frozenset("arm beard body ear eye face foot hair hand head leg mouth nose".split())


@cache
def is_person_label(label: str) -> bool:
    """Whether a label names people: person, woman, baseball player; not teddy bear, cowboy hat or mannequin.

    The last word decides, without postmodifiers ("man in suit"), before or after "of". A label also names people if it
    is listed as a whole (boy scout) or is a body part (human face). Words that name a thing as often as a person
    (pitcher, monarch) are objects, because detectors and annotators label what they see.

    >>> [label for label in ("Person", "baseball player", "crowd of people", "cowboy hat", "pitcher", "groom")
    ...  if is_person_label(label)]
    ['Person', 'baseball player', 'crowd of people', 'groom']
    """
    tokens = tokenize(label.replace("_", " "))
    if not tokens or tokens[0] == "toy":
        return False
    tokens = _head(tokens)
    last = len(tokens) - 1
    if " ".join(tokens) in person_terms() or (tokens[0] == "human" and tokens[last] in _BODY_PARTS):
        return True
    return tokens[last] in person_terms() and not NonMentions(tokens).covers(last)


def _head(tokens: list[str]) -> list[str]:
    """The noun phrase without postmodifiers: "man" for "man in suit", "man holding umbrella" and "man (old)"."""
    ends = (
        index for index, token in enumerate(tokens)
        if index and (token in _POSTMODIFIER_STARTS or token.endswith("ing") or token == "(" or token[0].isdigit())
    )  # fmt: skip
    return tokens[: next(ends, len(tokens))]


@cache
def person_terms() -> frozenset[str]:
    """Words and phrases for people, including pronouns, without those that name a thing as often."""
    gender, age = load_lexicon("gender"), load_identity_list("age")
    named = {word for lexicon in (gender, age) for words in lexicon.naming_words.values() for word in words}
    people = named | set(load_lexicon("person").neutral) | set(load_identity_list("people").neutral)
    return (
        frozenset(people)
        - set(age.before_person)
        - non_mention_words().never_people
        - non_mention_words().objects_too
    )
