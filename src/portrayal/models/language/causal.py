"""Pretrained causal language models: any that Transformers can load, by name, folder or GGUF file."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError, need, shown
from portrayal.models.device import best_device
from portrayal.models.language.scored import Scored

_PURPOSE = "A language model"
_GGUF = ".gguf"
_PARTS = (".safetensors", ".bin", ".json", ".txt", ".model")  # of a folder: what a model is made of
_TOKENS = {"cpu": 2048, "cuda": 16_384}  # of a batch, about
_LOGITS = {"cpu": 1 << 27, "cuda": 1 << 30}  # of a batch: a large vocabulary needs smaller ones
_VERSION = 1  # to be raised when the same model would give other numbers


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
        need("torch", "neural", _PURPOSE)
        transformers = need("transformers", "neural", _PURPOSE)
        place = best_device(device)
        with _loading(name):
            content = _content(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(**_where(name))
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
            name=Path(name).resolve().name.removesuffix(_GGUF) if Path(name).exists() else name,
            digest=content,
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
        torch = need("torch", "neural", _PURPOSE)
        alike: dict[int, list[int]] = {}
        for place, one in enumerate(codes):
            alike.setdefault(len(one), []).append(place)
        tokens = min(_TOKENS[self.device], _LOGITS[self.device] // len(self.tokenizer))
        for length, places in sorted(alike.items()):
            together = max(1, tokens // length)
            for start in range(0, len(places), together):
                some = places[start : start + together]
                batch = torch.tensor([codes[place] for place in some], device=self.device)
                with torch.inference_mode():
                    logits = self._model(input_ids=batch[:, :-1], use_cache=False).logits
                    told = batch[:, 1:, None]
                    # In double precision, since thousands of words are summed up; one text after the other, for room.
                    logs = [
                        one.gather(1, code)[:, 0].double() - one.double().logsumexp(1)
                        for one, code in zip(logits, told, strict=True)
                    ]
                    found = torch.stack(logs).cpu().numpy()
                yield from zip(some, found, strict=True)

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
        torch = need("torch", "neural", _PURPOSE)
        transformers = need("transformers", "neural", _PURPOSE)
        with _loading(self.source):
            model, told = transformers.AutoModelForCausalLM.from_pretrained(
                **_where(self.source), output_loading_info=True
            )
        if model.dtype != torch.float32:  # one from a GGUF file has it already, and refuses to be asked
            model = model.float()
        model = model.to(self.device).eval()
        # Transformers makes up weights that it does not find, and loads models that look ahead.
        if told["missing_keys"] or not _looks_back(model, self.device):
            raise PortrayalError(
                f"'{self.source}' is not a causal language model: it was not made to tell each token from those before."
            )
        return model


def _looks_back(model: Any, device: str) -> bool:
    """Whether what it says of a token stays the same, whatever follows."""
    torch = need("torch", "neural", _PURPOSE)
    with torch.inference_mode():
        said = model(input_ids=torch.tensor([[0, 1, 2], [0, 1, 3]], device=device), use_cache=False).logits
    before, at = ((said[0, some] - said[1, some]).abs().max() for some in (slice(2), slice(2, 3)))
    return bool(before <= 1e-3 * at)


def _where(name: str) -> dict[str, str]:
    """As Transformers wants to be told: the folder and the file, where it is a file."""
    path = Path(name)
    if path.suffix != _GGUF:
        return {"pretrained_model_name_or_path": name}
    need("gguf", "neural", _PURPOSE)
    need("accelerate", "neural", _PURPOSE)
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}


@contextlib.contextmanager
def _loading(name: str) -> Iterator[None]:
    """Without progress bars, and with one sentence where it fails."""
    logging = need("transformers", "neural", _PURPOSE).utils.logging
    logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # reading GGUF shows a bar that cannot be turned off
            yield
    except (OSError, ValueError, ImportError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise PortrayalError(
            f"The language model '{name}' could not be loaded: it is neither a folder with a model, nor a .gguf "
            f"file, nor could it be had from the Hugging Face hub. ({first})"
        ) from error


def _content(name: str) -> str:
    """A digest of the files, since a path does not say what is in it; of a name, with the version at the hub."""
    path = Path(name)
    whole = hashlib.blake2b(str(_VERSION).encode(), digest_size=16)
    if path.suffix == _GGUF and not path.is_file():
        raise FileNotFoundError("there is no such file")
    if not path.exists():
        config = need("transformers", "neural", _PURPOSE).AutoConfig.from_pretrained(name)
        whole.update(f"{name} {getattr(config, '_commit_hash', None)}".encode())
        return whole.hexdigest()
    folder = path.is_dir()
    for part in sorted(path.iterdir()) if folder else [path]:
        if not folder or part.suffix in _PARTS:
            if folder:  # one of several files; the name of a single one says nothing
                whole.update(part.name.encode())
            with part.open("rb") as file:
                while block := file.read(1 << 20):
                    whole.update(block)
    return whole.hexdigest()
