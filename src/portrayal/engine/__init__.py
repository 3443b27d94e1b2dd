"""Where work runs, and how it resumes. The same numbers come out of every place."""

from portrayal.engine.journal import Journal, code_digest
from portrayal.engine.places import Cores, Place, ThisProcess, at_most, own_cores, place_for
from portrayal.engine.tasks import Progress, Task, run_tasks
from portrayal.engine.telling import listening, tell

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
