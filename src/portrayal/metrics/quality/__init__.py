"""Quality: the published scores of captions against references, computed for a whole corpus."""
