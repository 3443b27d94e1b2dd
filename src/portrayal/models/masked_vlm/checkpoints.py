"""Load weights from files: checkpoints of ALBEF and TCL, and our own. No code from a file is executed."""

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
from portrayal.models.masked_vlm.dual import DualNetwork, DualShape

_WRAPPERS = ("model", "state_dict")  # keys under which a checkpoint may hold its weights
_QUEUES = ("image_queue", "text_queue", "queue_ptr", "idx_queue", "ptr_queue")
_WORD_EMBEDDINGS = "text_encoder.bert.embeddings.word_embeddings.weight"
_POSITION_EMBEDDINGS = "visual_encoder.pos_embed"
_POSITION_IDS = "text_encoder.bert.embeddings.position_ids"
_MLM_HEAD = "text_encoder.cls."
_ITM_HEAD = "itm_head."
_HEAD_WIDTH = 64  # of an attention head, in every published model; a checkpoint does not state it
# tensors shared in the network that have two names in a checkpoint
_TIED_WEIGHTS = {
    "text_encoder.cls.predictions.decoder.weight": _WORD_EMBEDDINGS,
    "text_encoder.cls.predictions.decoder.bias": "text_encoder.cls.predictions.bias",
}
_MAX_LISTED = 5


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file, or of a PyTorch file that holds only tensors."""
    try:
        if file.suffix == ".safetensors":
            load = need("safetensors.torch", "neural", "A model in a .safetensors file").load_file
            weights: Any = load(file)
        else:
            is_zip = zipfile.is_zipfile(file)  # files of old versions are not, and cannot be memory-mapped
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about unusual pickles: they load or raise
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
    """Return whether a weight is only needed in training: momentum encoders and queues.

    >>> [is_training_only(name) for name in ("vision_proj_m.weight", "image_queue", "itm_head.weight")]
    [True, True, False]
    """
    module = name.split(".")[0]
    return module.endswith("_m") or module in _QUEUES


def dual_network(
    weights: Mapping[str, Tensor], image_size: int | None = None, dropout: float = 0.1
) -> DualNetwork:
    """Return the network of a checkpoint, with its weights. `image_size` changes the size of the images."""
    state_dict = {_full_name(name): value for name, value in weights.items() if not is_training_only(name)}
    shape = infer_shape(state_dict, image_size, dropout)
    network = DualNetwork(shape)
    own_weights = network.state_dict()
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
    state_dict.setdefault(_POSITION_IDS, own_weights[_POSITION_IDS])
    if image_size is not None:
        state_dict[_POSITION_EMBEDDINGS] = resize_position_embeddings(
            state_dict[_POSITION_EMBEDDINGS], (image_size // shape.patch) ** 2
        )
    missing = set(own_weights) - set(state_dict)
    network.has_mlm_head = not _is_all_missing(_MLM_HEAD, missing, own_weights)
    network.has_match_head = not _is_all_missing(_ITM_HEAD, missing, own_weights)
    absent = tuple(
        head
        for head, present in ((_MLM_HEAD, network.has_mlm_head), (_ITM_HEAD, network.has_match_head))
        if not present
    )
    for name in missing:
        if name.startswith(absent):
            state_dict[name] = own_weights[name]
    _raise_if_any(sorted(set(own_weights) - set(state_dict)), "lacks weights that the network has")
    _raise_if_any(sorted(set(state_dict) - set(own_weights)), "has weights that the network has no place for")
    _raise_if_any(
        [
            name
            for name in own_weights
            if name in state_dict and own_weights[name].shape != state_dict[name].shape
        ],
        "has other shapes",
    )
    network.load_state_dict(state_dict)
    return network


def infer_shape(
    weights: Mapping[str, Tensor], image_size: int | None = None, dropout: float = 0.1
) -> DualShape:
    """Infer the shape of the network from the sizes of the weights."""
    layer, block = "text_encoder.bert.encoder.layer.", "visual_encoder.blocks."
    try:
        words, width = weights[_WORD_EMBEDDINGS].shape
        proj = weights["visual_encoder.patch_embed.proj.weight"]
        n_patches = weights[_POSITION_EMBEDDINGS].shape[1] - 1
        inner = weights[f"{layer}0.intermediate.dense.weight"].shape[0]
        positions = weights["text_encoder.bert.embeddings.position_embeddings.weight"].shape[0]
        compared = weights["vision_proj.weight"].shape[0]
        weights[f"{block}0.attn.qkv.weight"]
    except (KeyError, ValueError) as error:
        raise _not_dual(str(error)) from error
    cross_attention_layers = [
        _layer_index(name, layer) for name in weights if name.startswith(layer) and ".crossattention." in name
    ]
    if not cross_attention_layers:
        raise _not_dual("cross-attention")
    patch = proj.shape[2]
    for layer_width in (width, proj.shape[0]):
        if layer_width % _HEAD_WIDTH:
            raise PortrayalError(
                f"Expected layers as wide as a multiple of {_HEAD_WIDTH}, found {layer_width}."
            )
    if image_size is not None and (image_size < patch or image_size % patch):
        raise PortrayalError(f"Images have a side that is a multiple of {patch} pixels, got {image_size}.")
    return DualShape(
        side=image_size or patch * round(n_patches**0.5),
        patch=patch,
        picture_width=proj.shape[0],
        picture_layers=1 + max(_layer_index(name, block) for name in weights),
        picture_heads=proj.shape[0] // _HEAD_WIDTH,
        words=words,
        width=width,
        layers=1 + max(_layer_index(name, layer) for name in weights),
        fusion=min(cross_attention_layers),
        heads=width // _HEAD_WIDTH,
        inner=inner,
        positions=positions,
        compared=compared,
        dropout=dropout,
    )


def _not_dual(missing: str) -> PortrayalError:
    return PortrayalError(
        "Expected the weights of a model like ALBEF (visual_encoder, text_encoder with cross-attention, "
        f"vision_proj), found others: {missing} is missing."
    )


def resize_position_embeddings(embeddings: Tensor, n_patches: int) -> Tensor:
    """Return position embeddings for another number of patches (bicubic); the first, of the CLS token, is unchanged."""
    cls_embedding, grid = embeddings[:, :1], embeddings[:, 1:]
    old_size, new_size = round(grid.shape[1] ** 0.5), round(n_patches**0.5)
    if old_size == new_size:
        return embeddings
    resized = grid.unflatten(1, (old_size, old_size)).permute(0, 3, 1, 2)
    resized = functional.interpolate(resized, size=(new_size, new_size), mode="bicubic", align_corners=False)
    return torch.cat([cls_embedding, resized.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def _full_name(name: str) -> str:
    """Return the full weight name: models fine-tuned for retrieval lack the MLM head, and one level of names."""
    rest = name.removeprefix("text_encoder.")
    if rest != name and not rest.startswith(("bert.", "cls.")):
        return f"text_encoder.bert.{rest}"
    return name


def _is_all_missing(head: str, missing: set[str], own_weights: Mapping[str, Tensor]) -> bool:
    """Return whether a head is absent as a whole; a part of it may not be. Its tied weights are always there."""
    return {name for name in own_weights if name.startswith(head) and name not in _TIED_WEIGHTS} <= missing


def _layer_index(name: str, prefix: str) -> int:
    return int(name.removeprefix(prefix).split(".")[0]) if name.startswith(prefix) else -1


def _raise_if_any(names: list[str], what: str) -> None:
    if names:
        more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
        raise PortrayalError(f"The checkpoint {what}: {', '.join(names[:_MAX_LISTED])}{more}.")
