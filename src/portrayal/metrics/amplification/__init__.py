"""Bias amplification: associations of groups and objects in captions, compared with the labels."""
