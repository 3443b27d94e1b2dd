"""Trainings that are kept: plans, answers, and what is not an answer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from portrayal.errors import InputError
from portrayal.models.text_classifiers.schedules import FROZEN, Lstm
from portrayal.models.text_classifiers.tasks import Answer
from portrayal.models.text_classifiers.training_queue import PLAN, Kept, carry_out, read_plan, write_plan
from tests.models.made_up import task

QUICK = Lstm(epochs=1, batch=8, precision="float32")


def test_a_plan_comes_back_as_it_was(tmp_path):
    one = task()
    tasks = [one, replace(one, seed=3), task(5, groups=3)]
    write_plan(tmp_path / PLAN, tasks, FROZEN, 50)
    read, classifier, explain = read_plan(tmp_path / PLAN)
    assert (classifier, explain) == (FROZEN, 50)
    assert [mine.digest for mine in read] == [mine.digest for mine in tasks]
    assert read[0].texts is read[1].texts  # written once


def test_answers_are_kept_by_what_decides_them(tmp_path):
    kept, one = Kept(tmp_path), task()
    answer = Answer(np.full((10, 2), 0.5), np.arange(3.0))
    assert kept.get(one, QUICK, 0) is None
    kept.put(one, QUICK, 0, answer)
    found = kept.get(task(), QUICK, 0)
    assert (found.likely == answer.likely).all()
    assert (found.parts == answer.parts).all()
    for other in ((replace(one, seed=1), QUICK, 0), (one, replace(QUICK, epochs=2), 0), (one, QUICK, 50)):
        assert kept.get(*other) is None


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 broken", b"\x80\x04N."], ids=["empty", "broken", "pickle"]
)
def test_a_file_that_is_no_answer_is_named(tmp_path, content):
    kept, one = Kept(tmp_path), task()
    kept.put(one, QUICK, 0, Answer(np.full((10, 2), 0.5)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"expected arrays of trainings, found something else\.$"):
        kept.get(one, QUICK, 0)


def test_an_answer_of_another_shape_is_not_taken(tmp_path):
    kept, one = Kept(tmp_path), task()
    kept.put(one, QUICK, 0, Answer(np.full((3, 2), 0.5)))
    with pytest.raises(InputError, match=r"expected probabilities of shape \(10, 2\), found \(3, 2\)"):
        kept.get(one, QUICK, 0)


def test_what_waits_is_done_elsewhere(tmp_path):
    """By the command for a machine that has nothing but the plan, and no polars."""
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    tasks = [task(1), task(2)]
    write_plan(tmp_path / PLAN, tasks, QUICK, 0)
    code = "import sys, runpy; sys.modules['polars'] = None; sys.argv[1:] = sys.argv[1:]; "
    code += "runpy.run_module('portrayal.models', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "--device", "cpu"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "2 of 2 trainings" in done.stderr
    for one in tasks:
        ((_, expected),) = QUICK.train([one], "cpu", 0)
        assert Kept(tmp_path).get(one, QUICK, 0).likely == pytest.approx(expected.likely, abs=1e-6)
    assert list(carry_out(tmp_path, "cpu")) == []  # nothing is left to do


def test_a_folder_without_a_plan_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "portrayal.models", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "plan.npz: expected arrays of trainings, found no such file" in done.stderr
