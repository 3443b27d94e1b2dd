"""Counterfactual images (attacked or given) and texts (word swaps) in which only the person's group changes."""
