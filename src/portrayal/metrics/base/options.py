"""Options that several metrics share: type, help text of the command line, and minimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from portrayal.lexicon import Lexicon

Bootstrap = Annotated[
    int, "Number of bootstrap resamples and permutations behind confidence intervals and p values.", 20
]
EvidenceLimit = Annotated[
    int,
    "Maximum number of captions kept as evidence of a number; fewer where another number has them too (of a "
    "group, of a "
    "word, in another unit). 0: keep all captions for every number.",
    0,
]
ItemNames = Annotated[
    tuple[str, ...], "Report only these objects (repeatable); by default all that occur often enough."
]
Synonyms = Annotated[
    str | None, "Synonyms of objects: a file with a line per label, words separated by commas."
]
Words = Annotated[str | Lexicon | None, "Words that name the groups: a shipped list or a TOML file."]

# Options that an audit passes to every metric that has them, unless they mean something else there.
GENERAL_OPTIONS = {
    "lexicon": "Words that name the groups, for every metric: a shipped list or a TOML file. It is used for the "
    "attribute that the list is for, or for --attribute.",
    "mask": "Mask the words that name the group, in every metric that masks words. By default each metric decides.",
    "model": "The vision-language model of metrics that search images.",
    "language_model": "The language model of metrics that use the probability of a caption.",
    "encoder": "The sentence encoder of metrics that compare captions with objects.",
    "vectors": "Word vectors: a file or a package. By default trained on the references.",
    "confidence": "Confidence (0 to 1) of object labels that have none, such as human labels.",
}


def unique_names(names: str | Sequence[str]) -> list[str]:
    """The values of a repeatable option without duplicates; a single value may be given as a string."""
    return list(dict.fromkeys((names,) if isinstance(names, str) else names))
