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
from tests.models.synthetic_tasks import task

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")

from portrayal.models.text_classifiers.configs import LstmConfig  # noqa: E402
from portrayal.models.text_classifiers.lstm import single, train  # noqa: E402
from portrayal.models.text_classifiers.lstm.network import LstmNetwork, initial_network, probabilities  # noqa: E402
from portrayal.models.text_classifiers.tasks import FIRST_WORD, ClassificationTask  # noqa: E402

pytestmark = pytest.mark.training

QUICK = LstmConfig(epochs=3, batch_size=8, learning_rate=1e-2, dropout=0.0, precision="float32")


def train_and_predict(task: ClassificationTask, config: LstmConfig = QUICK, explain: int = 0):
    ((index, predictions),) = train([task], config, attribution_steps=explain)
    assert index == 0
    return predictions


@pytest.mark.parametrize("words", [2, 777])
def test_it_has_the_published_number_of_parameters(words):
    assert sum(parameter.numel() for parameter in LstmNetwork(words).parameters()) == 2_310_657 + 100 * words


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
                for name, parameter in layer.named_parameters():
                    self.lstm.get_parameter(name.replace("l0", f"l{number}")).copy_(parameter)

    def forward(self, tokens, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)
        return self.output(torch.cat((hidden[-2], hidden[-1]), dim=1))[:, 0]


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
            target = torch.from_numpy(training_task.group_index[indices]).float()
            logits = reference(*tokens_of(training_task, indices))
            torch.nn.functional.binary_cross_entropy_with_logits(logits, target).backward()
            optimizer.step()
    expected = (
        torch.sigmoid(reference(*tokens_of(training_task, training_task.test_indices))).detach().numpy()
    )
    assert train_and_predict(training_task).proba[:, 1] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("groups", [2, 3])
def test_it_learns_an_informative_word(groups):
    training_task = task(captions=120, groups=groups, tested=30, informative=True)
    predictions = train_and_predict(training_task, replace(QUICK, learning_rate=2e-3, epochs=8, dropout=0.5))
    assert predictions.proba.shape == (30, groups)
    assert predictions.proba.sum(axis=1) == pytest.approx(1)
    assert (
        predictions.proba.argmax(axis=1) == training_task.group_index[training_task.test_indices]
    ).mean() > 0.9


def test_class_weights_shift_the_predictions():
    training_task = task(captions=60)
    balanced = train_and_predict(training_task).proba[:, 1].mean()
    weighted = (
        train_and_predict(replace(training_task, group_weights=np.array([0.2, 1.8]))).proba[:, 1].mean()
    )
    assert weighted > balanced + 0.05


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    with_dropout = replace(QUICK, dropout=0.5)
    training_task = task()
    assert (
        train_and_predict(training_task, with_dropout).proba
        == train_and_predict(training_task, with_dropout).proba
    ).all()
    assert (
        train_and_predict(training_task, with_dropout).proba
        != train_and_predict(replace(training_task, seed=8), with_dropout).proba
    ).any()


def test_low_precision_stays_close():
    training_task = task(captions=120, tested=30, informative=True)
    config = replace(QUICK, learning_rate=1e-3, epochs=4)
    exact, bfloat16 = (
        train_and_predict(training_task, replace(config, precision=precision)).proba
        for precision in ("float32", "bfloat16")
    )
    assert np.abs(exact - bfloat16).max() < 0.03
    assert np.abs(exact - bfloat16).max() > 0  # the precision differs


def test_integrated_gradients_agree_with_captum():
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    training_task = task(captions=110, tested=50)
    network = initial_network(training_task.seed, FIRST_WORD + len(training_task.texts.words), 2)
    single.train(network, training_task, QUICK)
    attributions = single.word_attributions(network, training_task, QUICK, 50)
    known_codes = training_task.known_codes(25_000)

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = network.embedding

        def forward(self, tokens):
            lengths = torch.full((len(tokens),), tokens.shape[1])
            embedded = self.embedding(tokens).transpose(0, 1)
            logits = network.logits_from_embeddings(embedded, lengths, lambda x: x)
            return torch.sigmoid(logits)[:, 0]

    classifier = Classifier()
    captum = attr.LayerIntegratedGradients(classifier, classifier.embedding)
    expected = []
    for index in training_task.test_indices:
        tokens = torch.from_numpy(known_codes[training_task.texts[index]])[None]
        word_attributions = (
            captum.attribute(tokens, torch.zeros_like(tokens), n_steps=50).sum(dim=-1)[0].detach().numpy()
        )
        expected.append(word_attributions if training_task.group_index[index] == 1 else -word_attributions)
    assert attributions == pytest.approx(np.concatenate(expected), abs=1e-5)
    assert np.abs(attributions).max() > 0.01


def test_attributions_sum_to_the_difference_from_the_baseline():
    """The completeness axiom."""
    training_task = task(captions=60)
    network = initial_network(training_task.seed, FIRST_WORD + len(training_task.texts.words), 2)
    single.train(network, training_task, replace(QUICK, learning_rate=1e-3))
    attributions_per_caption = np.split(
        single.word_attributions(network, training_task, QUICK, 50),
        np.cumsum(training_task.texts.lengths[training_task.test_indices])[:-1],
    )
    proba = single.predict_proba(network, training_task, QUICK)
    for index, word_attributions, caption_proba in zip(
        training_task.test_indices, attributions_per_caption, proba, strict=True
    ):
        length = int(training_task.texts.lengths[index])
        with torch.no_grad():
            baseline = network.logits_from_embeddings(
                torch.zeros(length, 1, 100), torch.tensor([length]), lambda x: x
            )
        baseline_proba = float(torch.sigmoid(baseline))
        label = int(training_task.group_index[index])
        assert word_attributions.sum() == pytest.approx(
            caption_proba[label] - (baseline_proba if label else 1 - baseline_proba), abs=1e-4
        )


def test_large_logits_do_not_give_certainty():
    proba = probabilities(torch.tensor([[18.0], [-40.0]]))
    assert (proba > 0).all()
    assert proba.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_an_empty_test_set_has_no_predictions():
    predictions = train_and_predict(replace(task(), test_indices=np.zeros(0, dtype=np.int64)), explain=4)
    assert predictions.proba.shape == (0, 2)
    assert predictions.attributions.shape == (0,)


@pytest.fixture(scope="module")
def kernel_errors() -> dict[str, float]:
    """Errors of the GPU kernels, run by Triton's interpreter in a process of their own, against the CPU
    network.
    """
    pytest.importorskip("triton", reason="Triton is not installed")
    process = subprocess.run(
        [sys.executable, "-m", "tests.models.interpreted"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)


@pytest.mark.parametrize("quantity", ["proba", "attributions"])
def test_the_gpu_stack_agrees_with_the_cpu_network(kernel_errors, quantity):
    assert 0 <= kernel_errors[quantity] < 1e-5
    assert kernel_errors[f"size of {quantity}"] > 0.01


def test_a_network_does_not_depend_on_what_it_is_stacked_with(kernel_errors):
    assert kernel_errors["alone"] < 1e-6
    assert kernel_errors["without dropout"] > 1e-4  # dropout was applied
