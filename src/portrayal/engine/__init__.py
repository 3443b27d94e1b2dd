"""Where work runs, and how it resumes. The same numbers come out of every place."""

from portrayal.engine.checkpoint import Journal, code_digest
from portrayal.engine.executors import Cores, Place, ThisProcess, at_most, own_cores, place_for
from portrayal.engine.progress import listening, tell
from portrayal.engine.tasks import Progress, Task, run_tasks

__all__ = [
    "Cores",
    "Journal",
    "Place",
    "Progress",
    "Task",
    "ThisProcess",
    "at_most",
    "code_digest",
    "listening",
    "own_cores",
    "place_for",
    "run_tasks",
    "tell",
]
