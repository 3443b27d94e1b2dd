"""Executors: run calls serially in this process or in a pool of processes. A cluster would be a third executor."""

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
ResultStream = Generator[tuple[int, Any], None, None]

# Each worker has one core; libraries that start a thread per core in every worker would oversubscribe the machine.
_THREAD_VARIABLES = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_POLL_SECONDS = 0.05  # interval between checks of workers that are still starting

_shared: Any = None  # the shared argument of a worker process
_is_worker = False
_core_limit: ContextVar[int | None] = ContextVar("most", default=None)


class Executor(Protocol):
    def run(self, calls: Sequence[Call], shared: Any) -> ResultStream:
        """Run every `function(shared, **arguments)`; yield (position, result) as calls finish. Closing it stops all."""


@dataclass(frozen=True)
class SerialExecutor:
    def run(self, calls: Sequence[Call], shared: Any) -> ResultStream:
        for position, (function, arguments) in enumerate(calls):
            yield position, function(shared, **arguments)


@dataclass(frozen=True)
class ProcessExecutor:
    """Run calls in worker processes. They are spawned: a fork of a process that has threads can hang."""

    workers: int

    def run(self, calls: Sequence[Call], shared: Any) -> ResultStream:
        if not calls:
            return
        context = multiprocessing.get_context("spawn")
        with (
            _single_threaded_workers(),
            ProcessPoolExecutor(
                min(self.workers, len(calls)),
                mp_context=context,
                initializer=_initialize_worker,
                initargs=(shared,),
            ) as pool,
        ):
            submission = _Submission(pool, calls)
            try:
                pending = submission.positions()
                for future in as_completed(pending):
                    yield pending[future], future.result()
            except BrokenProcessPool as error:
                raise PortrayalError(
                    "A worker process was killed, most often for lack of memory. Run the command again with fewer "
                    "--workers; progress is checkpointed."
                ) from error
            except BaseException:
                submission.end()
                raise


class _Submission:
    """Submission of calls to a pool, which starts its workers meanwhile.

    It runs in a thread that blocks SIGINT, because workers inherit the signal mask: a worker interrupted before it
    runs any code of ours would print a traceback.
    """

    def __init__(self, pool: ProcessPoolExecutor, calls: Sequence[Call]) -> None:
        self._pool, self._calls = pool, calls
        self._position: dict[Future[Any], int] = {}
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._submit, daemon=True)
        self._thread.start()

    def positions(self) -> dict[Future[Any], int]:
        """Return the position of the call of each future, once all are submitted."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self._position

    def end(self) -> None:
        """Kill the workers, including those that are still starting: their results are not needed any more."""
        while True:
            running = self._thread.is_alive()
            for worker in list((self._pool._processes or {}).values()):
                worker.kill()  # a pool that lost a worker accepts no calls, which ends the thread
            if not running:
                return
            self._thread.join(_POLL_SECONDS)

    def _submit(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for position, call in enumerate(self._calls):
                self._position[self._pool.submit(_call, *call)] = position
        except BaseException as error:  # re-raised in the waiting thread
            self._failed = error


def available_cores() -> int:
    """Return how many threads a computation may use: all cores, but one in a worker, as others use the rest."""
    return 1 if _is_worker else _core_limit.get() or os.cpu_count() or 1


@contextlib.contextmanager
def limit_cores(cores: int) -> Iterator[None]:
    """Limit `available_cores` inside the context."""
    token = _core_limit.set(cores)
    try:
        yield
    finally:
        _core_limit.reset(token)


def executor_for(workers: int) -> Executor:
    """Return a serial executor for one worker, else a process pool."""
    if workers < 1:
        raise PortrayalError(f"The number of workers must be 1 or more. Got {workers} instead.")
    return SerialExecutor() if workers == 1 else ProcessExecutor(workers)


def _initialize_worker(shared: Any) -> None:
    global _shared, _is_worker
    _is_worker = True
    _shared = shared
    # Ctrl-C reaches the whole process group; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exit if the parent is killed: the worker would otherwise wait forever, holding memory and the open output."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return function(_shared, **arguments)


@contextlib.contextmanager
def _single_threaded_workers() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
