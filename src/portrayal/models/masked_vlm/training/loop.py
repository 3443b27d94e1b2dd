"""The training loop, with checkpoints from which an interrupted run resumes."""

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
from portrayal.models.masked_vlm.network import PRECISIONS, VLMNetwork
from portrayal.models.masked_vlm.training.data import ImageTextPairs
from portrayal.models.masked_vlm.training.losses import BatchSample, Losses, PretrainingTask, TrainingTask
from portrayal.models.threads import limit_threads

_VERSION = 2  # of the checkpoint

ReportProgress = Callable[
    [int, int, dict[str, float]], None
]  # number of steps done, total number of steps, losses


@dataclass(frozen=True)
class TrainingConfig:
    """Hyperparameters of training.

    The trained weights are a function of these, the data and the initial weights.
    """

    steps: int = 3000
    batch_size: int = 64
    n_captioned: int = 16  # number of images of a batch that also have a caption
    gradient_accumulation: int = 1  # number of parts of a batch, for batches that do not fit into memory
    learning_rate: float = 1e-3  # maximum, reached after `warmup_steps`; then decays to 0 along a cosine
    warmup_steps: int = 200
    weight_decay: float = 0.02
    mask_probability: float = 0.4  # probability that a word is masked; lower for common words
    max_grad_norm: float = 1.0
    seed: int = 0
    precision: str = "float32"  # or bfloat16, for mixed precision
    checkpoint_every: int = 100  # number of steps between checkpoints

    def __post_init__(self) -> None:
        for field in ("steps", "batch_size", "gradient_accumulation", "checkpoint_every"):
            if getattr(self, field) < 1:
                raise PortrayalError(f"Expected {field} of 1 or more, got {getattr(self, field)}.")
        if self.n_captioned < 0 or self.n_captioned // self.gradient_accumulation == 1:
            raise PortrayalError(
                "Captions are contrasted with others: a batch, or a part, has none, or two or more."
            )
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)


def train(
    network: VLMNetwork,
    pairs: ImageTextPairs,
    config: TrainingConfig,
    checkpoint: Path | None = None,
    report_progress: ReportProgress | None = None,
    device: str = "cpu",
    task: TrainingTask | None = None,
) -> None:
    """Train a network in place.

    Parameters
    ----------
    network, pairs, config
        The network, its data and the hyperparameters.
    checkpoint
        File to which the state is written every `checkpoint_every` steps; training resumes from it if it
        exists.
    report_progress
        Called with the number of steps done, the total number of steps, and the losses.
    device
        "cpu" or "cuda".
    task
        The objective. Default: `PretrainingTask`.
    """
    task = (task or PretrainingTask()).to(device)
    network.to(device)
    with deterministic(device), _explain_out_of_memory(config), limit_threads(network):
        network.requires_grad_(True).train()
        pairs = pairs.to(device)
        optimizer = torch.optim.AdamW(
            _param_groups(network, config.weight_decay),
            lr=torch.tensor(config.learning_rate, device=device),
            betas=(0.9, 0.98),
            fused=True,
            capturable=device == "cuda",
        )
        first_step, digest = 0, ""
        if checkpoint is not None:
            digest = _digest(network, pairs, config, device, task)
            if checkpoint.is_file():
                first_step = _load_state(checkpoint, network, optimizer, digest)
        # A CUDA graph would replay the same dropout masks in every step.
        use_cuda_graph = device == "cuda" and not _has_dropout(network)
        graph_step = _CudaGraphStep(network, pairs, config, optimizer, task) if use_cuda_graph else None
        for step in range(first_step, config.steps):
            sample = task.sample(pairs, config.batch_size, config.seed, step)
            _seed_dropout(config.seed, step)
            for group in optimizer.param_groups:
                group["lr"].fill_(config.learning_rate * _lr_factor(step, config))
            if graph_step is not None:
                losses = graph_step(sample)
            else:
                losses = _step(network, pairs, config, optimizer, task, sample.to(device))
            n_done = step + 1
            if n_done % config.checkpoint_every == 0 or n_done == config.steps:
                _check_finite(losses, n_done)
                if checkpoint is not None:
                    _save_state(checkpoint, network, optimizer, digest, n_done)
            if report_progress is not None and (n_done % 50 == 0 or n_done == config.steps):
                report_progress(
                    n_done, config.steps, {name: float(value.detach()) for name, value in losses.items()}
                )
        network.eval()


def _step(
    network: VLMNetwork,
    pairs: ImageTextPairs,
    config: TrainingConfig,
    optimizer: torch.optim.Optimizer,
    task: TrainingTask,
    sample: BatchSample,
) -> Losses:
    device_type = pairs.images.device.type
    parts = sample.split(config.gradient_accumulation)
    total_losses: Losses = {}
    optimizer.zero_grad(set_to_none=True)
    for part in parts:
        n_captioned = min(config.n_captioned // config.gradient_accumulation, len(part.image_index))
        with torch.autocast(device_type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            losses = task.losses(network, pairs, part, config.mask_probability, n_captioned)
        loss_sum = torch.stack(list(losses.values())).sum()
        (loss_sum if len(parts) == 1 else loss_sum / len(parts)).backward()
        for name, value in losses.items():
            value = value.detach() / len(parts)
            total_losses[name] = total_losses[name] + value if name in total_losses else value
    torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
    optimizer.step()
    return total_losses


class _CudaGraphStep:
    """A training step as a CUDA graph, which avoids the launch overhead of kernels.

    The warm-up steps before the capture change the network, so its state is restored afterwards.
    """

    def __init__(
        self,
        network: VLMNetwork,
        pairs: ImageTextPairs,
        config: TrainingConfig,
        optimizer: torch.optim.Optimizer,
        task: TrainingTask,
    ) -> None:
        saved_state = _clone_state(network.state_dict()), _clone_state(optimizer.state_dict())
        self._sample = task.sample(pairs, config.batch_size, config.seed, 0).to("cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                _step(network, pairs, config, optimizer, task, self._sample)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._losses = _step(network, pairs, config, optimizer, task, self._sample)
        _restore_state(network, optimizer, *saved_state)

    def __call__(self, sample: BatchSample) -> Losses:
        self._sample.copy_from(sample)
        self._graph.replay()
        return self._losses


def _clone_state(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, dict):
        return {name: _clone_state(value) for name, value in state.items()}
    return state


def _restore_state(
    network: VLMNetwork, optimizer: torch.optim.Optimizer, weights: dict[str, Tensor], moments: dict[str, Any]
) -> None:
    """Restore tensors in place, since the CUDA graph refers to them by address."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            value.copy_(weights[name])
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                saved_moments = moments["state"].get(index)
                value.zero_() if saved_moments is None else value.copy_(saved_moments[name])


def _lr_factor(step: int, config: TrainingConfig) -> float:
    """Return the factor on the learning rate: linear warm-up, then cosine decay."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    decay_progress = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * decay_progress))


def _param_groups(network: VLMNetwork, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameter groups of the optimizer: weight decay applies to matrices, not to biases and norms."""
    matrices = [p for p in network.parameters() if p.requires_grad and p.ndim >= 2]
    vectors = [p for p in network.parameters() if p.requires_grad and p.ndim < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def _check_finite(losses: Losses, step: int) -> None:
    for name, value in losses.items():
        if not bool(torch.isfinite(value)):
            raise PortrayalError(
                f"Training diverged at step {step:,}: the loss '{name}' is no longer a number. Try a "
                "smaller learning rate."
            )


def _seed_dropout(seed: int, step: int) -> None:
    """Seed dropout from the step, so that a resumed run gets the same dropout masks as an uninterrupted one."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1)[0]))


def _has_dropout(network: VLMNetwork) -> bool:
    return any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in network.modules())


def _digest(
    network: VLMNetwork, pairs: ImageTextPairs, config: TrainingConfig, device: str, task: TrainingTask
) -> str:
    """Return a digest of everything that the trained weights depend on; a checkpoint is resumed only if it is equal."""
    threads = torch.get_num_threads() if device == "cpu" else 0
    digest = hashlib.blake2b(
        f"{_VERSION} {asdict(config)} {device} {threads} {task.digest}".encode(), digest_size=16
    )
    for tensor in (pairs.images, pairs.captions, pairs.sentences, *network.state_dict().values()):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _save_state(
    file: Path, network: VLMNetwork, optimizer: torch.optim.Optimizer, digest: str, n_done: int
) -> None:
    state = {
        "digest": digest,
        "done": n_done,
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict()["state"],
    }
    with replacing(file) as temporary:
        torch.save(state, temporary)


def _load_state(file: Path, network: VLMNetwork, optimizer: torch.optim.Optimizer, digest: str) -> int:
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
        matches = state["digest"] == digest
    except Exception as error:  # the loader may raise anything for a broken file
        raise PortrayalError(
            f"{file}: expected a training checkpoint, found something else: remove it to start again."
        ) from error
    if not matches:
        raise PortrayalError(
            f"{file} is the checkpoint of a training with other settings, data or threads: remove it, or train into "
            "another folder."
        )
    network.load_state_dict(state["network"])
    optimizer_state = optimizer.state_dict()
    optimizer.load_state_dict({**optimizer_state, "state": state["optimizer"]})
    return int(state["done"])


@contextmanager
def _explain_out_of_memory(config: TrainingConfig) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise PortrayalError(
            f"A batch of {config.batch_size:,} in {config.gradient_accumulation:,} parts does not fit into the memory "
            "of the device: use a smaller batch, or more gradient accumulation."
        ) from None


@contextmanager
def deterministic(device: str) -> Iterator[None]:
    """Use deterministic algorithms, which give the same numbers on the same kind of machine but are slower."""
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        if device == "cuda":
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                yield
        else:
            yield
    finally:
        torch.use_deterministic_algorithms(was_deterministic)
