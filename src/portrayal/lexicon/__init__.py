"""Words about people: lists with their source, and finding, hiding and exchanging them in captions."""

from portrayal.lexicon.aliases import name_key
from portrayal.lexicon.attributes import canonical_name, find_lexicon, lexicon_for
from portrayal.lexicon.coverage import Coverage, coverage
from portrayal.lexicon.group_versions import Filler
from portrayal.lexicon.lexicon import (
    ENGLISH,
    NEUTRAL,
    Lexicon,
    load_lexicon,
    read_lexicon,
    shipped_lexicons,
)
from portrayal.lexicon.mentions import Finder, Mention
from portrayal.lexicon.objects import ObjectFinder, read_synonyms, synonyms_label
from portrayal.lexicon.swap import Swapped, Swapper
from portrayal.lexicon.tokens import tokenize

__all__ = [
    "ENGLISH",
    "NEUTRAL",
    "Coverage",
    "Filler",
    "Finder",
    "Lexicon",
    "Mention",
    "ObjectFinder",
    "Swapped",
    "Swapper",
    "canonical_name",
    "coverage",
    "find_lexicon",
    "lexicon_for",
    "load_lexicon",
    "name_key",
    "read_lexicon",
    "read_synonyms",
    "shipped_lexicons",
    "synonyms_label",
    "tokenize",
]
