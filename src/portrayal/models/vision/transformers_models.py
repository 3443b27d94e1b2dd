"""Image models of Transformers: classifiers, detectors, and zero-shot models like CLIP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from portrayal.errors import PortrayalError, need
from portrayal.models.vision.detections import Detection, by_confidence, packaged_labels
from portrayal.models.vision.loading import PROMPT, from_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

_PURPOSE = "An image model"


class TransformersClassifier:
    """An image classifier."""

    def __init__(self, name: str, device: str):
        transformers = need("transformers", "neural", _PURPOSE)
        self.name, self._device = name, device
        self._processor = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForImageClassification, name).to(device).eval()

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        if not images:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            outputs = self._model(
                **self._processor(images=list(images), return_tensors="pt").to(self._device)
            )
            is_multi_label = self._model.config.problem_type == "multi_label_classification"
            probabilities = (
                outputs.logits.float().sigmoid() if is_multi_label else outputs.logits.float().softmax(dim=-1)
            )
        return [_detections(self._model.config.id2label, enumerate(row)) for row in probabilities.tolist()]


class TransformersDetector:
    """An object detector. Boxes are not returned; each label has the confidence of its most confident box."""

    def __init__(self, name: str, device: str):
        transformers = need("transformers", "neural", _PURPOSE)
        self.name, self._device = name, device
        self._processor = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForObjectDetection, name).to(device).eval()

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        if not images:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            outputs = self._model(
                **self._processor(images=list(images), return_tensors="pt").to(self._device)
            )
            detections = self._processor.post_process_object_detection(outputs, threshold=0.0)
        return [
            _detections(
                self._model.config.id2label,
                zip(detected["labels"].tolist(), detected["scores"].tolist(), strict=True),
            )
            for detected in detections
        ]


class ZeroShotClassifier:
    """A model such as CLIP that compares an image with a text for each label.

    The confidences of CLIP add up to 1 over the labels. Those of SigLIP, which was trained on each label
    separately, do not.
    """

    def __init__(self, name: str, device: str, labels: Sequence[str] | None = None, prompt: str = PROMPT):
        transformers = need("transformers", "neural", _PURPOSE)
        if prompt.count("{label}") != 1:
            raise PortrayalError(f"The prompt must hold {{label}} once, got {prompt!r}.")
        if labels is not None and not labels:
            raise PortrayalError(f"The model '{name}' needs at least one label to choose from, got none.")
        self.name, self._device = name, device
        self._labels = dict(enumerate(labels or packaged_labels("coco_categories.txt")))
        self._processor = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForZeroShotImageClassification, name)
        self._model = self._model.to(device).eval()
        self._uses_sigmoid = self._model.config.model_type.startswith("siglip")
        tokenizer = from_pretrained(transformers.AutoTokenizer, name)
        texts = [prompt.replace("{label}", label) for label in self._labels.values()]
        # SigLIP was trained on padded texts only.
        padding = "max_length" if self._uses_sigmoid else True
        self._text_inputs = tokenizer(texts, padding=padding, truncation=True, return_tensors="pt").to(device)

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        if not images:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            inputs = self._processor(images=list(images), return_tensors="pt").to(self._device)
            logits = self._model(**self._text_inputs, **inputs).logits_per_image.float()
            probabilities = logits.sigmoid() if self._uses_sigmoid else logits.softmax(dim=-1)
        return [_detections(self._labels, enumerate(row)) for row in probabilities.tolist()]


def _detections(labels: dict[int, str], class_confidences: Any) -> list[Detection]:
    """Return the detections for (class id, confidence) pairs; ids without a label are dropped."""
    return by_confidence(
        (labels[class_id], float(confidence))
        for class_id, confidence in class_confidences
        if class_id in labels
    )
