"""Masked models by name: those of the lab, folders, checkpoints of ALBEF and TCL, and what Transformers knows."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from portrayal.documents import read_json
from portrayal.errors import InputError, PortrayalError, need, unknown_name
from portrayal.models.device import best_device
from portrayal.models.masked_vlm.checkpoints import dual_network, read_weights
from portrayal.models.masked_vlm.folder import CONFIG, OURS, load_model
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.network import Network
from portrayal.models.masked_vlm.single import SingleNetwork
from portrayal.models.masked_vlm.text_only import TextNetwork
from portrayal.models.masked_vlm.tokenizers import bert_tokenizer, usual_tokenizer
from portrayal.models.masked_vlm.vocabulary import AlbefPieces, Reader, WordPieces

_LAB = "lab-"
_USUAL = "half"  # the world of a model whose name does not say: the lab's as it comes
_ENDINGS = (".pth", ".pt", ".bin", ".ckpt", ".safetensors")
BERT = "bert-base-uncased"  # whose word pieces ALBEF and TCL read
_TEXT = 30  # pieces of a text, as ALBEF and TCL cut their captions


def load_masked(
    name: str,
    device: str = "auto",
    precision: str = "float32",
    batch: int = 64,
    side: int | None = None,
    tokenizer: str | None = None,
) -> MaskedModel:
    """A model that fills masks.

    `name` is a folder, a file with weights of ALBEF or TCL, a name that Transformers knows, or that of a model of the
    lab in the package (`lab_models`). `side` is that of the pictures where a checkpoint is to take others than it was
    trained on; `tokenizer` is a name or folder with the word pieces of a checkpoint, by default those beside it, else
    bert-base-uncased.
    """
    need("torch", "neural", "A masked model")
    where = best_device(device)
    network, reader = _parts(name, side, tokenizer)
    return MaskedModel(plain_name(name), network, reader, where, precision, batch)


def located(name: str) -> str:
    """Where one of the lab's models lies; any other name as it is."""
    return str(lab_folder(name)) if name.startswith(_LAB) and not Path(name).exists() else name


def plain_name(name: str) -> str:
    """Of a folder or file its own name, since where it lies says nothing of what was measured."""
    path = Path(name)
    if path.is_dir():
        return path.resolve().name
    return path.stem if path.is_file() else name


def lab_models() -> list[str]:
    """The names of the lab's models in the package."""
    return sorted(config.parent.name for config in _shipped().glob(f"*/{CONFIG}"))


def lab_folder(name: str) -> Path:
    """Where one of the lab's models lies in the package."""
    known = lab_models()
    full = name if name in known else f"{name}-{_USUAL}"
    if full not in known:
        raise unknown_name("model of the lab", name, known)
    return _shipped() / full


def _shipped() -> Path:
    return Path(str(resources.files("portrayal.models.masked_vlm"))) / "data"


def _parts(name: str, side: int | None, tokenizer: str | None) -> tuple[Network, Reader]:
    path = Path(located(name))
    if path.suffix in _ENDINGS:
        return _checkpoint(path, side, tokenizer)
    if side is not None or tokenizer is not None:
        raise PortrayalError(
            f"The model '{name}' has a size and a tokenizer of its own: only files of ALBEF and TCL take others."
        )
    if path.is_dir() and (path / CONFIG).is_file() and _is_ours(path):
        return load_model(path)
    return _from_transformers(name)


def _is_ours(folder: Path) -> bool:
    try:
        config = read_json(folder / CONFIG)
    except (OSError, InputError):
        return False
    return isinstance(config, dict) and OURS in config


def _checkpoint(file: Path, side: int | None, tokenizer: str | None) -> tuple[Network, Reader]:
    if tokenizer is None:
        beside = any((file.parent / known).is_file() for known in ("vocab.txt", "tokenizer.json"))
        tokenizer = str(file.parent) if beside else BERT
    network = dual_network(read_weights(file), side)
    made = AlbefPieces(bert_tokenizer(tokenizer), min(network.shape.positions, _TEXT))
    if len(made) != network.shape.words:
        raise PortrayalError(
            f"{file}: expected a tokenizer of {network.shape.words:,} word pieces, found {len(made):,} in "
            f"'{tokenizer}'. Give the one the model was trained with."
        )
    return network, made


def _from_transformers(name: str) -> tuple[Network, Reader]:
    from portrayal.models.vision.loading import from_pretrained

    transformers = need("transformers", "neural", "A masked model")
    config = from_pretrained(transformers.AutoConfig, name)
    if config.model_type == "vilt":
        retrieval = "ViltForImageAndTextRetrieval"
        kind = retrieval if retrieval in (config.architectures or []) else "ViltForMaskedLM"
        model = from_pretrained(getattr(transformers, kind), name)
        network: Network = SingleNetwork(model)
        return network, _pieces(name, config)
    kinds = need("transformers.models.auto.modeling_auto", "neural", "A masked model")
    if config.model_type not in kinds.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise PortrayalError(
            f"The model '{name}' is a {config.model_type}: expected one that fills masks (ViLT, BERT and its kin), or "
            f"a file of ALBEF or TCL."
        )
    model = from_pretrained(transformers.AutoModelForMaskedLM, name)
    return TextNetwork(model), _pieces(name, config)


def _pieces(name: str, config: Any) -> WordPieces:
    """Some models have places that no text may fill, which their tokenizer knows."""
    tokenizer = usual_tokenizer(name)
    return WordPieces(tokenizer, int(min(config.max_position_embeddings, tokenizer.model_max_length)))
