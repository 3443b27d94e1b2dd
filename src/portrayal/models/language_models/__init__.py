"""Language models: the log-probability of each token of a text."""

from portrayal.models.language_models.cached import CachedLanguageModel
from portrayal.models.language_models.causal import CausalLM
from portrayal.models.language_models.ngram import NGramModel
from portrayal.models.language_models.scores import (
    AGGREGATIONS,
    LanguageModel,
    TokenScores,
    last_word_probability,
    text_probability,
)

__all__ = [
    "AGGREGATIONS",
    "CachedLanguageModel",
    "CausalLM",
    "LanguageModel",
    "NGramModel",
    "TokenScores",
    "last_word_probability",
    "text_probability",
]
