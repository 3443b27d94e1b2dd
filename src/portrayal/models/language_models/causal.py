"""Pretrained causal language models of Transformers, by name, folder or GGUF file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError, need, shown
from portrayal.models.device import resolve_device
from portrayal.models.language_models.loading import (
    GGUF,
    PURPOSE,
    from_pretrained_arguments,
    is_causal,
    load_errors,
    model_digest,
)
from portrayal.models.language_models.scores import TokenScores

_MAX_WORKERS = 8  # each uses memory for a batch
_BATCH_TOKENS = {"cpu": 1024, "cuda": 16_384}  # approximate number of tokens in a batch
# maximum number of logits in a batch, which makes batches smaller for a large vocabulary
_BATCH_LOGITS = {"cpu": 1 << 26, "cuda": 1 << 30}


@dataclass(frozen=True, eq=False)
class CausalLM:
    """A pretrained causal language model.

    A text is put between the model's own start and end tokens: the first is given, the last is scored. It is
    computed in float32, in batches of texts of equal length, so that there is no padding. The weights are
    loaded when the first text is scored.
    """

    name: str
    digest: str
    metadata: dict[str, str]
    tokenizer: Any
    device: str
    source: str  # name, folder or file of the weights

    @classmethod
    def load(cls, name: str, device: str = "auto") -> CausalLM:
        """Load by Hugging Face name, folder, or path of a .gguf file; `device` is auto, cpu or cuda."""
        need("torch", "neural", PURPOSE)
        transformers = need("transformers", "neural", PURPOSE)
        resolved_device = resolve_device(device)
        with load_errors(name):
            digest = model_digest(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(**from_pretrained_arguments(name))
        if tokenizer.eos_token_id is None:
            raise PortrayalError(
                f"The language model '{name}' has no end-of-text token, which is needed for the probability of a "
                "whole text."
            )
        if not tokenizer.is_fast:
            raise PortrayalError(
                f"The language model '{name}' has a tokenizer without character offsets of its tokens."
            )
        return cls(
            name=Path(name).resolve().name.removesuffix(GGUF) if Path(name).exists() else name,
            digest=digest,
            metadata={"begin": tokenizer.bos_token or tokenizer.eos_token, "end": tokenizer.eos_token},
            tokenizer=tokenizer,
            device=resolved_device,
            source=name,
        )

    def score(self, texts: Sequence[str]) -> list[TokenScores]:
        """Return the token scores of each text; identical texts are scored once."""
        distinct = sorted(set(texts))  # the same batches, and so the same digits, in any order
        if not distinct:
            return []
        # A special token that a caption spells out is plain text.
        encoding = self.tokenizer(
            distinct, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
        )
        begin = self.tokenizer.bos_token_id
        end = self.tokenizer.eos_token_id
        codes = [[end if begin is None else begin, *ids, end] for ids in encoding["input_ids"]]
        self._check_lengths(distinct, codes)
        scores_by_text = {}
        for index, logs in self._log_probabilities(codes):
            text = distinct[index]
            ends = [*(stop for _, stop in encoding["offset_mapping"][index]), len(text)]
            scores_by_text[text] = TokenScores(logs, np.array(ends, dtype=np.int64))
        return [scores_by_text[text] for text in texts]

    def _log_probabilities(self, codes: Sequence[Sequence[int]]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield the index of each text, and the log-probabilities of all its tokens but the first."""
        indices_by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(codes):
            indices_by_length.setdefault(len(ids), []).append(index)
        tokens = min(_BATCH_TOKENS[self.device], _BATCH_LOGITS[self.device] // len(self.tokenizer))
        batches = []
        for length, indices in sorted(indices_by_length.items()):
            batch_size = max(1, tokens // length)
            batches += [indices[start : start + batch_size] for start in range(0, len(indices), batch_size)]
        with _workers(self.device) as workers:
            results = workers.map(self._batch, [[codes[index] for index in indices] for indices in batches])
            for indices, logs in zip(batches, results, strict=True):
                yield from zip(indices, logs, strict=True)

    def _batch(self, codes: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        torch = need("torch", "neural", PURPOSE)
        batch = torch.tensor(codes, device=self.device)
        with torch.inference_mode():
            logits = self._model(input_ids=batch[:, :-1], use_cache=False).logits
            # In float64, since the sum is over thousands of words; one text at a time, to save memory.
            logs = [
                text_logits.gather(1, target)[:, 0].double() - text_logits.double().logsumexp(1)
                for text_logits, target in zip(logits, batch[:, 1:, None], strict=True)
            ]
            log_probs: NDArray[np.float64] = torch.stack(logs).cpu().numpy()
        return log_probs

    def _check_lengths(self, texts: Sequence[str], codes: Sequence[Sequence[int]]) -> None:
        max_length = getattr(self._model.config, "max_position_embeddings", None)
        for text, ids in zip(texts, codes, strict=True):
            if max_length is not None and len(ids) - 1 > max_length:
                raise PortrayalError(
                    f"The language model '{self.name}' takes at most {max_length:,} tokens, but a text has "
                    f"{len(ids) - 1:,}: {shown(text)}."
                )

    @cached_property
    def _model(self) -> Any:
        torch = need("torch", "neural", PURPOSE)
        transformers = need("transformers", "neural", PURPOSE)
        with load_errors(self.source):
            model, loading_info = transformers.AutoModelForCausalLM.from_pretrained(
                **from_pretrained_arguments(self.source), output_loading_info=True
            )
        if model.dtype != torch.float32:  # a model from a GGUF file is float32 already, and cannot be cast
            model = model.float()
        model = model.to(self.device).eval()
        # Transformers initialises missing weights randomly, and also loads models with bidirectional attention.
        if loading_info["missing_keys"] or not is_causal(model, self.device):
            raise PortrayalError(
                f"'{self.source}' is not a causal language model: it was not trained to predict each token from "
                "those before."
            )
        return model


@contextlib.contextmanager
def _workers(device: str) -> Iterator[ThreadPoolExecutor]:
    """One thread pool worker for each core on a CPU, each with a single PyTorch thread; a single worker on a GPU.

    Threads that share a batch wait for each other at every step, many times longer than they compute where
    other processes use the CPU too; and their number would change the last digits.
    """
    torch = need("torch", "neural", PURPOSE)
    n_threads = torch.get_num_threads()
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n_workers = min(n_cores, _MAX_WORKERS) if device == "cpu" else 1
    try:
        with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(n_threads)
