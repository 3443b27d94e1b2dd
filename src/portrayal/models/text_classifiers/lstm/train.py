"""Training on whatever there is: as many networks together as a GPU holds, or one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from portrayal.models.text_classifiers.lstm import single
from portrayal.models.text_classifiers.schedules import Lstm
from portrayal.models.text_classifiers.tasks import Answer, Task

_BYTES_A_NETWORK = 220 << 20  # on a GPU, with all that a step needs


def train(
    tasks: Sequence[Task], schedule: Lstm, *, device: str = "cpu", explain: int = 0
) -> Iterator[tuple[int, Answer]]:
    """The answer of each task as it is there; `explain` is the number of steps of integrated gradients, 0: none."""
    if device == "cpu":
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # several would wait for each other more than they work
        try:
            for number, task in enumerate(tasks):
                yield number, single.answer(task, schedule, explain)
        finally:
            torch.set_num_threads(threads)
        return
    from portrayal.models.text_classifiers.lstm.stack import Stack

    for some in _stacks(tasks, schedule.batch, device):
        stack = Stack([tasks[number] for number in some], schedule, torch.device(device))
        stack.train()
        yield from zip(some, stack.answers(explain), strict=True)


def _stacks(tasks: Sequence[Task], batch: int, device: str) -> list[list[int]]:
    """Tasks with as many batches, as many of them together as there is room for."""
    free, _ = torch.cuda.mem_get_info(device)
    most = max(1, int(0.8 * free / _BYTES_A_NETWORK))
    alike: dict[tuple[int, int], list[int]] = {}
    for number, task in enumerate(tasks):
        alike.setdefault((-(-len(task.train) // batch), task.groups), []).append(number)
    made = []
    for some in alike.values():
        size = math.ceil(len(some) / math.ceil(len(some) / most))
        made += [some[start : start + size] for start in range(0, len(some), size)]
    return made
