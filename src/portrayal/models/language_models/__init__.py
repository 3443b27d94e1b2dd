"""Language models: how likely a text is, token by token."""

from portrayal.models.language_models.cached import RememberedModel
from portrayal.models.language_models.causal import Causal
from portrayal.models.language_models.ngram import NGrams
from portrayal.models.language_models.scores import HOW, LanguageModel, Scored, hypothesis, last_word

__all__ = ["HOW", "Causal", "LanguageModel", "NGrams", "RememberedModel", "Scored", "hypothesis", "last_word"]
