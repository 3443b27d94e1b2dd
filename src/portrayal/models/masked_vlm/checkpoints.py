"""Load the weights of checkpoints of ALBEF and TCL, and of saved models. No code from a file is executed."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from portrayal.errors import PortrayalError, need
from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape

_WRAPPERS = ("model", "state_dict")  # keys of a checkpoint that may contain the weights
_QUEUES = ("image_queue", "text_queue", "queue_ptr", "idx_queue", "ptr_queue")
_WORD_EMBEDDINGS = "text_encoder.bert.embeddings.word_embeddings.weight"
_POSITION_EMBEDDINGS = "visual_encoder.pos_embed"
_POSITION_IDS = "text_encoder.bert.embeddings.position_ids"
_MLM_HEAD = "text_encoder.cls."
_ITM_HEAD = "itm_head."
_HEAD_WIDTH = 64  # width of an attention head in all published models; a checkpoint does not state it
# tied weights, which have two names in a checkpoint
_TIED_WEIGHTS = {
    "text_encoder.cls.predictions.decoder.weight": _WORD_EMBEDDINGS,
    "text_encoder.cls.predictions.decoder.bias": "text_encoder.cls.predictions.bias",
}
_MAX_NAMES_SHOWN = 5  # in an error message


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file, or of a PyTorch file that holds only tensors."""
    try:
        if file.suffix == ".safetensors":
            load = need("safetensors.torch", "neural", "A model in a .safetensors file").load_file
            weights: Any = load(file)
        else:
            is_zip = zipfile.is_zipfile(
                file
            )  # files of old PyTorch versions are no zip files and cannot be memory-mapped
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about unusual pickles, which load or raise an error
                weights = torch.load(file, map_location="cpu", weights_only=True, mmap=is_zip)
    except FileNotFoundError as error:
        raise PortrayalError(f"{file}: expected a file with a model's weights, found no file.") from error
    except (pickle.UnpicklingError, RuntimeError, ValueError, OSError, EOFError, KeyError) as error:
        raise PortrayalError(
            f"{file}: expected weights alone (.safetensors, or what torch.save makes of tensors), found something "
            f"else. A file that holds more can run code when it is opened, so it was not. Where you trust it, save its "
            f"weights alone."
        ) from error
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):
            raise PortrayalError(f"{file}: expected a .safetensors file, found something else.") from error
        raise
    for wrapper in _WRAPPERS:
        if isinstance(weights, dict) and isinstance(weights.get(wrapper), dict):
            weights = weights[wrapper]
    is_state_dict = isinstance(weights, dict) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in weights.items()
    )
    if not is_state_dict:
        raise PortrayalError(f"{file}: expected a model's weights by name, found something else.")
    return {name.removeprefix("module."): value for name, value in weights.items()}


def is_training_only(name: str) -> bool:
    """Return whether a weight belongs to a momentum encoder or a queue, which only training needs.

    >>> [is_training_only(name) for name in ("vision_proj_m.weight", "image_queue", "itm_head.weight")]
    [True, True, False]
    """
    module = name.split(".")[0]
    return module.endswith("_m") or module in _QUEUES


def dual_network(
    weights: Mapping[str, Tensor], image_size: int | None = None, dropout: float = 0.1
) -> DualNetwork:
    """Return the network of a checkpoint. Another `image_size` resizes its position embeddings."""
    state_dict = {_full_name(name): value for name, value in weights.items() if not is_training_only(name)}
    shape = infer_shape(state_dict, image_size, dropout)
    network = DualNetwork(shape)
    initial_weights = network.state_dict()
    for name, tied_name in _TIED_WEIGHTS.items():
        if (
            name in state_dict
            and tied_name in state_dict
            and not torch.equal(state_dict[name], state_dict[tied_name])
        ):
            raise PortrayalError(
                f"Expected the weights '{name}' and '{tied_name}' to be the same, found others."
            )
        for target, source in ((name, tied_name), (tied_name, name)):
            if source in state_dict:
                state_dict.setdefault(target, state_dict[source])
    state_dict.setdefault(_POSITION_IDS, initial_weights[_POSITION_IDS])
    if image_size is not None:
        state_dict[_POSITION_EMBEDDINGS] = resize_position_embeddings(
            state_dict[_POSITION_EMBEDDINGS], (image_size // shape.patch_size) ** 2
        )
    missing = set(initial_weights) - set(state_dict)
    network.has_mlm_head = not _is_all_missing(_MLM_HEAD, missing, initial_weights)
    network.has_match_head = not _is_all_missing(_ITM_HEAD, missing, initial_weights)
    missing_heads = tuple(
        head
        for head, is_present in ((_MLM_HEAD, network.has_mlm_head), (_ITM_HEAD, network.has_match_head))
        if not is_present
    )
    for name in missing:
        if name.startswith(missing_heads):
            state_dict[name] = initial_weights[name]
    _raise_if_any(sorted(set(initial_weights) - set(state_dict)), "lacks weights that the network has")
    _raise_if_any(
        sorted(set(state_dict) - set(initial_weights)), "has weights that the network has no place for"
    )
    _raise_if_any(
        [
            name
            for name in initial_weights
            if name in state_dict and initial_weights[name].shape != state_dict[name].shape
        ],
        "has other shapes",
    )
    network.load_state_dict(state_dict)
    return network


def infer_shape(
    weights: Mapping[str, Tensor], image_size: int | None = None, dropout: float = 0.1
) -> DualShape:
    """Return the layer sizes of the network, inferred from the shapes of the weights."""
    layer_prefix, block_prefix = "text_encoder.bert.encoder.layer.", "visual_encoder.blocks."
    try:
        vocab_size, text_width = weights[_WORD_EMBEDDINGS].shape
        patch_projection = weights["visual_encoder.patch_embed.proj.weight"]
        n_patches = weights[_POSITION_EMBEDDINGS].shape[1] - 1
        intermediate_size = weights[f"{layer_prefix}0.intermediate.dense.weight"].shape[0]
        max_position_embeddings = weights["text_encoder.bert.embeddings.position_embeddings.weight"].shape[0]
        embed_dim = weights["vision_proj.weight"].shape[0]
        weights[f"{block_prefix}0.attn.qkv.weight"]
    except (KeyError, ValueError) as error:
        raise _not_dual_error(str(error)) from error
    cross_attention_layers = [
        _layer_index(name, layer_prefix)
        for name in weights
        if name.startswith(layer_prefix) and ".crossattention." in name
    ]
    if not cross_attention_layers:
        raise _not_dual_error("cross-attention")
    patch_size = patch_projection.shape[2]
    for layer_width in (text_width, patch_projection.shape[0]):
        if layer_width % _HEAD_WIDTH:
            raise PortrayalError(
                f"Expected layers as wide as a multiple of {_HEAD_WIDTH}, found {layer_width}."
            )
    if image_size is not None and (image_size < patch_size or image_size % patch_size):
        raise PortrayalError(
            f"Images have a side that is a multiple of {patch_size} pixels, got {image_size}."
        )
    return DualShape(
        image_size=image_size or patch_size * round(n_patches**0.5),
        patch_size=patch_size,
        image_width=patch_projection.shape[0],
        image_layers=1 + max(_layer_index(name, block_prefix) for name in weights),
        image_heads=patch_projection.shape[0] // _HEAD_WIDTH,
        vocab_size=vocab_size,
        text_width=text_width,
        text_layers=1 + max(_layer_index(name, layer_prefix) for name in weights),
        fusion_layer=min(cross_attention_layers),
        text_heads=text_width // _HEAD_WIDTH,
        intermediate_size=intermediate_size,
        max_position_embeddings=max_position_embeddings,
        embed_dim=embed_dim,
        dropout=dropout,
    )


def _not_dual_error(missing: str) -> PortrayalError:
    return PortrayalError(
        "Expected the weights of a model like ALBEF (visual_encoder, text_encoder with cross-attention, "
        f"vision_proj), found others: {missing} is missing."
    )


def resize_position_embeddings(embeddings: Tensor, n_patches: int) -> Tensor:
    """Return position embeddings interpolated to another number of patches; that of the CLS token is unchanged."""
    cls_embedding, grid = embeddings[:, :1], embeddings[:, 1:]
    old_size, new_size = round(grid.shape[1] ** 0.5), round(n_patches**0.5)
    if old_size == new_size:
        return embeddings
    resized = grid.unflatten(1, (old_size, old_size)).permute(0, 3, 1, 2)
    resized = functional.interpolate(resized, size=(new_size, new_size), mode="bicubic", align_corners=False)
    return torch.cat([cls_embedding, resized.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def _full_name(name: str) -> str:
    """Return the name of a weight in pretrained models; models fine-tuned for retrieval omit the prefix "bert."."""
    suffix = name.removeprefix("text_encoder.")
    if suffix != name and not suffix.startswith(("bert.", "cls.")):
        return f"text_encoder.bert.{suffix}"
    return name


def _is_all_missing(head: str, missing: set[str], initial_weights: Mapping[str, Tensor]) -> bool:
    """Return whether all weights of a head are missing, except for tied ones, which are never missing."""
    return {
        name for name in initial_weights if name.startswith(head) and name not in _TIED_WEIGHTS
    } <= missing


def _layer_index(name: str, prefix: str) -> int:
    return int(name.removeprefix(prefix).split(".")[0]) if name.startswith(prefix) else -1


def _raise_if_any(names: list[str], problem: str) -> None:
    if names:
        more = f" and {len(names) - _MAX_NAMES_SHOWN:,} more" if len(names) > _MAX_NAMES_SHOWN else ""
        raise PortrayalError(f"The checkpoint {problem}: {', '.join(names[:_MAX_NAMES_SHOWN])}{more}.")
