"""A small network trains and predicts with one thread, whatever PyTorch's default is; others keep theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from portrayal.counterfactual.inference import query_model
from portrayal.models import threads
from portrayal.models.masked_vlm import load_masked
from portrayal.models.masked_vlm.training import train
from portrayal.models.threads import limit_threads
from tests.counterfactual.test_inference import PROMPTS, ROWS, Instance, load
from tests.models.test_masked_vlm_training import config, network, pairs

__all__ = ["pairs"]  # a fixture


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_training(pairs):
    thread_counts = []
    train(
        network("dual"),
        pairs,
        config(steps=1),
        report_progress=lambda *_: thread_counts.append(torch.get_num_threads()),
    )
    assert thread_counts == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_inference():
    image, group, concept, kind = ROWS[0]
    row = Instance(image, group, concept, kind, Path(image), Path("another"))
    thread_counts = []
    query_model(
        load_masked("lab-dual"),
        [row],
        PROMPTS,
        None,
        load,
        report_progress=lambda *_: thread_counts.append(torch.get_num_threads()),
    )
    assert thread_counts == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_large_networks_and_other_objects_keep_their_threads(monkeypatch):
    monkeypatch.setattr(threads, "MAX_SMALL_NETWORK_PARAMETERS", 3)
    for model in (torch.nn.Linear(2, 2), None, object()):
        with limit_threads(model):
            assert torch.get_num_threads() == 2
    with limit_threads(torch.nn.Linear(2, 1)):
        assert torch.get_num_threads() == 1
