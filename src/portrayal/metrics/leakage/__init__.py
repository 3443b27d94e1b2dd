"""Leakage: what predicted labels reveal about the group of the person shown."""
