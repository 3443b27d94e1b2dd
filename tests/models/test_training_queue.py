"""The training cache: plans, predictions, and invalid files."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from portrayal.errors import InputError
from portrayal.models.text_classifiers.configs import FROZEN, LstmConfig
from portrayal.models.text_classifiers.tasks import TaskPredictions
from portrayal.models.text_classifiers.training_queue import (
    PLAN,
    TrainingCache,
    read_plan,
    run_plan,
    write_plan,
)
from tests.models.synthetic_tasks import task

QUICK = LstmConfig(epochs=1, batch_size=8, precision="float32")


def test_a_plan_survives_a_round_trip(tmp_path):
    first = task()
    tasks = [first, replace(first, seed=3), task(5, groups=3)]
    write_plan(tmp_path / PLAN, tasks, FROZEN, 50)
    loaded, classifier, explain = read_plan(tmp_path / PLAN)
    assert (classifier, explain) == (FROZEN, 50)
    assert [queued_task.digest for queued_task in loaded] == [queued_task.digest for queued_task in tasks]
    assert loaded[0].texts is loaded[1].texts  # written once


def test_predictions_are_cached_by_their_inputs(tmp_path):
    cache, training_task = TrainingCache(tmp_path), task()
    predictions = TaskPredictions(np.full((10, 2), 0.5), np.arange(3.0))
    assert cache.get(training_task, QUICK, 0) is None
    cache.put(training_task, QUICK, 0, predictions)
    cached = cache.get(task(), QUICK, 0)
    assert (cached.proba == predictions.proba).all()
    assert (cached.attributions == predictions.attributions).all()
    for other in (
        (replace(training_task, seed=1), QUICK, 0),
        (training_task, replace(QUICK, epochs=2), 0),
        (training_task, QUICK, 50),
    ):
        assert cache.get(*other) is None


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 broken", b"\x80\x04N."], ids=["empty", "broken", "pickle"]
)
def test_an_invalid_cache_file_is_named(tmp_path, content):
    cache, training_task = TrainingCache(tmp_path), task()
    cache.put(training_task, QUICK, 0, TaskPredictions(np.full((10, 2), 0.5)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"expected arrays of predictions, found something else\.$"):
        cache.get(training_task, QUICK, 0)


def test_predictions_of_another_shape_are_refused(tmp_path):
    cache, training_task = TrainingCache(tmp_path), task()
    cache.put(training_task, QUICK, 0, TaskPredictions(np.full((3, 2), 0.5)))
    with pytest.raises(InputError, match=r"expected probabilities of shape \(10, 2\), found \(3, 2\)"):
        cache.get(training_task, QUICK, 0)


def test_pending_tasks_are_trained_elsewhere(tmp_path):
    """With the command for a machine that has only the plan, and no polars."""
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    tasks = [task(1), task(2)]
    write_plan(tmp_path / PLAN, tasks, QUICK, 0)
    code = "import sys, runpy; sys.modules['polars'] = None; sys.argv[1:] = sys.argv[1:]; "
    code += "runpy.run_module('portrayal.models', run_name='__main__')"
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "--device", "cpu"], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert "2 of 2 training tasks" in process.stderr
    for training_task in tasks:
        ((_, expected),) = QUICK.train([training_task], "cpu", 0)
        assert TrainingCache(tmp_path).get(training_task, QUICK, 0).proba == pytest.approx(
            expected.proba, abs=1e-6
        )
    assert list(run_plan(tmp_path, "cpu")) == []  # everything is cached


def test_a_folder_without_a_plan_is_named(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "portrayal.models", str(tmp_path)], capture_output=True, text=True
    )
    assert process.returncode == 2
    assert "plan.npz: expected arrays of predictions, found no such file" in process.stderr
