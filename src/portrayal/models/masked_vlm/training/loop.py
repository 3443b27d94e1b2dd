"""The training loop: one step after the other, kept on disk so that a run that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from portrayal.errors import PortrayalError, unknown_name
from portrayal.files import replacing
from portrayal.models.masked_vlm.network import PRECISIONS, Network
from portrayal.models.masked_vlm.training.data import Pairs
from portrayal.models.masked_vlm.training.losses import Draws, Losses, Task, Usual
from portrayal.models.threads import fitting_threads

_VERSION = 2  # of the kept state

ReportProgress = Callable[[int, int, dict[str, float]], None]  # steps done, steps in all, the losses


@dataclass(frozen=True)
class Recipe:
    """How a network is trained. Everything that decides its weights is here, in the data, or in where it starts."""

    steps: int = 3000
    batch_size: int = 64
    captioned: int = 16  # of the batch, so many pictures also have a caption
    gradient_accumulation: int = 1  # parts in which a batch is gone through, where it does not fit as a whole
    learning_rate: float = 1e-3  # at its height, after `warmup` steps; it falls to 0 along a cosine
    warmup: int = 200
    decay: float = 0.02
    mask_probability: float = 0.4  # share of words hidden, where they are not common
    clip: float = 1.0
    seed: int = 0
    precision: str = "float32"  # or bfloat16, in which products are computed where that is faster
    keep_every: int = 100  # steps after which the state is written

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "gradient_accumulation", "keep_every"):
            if getattr(self, name) < 1:
                raise PortrayalError(f"A training has {name} of 1 or more, got {getattr(self, name)}.")
        if self.captioned < 0 or self.captioned // self.gradient_accumulation == 1:
            raise PortrayalError(
                "Captions are told apart by others: a batch, or a part, has none, or two and more."
            )
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)


def train(
    network: Network,
    pairs: Pairs,
    recipe: Recipe,
    kept: Path | None = None,
    report_progress: ReportProgress | None = None,
    device: str = "cpu",
    task: Task | None = None,
) -> None:
    """Train in place. With `kept`, a file, the state is written there now and then, and read if it is there."""
    task = (task or Usual()).on(device)
    network.to(device)
    with exact(device), _fitting(recipe), fitting_threads(network):
        network.requires_grad_(True).train()
        pairs = pairs.on(device)
        optimizer = torch.optim.AdamW(
            _groups(network, recipe.decay),
            lr=torch.tensor(recipe.learning_rate, device=device),
            betas=(0.9, 0.98),
            fused=True,
            capturable=device == "cuda",
        )
        begin, known = 0, ""
        if kept is not None:
            known = _digest(network, pairs, recipe, device, task)
            if kept.is_file():
                begin = _resume(kept, network, optimizer, known)
        # What is dropped at random cannot be replayed with numbers of its own.
        recorded = device == "cuda" and not _drops(network)
        step = _Recorded(network, pairs, recipe, optimizer, task) if recorded else None
        for number in range(begin, recipe.steps):
            draws = task.draws(pairs, recipe.batch_size, recipe.seed, number)
            _seed_dropout(recipe.seed, number)
            for group in optimizer.param_groups:
                group["lr"].fill_(recipe.learning_rate * _pace(number, recipe))
            if step is not None:
                losses = step(draws)
            else:
                losses = _step(network, pairs, recipe, optimizer, task, draws.on(device))
            done = number + 1
            if done % recipe.keep_every == 0 or done == recipe.steps:
                _check(losses, done)
                if kept is not None:
                    _keep(kept, network, optimizer, known, done)
            if report_progress is not None and (done % 50 == 0 or done == recipe.steps):
                report_progress(
                    done, recipe.steps, {name: float(value.detach()) for name, value in losses.items()}
                )
        network.eval()


def _step(
    network: Network,
    pairs: Pairs,
    recipe: Recipe,
    optimizer: torch.optim.Optimizer,
    task: Task,
    draws: Draws,
) -> Losses:
    kind = pairs.pictures.device.type
    parts = draws.parts(recipe.gradient_accumulation)
    whole: Losses = {}
    optimizer.zero_grad(set_to_none=True)
    for part in parts:
        captioned = min(recipe.captioned // recipe.gradient_accumulation, len(part.chosen))
        with torch.autocast(kind, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            losses = task.losses(network, pairs, part, recipe.mask_probability, captioned)
        total = torch.stack(list(losses.values())).sum()
        (total if len(parts) == 1 else total / len(parts)).backward()
        for name, value in losses.items():
            value = value.detach() / len(parts)
            whole[name] = whole[name] + value if name in whole else value
    torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
    optimizer.step()
    return whole


class _Recorded:
    """A step as a GPU replays it: a small network spends most of its time on being told what to do.

    The first steps warm up the device and change the network, which is then put back as it was.
    """

    def __init__(
        self,
        network: Network,
        pairs: Pairs,
        recipe: Recipe,
        optimizer: torch.optim.Optimizer,
        task: Task,
    ) -> None:
        before = _copied(network.state_dict()), _copied(optimizer.state_dict())
        self._draws = task.draws(pairs, recipe.batch_size, recipe.seed, 0).on("cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                _step(network, pairs, recipe, optimizer, task, self._draws)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._losses = _step(network, pairs, recipe, optimizer, task, self._draws)
        _put_back(network, optimizer, *before)

    def __call__(self, draws: Draws) -> Losses:
        self._draws.copy_from(draws)
        self._graph.replay()
        return self._losses


def _copied(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, dict):
        return {name: _copied(value) for name, value in state.items()}
    return state


def _put_back(
    network: Network, optimizer: torch.optim.Optimizer, weights: dict[str, Tensor], moments: dict[str, Any]
) -> None:
    """In place, since what was recorded knows tensors by where they are."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            value.copy_(weights[name])
        for number, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                known = moments["state"].get(number)
                value.zero_() if known is None else value.copy_(known[name])


def _pace(step: int, recipe: Recipe) -> float:
    if step < recipe.warmup:
        return (step + 1) / recipe.warmup
    share = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return 0.5 * (1 + math.cos(math.pi * share))


def _groups(network: Network, decay: float) -> list[dict[str, Any]]:
    """Weights of products shrink; biases and norms do not."""
    shrinking = [p for p in network.parameters() if p.requires_grad and p.ndim >= 2]
    others = [p for p in network.parameters() if p.requires_grad and p.ndim < 2]
    return [{"params": shrinking, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def _check(losses: Losses, done: int) -> None:
    for name, value in losses.items():
        if not bool(torch.isfinite(value)):
            raise PortrayalError(
                f"Training broke down at step {done:,}: the loss '{name}' is no longer a number. Try a smaller rate."
            )


def _seed_dropout(seed: int, step: int) -> None:
    """What is dropped depends on the step, so that a run that goes on drops what an unbroken one would."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1)[0]))


def _drops(network: Network) -> bool:
    return any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in network.modules())


def _digest(network: Network, pairs: Pairs, recipe: Recipe, device: str, task: Task) -> str:
    """Of all that decides the weights: a state of anything else must not be gone on with."""
    threads = torch.get_num_threads() if device == "cpu" else 0
    whole = hashlib.blake2b(
        f"{_VERSION} {asdict(recipe)} {device} {threads} {task.digest}".encode(), digest_size=16
    )
    for part in (pairs.pictures, pairs.captions, pairs.sentences, *network.state_dict().values()):
        whole.update(part.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def _keep(file: Path, network: Network, optimizer: torch.optim.Optimizer, known: str, done: int) -> None:
    state = {
        "of": known,
        "done": done,
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict()["state"],
    }
    with replacing(file) as fresh:
        torch.save(state, fresh)


def _resume(file: Path, network: Network, optimizer: torch.optim.Optimizer, known: str) -> int:
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
        same = state["of"] == known
    except Exception as error:  # whatever a broken file makes the loader raise
        raise PortrayalError(
            f"{file}: expected the state of a training, found something else: remove it to begin anew."
        ) from error
    if not same:
        raise PortrayalError(
            f"{file} was kept by a training with other settings, data or threads: remove it, or train into another "
            f"folder."
        )
    network.load_state_dict(state["network"])
    whole = optimizer.state_dict()
    optimizer.load_state_dict({**whole, "state": state["optimizer"]})
    return int(state["done"])


@contextmanager
def _fitting(recipe: Recipe) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise PortrayalError(
            f"A batch of {recipe.batch_size:,} in {recipe.gradient_accumulation:,} parts does not fit into the device's memory: take a "
            f"smaller batch, or go through it in more parts."
        ) from None


@contextmanager
def exact(device: str) -> Iterator[None]:
    """The same numbers each time on the same kind of machine, at some cost in speed."""
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        if device == "cuda":
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                yield
        else:
            yield
    finally:
        torch.use_deterministic_algorithms(before)
