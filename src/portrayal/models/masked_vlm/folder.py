"""A model as a folder: config.json, model.safetensors and vocab.txt; a single-stream one opens in Transformers too."""

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
from portrayal.models.masked_vlm.network import Network
from portrayal.models.masked_vlm.single import SingleNetwork, vilt
from portrayal.models.masked_vlm.tokenizers import bert_tokenizer, usual_tokenizer
from portrayal.models.masked_vlm.vocabulary import AlbefPieces, Reader, Vocabulary, WordPieces

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocab.txt", "card.json"
DUAL = "portrayal-dual"
OURS = "portrayal"  # the key of what only we read
_ALBEF, _PIECES = "albef", "pieces"  # how a model reads that has no vocabulary of whole words
_TIED = (
    "text_encoder.cls.predictions.decoder.weight",
    "text_encoder.cls.predictions.decoder.bias",
    "text_encoder.bert.embeddings.position_ids",
    "inner.mlm_score.decoder.weight",
    "inner.mlm_score.bias",  # in some versions of Transformers
)


def save_model(folder: Path, network: Network, reader: Reader) -> None:
    """Weights are kept in 16 bits, which halves the folder; numbers that describe a model are taken after that."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, DualNetwork):
        config: dict[str, Any] = {"model_type": DUAL, **asdict(network.shape)}
    elif isinstance(network, SingleNetwork):
        config = network.inner.config.to_diff_dict()
        config.pop("transformers_version", None)
        config["architectures"] = ["ViltForMaskedLM"]
    else:
        raise PortrayalError(f"A {type(network).__name__} cannot be saved.")
    ours: dict[str, Any] = {"longest": reader.longest, "matching": network.matching, "square": network.square}
    if isinstance(reader, Vocabulary):
        reader.save(folder / WORDS)
    elif isinstance(reader, WordPieces):
        ours["reads"] = _ALBEF if isinstance(reader, AlbefPieces) else _PIECES
        reader.save(folder)
    else:
        raise PortrayalError(f"What a {type(reader).__name__} reads cannot be saved.")
    config[OURS] = ours
    write_text(folder / CONFIG, json.dumps(config, indent=1, sort_keys=True) + "\n")
    weights = {
        name.removeprefix("inner."): value.detach().to("cpu", torch.float16).contiguous()
        for name, value in sorted(network.state_dict().items())
        if name not in _TIED
    }
    save = need("safetensors.torch", "neural", "Saving a model").save_file
    with replacing(folder / WEIGHTS) as fresh:
        save(weights, fresh, metadata={"format": "pt"})


def load_model(folder: Path) -> tuple[Network, Reader]:
    """What `save_model` wrote. Parts that do not fit together are refused."""
    try:
        config = read_json(folder / CONFIG)
        ours = config.pop(OURS)
        words = _reader(folder, ours)
        if config.pop("model_type") == DUAL:
            network: Network = DualNetwork(_shape(config))
            known, places = config["words"], config["positions"]
        else:
            network = SingleNetwork(vilt(**config), ours["matching"], ours["square"])
            known, places = config["vocab_size"], config["max_position_embeddings"]
        network.matching = ours["matching"]
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
    if len(words) != known or words.longest > places:
        raise PortrayalError(
            f"{folder}: expected {known:,} words in {WORDS} and texts of at most {places}, found {len(words):,} and "
            f"{words.longest}."
        )
    put_weights(network, read_folder_weights(folder), folder)
    return network, words


def _reader(folder: Path, ours: dict[str, Any]) -> Reader:
    how = ours.get("reads")
    if how is None:
        return Vocabulary.load(folder / WORDS, ours["longest"])
    if how == _ALBEF:
        return AlbefPieces(bert_tokenizer(str(folder)), ours["longest"])
    return WordPieces(usual_tokenizer(str(folder)), ours["longest"])


def _shape(config: dict[str, Any]) -> DualShape:
    names = {field.name for field in fields(DualShape)}
    if set(config) != names:
        raise ValueError(f"expected the keys {', '.join(sorted(names))}")
    shape = DualShape(**config)
    if shape.width % shape.heads or shape.picture_width % shape.picture_heads:
        raise ValueError("heads that do not divide the width")
    return shape


def read_folder_weights(folder: Path) -> dict[str, Tensor]:
    from portrayal.models.masked_vlm.checkpoints import read_weights

    return {name: value.float() for name, value in read_weights(folder / WEIGHTS).items()}


def put_weights(network: Network, weights: dict[str, Tensor], folder: Path) -> None:
    if isinstance(network, SingleNetwork):
        weights = {
            name if name.startswith("itm_score") else f"inner.{name}": value
            for name, value in weights.items()
        }
    try:
        left = network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise PortrayalError(f"{folder / WEIGHTS}: expected weights in the shapes of {CONFIG}.") from error
    missing = [name for name in left.missing_keys if name not in _TIED]
    if missing or left.unexpected_keys:
        odd = ", ".join([*missing, *left.unexpected_keys][:5])
        raise PortrayalError(
            f"{folder / WEIGHTS}: expected the weights that {CONFIG} describes, found others: {odd}."
        )
