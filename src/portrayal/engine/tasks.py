"""Tasks: units of work that depend on nothing but their arguments, so they can run anywhere in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from portrayal.engine.checkpoint import Checkpoint
from portrayal.engine.executors import Executor, SerialExecutor

T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # name of the current task, tasks done, tasks in all


@dataclass(frozen=True)
class Task(Generic[T]):
    """A call `function(shared, **arguments)`; the function must be importable, since it may run in another process.

    `key` names the result in a checkpoint: everything that decides the result belongs in it. Randomness comes
    from a seed among the arguments, never from the executor or the order in which tasks run.
    """

    key: str
    name: str
    function: Callable[..., T]
    arguments: dict[str, Any] = field(default_factory=dict)


def run_tasks(
    tasks: Sequence[Task[T]],
    shared: Any,
    *,
    executor: Executor | None = None,
    checkpoint: Checkpoint[T] | None = None,
    progress: Progress | None = None,
) -> list[T]:
    """Run tasks and return their results, in the order of the tasks.

    `shared` is sent to every worker once. Results in the checkpoint are not computed again, and every new result is
    stored there as soon as it is finished, so that interrupted work resumes.
    """
    results: dict[int, T] = {}
    if checkpoint is not None:
        for index, task in enumerate(tasks):
            stored = checkpoint.get(task.key)
            if stored is not None:
                results[index] = stored
    pending = [index for index in range(len(tasks)) if index not in results]
    calls = [(tasks[index].function, tasks[index].arguments) for index in pending]
    if progress is not None and tasks:
        progress(tasks[pending[0]].name if pending else tasks[-1].name, len(results), len(tasks))
    with closing(
        (executor or SerialExecutor()).run(calls, shared)
    ) as result_stream:  # whatever happens here ends its workers
        for position, result in result_stream:
            index = pending[position]
            results[index] = result
            if checkpoint is not None:
                checkpoint.put(tasks[index].key, result)
            if progress is not None:
                progress(tasks[index].name, len(results), len(tasks))
    return [results[index] for index in range(len(tasks))]
