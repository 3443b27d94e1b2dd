"""Templates: sentences in which a group's word is filled in."""

from __future__ import annotations

from collections.abc import Sequence

from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon
from portrayal.lexicon.swap import replace_spans

_PLACEHOLDER = "{}"


def fill_template(template: str, lexicon: Lexicon, columns: Sequence[str]) -> list[str]:
    """The template filled with the word of each group; articles are adapted.

    >>> from portrayal.lexicon import load_lexicon
    >>> fill_template("this is a {}", load_lexicon("age"), ["young", "old"])
    ['this is a young person', 'this is an old person']
    """
    if template.count(_PLACEHOLDER) != 1:
        raise PortrayalError(
            f"A template must contain {{}} once, in the place of the group's word. Got {template!r} instead."
        )
    start = template.index(_PLACEHOLDER)
    words = [lexicon.word_for(column) or column for column in columns]
    return [replace_spans(template, [(start, start + len(_PLACEHOLDER), word)]) for word in words]
