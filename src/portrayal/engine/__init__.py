"""Where work runs, and how it resumes. The same numbers come out of every place."""

from portrayal.engine.checkpoint import Checkpoint, code_digest
from portrayal.engine.executors import ProcessExecutor, Executor, SerialExecutor, limit_cores, available_cores, executor_for
from portrayal.engine.progress import progress_listener, report_progress
from portrayal.engine.tasks import Progress, Task, run_tasks

__all__ = [
    "ProcessExecutor",
    "Checkpoint",
    "Executor",
    "Progress",
    "Task",
    "SerialExecutor",
    "limit_cores",
    "code_digest",
    "progress_listener",
    "available_cores",
    "executor_for",
    "run_tasks",
    "report_progress",
]
