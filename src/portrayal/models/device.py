"""Where a neural model runs."""

from __future__ import annotations

from portrayal.errors import PortrayalError, need

DEVICES = ("auto", "cpu", "cuda")


def best_device(asked: str = "auto") -> str:
    """The device asked for, if it is there; else a GPU before a processor."""
    torch = need("torch", "neural", "A neural model")
    there = torch.cuda.is_available()
    if asked == "cuda" and not there:
        raise PortrayalError("The device 'cuda' was asked for, and PyTorch sees no such GPU here.")
    return "cuda" if there and asked != "cpu" else "cpu"
