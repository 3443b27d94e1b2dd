"""Comparison of two results: differences, their intervals and significance tests."""

from portrayal.comparing.compare import compare
from portrayal.comparing.paired_error import joint_error

__all__ = ["compare", "joint_error"]
