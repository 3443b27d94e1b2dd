"""Words as vectors: read from files people share, or learnt from a study's own captions."""

from portrayal.models.words.files import load_vectors
from portrayal.models.words.learnt import known_words, learn_vectors
from portrayal.models.words.vectors import WordVectors, cosine

__all__ = ["WordVectors", "cosine", "known_words", "learn_vectors", "load_vectors"]
