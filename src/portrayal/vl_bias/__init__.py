"""Candidates for a CounterBias manifest from captioned pictures: who is named, and what they do or are."""

from portrayal.vl_bias.candidates import Candidate, counts, mine

__all__ = ["Candidate", "counts", "mine"]
