"""The LSTM: against PyTorch's own, against Captum, and the kernels of the GPU in Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.models.made_up import task

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")

from portrayal.models.text_classifiers.lstm import single, train  # noqa: E402
from portrayal.models.text_classifiers.lstm.network import Network, begin, probabilities  # noqa: E402
from portrayal.models.text_classifiers.schedules import Lstm  # noqa: E402
from portrayal.models.text_classifiers.tasks import FIRST, Task  # noqa: E402

QUICK = Lstm(epochs=3, batch=8, learning_rate=1e-2, dropout=0.0, precision="float32")


def answer(one: Task, how: Lstm = QUICK, explain: int = 0):
    ((place, found),) = train([one], how, explain=explain)
    assert place == 0
    return found


@pytest.mark.parametrize("words", [2, 777])
def test_it_has_the_published_number_of_parameters(words):
    assert sum(part.numel() for part in Network(words).parameters()) == 2_310_657 + 100 * words


def test_unknown_words_and_padding_begin_at_zero():
    table = begin(0, 30, 2).embedding.weight
    assert not table[:FIRST].any()
    assert 0.8 < float(table[FIRST:].detach().std()) < 1.2


class Reference(torch.nn.Module):
    """The published network in one nn.LSTM of two layers, with packed captions."""

    def __init__(self, network: Network):
        super().__init__()
        self.embedding = network.embedding
        self.lstm = torch.nn.LSTM(100, 256, num_layers=2, bidirectional=True)
        self.output = network.output
        with torch.no_grad():
            for number, layer in enumerate(network.layers):
                for name, part in layer.named_parameters():
                    self.lstm.get_parameter(name.replace("l0", f"l{number}")).copy_(part)

    def forward(self, tokens, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        return self.output(torch.cat((last[-2], last[-1]), dim=1))[:, 0]


def tokens_of(one: Task, places):
    lengths = one.texts.lengths[places]
    table = one.known(25_000)[one.texts.table[places, : lengths.max()]]
    return torch.from_numpy(table), torch.from_numpy(lengths)


def test_training_is_that_of_plain_pytorch():
    one = task()
    reference = Reference(begin(one.seed, FIRST + len(one.texts.words), 2))
    learner = torch.optim.Adam(reference.parameters(), lr=QUICK.learning_rate)
    for epoch in range(QUICK.epochs):
        for batch in one.batches(QUICK.batch, epoch):
            places = batch[batch >= 0]
            learner.zero_grad()
            target = torch.from_numpy(one.group[places]).float()
            found = reference(*tokens_of(one, places))
            torch.nn.functional.binary_cross_entropy_with_logits(found, target).backward()
            learner.step_size()
    expected = torch.sigmoid(reference(*tokens_of(one, one.test))).detach().numpy()
    assert answer(one).likely[:, 1] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("groups", [2, 3])
def test_it_learns_what_there_is_to_learn(groups):
    one = task(captions=120, groups=groups, tested=30, telling=True)
    found = answer(one, replace(QUICK, learning_rate=2e-3, epochs=8, dropout=0.5))
    assert found.likely.shape == (30, groups)
    assert found.likely.sum(axis=1) == pytest.approx(1)
    assert (found.likely.argmax(axis=1) == one.group[one.test]).mean() > 0.9


def test_a_caption_that_counts_more_is_believed_more():
    one = task(captions=60)
    even = answer(one).likely[:, 1].mean()
    heavy = answer(replace(one, weight=np.array([0.2, 1.8]))).likely[:, 1].mean()
    assert heavy > even + 0.05


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    noisy = replace(QUICK, dropout=0.5)
    one = task()
    assert (answer(one, noisy).likely == answer(one, noisy).likely).all()
    assert (answer(one, noisy).likely != answer(replace(one, seed=8), noisy).likely).any()


def test_low_precision_stays_close():
    one = task(captions=120, tested=30, telling=True)
    how = replace(QUICK, learning_rate=1e-3, epochs=4)
    exact, rough = (
        answer(one, replace(how, precision=precision)).likely for precision in ("float32", "bfloat16")
    )
    assert np.abs(exact - rough).max() < 0.03
    assert np.abs(exact - rough).max() > 0  # it was another precision


def test_integrated_gradients_are_captums():
    attr = pytest.importorskip("captum.attr", reason="the extra 'explain' is not installed")
    one = task(captions=110, tested=50)
    network = begin(one.seed, FIRST + len(one.texts.words), 2)
    single.train(network, one, QUICK)
    ours = single.explained(network, one, QUICK, 50)
    known = one.known(25_000)

    class Guess(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = network.embedding

        def forward(self, tokens):
            logits = network.read(self.embedding(tokens).transpose(0, 1), torch.full((len(tokens),), tokens.shape[1]),
                                  lambda x: x)  # fmt: skip
            return torch.sigmoid(logits)[:, 0]

    guess = Guess()
    captum = attr.LayerIntegratedGradients(guess, guess.embedding)
    theirs = []
    for place in one.test:
        tokens = torch.from_numpy(known[one.texts[place]])[None]
        parts = captum.attribute(tokens, torch.zeros_like(tokens), n_steps=50).sum(dim=-1)[0].detach().numpy()
        theirs.append(parts if one.group[place] == 1 else -parts)
    assert ours == pytest.approx(np.concatenate(theirs), abs=1e-5)
    assert np.abs(ours).max() > 0.01


def test_what_words_add_is_the_difference_from_a_caption_of_nothing():
    """The axiom of completeness."""
    one = task(captions=60)
    network = begin(one.seed, FIRST + len(one.texts.words), 2)
    single.train(network, one, replace(QUICK, learning_rate=1e-3))
    parts = np.split(single.explained(network, one, QUICK, 50), np.cumsum(one.texts.lengths[one.test])[:-1])
    likely = single.guessed(network, one, QUICK)
    for place, part, full in zip(one.test, parts, likely, strict=True):
        length = int(one.texts.lengths[place])
        with torch.no_grad():
            nothing = network.read(torch.zeros(length, 1, 100), torch.tensor([length]), lambda x: x)
        bare = float(torch.sigmoid(nothing))
        true = int(one.group[place])
        assert part.sum() == pytest.approx(full[true] - (bare if true else 1 - bare), abs=1e-4)


def test_a_sure_guess_is_not_a_certain_one():
    likely = probabilities(torch.tensor([[18.0], [-40.0]]))
    assert (likely > 0).all()
    assert likely.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_nothing_tested_is_nothing_said():
    found = answer(replace(task(), test=np.zeros(0, dtype=np.int64)), explain=4)
    assert found.likely.shape == (0, 2)
    assert found.parts.shape == (0,)


@pytest.fixture(scope="module")
def interpreted() -> dict[str, float]:
    """The GPU's kernels, run by Triton's interpreter in a process of their own; what they give, held against ours."""
    pytest.importorskip("triton", reason="Triton is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.interpreted"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["likely", "parts"])
def test_the_stack_of_the_gpu_is_the_network_of_the_processor(interpreted, what):
    assert 0 <= interpreted[what] < 1e-5
    assert interpreted[f"size of {what}"] > 0.01


def test_a_network_does_not_depend_on_what_it_is_stacked_with(interpreted):
    assert interpreted["alone"] < 1e-6
    assert interpreted["without dropout"] > 1e-4  # something was left out by chance
