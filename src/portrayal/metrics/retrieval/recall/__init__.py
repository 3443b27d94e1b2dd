"""Retrieval recall: how often the right caption or image is found, by group."""
