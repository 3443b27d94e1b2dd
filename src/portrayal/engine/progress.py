"""Work that takes long inside one task tells how far it is, to whoever listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from portrayal.engine.tasks import Progress

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def progress_listener(progress: Progress | None) -> Iterator[None]:
    """What is told inside goes to this function."""
    before = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(before)


def report_progress(step: str, done: int, steps: int) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(step, done, steps)
