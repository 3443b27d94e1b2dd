"""Pretrained causal language models: any that Transformers can load, by name, folder or GGUF file."""

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
from portrayal.models.device import best_device
from portrayal.models.language_models.loading import GGUF, PURPOSE, content, loading, looks_back, where
from portrayal.models.language_models.scores import Scored

_WORKERS = 8  # at most; each needs room for a batch
_TOKENS = {"cpu": 1024, "cuda": 16_384}  # of a batch, about
_LOGITS = {"cpu": 1 << 26, "cuda": 1 << 30}  # of a batch: a large vocabulary needs smaller ones


@dataclass(frozen=True, eq=False)
class Causal:
    """A pretrained model that tells each token from those before it.

    A text stands between the model's own tokens for the begin and the end of a text: the first is given, the last one
    told. It is computed in full precision, in batches of texts of one length, so that nothing is filled up. The weights
    are loaded when the first text is to be scored.
    """

    name: str
    digest: str
    about: dict[str, str]
    tokenizer: Any
    device: str
    source: str  # where the weights are: a name, a folder or a file

    @classmethod
    def load(cls, name: str, device: str = "auto") -> Causal:
        """By a Hugging Face name, a folder, or the path of a .gguf file; `device` is auto, cpu or cuda."""
        need("torch", "neural", PURPOSE)
        transformers = need("transformers", "neural", PURPOSE)
        place = best_device(device)
        with loading(name):
            digest = content(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(**where(name))
        if tokenizer.eos_token_id is None:
            raise PortrayalError(
                f"The language model '{name}' has no token for the end of a text, which is needed to say how likely a "
                "whole text is."
            )
        if not tokenizer.is_fast:
            raise PortrayalError(
                f"The language model '{name}' has a tokenizer that does not tell where in a text its tokens stand."
            )
        return cls(
            name=Path(name).resolve().name.removesuffix(GGUF) if Path(name).exists() else name,
            digest=digest,
            about={"begin": tokenizer.bos_token or tokenizer.eos_token, "end": tokenizer.eos_token},
            tokenizer=tokenizer,
            device=place,
            source=name,
        )

    def scored(self, texts: Sequence[str]) -> list[Scored]:
        """What it makes of each text; those that read the same are looked at once."""
        distinct = sorted(set(texts))  # the same batches, and so the same digits, whatever the order
        if not distinct:
            return []
        # A caption that spells out one of the model's own tokens is a text like any other.
        read = self.tokenizer(
            distinct, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
        )
        begin = self.tokenizer.bos_token_id
        end = self.tokenizer.eos_token_id
        codes = [[end if begin is None else begin, *one, end] for one in read["input_ids"]]
        self._refuse_longer(distinct, codes)
        made = {}
        for place, logs in self._log_probabilities(codes):
            text = distinct[place]
            ends = [*(stop for _, stop in read["offset_mapping"][place]), len(text)]
            made[text] = Scored(logs, np.array(ends, dtype=np.int64))
        return [made[text] for text in texts]

    def _log_probabilities(self, codes: Sequence[Sequence[int]]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """The place of each text, and of all its tokens but the first how likely they are."""
        alike: dict[int, list[int]] = {}
        for place, one in enumerate(codes):
            alike.setdefault(len(one), []).append(place)
        tokens = min(_TOKENS[self.device], _LOGITS[self.device] // len(self.tokenizer))
        batches = []
        for length, places in sorted(alike.items()):
            together = max(1, tokens // length)
            batches += [places[start : start + together] for start in range(0, len(places), together)]
        with _workers(self.device) as workers:
            found = workers.map(self._batch, [[codes[place] for place in places] for places in batches])
            for places, logs in zip(batches, found, strict=True):
                yield from zip(places, logs, strict=True)

    def _batch(self, codes: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        torch = need("torch", "neural", PURPOSE)
        batch = torch.tensor(codes, device=self.device)
        with torch.inference_mode():
            logits = self._model(input_ids=batch[:, :-1], use_cache=False).logits
            # In double precision, since thousands of words are summed up; one text after the other, for room.
            logs = [
                one.gather(1, code)[:, 0].double() - one.double().logsumexp(1)
                for one, code in zip(logits, batch[:, 1:, None], strict=True)
            ]
            found: NDArray[np.float64] = torch.stack(logs).cpu().numpy()
        return found

    def _refuse_longer(self, texts: Sequence[str], codes: Sequence[Sequence[int]]) -> None:
        most = getattr(self._model.config, "max_position_embeddings", None)
        for text, one in zip(texts, codes, strict=True):
            if most is not None and len(one) - 1 > most:
                raise PortrayalError(
                    f"The language model '{self.name}' reads {most:,} tokens at most, and a text has {len(one) - 1:,}: "
                    f"{shown(text)}."
                )

    @cached_property
    def _model(self) -> Any:
        torch = need("torch", "neural", PURPOSE)
        transformers = need("transformers", "neural", PURPOSE)
        with loading(self.source):
            model, told = transformers.AutoModelForCausalLM.from_pretrained(
                **where(self.source), output_loading_info=True
            )
        if model.dtype != torch.float32:  # one from a GGUF file has it already, and refuses to be asked
            model = model.float()
        model = model.to(self.device).eval()
        # Transformers makes up weights that it does not find, and loads models that look ahead.
        if told["missing_keys"] or not looks_back(model, self.device):
            raise PortrayalError(
                f"'{self.source}' is not a causal language model: it was not made to tell each token from those before."
            )
        return model


@contextlib.contextmanager
def _workers(device: str) -> Iterator[ThreadPoolExecutor]:
    """On a processor one for each core, each with a single thread; on a GPU a single one.

    Threads that share a batch wait for each other at every step, many times longer than they work where others use the
    processor too; and their number would change the last digits.
    """
    torch = need("torch", "neural", PURPOSE)
    threads = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(cores, _WORKERS) if device == "cpu" else 1
    try:
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(threads)
