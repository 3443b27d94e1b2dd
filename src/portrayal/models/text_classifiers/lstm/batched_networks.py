"""Many LSTMs trained as one on a GPU: every array has an additional dimension for the network.

Forward and backward passes are written out, so that one launch does a step of all networks. The two biases of
a layer always have the same gradient: one bias stands for both, with twice the learning rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from portrayal.models.text_classifiers.configs import LstmConfig
from portrayal.models.text_classifiers.integrated_gradients import gauss_legendre
from portrayal.models.text_classifiers.lstm import kernels
from portrayal.models.text_classifiers.lstm.kernels import StackedWeights, StepDropout
from portrayal.models.text_classifiers.lstm.network import (
    EMBEDDING_SIZE,
    HIDDEN_SIZE,
    LstmNetwork,
    cross_entropy,
    initial_network,
    probabilities,
)
from portrayal.models.text_classifiers.tasks import FIRST_WORD, ClassificationTask, TaskPredictions

PADDED_EMBEDDING_SIZE = 104  # a multiple of 16 bytes, as tensor cores need; the padding stays 0
_MAX_BATCH = 512  # maximum captions of each network per attribution pass
_BYTES_PER_WORD = 24 << 10  # per word of a caption, in a forward and backward pass


@dataclass
class _StackedLayer:
    incoming: StackedWeights  # (networks, 2 directions x gates, inputs)
    recurrent: StackedWeights  # (networks, 2, gates, hidden)
    bias: StackedWeights  # (networks, 2 directions x gates)


@dataclass
class _StackedNetworks:
    table: StackedWeights  # (networks, words, width)
    layers: tuple[_StackedLayer, ...]
    output: StackedWeights  # (networks, outputs, 2 x hidden)
    offset: StackedWeights  # (networks, outputs)

    @classmethod
    def stack(
        cls, networks: Sequence[LstmNetwork], precision: torch.dtype, device: torch.device
    ) -> _StackedNetworks:
        def stacked(
            tensors: Sequence[Tensor], dtype: torch.dtype = precision, lr_scale: float = 1.0
        ) -> StackedWeights:
            return StackedWeights.from_tensor(
                torch.stack([tensor.detach() for tensor in tensors]).to(device), dtype, lr_scale
            )

        def both(layers: Sequence[torch.nn.Module], name: str) -> list[Tensor]:
            return [
                torch.stack((getattr(layer, name), getattr(layer, f"{name}_reverse"))) for layer in layers
            ]

        full = torch.float32
        n_words = max(network.embedding.num_embeddings for network in networks)
        layers = []
        for index in range(len(networks[0].layers)):
            layers_at = [network.layers[index] for network in networks]
            incoming = [weight.flatten(0, 1) for weight in both(layers_at, "weight_ih_l0")]
            if index == 0:
                incoming = [
                    torch.nn.functional.pad(weight, (0, PADDED_EMBEDDING_SIZE - EMBEDDING_SIZE))
                    for weight in incoming
                ]
            bias = [
                (a + b).flatten()
                for a, b in zip(both(layers_at, "bias_ih_l0"), both(layers_at, "bias_hh_l0"), strict=True)
            ]
            layers.append(
                _StackedLayer(
                    stacked(incoming),
                    stacked(both(layers_at, "weight_hh_l0")),
                    stacked(bias, full, lr_scale=2.0),
                )
            )
        tables = [
            torch.nn.functional.pad(
                network.embedding.weight,
                (0, PADDED_EMBEDDING_SIZE - EMBEDDING_SIZE, 0, n_words - network.embedding.num_embeddings),
            )
            for network in networks
        ]
        return cls(
            stacked(tables),
            tuple(layers),
            stacked([network.output.weight for network in networks], full),
            stacked([network.output.bias for network in networks], full),
        )


@dataclass
class _ForwardPass:
    """Values that the forward pass keeps for the backward pass."""

    tokens: Tensor
    lengths: Tensor
    inputs: list[Tensor]  # of each layer
    gates: list[Tensor]
    states: list[Tensor]
    memories: list[Tensor]
    dropout: StepDropout | None
    last: Tensor  # last states: (networks, 2, captions, hidden)


class LstmStack:
    """Networks that are trained together, each on its own task."""

    def __init__(self, tasks: Sequence[ClassificationTask], config: LstmConfig, device: torch.device):
        self.tasks, self.config, self.device = tasks, config, device
        self._load_texts()
        start = [
            initial_network(task.seed, FIRST_WORD + len(task.texts.words), task.n_groups) for task in tasks
        ]
        self.network = _StackedNetworks.stack(start, getattr(torch, config.precision), device)
        self.seeds = torch.tensor([task.seed for task in tasks], dtype=torch.int64, device=device)
        self._step_count = 0

    def _load_texts(self) -> None:
        """Load the captions of all tasks as one array of codes, and each task's known codes, groups and
        weights.
        """
        texts = list({id(task.texts): task.texts for task in self.tasks}.values())
        offsets, offset = {}, 0
        tables = []
        longest = max(texts_of_task.table.shape[1] for texts_of_task in texts)
        for texts_of_task in texts:
            offsets[id(texts_of_task)] = offset
            offset += len(texts_of_task)
            tables.append(np.pad(texts_of_task.table, ((0, 0), (0, longest - texts_of_task.table.shape[1]))))
        self._text_offsets = np.array([[offsets[id(task.texts)]] for task in self.tasks])
        self._all_lengths = np.concatenate([texts_of_task.lengths for texts_of_task in texts])
        self._codes = self._to_device(np.concatenate(tables))
        self._lengths = self._to_device(self._all_lengths)
        self._text_offset = self._to_device(self._text_offsets)
        self._known_codes = self._to_device(
            _stack_padded([task.known_codes(self.config.max_words) for task in self.tasks])
        )
        self._groups = self._to_device(_stack_padded([task.group_index for task in self.tasks]))
        self._weights = self._to_device(
            np.stack([task.group_weights for task in self.tasks]).astype(np.float32)
        )

    def _to_device(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    # -- captions -----------------------------------------------------------------------------------------------

    def _longest_length(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length of the longest caption of indices (..., networks, captions), -1 for none."""
        lengths = self._all_lengths[np.maximum(indices, 0) + self._text_offsets] * (indices >= 0)
        return np.asarray(np.maximum(lengths.max(axis=(-2, -1)), 1))

    def _gather(self, indices: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Look up indices (networks, captions): codes (networks, words, captions) and lengths (networks,
        captions).
        """
        rows = indices.clamp(min=0) + self._text_offset
        lengths = self._lengths[rows] * (indices >= 0)
        codes = self._codes[:, :longest][rows]  # (networks, captions, words)
        codes = self._known_codes.gather(1, codes.reshape(len(codes), -1)).reshape(codes.shape)
        codes = codes * (torch.arange(longest, device=self.device) < lengths[..., None])
        return codes.transpose(1, 2).contiguous(), lengths

    def _forward(
        self, embedded: Tensor, tokens: Tensor, lengths: Tensor, dropout: StepDropout | None
    ) -> _ForwardPass:
        networks, positions, captions = embedded.shape[:3]
        forward = _ForwardPass(tokens, lengths, [], [], [], [], dropout, lengths)
        inputs = embedded.reshape(networks, positions * captions, -1)
        for index, layer in enumerate(self.network.layers):
            gates = torch.bmm(inputs, layer.incoming.low.mT)
            gates += layer.bias.low.to(inputs.dtype)[:, None]
            gates = gates.reshape(networks, positions, captions, 2, -1)
            is_first = index == 0
            states, cells, dropped = kernels.lstm_forward(
                gates, layer.recurrent, lengths, dropout if is_first else None
            )
            for stored, value in zip(
                (forward.inputs, forward.gates, forward.states, forward.memories),
                (inputs, gates, states, cells),
                strict=True,
            ):
                stored.append(value)
            inputs = dropped.reshape(networks, positions * captions, -1)
        forward.last = torch.stack((states[:, -1, :, 0], states[:, 0, :, 1]), dim=1).float()
        return forward

    def _backward(self, forward: _ForwardPass, last: Tensor, update: bool) -> Tensor:
        """Backpropagate from the last states to the embedded words, and update every layer if `update`."""
        above: Tensor | None = None
        start: Tensor | None = last
        for index in reversed(range(len(self.network.layers))):
            layer, inputs = self.network.layers[index], forward.inputs[index]
            dropout = forward.dropout if index == 0 else None
            gate_gradients = kernels.lstm_backward(
                forward.gates[index],
                forward.memories[index],
                layer.recurrent,
                forward.lengths,
                above,
                start,
                dropout,
            )
            flat = gate_gradients.reshape(*inputs.shape[:2], -1)
            gradient = torch.bmm(flat, layer.incoming.low)
            if update:
                self._update_layer(layer, inputs, gate_gradients, forward.states[index])
            if index:
                above, start = gradient.reshape(forward.states[index - 1].shape), None
        return gradient.reshape(*forward.tokens.shape, -1)

    def _update_layer(
        self, layer: _StackedLayer, inputs: Tensor, gate_gradients: Tensor, states: Tensor
    ) -> None:
        networks, positions, captions = gate_gradients.shape[:3]
        flat = gate_gradients.reshape(networks, positions * captions, -1)
        recurrent = layer.recurrent.low.new_zeros(layer.recurrent.low.shape)
        if positions > 1:
            rows = (networks, (positions - 1) * captions, -1)
            for direction, (gates, last) in enumerate(
                (
                    (gate_gradients[:, 1:, :, 0], states[:, :-1, :, 0]),
                    (gate_gradients[:, :-1, :, 1], states[:, 1:, :, 1]),
                )
            ):
                recurrent[:, direction] = torch.bmm(_flat_view(gates, rows).mT, _flat_view(last, rows))
        self._update(layer.incoming, torch.bmm(flat.mT, inputs))
        self._update(layer.recurrent, recurrent)
        self._update(layer.bias, flat.sum(dim=1, dtype=torch.float32))

    def _update(self, weights: StackedWeights, gradient: Tensor) -> None:
        kernels.adam_step(weights, gradient, self.config.learning_rate, self._step_count)

    def _logits(self, hidden: Tensor, output: Tensor, offset: Tensor) -> Tensor:
        """(networks, captions, 2 x hidden) to (networks, captions, outputs)."""
        return torch.baddbmm(offset[:, None], hidden, output.mT)

    # -- training -----------------------------------------------------------------------------------------------

    def train(self) -> None:
        size = _round_up(self.config.batch_size, kernels.ROWS)
        for epoch in range(self.config.epochs):
            batches = [task.batches(self.config.batch_size, epoch) for task in self.tasks]
            indices = _pad_indices(np.stack(batches, axis=1), size)
            for batch, longest in zip(
                self._to_device(indices), self._longest_length(indices).tolist(), strict=True
            ):
                self._step(batch, longest)

    def _step(self, indices: Tensor, longest: int) -> None:
        """Train one batch of every network."""
        self._step_count += 1
        dropout = kernels.StepDropout(self.config.dropout, self.seeds, self._step_count)
        tokens, lengths = self._gather(indices, longest)
        with torch.no_grad():
            embedded = kernels.embed(self.network.table, tokens, dropout)
            forward = self._forward(embedded, tokens, lengths, dropout)
        last = self._update_head(forward.last, indices, dropout)
        with torch.no_grad():
            gradient = self._backward(forward, last, update=True)
            kernels.adam_step_embedding(
                self.network.table, tokens, gradient, dropout, self.config.learning_rate, self._step_count
            )

    def _update_head(self, last: Tensor, indices: Tensor, dropout: StepDropout) -> Tensor:
        """Update the output layer; returns the gradient of the last states."""
        present = indices >= 0
        groups = self._groups.gather(1, indices.clamp(min=0))
        weight = self._weights.gather(1, groups) * present / present.sum(dim=1, keepdim=True)
        hidden = _concat_directions(last).requires_grad_()
        output = self.network.output.full.detach().requires_grad_()
        offset = self.network.offset.full.detach().requires_grad_()
        logits = self._logits(hidden * kernels.dropout_mask(dropout, hidden), output, offset)
        hidden_gradient, by_output, by_offset = torch.autograd.grad(
            (cross_entropy(logits, groups) * weight).sum(), (hidden, output, offset)
        )
        self._update(self.network.output, by_output)
        self._update(self.network.offset, by_offset)
        return _split_directions(hidden_gradient)

    # -- predictions --------------------------------------------------------------------------------------------

    def predictions(self, attribution_steps: int = 0) -> list[TaskPredictions]:
        """Return the predictions of each network for its test captions."""
        probas = self._predict_proba()
        if not attribution_steps:
            return [TaskPredictions(proba) for proba in probas]
        return [
            TaskPredictions(*pair)
            for pair in zip(probas, self._word_attributions(attribution_steps), strict=True)
        ]

    @torch.no_grad()
    def _predict_proba(self) -> list[NDArray[np.float64]]:
        size = _round_up(self.config.batch_size, kernels.ROWS)
        order = [_sorted_by_length(task, task.test_indices) for task in self.tasks]
        probas = [np.zeros((len(task.group_index), task.n_groups)) for task in self.tasks]
        for start in range(0, max(len(batch) for batch in order), size):
            batches = [batch[start : start + size] for batch in order]
            padded = np.stack([_pad_indices(batch, size) for batch in batches])
            tokens, lengths = self._gather(self._to_device(padded), int(self._longest_length(padded)))
            embedded = kernels.embed(self.network.table, tokens, None)
            hidden = _concat_directions(self._forward(embedded, tokens, lengths, None).last)
            logits = self._logits(hidden, self.network.output.full, self.network.offset.full)
            batch_proba = probabilities(logits).double().cpu().numpy()
            for network, batch in enumerate(batches):
                probas[network][batch] = batch_proba[network, : len(batch)]
        return [batch[task.test_indices] for batch, task in zip(probas, self.tasks, strict=True)]

    def _word_attributions(self, steps: int) -> list[NDArray[np.float64]]:
        """Integrated gradients of the true group's probability for each word of each test caption.

        The baseline is a caption of zero embeddings. Captions with the same codes share their attributions.
        """
        points, weights = (
            torch.tensor(batch, dtype=torch.float32, device=self.device) for batch in gauss_legendre(steps)
        )
        first = [task.first_equivalent(task.known_codes(self.config.max_words)) for task in self.tasks]
        jobs = [
            _sorted_by_length(task, np.unique(np.array(list(equivalent.values()), dtype=np.int64)))
            for task, equivalent in zip(self.tasks, first, strict=True)
        ]
        attributions: list[dict[int, NDArray[np.float64]]] = [{} for _ in self.tasks]
        captions_per_pass = max(1, self._captions_per_pass(jobs) // steps)
        size = _round_up(captions_per_pass * steps, kernels.ROWS)
        points_of_row = torch.zeros(size, device=self.device)
        points_of_row[: captions_per_pass * steps] = points.repeat(captions_per_pass)
        for start in range(0, max(len(job) for job in jobs), captions_per_pass):
            batches = [job[start : start + captions_per_pass] for job in jobs]
            padded = np.stack([_pad_indices(np.repeat(batch, steps), size) for batch in batches])
            products = self._attributions_at(padded, points_of_row)[:, :, : captions_per_pass * steps]
            summed = (products.unflatten(2, (captions_per_pass, steps)) @ weights).double().cpu().numpy()
            for network, (task, batch) in enumerate(zip(self.tasks, batches, strict=True)):
                for column, index in enumerate(batch.tolist()):
                    n_words = int(task.texts.lengths[index])
                    attributions[network][index] = summed[network, :n_words, column]
        return [
            np.concatenate(
                [np.zeros(0), *(of_network[equivalent[index]] for index in task.test_indices.tolist())]
            )
            for task, equivalent, of_network in zip(self.tasks, first, attributions, strict=True)
        ]

    def _captions_per_pass(self, jobs: Sequence[NDArray[np.int64]]) -> int:
        """Number of captions of each network that fit in memory."""
        if self.device.type == "cpu":
            return _MAX_BATCH
        longest = max(
            int(task.texts.lengths[job].max(initial=1)) for task, job in zip(self.tasks, jobs, strict=True)
        )
        free, _ = torch.cuda.mem_get_info(self.device)
        return min(_MAX_BATCH, int(0.5 * free / (len(self.tasks) * longest * _BYTES_PER_WORD)))

    def _attributions_at(self, indices: NDArray[np.int64], points: Tensor) -> Tensor:
        """Gradient times embedding (networks, words, captions), at one point of the path for each caption."""
        caption_indices = self._to_device(indices)
        tokens, lengths = self._gather(caption_indices, int(self._longest_length(indices)))
        with torch.no_grad():
            full_embedding = kernels.embed(self.network.table, tokens, None)
            embedded = (full_embedding.float() * points[:, None]).to(full_embedding.dtype)
            forward = self._forward(embedded, tokens, lengths, None)
        hidden = _concat_directions(forward.last).requires_grad_()
        proba = probabilities(self._logits(hidden, self.network.output.full, self.network.offset.full))
        groups = self._groups.gather(1, caption_indices.clamp(min=0))
        (last,) = torch.autograd.grad(proba.gather(2, groups[..., None]).sum(), hidden)
        with torch.no_grad():
            gradient = self._backward(forward, _split_directions(last), update=False)
            return (gradient.float() * full_embedding.float()).sum(dim=-1)


def _sorted_by_length(task: ClassificationTask, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    return indices[np.argsort(task.texts.lengths[indices], kind="stable")]


def _flat_view(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """View (networks, positions, captions, ...) as rows, without a copy."""
    networks, count, _ = shape
    step = tensor.stride(2)
    return tensor.as_strided((networks, count, tensor.shape[-1]), (tensor.stride(0), step, 1))


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _pad_indices(indices: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Pad with -1 to a size."""
    width = [(0, 0)] * (indices.ndim - 1) + [(0, size - indices.shape[-1])]
    return np.pad(indices, width, constant_values=-1)


def _stack_padded(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Stack arrays as rows, padded with 0."""
    width = max(len(array) for array in arrays)
    return np.stack([np.pad(array, (0, width - len(array))) for array in arrays])


def _concat_directions(last: Tensor) -> Tensor:
    """(networks, 2, captions, hidden) to (networks, captions, 2 x hidden)."""
    return last.transpose(1, 2).reshape(len(last), last.shape[2], -1)


def _split_directions(hidden: Tensor) -> Tensor:
    """The inverse of `_concat_directions`."""
    return hidden.reshape(len(hidden), hidden.shape[1], 2, HIDDEN_SIZE).transpose(1, 2)
