"""The shipped lexicon of an attribute, found by the attribute's name or alias."""

from __future__ import annotations

from portrayal.errors import Undefined
from portrayal.lexicon.aliases import name_key
from portrayal.lexicon.lexicon import Lexicon, shipped_lexicons


def find_lexicon(attribute: str) -> Lexicon | None:
    """The default lexicon of an attribute, found by name or alias and ignoring case; None if there is none.

    >>> lexicons = [find_lexicon(name) for name in ("GENDER", "sex", "Skin_Tone", "hair")]
    >>> [lexicon.name if lexicon else None for lexicon in lexicons]
    ['gender', 'gender', 'race', None]
    """
    candidates = [lexicon for lexicon in shipped_lexicons() if lexicon.groups]
    for lexicon in candidates:
        if name_key(lexicon.name) == name_key(attribute):
            return lexicon
    # A lexicon that is not the default of an attribute (gender-broad) has no aliases.
    return next(
        (lexicon for lexicon in candidates if lexicon.aliases and lexicon.matches_attribute(attribute)), None
    )


def lexicon_for(attribute: str) -> Lexicon:
    """The default lexicon of an attribute (see `find_lexicon`). Raises `Undefined` if there is none."""
    lexicon = find_lexicon(attribute)
    if lexicon is None:
        raise Undefined(
            f"No shipped lexicon names the groups of '{attribute}'; give one with --lexicon FILE (or lexicon=...)."
        )
    return lexicon


def canonical_name(attribute: str) -> str:
    """The attribute's name in the shipped lexicons; the given name if no lexicon has it.

    >>> canonical_name("Sex"), canonical_name("hair")
    ('gender', 'hair')
    """
    lexicon = find_lexicon(attribute)
    return attribute if lexicon is None else lexicon.attribute or lexicon.name
