"""Tasks: pieces of work that depend on nothing but their arguments, so that they can run anywhere in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from portrayal.engine.checkpoint import Checkpoint
from portrayal.engine.executors import Executor, SerialExecutor

T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # the task that was finished or is begun, tasks done, tasks in all


@dataclass(frozen=True)
class Task(Generic[T]):
    """`function(shared, **arguments)`; the function must be importable, since it may run in another process.

    `key` names the result in a journal: everything that decides the result belongs in it. Randomness comes
    from a seed among the arguments, never from the place or the order in which tasks run.
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
    """The results in the order of the tasks, whichever finished first.

    `shared` goes to every place once. What a journal already holds is not computed again, and every result is
    written to it as soon as it is there, so that work which is interrupted goes on where it stopped.
    """
    results: dict[int, T] = {}
    if checkpoint is not None:
        for index, task in enumerate(tasks):
            found = checkpoint.get(task.key)
            if found is not None:
                results[index] = found
    waiting = [index for index in range(len(tasks)) if index not in results]
    calls = [(tasks[index].function, tasks[index].arguments) for index in waiting]
    if progress is not None and tasks:
        progress(tasks[waiting[0]].name if waiting else tasks[-1].name, len(results), len(tasks))
    with closing(
        (executor or SerialExecutor()).run(calls, shared)
    ) as running:  # whatever happens here ends its workers
        for position, result in running:
            index = waiting[position]
            results[index] = result
            if checkpoint is not None:
                checkpoint.put(tasks[index].key, result)
            if progress is not None:
                progress(tasks[index].name, len(results), len(tasks))
    return [results[index] for index in range(len(tasks))]
