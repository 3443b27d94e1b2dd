"""Word lists about people, and functions that find, mask and swap their words in captions."""

from portrayal.lexicon.aliases import name_key
from portrayal.lexicon.attributes import canonical_name, find_lexicon, lexicon_for
from portrayal.lexicon.coverage import Coverage, coverage
from portrayal.lexicon.group_versions import GroupVersions
from portrayal.lexicon.lexicon import (
    ENGLISH,
    NEUTRAL,
    Lexicon,
    load_lexicon,
    read_lexicon,
    shipped_lexicons,
)
from portrayal.lexicon.mention_finder import Mention, MentionFinder
from portrayal.lexicon.objects import ObjectFinder, read_synonyms, synonyms_label
from portrayal.lexicon.swap import Swapper, SwapResult
from portrayal.lexicon.tokens import tokenize

__all__ = [
    "ENGLISH",
    "NEUTRAL",
    "Coverage",
    "GroupVersions",
    "Lexicon",
    "Mention",
    "MentionFinder",
    "ObjectFinder",
    "SwapResult",
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
