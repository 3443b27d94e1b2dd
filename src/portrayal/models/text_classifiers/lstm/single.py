"""One network on a CPU. Matrix products use the configured precision; master weights stay in float32."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from portrayal.models.text_classifiers.configs import LstmConfig
from portrayal.models.text_classifiers.integrated_gradients import gauss_legendre
from portrayal.models.text_classifiers.lstm.network import (
    LstmNetwork,
    cross_entropy,
    initial_network,
    probabilities,
)
from portrayal.models.text_classifiers.tasks import FIRST_WORD, ClassificationTask, IntArray, TaskPredictions

_MAX_BATCH = 1024  # captions per batch for predictions and attributions


def fit_predict(task: ClassificationTask, config: LstmConfig, attribution_steps: int) -> TaskPredictions:
    """Train on the training captions and predict the test captions."""
    network = initial_network(task.seed, FIRST_WORD + len(task.texts.words), task.n_groups)
    train(network, task, config)
    attributions = word_attributions(network, task, config, attribution_steps) if attribution_steps else None
    return TaskPredictions(predict_proba(network, task, config), attributions)


def train(network: LstmNetwork, task: ClassificationTask, config: LstmConfig) -> None:
    master_weights = [parameter.detach().clone() for parameter in network.parameters()]
    network.layers.to(getattr(torch, config.precision))
    optimizer = torch.optim.Adam(
        [parameter.requires_grad_() for parameter in master_weights], lr=config.learning_rate, fused=True
    )
    drop = _SeededDropout(config.dropout, task.seed)
    known_codes = task.known_codes(config.max_words)
    weight = torch.from_numpy(task.group_weights).float()
    for epoch in range(config.epochs):
        for batch in task.batches(config.batch_size, epoch):
            indices = batch[batch >= 0]
            tokens, lengths = _tokens(task, known_codes, indices)
            groups = torch.from_numpy(task.group_index[indices])
            loss = cross_entropy(network(tokens, lengths, drop), groups) @ weight[groups] / len(indices)
            loss.backward()
            for master, parameter in zip(master_weights, network.parameters(), strict=True):
                master.grad, parameter.grad = parameter.grad.float(), None  # type: ignore[union-attr]
            optimizer.step()
            with torch.no_grad():
                for master, parameter in zip(master_weights, network.parameters(), strict=True):
                    parameter.copy_(master)
    network.layers.float()
    with torch.no_grad():
        for master, parameter in zip(master_weights, network.parameters(), strict=True):
            parameter.copy_(master)


@torch.no_grad()
def predict_proba(network: LstmNetwork, task: ClassificationTask, config: LstmConfig) -> NDArray[np.float64]:
    known_codes = task.known_codes(config.max_words)
    proba = np.zeros((len(task.group_index), task.n_groups))
    for indices in _batches_by_length(task, task.test_indices, _MAX_BATCH):
        proba[indices] = (
            probabilities(network(*_tokens(task, known_codes, indices), _identity)).double().numpy()
        )
    return proba[task.test_indices]


def word_attributions(
    network: LstmNetwork, task: ClassificationTask, config: LstmConfig, steps: int
) -> NDArray[np.float64]:
    """Integrated gradients of the true group's probability for each word of each test caption, concatenated.

    The baseline is a caption of zero embeddings. Captions with the same codes share their attributions.
    """
    known_codes = task.known_codes(config.max_words)
    points, weights = (torch.from_numpy(array).float() for array in gauss_legendre(steps))
    first = task.first_equivalent(known_codes)
    attributions: dict[int, NDArray[np.float64]] = {}
    for indices in _batches_by_length(
        task, np.unique(np.array(list(first.values()), dtype=np.int64)), max(1, _MAX_BATCH // steps)
    ):
        tokens, lengths = _tokens(task, known_codes, indices)
        with torch.no_grad():
            embedded = network.embedding(tokens)  # (words, captions, width)
        path = (embedded[:, :, None] * points[:, None]).flatten(1, 2).requires_grad_()
        proba = probabilities(
            network.logits_from_embeddings(path, lengths.repeat_interleave(steps), _identity)
        )
        groups = torch.from_numpy(task.group_index[indices]).repeat_interleave(steps)
        (gradient,) = torch.autograd.grad(proba.gather(1, groups[:, None]).sum(), path)
        mean = gradient.unflatten(1, (len(indices), steps)).mul_(weights[:, None]).sum(dim=2)
        per_caption = (mean * embedded).sum(dim=2).T.double().numpy()
        for index, attribution in zip(indices.tolist(), per_caption, strict=True):
            attributions[index] = attribution
    return np.concatenate(
        [np.zeros(0), *(attributions[first[index]] for index in task.test_indices.tolist())]
    )


class _SeededDropout(nn.Module):
    """Dropout with its own seed. The rate is rounded to 1/256, so that random bytes suffice."""

    def __init__(self, rate: float, seed: int):
        super().__init__()
        self._threshold = round(rate * 256)
        self._generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        random_bytes = torch.empty(x.shape, dtype=torch.uint8).random_(generator=self._generator)
        return x * (random_bytes >= self._threshold) * (256 / (256 - self._threshold))


def _identity(x: Tensor) -> Tensor:
    return x


def _tokens(task: ClassificationTask, known_codes: IntArray, indices: IntArray) -> tuple[Tensor, Tensor]:
    """Codes (words, captions) and lengths."""
    lengths = task.texts.lengths[indices]
    codes = known_codes[task.texts.table[indices, : int(lengths.max(initial=1))]]
    return torch.from_numpy(codes.T.copy()), torch.from_numpy(lengths)


def _batches_by_length(task: ClassificationTask, indices: IntArray, size: int) -> list[IntArray]:
    """Batches of captions of equal length, which need no padding."""
    lengths = task.texts.lengths[indices]
    batches = []
    for length in np.unique(lengths):
        same_length = indices[lengths == length]
        batches += [same_length[start : start + size] for start in range(0, len(same_length), size)]
    return batches
