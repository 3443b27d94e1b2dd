"""Limit the number of PyTorch threads to one for small networks, which several threads make slower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

# Maximum number of parameters of a small network. The networks of the lab have about a million, ViLT and ALBEF more
# than a hundred million.
MAX_SMALL_NETWORK_PARAMETERS = 20_000_000


@contextmanager
def limit_threads(network: Any) -> Iterator[None]:
    """Use one thread for a small network on a CPU, and restore the number afterwards; do nothing for others."""
    parameters = list(network.parameters()) if isinstance(network, torch.nn.Module) else []
    on_cpu = all(parameter.device.type == "cpu" for parameter in parameters)
    if (
        not parameters
        or not on_cpu
        or sum(parameter.numel() for parameter in parameters) > MAX_SMALL_NETWORK_PARAMETERS
    ):
        yield
        return
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
