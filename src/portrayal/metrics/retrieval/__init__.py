"""Metrics of retrieval: how groups are ranked (skew), and for whom the right item is found (recall)."""
