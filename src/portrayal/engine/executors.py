"""Where work runs: this process, or all cores of this machine. A cluster would be a third place of this shape."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from portrayal.errors import PortrayalError

Call = tuple[Callable[..., Any], dict[str, Any]]
Runs = Generator[tuple[int, Any], None, None]

# Each worker has a core; libraries that start a thread per core in each of them would only get in the way.
_ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_SOON = 0.05  # seconds between two looks at what is only starting

_shared: Any = None  # what a worker process was given when it started
_is_worker = False
_most: ContextVar[int | None] = ContextVar("most", default=None)


class Executor(Protocol):
    def run(self, calls: Sequence[Call], shared: Any) -> Runs:
        """Run every `function(shared, **arguments)`; yield (position, result) as each one ends. Closed, it ends all."""


@dataclass(frozen=True)
class SerialExecutor:
    def run(self, calls: Sequence[Call], shared: Any) -> Runs:
        for position, (function, arguments) in enumerate(calls):
            yield position, function(shared, **arguments)


@dataclass(frozen=True)
class ProcessExecutor:
    """Worker processes, started afresh: a copy of a process that has threads can hang."""

    workers: int

    def run(self, calls: Sequence[Call], shared: Any) -> Runs:
        if not calls:
            return
        context = multiprocessing.get_context("spawn")
        with (
            _one_thread_each(),
            ProcessPoolExecutor(
                min(self.workers, len(calls)), mp_context=context, initializer=_receive, initargs=(shared,)
            ) as pool,
        ):
            start = _Start(pool, calls)
            try:
                waiting = start.positions()
                for finished in as_completed(waiting):
                    yield waiting[finished], finished.result()
            except BrokenProcessPool as error:
                raise PortrayalError(
                    "A worker process was ended from outside, most often for lack of memory; "
                    "run the command again, with fewer --workers: what is finished is kept."
                ) from error
            except BaseException:
                start.end()
                raise


class _Start:
    """Work that is handed to a pool, which starts its workers meanwhile.

    That happens in a thread that does not hear Ctrl-C, since workers inherit its deafness: one that is interrupted
    before it runs any code of ours would tell the terminal all about it.
    """

    def __init__(self, pool: ProcessPoolExecutor, calls: Sequence[Call]) -> None:
        self._pool, self._calls = pool, calls
        self._position: dict[Future[Any], int] = {}
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._submit, daemon=True)
        self._thread.start()

    def positions(self) -> dict[Future[Any], int]:
        """By future the place of a call, once all are handed over."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self._position

    def end(self) -> None:
        """End the workers, and those that are only starting: what they do is of no use any more."""
        while True:
            running = self._thread.is_alive()
            for worker in list((self._pool._processes or {}).values()):
                worker.kill()  # a pool that has lost a worker takes no more work, which ends the thread
            if not running:
                return
            self._thread.join(_SOON)

    def _submit(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for position, call in enumerate(self._calls):
                self._position[self._pool.submit(_call, *call)] = position
        except BaseException as error:  # for the thread that waits, if it still does
            self._failed = error


def available_cores() -> int:
    """How many threads a long computation may use: every core, but for a worker, whose neighbours have the others."""
    return 1 if _is_worker else _most.get() or os.cpu_count() or 1


@contextlib.contextmanager
def limit_cores(cores: int) -> Iterator[None]:
    """What is computed inside may use so many cores."""
    before = _most.set(cores)
    try:
        yield
    finally:
        _most.reset(before)


def executor_for(workers: int) -> Executor:
    if workers < 1:
        raise PortrayalError(f"The number of workers must be 1 or more. Got {workers} instead.")
    return SerialExecutor() if workers == 1 else ProcessExecutor(workers)


def _receive(shared: Any) -> None:
    global _shared, _is_worker
    _is_worker = True
    _shared = shared
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever, holding its memory and the open output."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return function(_shared, **arguments)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
