"""A pretrained encoder that learns to guess a group: the published head on the state of its first token.

On a GPU the steps of training are recorded once for each size of a batch and played again, since a batch of captions is
too small for a GPU to wait for the next instruction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from portrayal.errors import PortrayalError
from portrayal.models.cuda_graph import Recorded, Restored
from portrayal.models.text_classifiers.integrated_gradients import points_along
from portrayal.models.text_classifiers.schedules import Encoder
from portrayal.models.text_classifiers.tasks import Answer, Numbers, Task, Texts
from portrayal.models.text_classifiers.tokens import Read

HEAD = 256  # wide
BETAS, EPSILON, DECAY = (0.9, 0.98), 1e-6, 0.1
_NO_DECAY = ("bias", "LayerNorm.weight")
_ROUND = 8  # lengths of batches are a multiple of this, so that few sizes are recorded
_AT_ONCE = 512  # captions that are guessed, or steps that are explained, together
_ON_CPU = 64  # steps, where memory is shared with other workers


def train(
    tasks: Sequence[Task], schedule: Encoder, *, device: str = "cpu", explain: int = 0
) -> Iterator[tuple[int, Answer]]:
    """The answer of each task as it is there; `explain` is the number of steps of integrated gradients, 0: none."""
    if not tasks:
        return
    classifier = Classifier(*load(schedule.model), schedule, max(task.groups for task in tasks), device)
    for number, task in enumerate(tasks):
        yield number, classifier.answer(task, explain)


def load(name: str) -> tuple[nn.Module, Any]:
    """An encoder and its tokenizer, by name or folder."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        return AutoModel.from_pretrained(name).float(), tokenizer
    except (OSError, ValueError) as error:
        raise PortrayalError(
            f"The encoder '{name}' could not be loaded: it is neither a folder with a model, nor could it be had "
            f"from the Hugging Face hub. Give another encoder. ({_first_line(error)})"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


def head(inputs: int, groups: int) -> nn.Sequential:
    """
    >>> sum(part.numel() for part in head(768, 2).parameters())
    199426
    """
    return nn.Sequential(
        nn.BatchNorm1d(inputs),
        nn.Linear(inputs, HEAD),
        nn.BatchNorm1d(HEAD),
        nn.LeakyReLU(),
        nn.Linear(HEAD, groups),
    )


class Classifier:
    """An encoder with a head that is trained anew for each task.

    What is learnt is kept in full precision; the way forth and back runs through a copy in the precision asked for.
    """

    def __init__(self, encoder: nn.Module, tokenizer: Any, schedule: Encoder, groups: int, device: str):
        self.schedule, self.device, self.tokenizer = schedule, torch.device(device), tokenizer
        self.encoder = encoder.to(self.device).eval()
        low = getattr(torch, schedule.precision)
        self.copy = encoder if low == torch.float32 else copy.deepcopy(encoder).to(low)
        self.width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.head = head(self.width, groups).to(self.device)
        self._start = {name: part.detach().clone() for name, part in encoder.state_dict().items()}
        self._read: dict[Texts, Read] = {}
        self._said: dict[Texts, Tensor] = {}
        self._recorded: dict[tuple[int, ...], Recorded] = {}
        learnt = [] if schedule.frozen else [n for n, _ in encoder.named_parameters() if "pooler" not in n]
        self._full: list[Tensor] = [encoder.get_parameter(name) for name in learnt]
        self._low: list[Tensor] = [self.copy.get_parameter(name) for name in learnt]
        encoder.requires_grad_(False)
        self.copy.requires_grad_(False)
        for part in self._low:
            part.requires_grad_()
        named = [*zip(learnt, self._full, strict=True), *self.head.named_parameters()]
        self.learner = self._learner(named)

    def _learner(self, named: Sequence[tuple[str, Tensor]]) -> torch.optim.AdamW:
        plain = [part for name, part in named if any(which in name for which in _NO_DECAY)]
        shrunk = [part for name, part in named if not any(which in name for which in _NO_DECAY)]
        return torch.optim.AdamW(
            [{"params": shrunk, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}],
            lr=self.schedule.learning_rate,
            betas=BETAS,
            eps=EPSILON,
            fused=True,
            capturable=self.device.type == "cuda",
        )

    def answer(self, task: Task, explain: int) -> Answer:
        self._begin(task.seed)
        self._train(task)
        self.copy.eval()
        self.head.eval()
        parts = self._explained(task, explain) if explain else None
        return Answer(self._guessed(task), parts)

    @torch.no_grad()
    def _begin(self, seed: int) -> None:
        """As if nothing had been trained before."""
        torch.manual_seed(seed)
        for encoder in (self.encoder, self.copy):
            for name, part in encoder.state_dict().items():
                part.copy_(self._start[name])
        for layer in self.head:
            if isinstance(layer, nn.Linear | nn.BatchNorm1d):
                layer.reset_parameters()
        for state in self.learner.state.values():
            for kept in state.values():
                kept.zero_()

    def _texts(self, task: Task) -> Read:
        if task.texts not in self._read:
            self._read[task.texts] = Read.of(task.texts, self.tokenizer, self.schedule.length)
        return self._read[task.texts]

    # -- training -----------------------------------------------------------------------------------------------

    def _train(self, task: Task) -> None:
        read = self._texts(task)
        self.copy.train(not self.schedule.frozen or self.schedule.noisy)
        self.head.train()
        groups = torch.from_numpy(task.group).to(self.device)
        weight = torch.from_numpy(task.weight).float().to(self.device)
        if self.schedule.frozen and not self.schedule.noisy:  # what it says of a caption never changes
            if task.texts not in self._said:
                self._said[task.texts] = self._states(read, np.arange(len(read.codes)))
            known = self._said[task.texts]
            for at, _ in self._batches(task):
                self._step(self._learn, known[at], groups[at], weight)
            return
        codes = torch.from_numpy(read.codes).to(self.device)
        lengths = torch.from_numpy(read.lengths).to(self.device)
        for at, places in self._batches(task):
            longest = min(-(-int(read.lengths[places].max()) // _ROUND) * _ROUND, codes.shape[1])
            self._step(self._learn_from, codes[at, :longest], lengths[at], groups[at], weight)

    def _batches(self, task: Task) -> Iterator[tuple[Tensor, Numbers]]:
        for epoch in range(self.schedule.epochs):
            for places in _shuffled(task, self.schedule.batch, epoch):
                yield torch.from_numpy(places).to(self.device), places

    def _step(self, learn: Callable[..., None], *batch: Tensor) -> None:
        if self.device.type == "cpu":
            learn(*batch)
            return
        size = tuple(batch[0].shape)
        if size not in self._recorded:
            parts = [*self.copy.state_dict().values(), *self.head.state_dict().values(), *self._full]
            with Restored(parts, self.learner):
                self._recorded[size] = Recorded.of(learn, batch)
        self._recorded[size].play(batch)

    def _learn_from(self, codes: Tensor, lengths: Tensor, groups: Tensor, weight: Tensor) -> None:
        there = torch.arange(codes.shape[1], device=self.device) < lengths[:, None]
        self._learn(_first_state(self.copy, codes, there), groups, weight)

    def _learn(self, states: Tensor, groups: Tensor, weight: Tensor) -> None:
        loss = nn.functional.cross_entropy(self.head(states), groups, reduction="none") * weight[groups]
        loss.mean().backward()
        apart = self.copy is not self.encoder
        if apart:
            for full, low in zip(self._full, self._low, strict=True):
                full.grad = None if low.grad is None else low.grad.float()
                low.grad = None
        self.learner.step()
        self.learner.zero_grad()
        if apart and self._low:
            with torch.no_grad():
                torch._foreach_copy_(self._low, self._full)

    # -- guessing -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _states(self, read: Read, places: Numbers) -> Tensor:
        """Of each of these captions the state of the first token; 0 for others."""
        made = torch.zeros(len(read.codes), self.width, device=self.device)
        order = places[np.argsort(read.lengths[places], kind="stable")]
        for start in range(0, len(order), _AT_ONCE):
            some = order[start : start + _AT_ONCE]
            made[torch.from_numpy(some).to(self.device)] = _first_state(
                self.encoder, *self._tokens(read, some)
            )
        return made

    def _tokens(self, read: Read, places: Numbers) -> tuple[Tensor, Tensor]:
        longest = int(read.lengths[places].max(initial=1))
        codes = torch.from_numpy(read.codes[places, :longest]).to(self.device)
        there = torch.from_numpy(np.arange(longest) < read.lengths[places][:, None]).to(self.device)
        return codes, there

    @torch.no_grad()
    def _guessed(self, task: Task) -> NDArray[np.float64]:
        states = self._states(self._texts(task), np.unique(task.test))
        logits = self.head(states[torch.from_numpy(task.test).to(self.device)])
        found: NDArray[np.float64] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
        return found

    # -- explaining ---------------------------------------------------------------------------------------------

    def _explained(self, task: Task, steps: int) -> NDArray[np.float64]:
        """What each word of each tested caption adds to the probability of its true group, one after the other.

        The way begins at padding between the encoder's own tokens, and runs through what its embeddings make of them.
        """
        read = self._texts(task)
        like = _first_alike(read, task)
        found: dict[int, NDArray[np.float64]] = {}
        distinct = np.unique(np.array(list(like.values()), dtype=np.int64))
        together = max(1, (_AT_ONCE if self.device.type == "cuda" else _ON_CPU) // steps)
        for length in np.unique(read.lengths[distinct]):
            alike = distinct[read.lengths[distinct] == length]
            for start in range(0, len(alike), together):
                some = alike[start : start + together]
                for place, parts in zip(some.tolist(), self._parts(read, task, some, steps), strict=True):
                    words = np.zeros(int(task.texts.lengths[place]))
                    mine = read.word[place, :length]
                    np.add.at(words, mine[mine >= 0], parts[mine >= 0])
                    found[place] = words
        return np.concatenate([np.zeros(0), *(found[like[place]] for place in task.test.tolist())])

    def _parts(self, read: Read, task: Task, places: Numbers, steps: int) -> NDArray[np.float64]:
        """(captions, tokens); the captions have one length."""
        along, counts = (
            torch.tensor(one, dtype=torch.float32, device=self.device) for one in points_along(steps)
        )
        codes, there = self._tokens(read, places)
        own = torch.from_numpy(read.word[places, : codes.shape[1]] < 0).to(self.device)
        nothing = torch.where(own, codes, self.tokenizer.pad_token_id or 0)
        layer = self._embeddings()
        with torch.no_grad():
            whole = _output_of(layer, lambda: _first_state(self.encoder, codes, there))
            bare = _output_of(layer, lambda: _first_state(self.encoder, nothing, there))
        way = bare[:, None] + along[:, None, None] * (whole - bare)[:, None]
        way = way.flatten(0, 1).detach().requires_grad_()
        hook = layer.register_forward_hook(lambda *_: way)
        try:
            state = _first_state(self.encoder, *(one.repeat_interleave(steps, 0) for one in (codes, there)))
        finally:
            hook.remove()
        likely = torch.softmax(self.head(state), dim=-1)
        groups = torch.from_numpy(task.group[places]).to(self.device).repeat_interleave(steps)
        (slope,) = torch.autograd.grad(likely.gather(1, groups[:, None]).sum(), way)
        mean = (slope.reshape(len(places), steps, *whole.shape[1:]) * counts[:, None, None]).sum(dim=1)
        found: NDArray[np.float64] = (mean * (whole - bare)).sum(dim=2).double().cpu().numpy()
        return found

    def _embeddings(self) -> nn.Module:
        found: nn.Module = getattr(self.encoder, "embeddings", None) or self.encoder.get_input_embeddings()  # type: ignore[operator]
        return found


def _first_state(encoder: nn.Module, codes: Tensor, there: Tensor) -> Tensor:
    """Of the first token of each caption, in full precision."""
    made: Tensor = encoder(input_ids=codes, attention_mask=there.long()).last_hidden_state
    return made[:, 0].float()


def _output_of(layer: nn.Module, run: Callable[[], object]) -> Tensor:
    """What a layer gives while something runs."""
    caught: list[Tensor] = []
    hook = layer.register_forward_hook(lambda _module, _inputs, output: caught.append(output))
    try:
        run()
    finally:
        hook.remove()
    return caught[0].float()


def _first_alike(read: Read, task: Task) -> dict[int, int]:
    """Of each tested caption the first one of its group with the same tokens in as many words."""
    seen: dict[tuple[bytes, bytes, int, int], int] = {}
    made = {}
    for place in task.test.tolist():
        length = read.lengths[place]
        tokens, words = read.codes[place, :length].tobytes(), read.word[place, :length].tobytes()
        key = (tokens, words, int(task.texts.lengths[place]), int(task.group[place]))
        made[place] = seen.setdefault(key, place)
    return made


def _shuffled(task: Task, size: int, epoch: int) -> list[Numbers]:
    """Batches in a new order each time; a last one of a single caption joins the one before, which it needs."""
    order = task.train[np.random.default_rng([task.seed, epoch]).permutation(len(task.train))]
    cut = [order[start : start + size] for start in range(0, len(order), size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [np.concatenate(cut[-2:])]
    return cut
