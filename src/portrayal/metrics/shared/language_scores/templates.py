"""Sentences about a group: a template with the group's word in it."""

from __future__ import annotations

from collections.abc import Sequence

from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon
from portrayal.lexicon.swap import replaced

_PLACE = "{}"


def told_of(template: str, lexicon: Lexicon, columns: Sequence[str]) -> list[str]:
    """The sentence about each group, articles made to fit.

    >>> from portrayal.lexicon import load_lexicon
    >>> told_of("this is a {}", load_lexicon("age"), ["young", "old"])
    ['this is a young person', 'this is an old person']
    """
    if template.count(_PLACE) != 1:
        raise PortrayalError(
            f"A template has {{}} once, where the group's word stands. Got {template!r} instead."
        )
    start = template.index(_PLACE)
    words = [lexicon.standing_for(column) or column for column in columns]
    return [replaced(template, [(start, start + len(_PLACE), word)]) for word in words]
