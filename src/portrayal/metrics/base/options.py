"""Options that several metrics have: their type, the help the command line shows, and the least value allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from portrayal.lexicon import Lexicon

Bootstrap = Annotated[int, "Bootstrap draws, and permutations, behind intervals and p values.", 20]
Kept = Annotated[
    int,
    "Captions kept behind a number, at most; fewer behind numbers that share them with another (of a group, of a word, "
    "in another unit). 0: all captions, behind every number.",
    0,
]
Items = Annotated[
    tuple[str, ...], "Tell of these objects only (repeatable); by default of all there are enough of."
]
Synonyms = Annotated[
    str | None, "Other words for objects: a file with a line per label, the words separated by commas."
]
Words = Annotated[str | Lexicon | None, "Words that name the groups: a shipped list or a TOML file."]

# Options that an audit hands to every metric that has them, unless the metric means something else by the name.
GENERAL = {
    "lexicon": "Words that name the groups, for every metric: a shipped list or a TOML file. It is used for the "
    "attribute that the list is for, or for --attribute.",
    "mask": "Hide the words that name the group, in every metric that hides words. By default each metric decides.",
    "model": "The vision-language model of metrics that search images.",
    "language_model": "The language model of metrics that score how likely a caption is.",
    "encoder": "The sentence encoder of metrics that relate captions to objects.",
    "vectors": "Word vectors: a file or a package. By default learnt from the references.",
    "confidence": "Confidence (0 to 1) of object labels that have none, such as human labels.",
}


def several(names: str | Sequence[str]) -> list[str]:
    """What may be said several times, each once; one alone is written without brackets."""
    return list(dict.fromkeys((names,) if isinstance(names, str) else names))
