"""Which shipped lexicon belongs to an attribute, by any of the attribute's names."""

from __future__ import annotations

from portrayal.errors import Undefined
from portrayal.lexicon.aliases import name_key
from portrayal.lexicon.lexicon import Lexicon, shipped_lexicons


def find_lexicon(attribute: str) -> Lexicon | None:
    """The default lexicon of an attribute, whatever the case and by any of its names; None where there is none.

    >>> [found.name if (found := find_lexicon(name)) else None for name in ("GENDER", "sex", "Skin_Tone", "hair")]
    ['gender', 'gender', 'race', None]
    """
    naming = [lexicon for lexicon in shipped_lexicons() if lexicon.groups]
    for lexicon in naming:
        if name_key(lexicon.name) == name_key(attribute):
            return lexicon
    # A lexicon that is no attribute's default (gender-broad) has no aliases.
    return next((lexicon for lexicon in naming if lexicon.aliases and lexicon.is_about(attribute)), None)


def lexicon_for(attribute: str) -> Lexicon:
    """The default lexicon of an attribute, as `find_lexicon` finds it."""
    lexicon = find_lexicon(attribute)
    if lexicon is None:
        raise Undefined(
            f"No shipped lexicon names the groups of '{attribute}'; give one with --lexicon FILE (or lexicon=...)."
        )
    return lexicon


def canonical_name(attribute: str) -> str:
    """The name by which lexicons know an attribute; its own where none does.

    >>> canonical_name("Sex"), canonical_name("hair")
    ('gender', 'hair')
    """
    lexicon = find_lexicon(attribute)
    return attribute if lexicon is None else lexicon.attribute or lexicon.name
