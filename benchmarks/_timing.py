"""Timing a piece of work: the best of a few runs, which is the least disturbed one."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(work: Callable[[], object], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
