"""One network on a processor. Matrix products are in the precision asked for; what is learnt is kept in full."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from portrayal.models.text_classifiers.integrated_gradients import points_along
from portrayal.models.text_classifiers.lstm.network import Network, begin, probabilities, surprise
from portrayal.models.text_classifiers.schedules import Lstm
from portrayal.models.text_classifiers.tasks import FIRST, Answer, Numbers, Task

_AT_ONCE = 1024  # captions that are guessed or explained together


def answer(task: Task, schedule: Lstm, explain: int) -> Answer:
    """Train on what is to be learnt, and guess what is tested."""
    network = begin(task.seed, FIRST + len(task.texts.words), task.groups)
    train(network, task, schedule)
    parts = explained(network, task, schedule, explain) if explain else None
    return Answer(guessed(network, task, schedule), parts)


def train(network: Network, task: Task, schedule: Lstm) -> None:
    kept = [part.detach().clone() for part in network.parameters()]
    network.layers.to(getattr(torch, schedule.precision))
    learner = torch.optim.Adam(
        [part.requires_grad_() for part in kept], lr=schedule.learning_rate, fused=True
    )
    drop = _Dropout(schedule.dropout, task.seed)
    known = task.known(schedule.words)
    weight = torch.from_numpy(task.weight).float()
    for epoch in range(schedule.epochs):
        for batch in task.batches(schedule.batch, epoch):
            places = batch[batch >= 0]
            tokens, lengths = _tokens(task, known, places)
            groups = torch.from_numpy(task.group[places])
            loss = surprise(network(tokens, lengths, drop), groups) @ weight[groups] / len(places)
            loss.backward()
            for full, part in zip(kept, network.parameters(), strict=True):
                full.grad, part.grad = part.grad.float(), None  # type: ignore[union-attr]
            learner.step()
            with torch.no_grad():
                for full, part in zip(kept, network.parameters(), strict=True):
                    part.copy_(full)
    network.layers.float()
    with torch.no_grad():
        for full, part in zip(kept, network.parameters(), strict=True):
            part.copy_(full)


@torch.no_grad()
def guessed(network: Network, task: Task, schedule: Lstm) -> NDArray[np.float64]:
    known = task.known(schedule.words)
    made = np.zeros((len(task.group), task.groups))
    for places in _by_length(task, task.test, _AT_ONCE):
        made[places] = probabilities(network(*_tokens(task, known, places), _same)).double().numpy()
    return made[task.test]


def explained(network: Network, task: Task, schedule: Lstm, steps: int) -> NDArray[np.float64]:
    """What each word of each tested caption adds to the probability of its true group, one after the other.

    The way begins at words that are nothing, which are 0. Captions that read the same have the same parts.
    """
    known = task.known(schedule.words)
    along, counts = (torch.from_numpy(one).float() for one in points_along(steps))
    first = task.distinct(known)
    found: dict[int, NDArray[np.float64]] = {}
    for places in _by_length(
        task, np.unique(np.array(list(first.values()), dtype=np.int64)), max(1, _AT_ONCE // steps)
    ):
        tokens, lengths = _tokens(task, known, places)
        with torch.no_grad():
            whole = network.embedding(tokens)  # (words, captions, width)
        way = (whole[:, :, None] * along[:, None]).flatten(1, 2).requires_grad_()
        likely = probabilities(network.read(way, lengths.repeat_interleave(steps), _same))
        groups = torch.from_numpy(task.group[places]).repeat_interleave(steps)
        (slope,) = torch.autograd.grad(likely.gather(1, groups[:, None]).sum(), way)
        mean = slope.unflatten(1, (len(places), steps)).mul_(counts[:, None]).sum(dim=2)
        parts = (mean * whole).sum(dim=2).T.double().numpy()
        for place, part in zip(places.tolist(), parts, strict=True):
            found[place] = part
    return np.concatenate([np.zeros(0), *(found[first[place]] for place in task.test.tolist())])


class _Dropout(nn.Module):
    """Leaves some out by chance, from a seed of its own. A share is rounded to 1/256, which draws bytes, fast."""

    def __init__(self, share: float, seed: int):
        super().__init__()
        self._below = round(share * 256)
        self._chance = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        drawn = torch.empty(x.shape, dtype=torch.uint8).random_(generator=self._chance)
        return x * (drawn >= self._below) * (256 / (256 - self._below))


def _same(x: Tensor) -> Tensor:
    return x


def _tokens(task: Task, known: Numbers, places: Numbers) -> tuple[Tensor, Tensor]:
    """(words, captions) and their lengths."""
    lengths = task.texts.lengths[places]
    codes = known[task.texts.table[places, : int(lengths.max(initial=1))]]
    return torch.from_numpy(codes.T.copy()), torch.from_numpy(lengths)


def _by_length(task: Task, places: Numbers, size: int) -> list[Numbers]:
    """Captions of one length together, since those need no padding."""
    lengths = task.texts.lengths[places]
    made = []
    for length in np.unique(lengths):
        alike = places[lengths == length]
        made += [alike[start : start + size] for start in range(0, len(alike), size)]
    return made
