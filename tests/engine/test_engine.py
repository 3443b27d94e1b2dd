"""Tasks: the same results from every executor, in order, and no work done twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from portrayal.engine import Checkpoint, ProcessExecutor, SerialExecutor, Task, executor_for, run_tasks
from portrayal.errors import PortrayalError


def multiply(shared: int, factor: int) -> int:
    return shared * factor


def fail_at_2(shared: int, factor: int) -> int:
    if factor == 2:
        raise PortrayalError(f"{factor} is not liked")
    return shared * factor


def exit_worker(shared: int, factor: int) -> int:
    os._exit(9)


def tasks(function=multiply, count=5) -> list[Task[int]]:
    return [Task(f"k{n}", f"task {n}", function, {"factor": n}) for n in range(count)]


def checkpoint(folder: Path) -> Checkpoint[int]:
    return Checkpoint(
        folder,
        save=lambda result, entry: (entry / "r.json").write_text(json.dumps(result)),
        load=lambda entry: json.loads((entry / "r.json").read_text()),
    )


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(2)], ids=["serial", "processes"])
def test_results_come_in_the_order_of_the_tasks(executor):
    assert run_tasks(tasks(), 10, executor=executor) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(2)], ids=["serial", "processes"])
def test_an_error_of_a_task_is_raised(executor, tmp_path):
    checkpoint_store = checkpoint(tmp_path / "j")
    with pytest.raises(PortrayalError, match="2 is not liked"):
        run_tasks(tasks(fail_at_2), 10, executor=executor, checkpoint=checkpoint_store)
    assert checkpoint_store.get("k2") is None


def test_a_killed_worker_is_reported(tmp_path):
    with pytest.raises(PortrayalError, match="A worker process was killed"):
        run_tasks(tasks(exit_worker, 2), 1, executor=ProcessExecutor(2), checkpoint=checkpoint(tmp_path))


def test_finished_tasks_are_not_run_again(tmp_path):
    checkpoint_store = checkpoint(tmp_path / "j")
    with pytest.raises(PortrayalError):
        run_tasks(tasks(fail_at_2), 10, checkpoint=checkpoint_store)
    assert (checkpoint_store.get("k0"), checkpoint_store.get("k1"), checkpoint_store.get("k3")) == (
        0,
        10,
        None,
    )
    checkpoint_store.put("k4", 999)  # if it were computed again, this would not come back
    assert run_tasks(tasks(), 10, checkpoint=checkpoint_store) == [0, 10, 20, 30, 999]


def test_an_incomplete_entry_is_removed(tmp_path):
    def write_half(result: int, entry: Path) -> None:
        (entry / "r.json").write_text("half")
        raise OSError("disk full")

    checkpoint_store = Checkpoint(tmp_path / "j", save=write_half, load=lambda entry: 1)
    with pytest.raises(OSError, match="disk full"):
        checkpoint_store.put("k", 1)
    assert checkpoint_store.get("k") is None
    assert list((tmp_path / "j").iterdir()) == []


def test_progress_counts_up():
    reports = []
    run_tasks(tasks(count=3), 1, progress=lambda name, done, total: reports.append((name, done, total)))
    assert reports == [("task 0", 0, 3), ("task 0", 1, 3), ("task 1", 2, 3), ("task 2", 3, 3)]


def test_no_tasks():
    assert run_tasks([], 1, executor=ProcessExecutor(2)) == []


def test_executor_for():
    assert executor_for(1) == SerialExecutor()
    assert executor_for(3) == ProcessExecutor(3)
    with pytest.raises(PortrayalError, match="must be 1 or more"):
        executor_for(0)


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    run_tasks(tasks(count=2), 1, executor=ProcessExecutor(2))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "POLARS_MAX_THREADS" not in os.environ
