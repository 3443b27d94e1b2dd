"""Trains LSTM tasks: stacked as GPU memory allows, or one after the other on a CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from portrayal.models.text_classifiers.configs import LstmConfig
from portrayal.models.text_classifiers.lstm import single
from portrayal.models.text_classifiers.tasks import ClassificationTask, TaskPredictions

_BYTES_PER_NETWORK = 220 << 20  # of GPU memory, for a training step


def train(
    tasks: Sequence[ClassificationTask],
    config: LstmConfig,
    *,
    device: str = "cpu",
    attribution_steps: int = 0,
) -> Iterator[tuple[int, TaskPredictions]]:
    """Train a classifier for each task, and yield the index and the predictions of each task.

    `attribution_steps` is the number of steps of integrated gradients; 0: no attributions.
    """
    if device == "cpu":
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # faster: threads would mostly wait for each other
        try:
            for index, task in enumerate(tasks):
                yield index, single.fit_predict(task, config, attribution_steps)
        finally:
            torch.set_num_threads(threads)
        return
    from portrayal.models.text_classifiers.lstm.batched_networks import LstmStack

    for stack_indices in _stacks(tasks, config.batch_size, device):
        stack = LstmStack([tasks[index] for index in stack_indices], config, torch.device(device))
        stack.train()
        yield from zip(stack_indices, stack.predictions(attribution_steps), strict=True)


def _stacks(tasks: Sequence[ClassificationTask], batch_size: int, device: str) -> list[list[int]]:
    """Group tasks with equal numbers of batches and groups into stacks that fit in memory."""
    free, _ = torch.cuda.mem_get_info(device)
    max_networks = max(1, int(0.8 * free / _BYTES_PER_NETWORK))
    comparable: dict[tuple[int, int], list[int]] = {}
    for index, task in enumerate(tasks):
        comparable.setdefault((-(-len(task.train_indices) // batch_size), task.n_groups), []).append(index)
    stacks = []
    for indices in comparable.values():
        size = math.ceil(len(indices) / math.ceil(len(indices) / max_networks))
        stacks += [indices[start : start + size] for start in range(0, len(indices), size)]
    return stacks
