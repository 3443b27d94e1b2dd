"""The device that a neural model runs on."""

from __future__ import annotations

from portrayal.errors import PortrayalError, need

DEVICES = ("auto", "cpu", "cuda")


def resolve_device(device: str = "auto") -> str:
    """Return the requested device, if it is available; for "auto" a GPU if there is one."""
    torch = need("torch", "neural", "A neural model")
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise PortrayalError("The device 'cuda' was requested, but PyTorch finds no GPU.")
    return "cuda" if has_cuda and device != "cpu" else "cpu"
