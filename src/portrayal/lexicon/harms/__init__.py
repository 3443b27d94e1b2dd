"""Word lists for representational harms. A user's file can replace each of them.

The `label` of a list stands in the settings of results; it changes if the words do.
"""

from portrayal.lexicon.harms.adjectives import AdjectivesAsNouns, adjectives_as_nouns
from portrayal.lexicon.harms.categories import Taxonomy, taxonomy
from portrayal.lexicon.harms.demeaning import DemeaningLevels, DemeaningLexicon, demeaning_words
from portrayal.lexicon.harms.not_imageable import NotImageableWords, WordSet, framing_words, not_imageable
from portrayal.lexicon.harms.pairs import ANY, HarmfulPair, HarmfulPairs, in_context

__all__ = [
    "ANY",
    "AdjectivesAsNouns",
    "DemeaningLevels",
    "DemeaningLexicon",
    "HarmfulPair",
    "HarmfulPairs",
    "NotImageableWords",
    "Taxonomy",
    "WordSet",
    "adjectives_as_nouns",
    "demeaning_words",
    "framing_words",
    "in_context",
    "not_imageable",
    "taxonomy",
]
