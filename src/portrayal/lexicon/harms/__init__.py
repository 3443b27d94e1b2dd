"""Word lists for harms that captions can do, a file for each: each can be exchanged for one of the user's.

What settings call a list (`label`) changes when its words do.
"""

from portrayal.lexicon.harms.adjectives import AdjectivesAsNouns, adjectives_as_nouns
from portrayal.lexicon.harms.categories import Taxonomy, taxonomy
from portrayal.lexicon.harms.demeaning import Demeaning, Listing, demeaning_words
from portrayal.lexicon.harms.not_imageable import NotImageable, Words, framing_words, not_imageable
from portrayal.lexicon.harms.pairs import ANY, Pair, Pairs, in_context

__all__ = [
    "ANY",
    "AdjectivesAsNouns",
    "Demeaning",
    "Listing",
    "NotImageable",
    "Pair",
    "Pairs",
    "Taxonomy",
    "Words",
    "adjectives_as_nouns",
    "demeaning_words",
    "framing_words",
    "in_context",
    "not_imageable",
    "taxonomy",
]
