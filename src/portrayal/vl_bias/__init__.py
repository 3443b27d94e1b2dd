"""Candidates for a CounterBias manifest, mined from captions: the group of a person, and what they do or are."""

from portrayal.vl_bias.candidates import ImageCandidate, count_candidates, mine_candidates

__all__ = ["ImageCandidate", "count_candidates", "mine_candidates"]
