"""CUDA graphs of training steps. Replaying a graph avoids the launch overhead of many short kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class CudaGraph:
    """A captured training step for batches of one shape."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]

    @classmethod
    def capture(cls, step: Callable[..., None], batch: Sequence[Tensor]) -> CudaGraph:
        """Capture `step(*batch)`."""
        inputs = tuple(tensor.clone() for tensor in batch)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # Warm-up steps: one-time allocations must not be captured.
            for _ in range(3):
                step(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(*inputs)
        return cls(graph, inputs)

    def replay(self, batch: Sequence[Tensor]) -> None:
        """Run the captured step on another batch of the same shape."""
        for static_input, tensor in zip(self.inputs, batch, strict=True):
            static_input.copy_(tensor)
        self.graph.replay()


class RestoreState:
    """Context manager that restores tensors, the optimizer state and the random generator on exit."""

    def __init__(self, tensors: Sequence[Tensor], optimizer: torch.optim.Optimizer):
        self._tensors, self._optimizer = tensors, optimizer

    def __enter__(self) -> None:
        self._saved_tensors = [tensor.detach().clone() for tensor in self._tensors]
        self._saved_optimizer_state = {
            parameter: {name: value.clone() for name, value in parameter_state.items()}
            for parameter, parameter_state in self._optimizer.state.items()
        }
        self._rng_state = torch.cuda.get_rng_state()

    @torch.no_grad()
    def __exit__(self, *_: object) -> None:
        for tensor, saved_tensor in zip(self._tensors, self._saved_tensors, strict=True):
            tensor.copy_(saved_tensor)
        for parameter, parameter_state in self._optimizer.state.items():
            for name, value in parameter_state.items():  # in place: the graph reads these tensors
                if parameter in self._saved_optimizer_state:
                    value.copy_(self._saved_optimizer_state[parameter][name])
                else:
                    value.zero_()
        torch.cuda.set_rng_state(self._rng_state)
