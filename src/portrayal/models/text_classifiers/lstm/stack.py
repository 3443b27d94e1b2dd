"""Many networks trained as one on a GPU: every array has one more dimension, the network it belongs to.

The way forth and the way back are written out, so that one launch does a step of all networks. The two biases of a
layer always move alike: one stands for both here and moves twice as far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from portrayal.models.text_classifiers.integrated_gradients import points_along
from portrayal.models.text_classifiers.lstm import kernels
from portrayal.models.text_classifiers.lstm.kernels import Dropout, Weights
from portrayal.models.text_classifiers.lstm.network import (
    EMBEDDING,
    HIDDEN,
    Network,
    begin,
    probabilities,
    surprise,
)
from portrayal.models.text_classifiers.schedules import Lstm
from portrayal.models.text_classifiers.tasks import FIRST, Answer, Task

WIDTH = 104  # of the embedding as it is stored: matrix units want rows of 16 bytes; what is added stays 0
_AT_ONCE = 512  # captions of each network that are explained together, at most
_BYTES_A_WORD = 24 << 10  # of a caption, on the way forth and back


@dataclass
class _Layer:
    incoming: Weights  # (networks, 2 directions x gates, inputs)
    recurrent: Weights  # (networks, 2, gates, hidden)
    bias: Weights  # (networks, 2 directions x gates)


@dataclass
class _Networks:
    table: Weights  # (networks, words, width)
    layers: tuple[_Layer, ...]
    output: Weights  # (networks, outputs, 2 x hidden)
    offset: Weights  # (networks, outputs)

    @classmethod
    def of(cls, networks: Sequence[Network], precision: torch.dtype, device: torch.device) -> _Networks:
        def stacked(parts: Sequence[Tensor], kept: torch.dtype = precision, pace: float = 1.0) -> Weights:
            return Weights.of(torch.stack([part.detach() for part in parts]).to(device), kept, pace)

        def both(of: Sequence[torch.nn.Module], name: str) -> list[Tensor]:
            return [torch.stack((getattr(one, name), getattr(one, f"{name}_reverse"))) for one in of]

        full = torch.float32
        room = max(one.embedding.num_embeddings for one in networks)
        layers = []
        for number in range(len(networks[0].layers)):
            of = [one.layers[number] for one in networks]
            incoming = [one.flatten(0, 1) for one in both(of, "weight_ih_l0")]
            if number == 0:
                incoming = [torch.nn.functional.pad(one, (0, WIDTH - EMBEDDING)) for one in incoming]
            bias = [
                (a + b).flatten() for a, b in zip(both(of, "bias_ih_l0"), both(of, "bias_hh_l0"), strict=True)
            ]
            layers.append(
                _Layer(stacked(incoming), stacked(both(of, "weight_hh_l0")), stacked(bias, full, pace=2.0))
            )
        tables = [
            torch.nn.functional.pad(
                one.embedding.weight, (0, WIDTH - EMBEDDING, 0, room - one.embedding.num_embeddings)
            )
            for one in networks
        ]
        return cls(
            stacked(tables),
            tuple(layers),
            stacked([one.output.weight for one in networks], full),
            stacked([one.output.bias for one in networks], full),
        )


@dataclass
class _Pass:
    """What one way forth leaves for the way back."""

    tokens: Tensor
    lengths: Tensor
    inputs: list[Tensor]  # of each layer
    gates: list[Tensor]
    states: list[Tensor]
    memories: list[Tensor]
    dropout: Dropout | None
    last: Tensor  # (networks, 2, captions, hidden)


class Stack:
    """Networks that are trained side by side, each on captions of its own."""

    def __init__(self, tasks: Sequence[Task], schedule: Lstm, device: torch.device):
        self.tasks, self.schedule, self.device = tasks, schedule, device
        self._arrange()
        start = [begin(task.seed, FIRST + len(task.texts.words), task.groups) for task in tasks]
        self.network = _Networks.of(start, getattr(torch, schedule.precision), device)
        self.seeds = torch.tensor([task.seed for task in tasks], dtype=torch.int64, device=device)
        self._count = 0

    def _arrange(self) -> None:
        """Captions of all tasks as one array of codes, and what each classifier is told of them."""
        texts = list({id(task.texts): task.texts for task in self.tasks}.values())
        first, place = {}, 0
        tables = []
        longest = max(some.table.shape[1] for some in texts)
        for some in texts:
            first[id(some)] = place
            place += len(some)
            tables.append(np.pad(some.table, ((0, 0), (0, longest - some.table.shape[1]))))
        self._first = np.array([[first[id(task.texts)]] for task in self.tasks])
        self._all_lengths = np.concatenate([some.lengths for some in texts])
        self._codes = self._there(np.concatenate(tables))
        self._lengths = self._there(self._all_lengths)
        self._begin = self._there(self._first)
        self._known = self._there(_even([task.known(self.schedule.words) for task in self.tasks]))
        self._groups = self._there(_even([task.group for task in self.tasks]))
        self._weights = self._there(np.stack([task.weight for task in self.tasks]).astype(np.float32))

    def _there(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    # -- reading captions ---------------------------------------------------------------------------------------

    def _longest(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Words of the longest caption: (..., networks, captions) of places, -1 for none."""
        lengths = self._all_lengths[np.maximum(places, 0) + self._first] * (places >= 0)
        return np.asarray(np.maximum(lengths.max(axis=(-2, -1)), 1))

    def _captions(self, places: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """(networks, captions) of places to codes (networks, words, captions) and lengths (networks, captions)."""
        rows = places.clamp(min=0) + self._begin
        lengths = self._lengths[rows] * (places >= 0)
        codes = self._codes[:, :longest][rows]  # (networks, captions, words)
        codes = self._known.gather(1, codes.reshape(len(codes), -1)).reshape(codes.shape)
        codes = codes * (torch.arange(longest, device=self.device) < lengths[..., None])
        return codes.transpose(1, 2).contiguous(), lengths

    def _forth(self, embedded: Tensor, tokens: Tensor, lengths: Tensor, dropout: Dropout | None) -> _Pass:
        networks, places, captions = embedded.shape[:3]
        made = _Pass(tokens, lengths, [], [], [], [], dropout, lengths)
        inputs = embedded.reshape(networks, places * captions, -1)
        for number, layer in enumerate(self.network.layers):
            gates = torch.bmm(inputs, layer.incoming.low.mT)
            gates += layer.bias.low.to(inputs.dtype)[:, None]
            gates = gates.reshape(networks, places, captions, 2, -1)
            below = number == 0
            states, memories, shown = kernels.read(
                gates, layer.recurrent, lengths, dropout if below else None
            )
            for kept, one in zip(
                (made.inputs, made.gates, made.states, made.memories),
                (inputs, gates, states, memories),
                strict=True,
            ):
                kept.append(one)
            inputs = shown.reshape(networks, places * captions, -1)
        made.last = torch.stack((states[:, -1, :, 0], states[:, 0, :, 1]), dim=1).float()
        return made

    def _back(self, made: _Pass, last: Tensor, learn: bool) -> Tensor:
        """From the last states to the embedded words; on the way every layer learns."""
        above: Tensor | None = None
        start: Tensor | None = last
        for number in reversed(range(len(self.network.layers))):
            layer, inputs = self.network.layers[number], made.inputs[number]
            dropout = made.dropout if number == 0 else None
            said = kernels.unread(
                made.gates[number],
                made.memories[number],
                layer.recurrent,
                made.lengths,
                above,
                start,
                dropout,
            )
            flat = said.reshape(*inputs.shape[:2], -1)
            back = torch.bmm(flat, layer.incoming.low)
            if learn:
                self._learn_layer(layer, inputs, said, made.states[number])
            if number:
                above, start = back.reshape(made.states[number - 1].shape), None
        return back.reshape(*made.tokens.shape, -1)

    def _learn_layer(self, layer: _Layer, inputs: Tensor, said: Tensor, states: Tensor) -> None:
        networks, places, captions = said.shape[:3]
        flat = said.reshape(networks, places * captions, -1)
        recurrent = layer.recurrent.low.new_zeros(layer.recurrent.low.shape)
        if places > 1:
            rows = (networks, (places - 1) * captions, -1)
            for way, (gates, last) in enumerate(
                ((said[:, 1:, :, 0], states[:, :-1, :, 0]), (said[:, :-1, :, 1], states[:, 1:, :, 1]))
            ):
                recurrent[:, way] = torch.bmm(_rows(gates, rows).mT, _rows(last, rows))
        self._learn(layer.incoming, torch.bmm(flat.mT, inputs))
        self._learn(layer.recurrent, recurrent)
        self._learn(layer.bias, flat.sum(dim=1, dtype=torch.float32))

    def _learn(self, weights: Weights, gradient: Tensor) -> None:
        kernels.learn(weights, gradient, self.schedule.learning_rate, self._count)

    def _logits(self, hidden: Tensor, output: Tensor, offset: Tensor) -> Tensor:
        """(networks, captions, 2 x hidden) to (networks, captions, outputs)."""
        return torch.baddbmm(offset[:, None], hidden, output.mT)

    # -- training -----------------------------------------------------------------------------------------------

    def train(self) -> None:
        size = _up(self.schedule.batch, kernels.ROWS)
        for epoch in range(self.schedule.epochs):
            batches = [task.batches(self.schedule.batch, epoch) for task in self.tasks]
            places = _filled(np.stack(batches, axis=1), size)
            for some, longest in zip(self._there(places), self._longest(places).tolist(), strict=True):
                self._step(some, longest)

    def _step(self, places: Tensor, longest: int) -> None:
        """One batch of every network."""
        self._count += 1
        dropout = kernels.Dropout(self.schedule.dropout, self.seeds, self._count)
        tokens, lengths = self._captions(places, longest)
        with torch.no_grad():
            embedded = kernels.embed(self.network.table, tokens, dropout)
            made = self._forth(embedded, tokens, lengths, dropout)
        last = self._learn_head(made.last, places, dropout)
        with torch.no_grad():
            back = self._back(made, last, learn=True)
            kernels.learn_table(
                self.network.table, tokens, back, dropout, self.schedule.learning_rate, self._count
            )

    def _learn_head(self, last: Tensor, places: Tensor, dropout: Dropout) -> Tensor:
        """The output learns; gives what the loss says to the last states."""
        there = places >= 0
        groups = self._groups.gather(1, places.clamp(min=0))
        weight = self._weights.gather(1, groups) * there / there.sum(dim=1, keepdim=True)
        hidden = _side_by_side(last).requires_grad_()
        output = self.network.output.full.detach().requires_grad_()
        offset = self.network.offset.full.detach().requires_grad_()
        logits = self._logits(hidden * kernels.keep(dropout, hidden), output, offset)
        back, by_output, by_offset = torch.autograd.grad(
            (surprise(logits, groups) * weight).sum(), (hidden, output, offset)
        )
        self._learn(self.network.output, by_output)
        self._learn(self.network.offset, by_offset)
        return _apart(back)

    # -- guessing -----------------------------------------------------------------------------------------------

    def answers(self, explain: int = 0) -> list[Answer]:
        """What each network says of the captions it is tested on."""
        likely = self._guess()
        if not explain:
            return [Answer(one) for one in likely]
        return [Answer(*pair) for pair in zip(likely, self._explain(explain), strict=True)]

    @torch.no_grad()
    def _guess(self) -> list[NDArray[np.float64]]:
        size = _up(self.schedule.batch, kernels.ROWS)
        order = [_shortest_first(task, task.test) for task in self.tasks]
        made = [np.zeros((len(task.group), task.groups)) for task in self.tasks]
        for start in range(0, max(len(one) for one in order), size):
            some = [one[start : start + size] for one in order]
            places = np.stack([_filled(one, size) for one in some])
            tokens, lengths = self._captions(self._there(places), int(self._longest(places)))
            embedded = kernels.embed(self.network.table, tokens, None)
            hidden = _side_by_side(self._forth(embedded, tokens, lengths, None).last)
            logits = self._logits(hidden, self.network.output.full, self.network.offset.full)
            found = probabilities(logits).double().cpu().numpy()
            for network, one in enumerate(some):
                made[network][one] = found[network, : len(one)]
        return [one[task.test] for one, task in zip(made, self.tasks, strict=True)]

    def _explain(self, steps: int) -> list[NDArray[np.float64]]:
        """What each word of each tested caption adds to the probability of its true group.

        The way begins at words that are nothing, which are 0. Captions that read the same have the same parts.
        """
        along, counts = (
            torch.tensor(one, dtype=torch.float32, device=self.device) for one in points_along(steps)
        )
        first = [task.distinct(task.known(self.schedule.words)) for task in self.tasks]
        jobs = [
            _shortest_first(task, np.unique(np.array(list(like.values()), dtype=np.int64)))
            for task, like in zip(self.tasks, first, strict=True)
        ]
        found: list[dict[int, NDArray[np.float64]]] = [{} for _ in self.tasks]
        together = max(1, self._room(jobs) // steps)
        size = _up(together * steps, kernels.ROWS)
        share = torch.zeros(size, device=self.device)
        share[: together * steps] = along.repeat(together)
        for start in range(0, max(len(job) for job in jobs), together):
            some = [job[start : start + together] for job in jobs]
            places = np.stack([_filled(np.repeat(one, steps), size) for one in some])
            parts = self._parts(places, share)[:, :, : together * steps]
            summed = (parts.unflatten(2, (together, steps)) @ counts).double().cpu().numpy()
            for network, (task, one) in enumerate(zip(self.tasks, some, strict=True)):
                for number, place in enumerate(one.tolist()):
                    length = int(task.texts.lengths[place])
                    found[network][place] = summed[network, :length, number]
        return [
            np.concatenate([np.zeros(0), *(of[like[place]] for place in task.test.tolist())])
            for task, like, of in zip(self.tasks, first, found, strict=True)
        ]

    def _room(self, jobs: Sequence[NDArray[np.int64]]) -> int:
        """How many captions of each network can be read together."""
        if self.device.type == "cpu":
            return _AT_ONCE
        longest = max(
            int(task.texts.lengths[job].max(initial=1)) for task, job in zip(self.tasks, jobs, strict=True)
        )
        free, _ = torch.cuda.mem_get_info(self.device)
        return min(_AT_ONCE, int(0.5 * free / (len(self.tasks) * longest * _BYTES_A_WORD)))

    def _parts(self, places: NDArray[np.int64], share: Tensor) -> Tensor:
        """(networks, words, captions): gradient times embedding, at one point of the way for each caption."""
        at = self._there(places)
        tokens, lengths = self._captions(at, int(self._longest(places)))
        with torch.no_grad():
            whole = kernels.embed(self.network.table, tokens, None)
            embedded = (whole.float() * share[:, None]).to(whole.dtype)
            made = self._forth(embedded, tokens, lengths, None)
        hidden = _side_by_side(made.last).requires_grad_()
        likely = probabilities(self._logits(hidden, self.network.output.full, self.network.offset.full))
        groups = self._groups.gather(1, at.clamp(min=0))
        (last,) = torch.autograd.grad(likely.gather(2, groups[..., None]).sum(), hidden)
        with torch.no_grad():
            back = self._back(made, _apart(last), learn=False)
            return (back.float() * whole.float()).sum(dim=-1)


def _shortest_first(task: Task, places: NDArray[np.int64]) -> NDArray[np.int64]:
    return places[np.argsort(task.texts.lengths[places], kind="stable")]


def _rows(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """(networks, places, captions, ...) as rows, without a copy."""
    networks, count, _ = shape
    step = part.stride(2)
    return part.as_strided((networks, count, part.shape[-1]), (part.stride(0), step, 1))


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _filled(places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """With -1 at the end, up to a size."""
    width = [(0, 0)] * (places.ndim - 1) + [(0, size - places.shape[-1])]
    return np.pad(places, width, constant_values=-1)


def _even(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One row each, filled up with 0."""
    room = max(len(one) for one in arrays)
    return np.stack([np.pad(one, (0, room - len(one))) for one in arrays])


def _side_by_side(last: Tensor) -> Tensor:
    """(networks, 2, captions, hidden) to (networks, captions, 2 x hidden)."""
    return last.transpose(1, 2).reshape(len(last), last.shape[2], -1)


def _apart(hidden: Tensor) -> Tensor:
    """The way back."""
    return hidden.reshape(len(hidden), hidden.shape[1], 2, HIDDEN).transpose(1, 2)
