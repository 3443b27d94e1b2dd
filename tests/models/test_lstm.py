"""The LSTM: against PyTorch's own, against Captum, and the GPU kernels in Triton's interpreter."""

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

from portrayal.models.text_classifiers.configs import LstmConfig  # noqa: E402
from portrayal.models.text_classifiers.lstm import single, train  # noqa: E402
from portrayal.models.text_classifiers.lstm.network import LstmNetwork, initial_network, probabilities  # noqa: E402
from portrayal.models.text_classifiers.tasks import FIRST_WORD, ClassificationTask  # noqa: E402

QUICK = LstmConfig(epochs=3, batch_size=8, learning_rate=1e-2, dropout=0.0, precision="float32")


def answer(task: ClassificationTask, config: LstmConfig = QUICK, explain: int = 0):
    ((index, predictions),) = train([task], config, explain=explain)
    assert index == 0
    return predictions


@pytest.mark.parametrize("words", [2, 777])
def test_it_has_the_published_number_of_parameters(words):
    assert sum(part.numel() for part in LstmNetwork(words).parameters()) == 2_310_657 + 100 * words


def test_unknown_words_and_padding_begin_at_zero():
    table = initial_network(0, 30, 2).embedding.weight
    assert not table[:FIRST_WORD].any()
    assert 0.8 < float(table[FIRST_WORD:].detach().std()) < 1.2


class Reference(torch.nn.Module):
    """The published network as one nn.LSTM of two layers, with packed captions."""

    def __init__(self, network: LstmNetwork):
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


def tokens_of(task: ClassificationTask, indices):
    lengths = task.texts.lengths[indices]
    table = task.known_codes(25_000)[task.texts.table[indices, : lengths.max()]]
    return torch.from_numpy(table), torch.from_numpy(lengths)


def test_training_agrees_with_plain_pytorch():
    training_task = task()
    reference = Reference(initial_network(training_task.seed, FIRST_WORD + len(training_task.texts.words), 2))
    optimizer = torch.optim.Adam(reference.parameters(), lr=QUICK.learning_rate)
    for epoch in range(QUICK.epochs):
        for batch in training_task.batches(QUICK.batch_size, epoch):
            indices = batch[batch >= 0]
            optimizer.zero_grad()
            target = torch.from_numpy(training_task.group[indices]).float()
            logits = reference(*tokens_of(training_task, indices))
            torch.nn.functional.binary_cross_entropy_with_logits(logits, target).backward()
            optimizer.step()
    expected = torch.sigmoid(reference(*tokens_of(training_task, training_task.test))).detach().numpy()
    assert answer(training_task).proba[:, 1] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("groups", [2, 3])
def test_it_learns_an_informative_word(groups):
    training_task = task(captions=120, groups=groups, tested=30, informative=True)
    predictions = answer(training_task, replace(QUICK, learning_rate=2e-3, epochs=8, dropout=0.5))
    assert predictions.proba.shape == (30, groups)
    assert predictions.proba.sum(axis=1) == pytest.approx(1)
    assert (predictions.proba.argmax(axis=1) == training_task.group[training_task.test]).mean() > 0.9


def test_class_weights_shift_the_predictions():
    training_task = task(captions=60)
    even = answer(training_task).proba[:, 1].mean()
    heavy = answer(replace(training_task, weight=np.array([0.2, 1.8]))).proba[:, 1].mean()
    assert heavy > even + 0.05


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    with_dropout = replace(QUICK, dropout=0.5)
    training_task = task()
    assert (answer(training_task, with_dropout).proba == answer(training_task, with_dropout).proba).all()
    assert (
        answer(training_task, with_dropout).proba
        != answer(replace(training_task, seed=8), with_dropout).proba
    ).any()


def test_low_precision_stays_close():
    training_task = task(captions=120, tested=30, informative=True)
    config = replace(QUICK, learning_rate=1e-3, epochs=4)
    exact, rough = (
        answer(training_task, replace(config, precision=precision)).proba
        for precision in ("float32", "bfloat16")
    )
    assert np.abs(exact - rough).max() < 0.03
    assert np.abs(exact - rough).max() > 0  # the precision differs


def test_integrated_gradients_agree_with_captum():
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    training_task = task(captions=110, tested=50)
    network = initial_network(training_task.seed, FIRST_WORD + len(training_task.texts.words), 2)
    single.train(network, training_task, QUICK)
    attributions = single.word_attributions(network, training_task, QUICK, 50)
    known_codes = training_task.known_codes(25_000)

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
    expected = []
    for index in training_task.test:
        tokens = torch.from_numpy(known_codes[training_task.texts[index]])[None]
        parts = captum.attribute(tokens, torch.zeros_like(tokens), n_steps=50).sum(dim=-1)[0].detach().numpy()
        expected.append(parts if training_task.group[index] == 1 else -parts)
    assert attributions == pytest.approx(np.concatenate(expected), abs=1e-5)
    assert np.abs(attributions).max() > 0.01


def test_attributions_sum_to_the_difference_from_the_baseline():
    """The completeness axiom."""
    training_task = task(captions=60)
    network = initial_network(training_task.seed, FIRST_WORD + len(training_task.texts.words), 2)
    single.train(network, training_task, replace(QUICK, learning_rate=1e-3))
    parts = np.split(
        single.word_attributions(network, training_task, QUICK, 50),
        np.cumsum(training_task.texts.lengths[training_task.test])[:-1],
    )
    proba = single.predict_proba(network, training_task, QUICK)
    for index, part, full in zip(training_task.test, parts, proba, strict=True):
        length = int(training_task.texts.lengths[index])
        with torch.no_grad():
            baseline = network.read(torch.zeros(length, 1, 100), torch.tensor([length]), lambda x: x)
        bare = float(torch.sigmoid(baseline))
        true = int(training_task.group[index])
        assert part.sum() == pytest.approx(full[true] - (bare if true else 1 - bare), abs=1e-4)


def test_large_logits_do_not_give_certainty():
    proba = probabilities(torch.tensor([[18.0], [-40.0]]))
    assert (proba > 0).all()
    assert proba.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_an_empty_test_set_has_no_predictions():
    predictions = answer(replace(task(), test=np.zeros(0, dtype=np.int64)), explain=4)
    assert predictions.proba.shape == (0, 2)
    assert predictions.attributions.shape == (0,)


@pytest.fixture(scope="module")
def interpreted() -> dict[str, float]:
    """Errors of the GPU kernels, run by Triton's interpreter in a process of their own, against the CPU
    network.
    """
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


@pytest.mark.parametrize("quantity", ["proba", "attributions"])
def test_the_gpu_stack_agrees_with_the_cpu_network(interpreted, quantity):
    assert 0 <= interpreted[quantity] < 1e-5
    assert interpreted[f"size of {quantity}"] > 0.01


def test_a_network_does_not_depend_on_what_it_is_stacked_with(interpreted):
    assert interpreted["alone"] < 1e-6
    assert interpreted["without dropout"] > 1e-4  # dropout was applied
