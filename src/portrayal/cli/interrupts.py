"""Signal handling: Ctrl-C ends a command within seconds, whatever it is doing.

Python delivers a signal to the main thread between two bytecode instructions, so a training step, or a pool that waits
for its threads, delays it. A separate thread receives the signal at once, gives the main thread time to exit, and then
ends the process. Nothing is lost: finished work is on disk by then, in complete files.
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

GRACE_SECONDS = 1.0  # for the main thread to exit by itself
_MESSAGE_SECONDS = 0.5  # to print the message; the reader of a pipe may be gone
EXIT_CODE = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_on_signals(print_stopped: Callable[[], None]) -> None:
    """Handle SIGINT and SIGTERM in time from now on; `print_stopped` prints the message to the user."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler)  # SIGTERM acts like Ctrl-C
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_wait_for_signal, args=(receiver, print_stopped), daemon=True).start()


def _wait_for_signal(receiver: socket.socket, print_stopped: Callable[[], None]) -> None:
    while not set(receiver.recv(64)) & set(_SIGNALS):
        pass
    time.sleep(GRACE_SECONDS)
    for worker in multiprocessing.active_children():
        worker.kill()
    message = threading.Thread(target=_print_message, args=(print_stopped,), daemon=True)
    message.start()
    message.join(_MESSAGE_SECONDS)
    os._exit(EXIT_CODE)


def _print_message(print_stopped: Callable[[], None]) -> None:
    print_stopped()
    # As Python does at exit; otherwise semaphores of a pool are left behind, with a warning.
    util._run_finalizers(0)  # type: ignore[attr-defined]
    sys.stdout.flush()
    sys.stderr.flush()
