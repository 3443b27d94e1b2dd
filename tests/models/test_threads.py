"""A small network is trained and asked with one thread, whatever PyTorch would take; others keep theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from portrayal.counterfactual.inference import ask
from portrayal.models import threads
from portrayal.models.masked_vlm import load_masked
from portrayal.models.masked_vlm.training import train
from portrayal.models.threads import fitting_threads
from tests.counterfactual.test_inference import QUESTIONS, ROWS, Instance, load
from tests.models.test_masked_vlm_training import network, pairs, recipe

__all__ = ["pairs"]  # a fixture


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_training(pairs):
    seen = []
    train(
        network("dual"),
        pairs,
        recipe(steps=1),
        report_progress=lambda *_: seen.append(torch.get_num_threads()),
    )
    assert seen == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_asking():
    image, group, concept, kind = ROWS[0]
    row = Instance(image, group, concept, kind, Path(image), Path("another"))
    seen = []
    ask(
        load_masked("lab-dual"),
        [row],
        QUESTIONS,
        None,
        load,
        report_progress=lambda *_: seen.append(torch.get_num_threads()),
    )
    assert seen == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_large_network_and_a_stranger_keep_theirs(monkeypatch):
    monkeypatch.setattr(threads, "SMALL", 3)
    for one in (torch.nn.Linear(2, 2), None, object()):
        with fitting_threads(one):
            assert torch.get_num_threads() == 2
    with fitting_threads(torch.nn.Linear(2, 1)):
        assert torch.get_num_threads() == 1
