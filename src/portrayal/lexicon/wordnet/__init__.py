"""WordNet 3.0: word senses, hypernyms, and the content words of a caption."""
