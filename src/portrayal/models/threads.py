"""How many threads PyTorch computes with: one where a network is small, whose threads wait longer than they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

SMALL = 20_000_000  # weights; the lab's networks have about a million, ViLT and ALBEF more than a hundred


@contextmanager
def fitting_threads(network: Any) -> Iterator[None]:
    """One thread for a small network on a processor, and as before when it is done; others keep what they have."""
    weights = list(network.parameters()) if isinstance(network, torch.nn.Module) else []
    on_processor = all(part.device.type == "cpu" for part in weights)
    if not weights or not on_processor or sum(part.numel() for part in weights) > SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
