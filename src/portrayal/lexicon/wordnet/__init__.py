"""WordNet 3.0: what words mean, which things are kinds of others, and the content words of a caption."""
