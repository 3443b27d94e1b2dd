"""Remedies, and whether they work: each is measured before and after, with what it costs."""
