"""Words about people: lists with their source, and finding, hiding and exchanging them in captions."""

from portrayal.lexicon.fill import Filler
from portrayal.lexicon.find import Finder, Mention
from portrayal.lexicon.lexicon import (
    NEUTRAL,
    Lexicon,
    lexicon_for,
    load_lexicon,
    read_lexicon,
    shipped_lexicons,
)
from portrayal.lexicon.objects import ObjectFinder, read_synonyms, synonyms_label
from portrayal.lexicon.swap import Swapped, Swapper
from portrayal.lexicon.tokens import tokenize

__all__ = [
    "NEUTRAL",
    "Filler",
    "Finder",
    "Lexicon",
    "Mention",
    "ObjectFinder",
    "Swapped",
    "Swapper",
    "lexicon_for",
    "load_lexicon",
    "read_lexicon",
    "read_synonyms",
    "shipped_lexicons",
    "synonyms_label",
    "tokenize",
]
