"""A model as a folder: config.json, model.safetensors and vocab.txt.

A single-stream model also opens in Transformers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from portrayal.documents import read_json
from portrayal.errors import InputError, PortrayalError, need
from portrayal.files import replacing, write_text
from portrayal.models.masked_vlm.dual import DualNetwork, DualShape
from portrayal.models.masked_vlm.network import VLMNetwork
from portrayal.models.masked_vlm.single import SingleNetwork, build_vilt
from portrayal.models.masked_vlm.tokenizers import load_auto_tokenizer, load_bert_tokenizer
from portrayal.models.masked_vlm.vocabulary import (
    AlbefTokenizer,
    Tokenizer,
    TransformersTokenizer,
    WordTokenizer,
)

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocab.txt", "card.json"
DUAL = "portrayal-dual"
PORTRAYAL_KEY = "portrayal"  # config key of the settings that only Portrayal reads
# values of the config key "reads"; absent: whole words
_ALBEF_TOKENIZER, _TRANSFORMERS_TOKENIZER = "albef", "pieces"
_TIED_WEIGHTS = (
    "text_encoder.cls.predictions.decoder.weight",
    "text_encoder.cls.predictions.decoder.bias",
    "text_encoder.bert.embeddings.position_ids",
    "inner.mlm_score.decoder.weight",
    "inner.mlm_score.bias",  # in some versions of Transformers
)


def save_model(folder: Path, network: VLMNetwork, tokenizer: Tokenizer) -> None:
    """Write the model. Weights are saved as float16, which halves the folder.

    Numbers that describe a model must therefore be measured after it is saved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, DualNetwork):
        config: dict[str, Any] = {"model_type": DUAL, **asdict(network.shape)}
    elif isinstance(network, SingleNetwork):
        config = network.inner.config.to_diff_dict()
        config.pop("transformers_version", None)
        config["architectures"] = ["ViltForMaskedLM"]
    else:
        raise PortrayalError(f"A {type(network).__name__} cannot be saved.")
    extra: dict[str, Any] = {
        "longest": tokenizer.max_length,
        "matching": network.has_match_head,
        "square": network.square,
    }
    if isinstance(tokenizer, WordTokenizer):
        tokenizer.save(folder / WORDS)
    elif isinstance(tokenizer, TransformersTokenizer):
        extra["reads"] = (
            _ALBEF_TOKENIZER if isinstance(tokenizer, AlbefTokenizer) else _TRANSFORMERS_TOKENIZER
        )
        tokenizer.save(folder)
    else:
        raise PortrayalError(f"A {type(tokenizer).__name__} cannot be saved.")
    config[PORTRAYAL_KEY] = extra
    write_text(folder / CONFIG, json.dumps(config, indent=1, sort_keys=True) + "\n")
    weights = {
        name.removeprefix("inner."): value.detach().to("cpu", torch.float16).contiguous()
        for name, value in sorted(network.state_dict().items())
        if name not in _TIED_WEIGHTS
    }
    save = need("safetensors.torch", "neural", "Saving a model").save_file
    with replacing(folder / WEIGHTS) as temporary:
        save(weights, temporary, metadata={"format": "pt"})


def load_model(folder: Path) -> tuple[VLMNetwork, Tokenizer]:
    """Load what `save_model` wrote; raise if parts do not fit together."""
    try:
        config = read_json(folder / CONFIG)
        extra = config.pop(PORTRAYAL_KEY)
        tokenizer = _load_tokenizer(folder, extra)
        if config.pop("model_type") == DUAL:
            network: VLMNetwork = DualNetwork(_shape(config))
            n_words, max_positions = config["words"], config["positions"]
        else:
            network = SingleNetwork(build_vilt(**config), extra["matching"], extra["square"])
            n_words, max_positions = config["vocab_size"], config["max_position_embeddings"]
        network.has_match_head = extra["matching"]
    except (
        OSError,
        InputError,
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
        AttributeError,
        AssertionError,
    ) as error:
        raise PortrayalError(
            f"{folder}: expected a model that was saved here ({CONFIG}, {WEIGHTS}, {WORDS}), found one with parts "
            f"missing or broken ({type(error).__name__}: {error})."
        ) from error
    if len(tokenizer) != n_words or tokenizer.max_length > max_positions:
        raise PortrayalError(
            f"{folder}: expected {n_words:,} words in {WORDS} and texts of at most {max_positions}, found "
            f"{len(tokenizer):,} and {tokenizer.max_length}."
        )
    set_weights(network, read_folder_weights(folder), folder)
    return network, tokenizer


def _load_tokenizer(folder: Path, extra: dict[str, Any]) -> Tokenizer:
    kind = extra.get("reads")
    if kind is None:
        return WordTokenizer.load(folder / WORDS, extra["longest"])
    if kind == _ALBEF_TOKENIZER:
        return AlbefTokenizer(load_bert_tokenizer(str(folder)), extra["longest"])
    return TransformersTokenizer(load_auto_tokenizer(str(folder)), extra["longest"])


def _shape(config: dict[str, Any]) -> DualShape:
    expected = {field.name for field in fields(DualShape)}
    if set(config) != expected:
        raise ValueError(f"expected the keys {', '.join(sorted(expected))}")
    shape = DualShape(**config)
    if shape.width % shape.heads or shape.picture_width % shape.picture_heads:
        raise ValueError("heads that do not divide the width")
    return shape


def read_folder_weights(folder: Path) -> dict[str, Tensor]:
    from portrayal.models.masked_vlm.checkpoints import read_weights

    return {name: value.float() for name, value in read_weights(folder / WEIGHTS).items()}


def set_weights(network: VLMNetwork, weights: dict[str, Tensor], folder: Path) -> None:
    if isinstance(network, SingleNetwork):
        weights = {
            name if name.startswith("itm_score") else f"inner.{name}": value
            for name, value in weights.items()
        }
    try:
        result = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise PortrayalError(f"{folder / WEIGHTS}: expected weights in the shapes of {CONFIG}.") from error
    missing = [name for name in result.missing_keys if name not in _TIED_WEIGHTS]
    if missing or result.unexpected_keys:
        names = ", ".join([*missing, *result.unexpected_keys][:5])
        raise PortrayalError(
            f"{folder / WEIGHTS}: expected the weights that {CONFIG} describes, found others: {names}."
        )
