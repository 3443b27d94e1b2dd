"""Steps of training that a GPU records once and plays again, since many are too short to be asked for one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Recorded:
    """A step of training for one size of a batch, as the GPU remembers it."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]

    @classmethod
    def of(cls, step: Callable[..., None], batch: Sequence[Tensor]) -> Recorded:
        inputs = tuple(part.clone() for part in batch)
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(
            aside
        ):  # a few times for real, since what is made only once must not be recorded
            for _ in range(3):
                step(*inputs)
        torch.cuda.current_stream().wait_stream(aside)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(*inputs)
        return cls(graph, inputs)

    def play(self, batch: Sequence[Tensor]) -> None:
        for mine, new in zip(self.inputs, batch, strict=True):
            mine.copy_(new)
        self.graph.replay()


class Restored:
    """Puts weights, what the learner remembers and the generators back as they were."""

    def __init__(self, parts: Sequence[Tensor], learner: torch.optim.Optimizer):
        self._parts, self._learner = parts, learner

    def __enter__(self) -> None:
        self._copies = [part.detach().clone() for part in self._parts]
        self._learnt = {
            key: {name: kept.clone() for name, kept in state.items()}
            for key, state in self._learner.state.items()
        }
        self._chance = torch.cuda.get_rng_state()

    @torch.no_grad()
    def __exit__(self, *_: object) -> None:
        for part, before in zip(self._parts, self._copies, strict=True):
            part.copy_(before)
        for key, state in self._learner.state.items():
            for name, kept in state.items():  # in place: what is recorded reads these very tensors
                if key in self._learnt:
                    kept.copy_(self._learnt[key][name])
                else:
                    kept.zero_()
        torch.cuda.set_rng_state(self._chance)
