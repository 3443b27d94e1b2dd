"""Progress reports from inside a long task to the current listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from portrayal.engine.tasks import Progress

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def progress_listener(progress: Progress | None) -> Iterator[None]:
    """Send the progress reports made inside the context to this function."""
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(step: str, done: int, steps: int) -> None:
    """Report progress to the current listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(step, done, steps)
