"""Language models: how likely a text is, token by token."""

from portrayal.models.language.causal import Causal
from portrayal.models.language.ngram import NGrams
from portrayal.models.language.remembered import RememberedModel
from portrayal.models.language.scored import HOW, LanguageModel, Scored, hypothesis, last_word

__all__ = ["HOW", "Causal", "LanguageModel", "NGrams", "RememberedModel", "Scored", "hypothesis", "last_word"]
