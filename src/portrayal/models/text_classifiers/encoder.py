"""Fine-tune a pretrained encoder to predict a group, with the published head on the state of the first token.

On a GPU the training steps are captured as CUDA graphs, one for each batch shape, since the launch overhead of
the kernels is longer than their run time.
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
from portrayal.models.cuda_graph import CudaGraph, RestoreState
from portrayal.models.text_classifiers.configs import EncoderConfig
from portrayal.models.text_classifiers.integrated_gradients import gauss_legendre
from portrayal.models.text_classifiers.tasks import ClassificationTask, IntArray, TaskPredictions, Texts
from portrayal.models.text_classifiers.tokens import EncoderTokens

HEAD_WIDTH = 256  # hidden units of the head
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.98), 1e-6, 0.1
_NO_DECAY = ("bias", "LayerNorm.weight")
_LENGTH_MULTIPLE = 8  # padded lengths are a multiple of this, to limit the number of graphs
_MAX_BATCH_SIZE = 512  # captions, or steps of integrated gradients
_MAX_BATCH_SIZE_CPU = 64  # steps of integrated gradients on a CPU, whose memory other workers use too


def train(
    tasks: Sequence[ClassificationTask],
    config: EncoderConfig,
    *,
    device: str = "cpu",
    attribution_steps: int = 0,
) -> Iterator[tuple[int, TaskPredictions]]:
    """Train a classifier for each task, and yield the index and the predictions of each task.

    `attribution_steps` is the number of steps of integrated gradients; 0: no attributions.
    """
    if not tasks:
        return
    classifier = EncoderClassifier(
        *load_encoder(config.model), config, max(task.n_groups for task in tasks), device
    )
    for index, task in enumerate(tasks):
        yield index, classifier.fit_predict(task, attribution_steps)


def load_encoder(name: str) -> tuple[nn.Module, Any]:
    """Return an encoder and its tokenizer, by Hugging Face name or folder."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        return AutoModel.from_pretrained(name).float(), tokenizer
    except (OSError, ValueError) as error:
        raise PortrayalError(
            f"The encoder '{name}' could not be loaded: it is neither a folder with a model, nor could it be "
            f"downloaded from the Hugging Face hub. Give another encoder. ({_first_line(error)})"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


def classification_head(in_features: int, n_groups: int) -> nn.Sequential:
    """Return the published classification head.

    >>> sum(parameter.numel() for parameter in classification_head(768, 2).parameters())
    199426
    """
    return nn.Sequential(
        nn.BatchNorm1d(in_features),
        nn.Linear(in_features, HEAD_WIDTH),
        nn.BatchNorm1d(HEAD_WIDTH),
        nn.LeakyReLU(),
        nn.Linear(HEAD_WIDTH, n_groups),
    )


class EncoderClassifier:
    """An encoder with a classification head, which are reset before each task.

    Master weights are float32. The forward and backward passes use a copy in the configured precision.
    """

    def __init__(self, encoder: nn.Module, tokenizer: Any, config: EncoderConfig, n_groups: int, device: str):
        self.config, self.device, self.tokenizer = config, torch.device(device), tokenizer
        self.encoder = encoder.to(self.device).eval()
        precision = getattr(torch, config.precision)
        self.compute_encoder = encoder if precision == torch.float32 else copy.deepcopy(encoder).to(precision)
        self.hidden_size = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.head = classification_head(self.hidden_size, n_groups).to(self.device)
        self._initial_state = {
            name: parameter.detach().clone() for name, parameter in encoder.state_dict().items()
        }
        self._encoder_tokens: dict[Texts, EncoderTokens] = {}
        self._cached_states: dict[Texts, Tensor] = {}
        self._graphs: dict[tuple[int, ...], CudaGraph] = {}
        trainable = [] if config.frozen else [n for n, _ in encoder.named_parameters() if "pooler" not in n]
        self._full_precision: list[Tensor] = [encoder.get_parameter(name) for name in trainable]
        self._low_precision: list[Tensor] = [self.compute_encoder.get_parameter(name) for name in trainable]
        encoder.requires_grad_(False)
        self.compute_encoder.requires_grad_(False)
        for parameter in self._low_precision:
            parameter.requires_grad_()
        named_parameters = [*zip(trainable, self._full_precision, strict=True), *self.head.named_parameters()]
        self.optimizer = self._make_optimizer(named_parameters)

    def _make_optimizer(self, named_parameters: Sequence[tuple[str, Tensor]]) -> torch.optim.AdamW:
        not_decayed = [
            parameter for name, parameter in named_parameters if any(pattern in name for pattern in _NO_DECAY)
        ]
        decayed = [
            parameter
            for name, parameter in named_parameters
            if not any(pattern in name for pattern in _NO_DECAY)
        ]
        return torch.optim.AdamW(
            [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": not_decayed, "weight_decay": 0.0}],
            lr=self.config.learning_rate,
            betas=BETAS,
            eps=EPSILON,
            fused=True,
            capturable=self.device.type == "cuda",
        )

    def fit_predict(self, task: ClassificationTask, attribution_steps: int) -> TaskPredictions:
        """Train on the training captions and return the predictions for the test captions."""
        self._reset(task.seed)
        self._train(task)
        self.compute_encoder.eval()
        self.head.eval()
        attributions = self._attributions(task, attribution_steps) if attribution_steps else None
        return TaskPredictions(self._predict_proba(task), attributions)

    @torch.no_grad()
    def _reset(self, seed: int) -> None:
        """Reset the weights and the optimizer state to those before training."""
        torch.manual_seed(seed)
        for encoder in (self.encoder, self.compute_encoder):
            for name, tensor in encoder.state_dict().items():
                tensor.copy_(self._initial_state[name])
        for layer in self.head:
            if isinstance(layer, nn.Linear | nn.BatchNorm1d):
                layer.reset_parameters()
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()

    def _tokenize(self, task: ClassificationTask) -> EncoderTokens:
        if task.texts not in self._encoder_tokens:
            self._encoder_tokens[task.texts] = EncoderTokens.encode(
                task.texts, self.tokenizer, self.config.max_length
            )
        return self._encoder_tokens[task.texts]

    # -- training -----------------------------------------------------------------------------------------------

    def _train(self, task: ClassificationTask) -> None:
        encoded = self._tokenize(task)
        self.compute_encoder.train(not self.config.frozen or self.config.encoder_dropout)
        self.head.train()
        groups = torch.from_numpy(task.group_index).to(self.device)
        weight = torch.from_numpy(task.group_weights).float().to(self.device)
        # Without dropout the output of a frozen encoder for a caption is always the same.
        if self.config.frozen and not self.config.encoder_dropout:
            if task.texts not in self._cached_states:
                self._cached_states[task.texts] = self._states(encoded, np.arange(len(encoded.token_ids)))
            states = self._cached_states[task.texts]
            for batch, _ in self._batches(task):
                self._step(self._training_step, states[batch], groups[batch], weight)
            return
        token_ids = torch.from_numpy(encoded.token_ids).to(self.device)
        lengths = torch.from_numpy(encoded.lengths).to(self.device)
        for batch, indices in self._batches(task):
            longest = min(
                -(-int(encoded.lengths[indices].max()) // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE,
                token_ids.shape[1],
            )
            self._step(
                self._training_step_from_tokens,
                token_ids[batch, :longest],
                lengths[batch],
                groups[batch],
                weight,
            )

    def _batches(self, task: ClassificationTask) -> Iterator[tuple[Tensor, IntArray]]:
        for epoch in range(self.config.epochs):
            for indices in _shuffled(task, self.config.batch_size, epoch):
                yield torch.from_numpy(indices).to(self.device), indices

    def _step(self, training_step: Callable[..., None], *batch: Tensor) -> None:
        if self.device.type == "cpu":
            training_step(*batch)
            return
        batch_shape = tuple(batch[0].shape)
        if batch_shape not in self._graphs:
            tensors = [
                *self.compute_encoder.state_dict().values(),
                *self.head.state_dict().values(),
                *self._full_precision,
            ]
            with RestoreState(tensors, self.optimizer):
                self._graphs[batch_shape] = CudaGraph.capture(training_step, batch)
        self._graphs[batch_shape].replay(batch)

    def _training_step_from_tokens(
        self, token_ids: Tensor, lengths: Tensor, groups: Tensor, weight: Tensor
    ) -> None:
        mask = torch.arange(token_ids.shape[1], device=self.device) < lengths[:, None]
        self._training_step(_first_token_state(self.compute_encoder, token_ids, mask), groups, weight)

    def _training_step(self, states: Tensor, groups: Tensor, weight: Tensor) -> None:
        loss = nn.functional.cross_entropy(self.head(states), groups, reduction="none") * weight[groups]
        loss.mean().backward()
        has_master_weights = self.compute_encoder is not self.encoder
        if has_master_weights:
            for full, low in zip(self._full_precision, self._low_precision, strict=True):
                full.grad = None if low.grad is None else low.grad.float()
                low.grad = None
        self.optimizer.step()
        self.optimizer.zero_grad()
        if has_master_weights and self._low_precision:
            with torch.no_grad():
                torch._foreach_copy_(self._low_precision, self._full_precision)

    # -- predictions --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _states(self, tokens: EncoderTokens, indices: IntArray) -> Tensor:
        """Return the first-token states of these captions; 0 for all others."""
        states = torch.zeros(len(tokens.token_ids), self.hidden_size, device=self.device)
        order = indices[np.argsort(tokens.lengths[indices], kind="stable")]
        for start in range(0, len(order), _MAX_BATCH_SIZE):
            batch = order[start : start + _MAX_BATCH_SIZE]
            states[torch.from_numpy(batch).to(self.device)] = _first_token_state(
                self.encoder, *self._padded(tokens, batch)
            )
        return states

    def _padded(self, tokens: EncoderTokens, indices: IntArray) -> tuple[Tensor, Tensor]:
        longest = int(tokens.lengths[indices].max(initial=1))
        token_ids = torch.from_numpy(tokens.token_ids[indices, :longest]).to(self.device)
        mask = torch.from_numpy(np.arange(longest) < tokens.lengths[indices][:, None]).to(self.device)
        return token_ids, mask

    @torch.no_grad()
    def _predict_proba(self, task: ClassificationTask) -> NDArray[np.float64]:
        states = self._states(self._tokenize(task), np.unique(task.test_indices))
        logits = self.head(states[torch.from_numpy(task.test_indices).to(self.device)])
        proba: NDArray[np.float64] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
        return proba

    # -- attributions -------------------------------------------------------------------------------------------

    def _attributions(self, task: ClassificationTask, steps: int) -> NDArray[np.float64]:
        """Return integrated gradients of the true group's probability for the words of all test captions, concatenated.

        The baseline has padding between the encoder's special tokens. The path is through the output of the
        embeddings.
        """
        tokens = self._tokenize(task)
        equivalent_index = _first_equivalent(tokens, task)
        attributions: dict[int, NDArray[np.float64]] = {}
        distinct_indices = np.unique(np.array(list(equivalent_index.values()), dtype=np.int64))
        batch_size = max(1, (_MAX_BATCH_SIZE if self.device.type == "cuda" else _MAX_BATCH_SIZE_CPU) // steps)
        for length in np.unique(tokens.lengths[distinct_indices]):
            same_length = distinct_indices[tokens.lengths[distinct_indices] == length]
            for start in range(0, len(same_length), batch_size):
                batch = same_length[start : start + batch_size]
                for index, token_attributions in zip(
                    batch.tolist(), self._token_attributions(tokens, task, batch, steps), strict=True
                ):
                    word_attributions = np.zeros(int(task.texts.lengths[index]))
                    word_index = tokens.word_index[index, :length]
                    np.add.at(
                        word_attributions, word_index[word_index >= 0], token_attributions[word_index >= 0]
                    )
                    attributions[index] = word_attributions
        return np.concatenate(
            [np.zeros(0), *(attributions[equivalent_index[index]] for index in task.test_indices.tolist())]
        )

    def _token_attributions(
        self, tokens: EncoderTokens, task: ClassificationTask, indices: IntArray, steps: int
    ) -> NDArray[np.float64]:
        """Return the attributions (captions, tokens) of captions with the same length."""
        points, weights = (
            torch.tensor(tensor, dtype=torch.float32, device=self.device) for tensor in gauss_legendre(steps)
        )
        token_ids, mask = self._padded(tokens, indices)
        is_special = torch.from_numpy(tokens.word_index[indices, : token_ids.shape[1]] < 0).to(self.device)
        baseline_ids = torch.where(is_special, token_ids, self.tokenizer.pad_token_id or 0)
        layer = self._embeddings()
        with torch.no_grad():
            embedded = _layer_output(layer, lambda: _first_token_state(self.encoder, token_ids, mask))
            baseline = _layer_output(layer, lambda: _first_token_state(self.encoder, baseline_ids, mask))
        path = baseline[:, None] + points[:, None, None] * (embedded - baseline)[:, None]
        path = path.flatten(0, 1).detach().requires_grad_()
        hook = layer.register_forward_hook(lambda *_: path)
        try:
            state = _first_token_state(
                self.encoder, *(tensor.repeat_interleave(steps, 0) for tensor in (token_ids, mask))
            )
        finally:
            hook.remove()
        proba = torch.softmax(self.head(state), dim=-1)
        groups = torch.from_numpy(task.group_index[indices]).to(self.device).repeat_interleave(steps)
        (gradient,) = torch.autograd.grad(proba.gather(1, groups[:, None]).sum(), path)
        mean_gradient = (
            gradient.reshape(len(indices), steps, *embedded.shape[1:]) * weights[:, None, None]
        ).sum(dim=1)
        attributions: NDArray[np.float64] = (
            (mean_gradient * (embedded - baseline)).sum(dim=2).double().cpu().numpy()
        )
        return attributions

    def _embeddings(self) -> nn.Module:
        layer: nn.Module = getattr(self.encoder, "embeddings", None) or self.encoder.get_input_embeddings()  # type: ignore[operator]
        return layer


def _first_token_state(encoder: nn.Module, token_ids: Tensor, mask: Tensor) -> Tensor:
    """Return the state of the first token of each caption, in float32."""
    hidden: Tensor = encoder(input_ids=token_ids, attention_mask=mask.long()).last_hidden_state
    return hidden[:, 0].float()


def _layer_output(layer: nn.Module, run: Callable[[], object]) -> Tensor:
    """Return the output of a layer while `run` is called."""
    outputs: list[Tensor] = []
    hook = layer.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    try:
        run()
    finally:
        hook.remove()
    return outputs[0].float()


def _first_equivalent(encoded: EncoderTokens, task: ClassificationTask) -> dict[int, int]:
    """Map each test caption to the first one of its group with the same tokens and words."""
    first_by_key: dict[tuple[bytes, bytes, int, int], int] = {}
    equivalent = {}
    for index in task.test_indices.tolist():
        length = encoded.lengths[index]
        tokens, words = (
            encoded.token_ids[index, :length].tobytes(),
            encoded.word_index[index, :length].tobytes(),
        )
        key = (tokens, words, int(task.texts.lengths[index]), int(task.group_index[index]))
        equivalent[index] = first_by_key.setdefault(key, index)
    return equivalent


def _shuffled(task: ClassificationTask, size: int, epoch: int) -> list[IntArray]:
    """Return shuffled batches; a last batch of one caption is merged, since batch normalization needs two."""
    order = task.train_indices[np.random.default_rng([task.seed, epoch]).permutation(len(task.train_indices))]
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [np.concatenate(batches[-2:])]
    return batches
