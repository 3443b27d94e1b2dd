"""Weights from files: those of ALBEF and TCL as their authors publish them, and our own. Nothing in a file is run."""

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

_WRAPPERS = ("model", "state_dict")  # under which a checkpoint may hold its weights
_QUEUES = ("image_queue", "text_queue", "queue_ptr", "idx_queue", "ptr_queue")
_WORDS = "text_encoder.bert.embeddings.word_embeddings.weight"
_PLACES = "visual_encoder.pos_embed"
_POSITION_IDS = "text_encoder.bert.embeddings.position_ids"
_HEAD = "text_encoder.cls."
_MATCH = "itm_head."
_HEAD_WIDTH = 64  # of an attention head, in every published model; a checkpoint does not say
# tensors that are one in the network but have two names in a checkpoint
_TIED = {
    "text_encoder.cls.predictions.decoder.weight": _WORDS,
    "text_encoder.cls.predictions.decoder.bias": "text_encoder.cls.predictions.bias",
}
_SHOWN = 5


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of one of PyTorch's that holds nothing but data."""
    try:
        if file.suffix == ".safetensors":
            load = need("safetensors.torch", "neural", "A model in a .safetensors file").load_file
            found: Any = load(file)
        else:
            zipped = zipfile.is_zipfile(file)  # files of old versions are not, and cannot be mapped
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd pickles: they load or they do not
                found = torch.load(file, map_location="cpu", weights_only=True, mmap=zipped)
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
        if isinstance(found, dict) and isinstance(found.get(wrapper), dict):
            found = found[wrapper]
    named = isinstance(found, dict) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in found.items()
    )
    if not named:
        raise PortrayalError(f"{file}: expected a model's weights by name, found something else.")
    return {name.removeprefix("module."): value for name, value in found.items()}


def is_left_out(name: str) -> bool:
    """What only training needs: momentum copies and queues.

    >>> [is_left_out(name) for name in ("vision_proj_m.weight", "image_queue", "itm_head.weight")]
    [True, True, False]
    """
    first = name.split(".")[0]
    return first.endswith("_m") or first in _QUEUES


def dual_network(weights: Mapping[str, Tensor], side: int | None = None, dropout: float = 0.1) -> DualNetwork:
    """The network that a checkpoint describes, with its weights. `side`: of the pictures, if another is wanted."""
    kept = {_full_name(name): value for name, value in weights.items() if not is_left_out(name)}
    shape = shape_of(kept, side, dropout)
    network = DualNetwork(shape)
    own = network.state_dict()
    for name, twin in _TIED.items():
        if name in kept and twin in kept and not torch.equal(kept[name], kept[twin]):
            raise PortrayalError(f"Expected the weights '{name}' and '{twin}' to be the same, found others.")
        for one, other in ((name, twin), (twin, name)):
            if other in kept:
                kept.setdefault(one, kept[other])
    kept.setdefault(_POSITION_IDS, own[_POSITION_IDS])
    if side is not None:
        kept[_PLACES] = resized_places(kept[_PLACES], (side // shape.patch) ** 2)
    missing = set(own) - set(kept)
    network.filling = not _is_all_missing(_HEAD, missing, own)
    network.matching = not _is_all_missing(_MATCH, missing, own)
    absent = tuple(
        head for head, there in ((_HEAD, network.filling), (_MATCH, network.matching)) if not there
    )
    for name in missing:
        if name.startswith(absent):
            kept[name] = own[name]
    _refuse(sorted(set(own) - set(kept)), "lacks weights that the network has")
    _refuse(sorted(set(kept) - set(own)), "has weights that the network has no place for")
    _refuse(
        [name for name in own if name in kept and own[name].shape != kept[name].shape], "has other shapes"
    )
    network.load_state_dict(kept)
    return network


def shape_of(weights: Mapping[str, Tensor], side: int | None = None, dropout: float = 0.1) -> DualShape:
    """Read off the sizes of the weights."""
    layer, block = "text_encoder.bert.encoder.layer.", "visual_encoder.blocks."
    try:
        words, width = weights[_WORDS].shape
        proj = weights["visual_encoder.patch_embed.proj.weight"]
        places = weights[_PLACES].shape[1] - 1
        inner = weights[f"{layer}0.intermediate.dense.weight"].shape[0]
        positions = weights["text_encoder.bert.embeddings.position_embeddings.weight"].shape[0]
        compared = weights["vision_proj.weight"].shape[0]
        weights[f"{block}0.attn.qkv.weight"]
    except (KeyError, ValueError) as error:
        raise _not_dual(str(error)) from error
    looking = [
        _number(name, layer) for name in weights if name.startswith(layer) and ".crossattention." in name
    ]
    if not looking:
        raise _not_dual("cross-attention")
    patch = proj.shape[2]
    for wide in (width, proj.shape[0]):
        if wide % _HEAD_WIDTH:
            raise PortrayalError(f"Expected layers as wide as a multiple of {_HEAD_WIDTH}, found {wide}.")
    if side is not None and (side < patch or side % patch):
        raise PortrayalError(f"Pictures have a side that is a multiple of {patch} pixels, got {side}.")
    return DualShape(
        side=side or patch * round(places**0.5),
        patch=patch,
        picture_width=proj.shape[0],
        picture_layers=1 + max(_number(name, block) for name in weights),
        picture_heads=proj.shape[0] // _HEAD_WIDTH,
        words=words,
        width=width,
        layers=1 + max(_number(name, layer) for name in weights),
        fusion=min(looking),
        heads=width // _HEAD_WIDTH,
        inner=inner,
        positions=positions,
        compared=compared,
        dropout=dropout,
    )


def _not_dual(missing: str) -> PortrayalError:
    return PortrayalError(
        "Expected the weights of a model of ALBEF's kind (visual_encoder, text_encoder with cross-attention, "
        f"vision_proj), found others: {missing} is missing."
    )


def resized_places(places: Tensor, patches: int) -> Tensor:
    """Position embeddings for another number of patches: bicubic, the first one, which is of no patch, as it was."""
    first, grid = places[:, :1], places[:, 1:]
    before, after = round(grid.shape[1] ** 0.5), round(patches**0.5)
    if before == after:
        return places
    spread = grid.unflatten(1, (before, before)).permute(0, 3, 1, 2)
    spread = functional.interpolate(spread, size=(after, after), mode="bicubic", align_corners=False)
    return torch.cat([first, spread.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def _full_name(name: str) -> str:
    """Models fine-tuned for retrieval have no part that fills masks, and then one level less in their names."""
    rest = name.removeprefix("text_encoder.")
    if rest != name and not rest.startswith(("bert.", "cls.")):
        return f"text_encoder.bert.{rest}"
    return name


def _is_all_missing(head: str, missing: set[str], own: Mapping[str, Tensor]) -> bool:
    """A head may be absent as a whole; a part of it may not. Its tied weights are there in any case."""
    return {name for name in own if name.startswith(head) and name not in _TIED} <= missing


def _number(name: str, before: str) -> int:
    return int(name.removeprefix(before).split(".")[0]) if name.startswith(before) else -1


def _refuse(names: list[str], what: str) -> None:
    if names:
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        raise PortrayalError(f"The checkpoint {what}: {', '.join(names[:_SHOWN])}{more}.")
