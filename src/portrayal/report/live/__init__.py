"""The live page: results served on this machine, with all of their evidence."""

from portrayal.report.live.answers import Answers
from portrayal.report.live.guard import Guard, is_local
from portrayal.report.live.images import Images
from portrayal.report.live.server import ViewServer

__all__ = ["Answers", "Guard", "Images", "ViewServer", "is_local"]
