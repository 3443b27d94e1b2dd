"""Execution of tasks: executors, checkpoints and progress. Results do not depend on the executor."""

from portrayal.engine.checkpoint import Checkpoint, code_digest
from portrayal.engine.executors import (
    Executor,
    ProcessExecutor,
    SerialExecutor,
    available_cores,
    executor_for,
    limit_cores,
)
from portrayal.engine.progress import progress_listener, report_progress
from portrayal.engine.tasks import Progress, Task, run_tasks

__all__ = [
    "Checkpoint",
    "Executor",
    "ProcessExecutor",
    "Progress",
    "SerialExecutor",
    "Task",
    "available_cores",
    "code_digest",
    "executor_for",
    "limit_cores",
    "progress_listener",
    "report_progress",
    "run_tasks",
]
