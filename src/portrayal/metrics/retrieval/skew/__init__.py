"""Retrieval skew: how groups are spread over the top of ranked lists."""
