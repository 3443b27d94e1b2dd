"""Mitigation methods, measured before and after mitigation together with their cost."""
