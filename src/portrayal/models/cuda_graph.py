"""CUDA graphs of training steps, which avoid the launch overhead of many short kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class CudaGraph:
    """A captured training step for one batch shape."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]

    @classmethod
    def of(cls, step: Callable[..., None], batch: Sequence[Tensor]) -> CudaGraph:
        inputs = tuple(tensor.clone() for tensor in batch)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # Warm-up: allocations that happen only once must not be captured.
            for _ in range(3):
                step(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(*inputs)
        return cls(graph, inputs)

    def play(self, batch: Sequence[Tensor]) -> None:
        for static, new in zip(self.inputs, batch, strict=True):
            static.copy_(new)
        self.graph.replay()


class RestoreState:
    """Context manager that restores parameters, optimizer state and the random generator."""

    def __init__(self, tensors: Sequence[Tensor], optimizer: torch.optim.Optimizer):
        self._parts, self._learner = tensors, optimizer

    def __enter__(self) -> None:
        self._copies = [tensor.detach().clone() for tensor in self._parts]
        self._learnt = {
            key: {name: value.clone() for name, value in state.items()}
            for key, state in self._learner.state.items()
        }
        self._chance = torch.cuda.get_rng_state()

    @torch.no_grad()
    def __exit__(self, *_: object) -> None:
        for tensor, copy in zip(self._parts, self._copies, strict=True):
            tensor.copy_(copy)
        for key, state in self._learner.state.items():
            for name, value in state.items():  # in place: the graph reads these tensors
                if key in self._learnt:
                    value.copy_(self._learnt[key][name])
                else:
                    value.zero_()
        torch.cuda.set_rng_state(self._chance)
