"""The live page: a local server for results with all of their evidence."""

from portrayal.report.live.guard import Guard, is_local
from portrayal.report.live.images import ImageFolder
from portrayal.report.live.routes import Routes
from portrayal.report.live.server import ViewServer

__all__ = ["Guard", "ImageFolder", "Routes", "ViewServer", "is_local"]
