"""Load masked models by name: lab models, saved folders, checkpoints of ALBEF and TCL, models of Transformers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from portrayal import plugins
from portrayal.documents import read_json
from portrayal.errors import InputError, PortrayalError, need, unknown_name
from portrayal.models.device import resolve_device
from portrayal.models.masked_vlm.checkpoints import dual_network, read_weights
from portrayal.models.masked_vlm.folder import CONFIG, PORTRAYAL_KEY, load_model
from portrayal.models.masked_vlm.model import MaskedVLM, TorchMaskedVLM
from portrayal.models.masked_vlm.network import VLMNetwork
from portrayal.models.masked_vlm.single_stream import SingleNetwork
from portrayal.models.masked_vlm.text_only import TextNetwork
from portrayal.models.masked_vlm.tokenizers import load_auto_tokenizer, load_bert_tokenizer
from portrayal.models.masked_vlm.vocabulary import AlbefTokenizer, Tokenizer, TransformersTokenizer

_LAB_PREFIX = "lab-"
_DEFAULT_WORLD = "half"  # lab world of the training data, if the name of a model states none
_CHECKPOINT_SUFFIXES = (".pth", ".pt", ".bin", ".ckpt", ".safetensors")
_ALBEF_TOKENIZER = "bert-base-uncased"  # tokenizer of ALBEF and TCL
_MAX_TEXT_LENGTH = 30  # tokens of a text, as ALBEF and TCL truncate their captions


def load_masked(
    name: str,
    device: str = "auto",
    precision: str = "float32",
    batch_size: int = 64,
    image_size: int | None = None,
    tokenizer: str | None = None,
) -> TorchMaskedVLM:
    """Return a masked vision-language model.

    Parameters
    ----------
    name
        A folder, a file with weights of ALBEF or TCL, a name that Transformers knows, or a packaged lab model
        (`lab_models`).
    device
        "auto", "cpu" or "cuda".
    precision
        "float32" or "bfloat16".
    batch_size
        Number of images or texts in a batch.
    image_size
        Side of the images for a checkpoint, if another than in its training is wanted.
    tokenizer
        Name or folder of a checkpoint's tokenizer. Default: the one beside the file, else bert-base-uncased.

    Returns
    -------
    TorchMaskedVLM
    """
    need("torch", "neural", "A masked model")
    resolved_device = resolve_device(device)
    network, text_tokenizer = _load_parts(name, image_size, tokenizer)
    return TorchMaskedVLM(display_name(name), network, text_tokenizer, resolved_device, precision, batch_size)


def load_plugin_model(name: str, device: str, precision: str, batch_size: int) -> MaskedVLM | None:
    """Return the model of the plug-in with this name (group `portrayal.models`); None if there is no such plug-in."""
    plugin = plugins.find_plugin(plugins.MODELS, name)
    if plugin is None:
        return None
    if not callable(plugin.value):
        raise PortrayalError(str(plugin.failed("it is no function (device, precision, batch_size)").problem))
    model = plugin.value(device=device, precision=precision, batch_size=batch_size)
    if not isinstance(model, MaskedVLM):
        reason = f"expected a function that returns a MaskedVLM, found {type(model).__name__}"
        raise PortrayalError(str(plugin.failed(reason).problem))
    return model


def lab_model_path(name: str) -> str:
    """Return the path of a packaged lab model; any other name is returned as it is."""
    return str(lab_model_folder(name)) if name.startswith(_LAB_PREFIX) and not Path(name).exists() else name


def display_name(name: str) -> str:
    """Return the file or folder name of a path, since its location says nothing about the model."""
    path = Path(name)
    if path.is_dir():
        return path.resolve().name
    return path.stem if path.is_file() else name


def lab_models() -> list[str]:
    """Return the names of the packaged lab models."""
    return sorted(config.parent.name for config in _packaged_models_folder().glob(f"*/{CONFIG}"))


def lab_model_folder(name: str) -> Path:
    """Return the folder of a packaged lab model."""
    known = lab_models()
    full_name = name if name in known else f"{name}-{_DEFAULT_WORLD}"
    if full_name not in known:
        raise unknown_name("model of the lab", name, known)
    return _packaged_models_folder() / full_name


def _packaged_models_folder() -> Path:
    return Path(str(resources.files("portrayal.models.masked_vlm"))) / "data"


def _load_parts(name: str, image_size: int | None, tokenizer: str | None) -> tuple[VLMNetwork, Tokenizer]:
    path = Path(lab_model_path(name))
    if path.suffix in _CHECKPOINT_SUFFIXES:
        return _load_checkpoint(path, image_size, tokenizer)
    if image_size is not None or tokenizer is not None:
        raise PortrayalError(
            f"The model '{name}' has its own image size and tokenizer: only files of ALBEF and TCL take others."
        )
    if path.is_dir() and (path / CONFIG).is_file() and _is_saved_here(path):
        return load_model(path)
    return _from_transformers(name)


def _is_saved_here(folder: Path) -> bool:
    try:
        config = read_json(folder / CONFIG)
    except (OSError, InputError):
        return False
    return isinstance(config, dict) and PORTRAYAL_KEY in config


def _load_checkpoint(
    file: Path, image_size: int | None, tokenizer: str | None
) -> tuple[VLMNetwork, Tokenizer]:
    if tokenizer is None:
        has_tokenizer = any(
            (file.parent / file_name).is_file() for file_name in ("vocab.txt", "tokenizer.json")
        )
        tokenizer = str(file.parent) if has_tokenizer else _ALBEF_TOKENIZER
    network = dual_network(read_weights(file), image_size)
    text_tokenizer = AlbefTokenizer(
        load_bert_tokenizer(tokenizer), min(network.shape.max_position_embeddings, _MAX_TEXT_LENGTH)
    )
    if len(text_tokenizer) != network.shape.vocab_size:
        raise PortrayalError(
            f"{file}: expected a tokenizer of {network.shape.vocab_size:,} tokens, found {len(text_tokenizer):,} in "
            f"'{tokenizer}'. Give the one the model was trained with."
        )
    return network, text_tokenizer


def _from_transformers(name: str) -> tuple[VLMNetwork, Tokenizer]:
    from portrayal.models.vision.loading import from_pretrained

    transformers = need("transformers", "neural", "A masked model")
    config = from_pretrained(transformers.AutoConfig, name)
    if config.model_type == "vilt":
        retrieval = "ViltForImageAndTextRetrieval"
        class_name = retrieval if retrieval in (config.architectures or []) else "ViltForMaskedLM"
        model = from_pretrained(getattr(transformers, class_name), name)
        network: VLMNetwork = SingleNetwork(model)
        return network, _load_tokenizer(name, config)
    auto = need("transformers.models.auto.modeling_auto", "neural", "A masked model")
    if config.model_type not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise PortrayalError(
            f"The model '{name}' is a {config.model_type}: expected a masked model (ViLT, BERT and similar), or "
            f"a file of ALBEF or TCL."
        )
    model = from_pretrained(transformers.AutoModelForMaskedLM, name)
    return TextNetwork(model), _load_tokenizer(name, config)


def _load_tokenizer(name: str, config: Any) -> TransformersTokenizer:
    """Return the tokenizer; some models reserve positions that no text may use, which their tokenizer knows."""
    tokenizer = load_auto_tokenizer(name)
    return TransformersTokenizer(
        tokenizer, int(min(config.max_position_embeddings, tokenizer.model_max_length))
    )
