"""What the metrics share that relate captions, objects and groups by models of language."""
