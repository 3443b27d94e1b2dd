"""Word vectors: read from files, or fitted to a study's own captions."""

from portrayal.models.word_vectors.files import load_vectors
from portrayal.models.word_vectors.ppmi import fit_vectors, frequent_words
from portrayal.models.word_vectors.vectors import WordVectors, cosine

__all__ = ["WordVectors", "cosine", "fit_vectors", "frequent_words", "load_vectors"]
