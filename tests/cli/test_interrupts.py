"""Ctrl-C ends a command soon, whatever it is doing, and leaves no process behind. The work would take ten minutes; the
tests only require that the command ends, with enough patience for a busy machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C works differently on Windows")
PATIENCE = 60  # seconds; the work takes TOO_LONG
TOO_LONG = 600

HEAD = f"""
import time, sys, os
from concurrent.futures import ThreadPoolExecutor
import click
from portrayal.cli import main
from portrayal.engine import ProcessExecutor

def long_work(shared):
    sys.stderr.write("at work " + str(os.getpid()) + "\\n")
    sys.stderr.flush()
    time.sleep({TOO_LONG})

def run(work):
    main.cli.add_command(click.command("busy")(work))
    main._Commands.get_command = lambda self, ctx, name: click.command("busy")(work)
    sys.argv = ["portrayal", "busy"]
    main.main()
"""
WORK = {
    # A native call that does not return blocks the main thread just as waiting for threads does.
    "waits for threads": """
def busy():
    with ThreadPoolExecutor(1) as threads:
        threads.submit(long_work, None).result()
""",
    "interrupted in a finalizer": """
class SlowFinalizer:
    def __del__(self):
        long_work(None)

def busy():
    SlowFinalizer()
    time.sleep(600)
""",
    "waits for processes": """
def busy():
    for _ in ProcessExecutor(2).run([(long_work, {}), (long_work, {})], None):
        pass
""",
}
TAIL = """
if __name__ == "__main__":
    run(busy)
"""


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", WORK)
def test_a_signal_ends_the_command(name, signal_sent, tmp_path):
    script = tmp_path / "busy.py"
    script.write_text(HEAD + WORK[name] + TAIL)
    with subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True) as process:
        try:
            workers = [int(wait_for_work(process)) for _ in range(2 if "processes" in name else 1)]
            process.send_signal(signal_sent)
            assert process.wait(PATIENCE) == 130
            assert "Stopped." in process.stderr.read()
        finally:
            process.kill()
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "a worker process was left behind"
        time.sleep(0.1)


def wait_for_work(process: subprocess.Popen[str]) -> str:
    for line in process.stderr:
        if line.startswith("at work"):
            return line.split()[-1]
    raise AssertionError("it ended by itself")


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True
