"""Options that several metrics have: their type, the help the command line shows, and the least value allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from portrayal.lexicon import Lexicon

Draws = Annotated[int, "Bootstrap draws, and permutations, behind intervals and p values.", 20]
Items = Annotated[
    tuple[str, ...], "Tell of these objects only (repeatable); by default of all there are enough of."
]
Synonyms = Annotated[
    str | None, "Other words for objects: a file with a line per label, the words separated by commas."
]
Words = Annotated[str | Lexicon | None, "Words that name the groups: a shipped list or a TOML file."]


def several(names: str | Sequence[str]) -> list[str]:
    """What may be said several times, each once; one alone is written without brackets."""
    return list(dict.fromkeys((names,) if isinstance(names, str) else names))
