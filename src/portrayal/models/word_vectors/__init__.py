"""Words as vectors: read from files people share, or learnt from a study's own captions."""

from portrayal.models.word_vectors.files import load_vectors
from portrayal.models.word_vectors.ppmi import known_words, learn_vectors
from portrayal.models.word_vectors.vectors import WordVectors, cosine

__all__ = ["WordVectors", "cosine", "known_words", "learn_vectors", "load_vectors"]
