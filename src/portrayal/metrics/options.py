"""Options that several metrics have: their type, the help the command line shows, and the least value allowed."""

from __future__ import annotations

from typing import Annotated

from portrayal.lexicon import Lexicon

Draws = Annotated[int, "Bootstrap draws, and permutations, behind intervals and p values.", 20]
Synonyms = Annotated[
    str | None, "Other words for objects: a file with a line per label, the words separated by commas."
]
Words = Annotated[str | Lexicon | None, "Words that name the groups: a shipped list or a TOML file."]
