"""Save and load a model as a folder of config.json, model.safetensors and vocab.txt.

Transformers can also load the folder of a single-stream model.
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
from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape
from portrayal.models.masked_vlm.network import VLMNetwork
from portrayal.models.masked_vlm.single_stream import SingleNetwork, build_vilt
from portrayal.models.masked_vlm.tokenizers import load_auto_tokenizer, load_bert_tokenizer
from portrayal.models.masked_vlm.vocabulary import (
    AlbefTokenizer,
    Tokenizer,
    TransformersTokenizer,
    WordTokenizer,
)

CONFIG, WEIGHTS, VOCABULARY, CARD = "config.json", "model.safetensors", "vocab.txt", "card.json"
DUAL = "portrayal-dual"
PORTRAYAL_KEY = "portrayal"  # config key of the settings that only Portrayal reads
# Values of the config key "tokenizer". Without the key the vocabulary consists of whole words.
_ALBEF_TOKENIZER, _TRANSFORMERS_TOKENIZER = "albef", "transformers"
_TIED_WEIGHTS = (
    "text_encoder.cls.predictions.decoder.weight",
    "text_encoder.cls.predictions.decoder.bias",
    "text_encoder.bert.embeddings.position_ids",
    "inner.mlm_score.decoder.weight",
    "inner.mlm_score.bias",  # tied in some versions of Transformers
)


def save_model(folder: Path, network: VLMNetwork, tokenizer: Tokenizer) -> None:
    """Write the model to a folder, with its weights rounded to float16, which halves the size of the folder.

    Evaluate a model after it is saved and loaded, since the rounded weights give slightly different results.
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
    portrayal_config: dict[str, Any] = {
        "max_length": tokenizer.max_length,
        "has_match_head": network.has_match_head,
        "square": network.square,
    }
    if isinstance(tokenizer, WordTokenizer):
        tokenizer.save(folder / VOCABULARY)
    elif isinstance(tokenizer, TransformersTokenizer):
        portrayal_config["tokenizer"] = (
            _ALBEF_TOKENIZER if isinstance(tokenizer, AlbefTokenizer) else _TRANSFORMERS_TOKENIZER
        )
        tokenizer.save(folder)
    else:
        raise PortrayalError(f"A {type(tokenizer).__name__} cannot be saved.")
    config[PORTRAYAL_KEY] = portrayal_config
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
    """Return the network and the tokenizer that `save_model` wrote; raise if the files do not fit together."""
    try:
        config = read_json(folder / CONFIG)
        portrayal_config = config.pop(PORTRAYAL_KEY)
        tokenizer = _load_tokenizer(folder, portrayal_config)
        if config.pop("model_type") == DUAL:
            network: VLMNetwork = DualNetwork(_dual_shape(config))
            vocab_size, max_positions = config["vocab_size"], config["max_position_embeddings"]
        else:
            network = SingleNetwork(
                build_vilt(**config), portrayal_config["has_match_head"], portrayal_config["square"]
            )
            vocab_size, max_positions = config["vocab_size"], config["max_position_embeddings"]
        network.has_match_head = portrayal_config["has_match_head"]
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
            f"{folder}: expected a model that was saved here ({CONFIG}, {WEIGHTS}, {VOCABULARY}), found one with parts "
            f"missing or broken ({type(error).__name__}: {error})."
        ) from error
    if len(tokenizer) != vocab_size or tokenizer.max_length > max_positions:
        raise PortrayalError(
            f"{folder}: expected {vocab_size:,} words in {VOCABULARY} and texts of at most {max_positions}, found "
            f"{len(tokenizer):,} and {tokenizer.max_length}."
        )
    set_weights(network, read_folder_weights(folder), folder)
    return network, tokenizer


def _load_tokenizer(folder: Path, portrayal_config: dict[str, Any]) -> Tokenizer:
    tokenizer_kind = portrayal_config.get("tokenizer")
    if tokenizer_kind is None:
        return WordTokenizer.load(folder / VOCABULARY, portrayal_config["max_length"])
    if tokenizer_kind == _ALBEF_TOKENIZER:
        return AlbefTokenizer(load_bert_tokenizer(str(folder)), portrayal_config["max_length"])
    return TransformersTokenizer(load_auto_tokenizer(str(folder)), portrayal_config["max_length"])


def _dual_shape(config: dict[str, Any]) -> DualShape:
    expected_keys = {field.name for field in fields(DualShape)}
    if set(config) != expected_keys:
        raise ValueError(f"expected the keys {', '.join(sorted(expected_keys))}")
    shape = DualShape(**config)
    if shape.text_width % shape.text_heads or shape.image_width % shape.image_heads:
        raise ValueError("heads that do not divide the width")
    return shape


def read_folder_weights(folder: Path) -> dict[str, Tensor]:
    """Return the saved weights by name, in float32."""
    from portrayal.models.masked_vlm.checkpoints import read_weights

    return {name: value.float() for name, value in read_weights(folder / WEIGHTS).items()}


def set_weights(network: VLMNetwork, weights: dict[str, Tensor], folder: Path) -> None:
    """Copy saved weights into a network; raise if names or shapes differ. `folder` is named in the error."""
    if isinstance(network, SingleNetwork):
        weights = {
            name if name.startswith("itm_score") else f"inner.{name}": value
            for name, value in weights.items()
        }
    try:
        load_result = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise PortrayalError(f"{folder / WEIGHTS}: expected weights in the shapes of {CONFIG}.") from error
    missing = [name for name in load_result.missing_keys if name not in _TIED_WEIGHTS]
    if missing or load_result.unexpected_keys:
        names = ", ".join([*missing, *load_result.unexpected_keys][:5])
        raise PortrayalError(
            f"{folder / WEIGHTS}: expected the weights that {CONFIG} describes, found others: {names}."
        )
