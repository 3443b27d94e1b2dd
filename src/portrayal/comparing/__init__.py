"""Two results side by side: what differs, by how much, and how sure that is."""

from portrayal.comparing.compare import compare
from portrayal.comparing.paired_error import joint_error

__all__ = ["compare", "joint_error"]
