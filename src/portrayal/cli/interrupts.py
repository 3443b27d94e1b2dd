"""Ctrl-C ends a command within seconds, whatever it is doing.

Python tells its main thread of a signal between two of its own instructions, so that a step of training, or a pool that
waits for its threads, keeps it waiting. A thread of its own hears of the signal at once, gives the main thread time to
end by itself, and then ends the process. Nothing is lost by that: what is finished is on disk by then, each file whole.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import util

GRACE = 1.0  # seconds for the main thread to end by itself
_LAST_WORDS = 0.5  # seconds to say so; whoever should read it may have gone
EXIT_CODE = 130

_heard = (signal.SIGINT, signal.SIGTERM)


def end_soon(stopped: Callable[[], None]) -> None:
    """Ctrl-C, and being asked to end, are answered in time from now on. `stopped` says so to the user."""
    for one in _heard:
        signal.signal(one, signal.default_int_handler)  # being asked to end is like Ctrl-C
    here, there = socket.socketpair()
    there.setblocking(False)
    signal.set_wakeup_fd(there.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(here, stopped), daemon=True).start()


def _listen(here: socket.socket, stopped: Callable[[], None]) -> None:
    while not set(here.recv(64)) & set(_heard):
        pass
    time.sleep(GRACE)
    for worker in multiprocessing.active_children():
        worker.kill()
    words = threading.Thread(target=_last_words, args=(stopped,), daemon=True)
    words.start()
    words.join(_LAST_WORDS)
    os._exit(EXIT_CODE)


def _last_words(stopped: Callable[[], None]) -> None:
    stopped()
    # As Python does when it ends: else semaphores of a pool stay behind, and are complained about.
    util._run_finalizers(0)  # type: ignore[attr-defined]
    sys.stdout.flush()
    sys.stderr.flush()
