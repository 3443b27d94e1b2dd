"""Models of transformers that see: classifiers, detectors, and models like CLIP that are given the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from portrayal.errors import PortrayalError, need
from portrayal.models.vision.detections import Seen, shipped_names, surest_first
from portrayal.models.vision.loading import PROMPT, from_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

_PURPOSE = "A model that sees"


class Classifier:
    """One list of classes for the whole picture."""

    def __init__(self, name: str, device: str):
        transformers = need("transformers", "neural", _PURPOSE)
        self.name, self._device = name, device
        self._prepare = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForImageClassification, name).to(device).eval()

    def see(self, pictures: Sequence[Image]) -> list[list[Seen]]:
        if not pictures:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            said = self._model(**self._prepare(images=list(pictures), return_tensors="pt").to(self._device))
            several = self._model.config.problem_type == "multi_label_classification"
            sure = said.logits.float().sigmoid() if several else said.logits.float().softmax(dim=-1)
        return [_named(self._model.config.id2label, enumerate(row)) for row in sure.tolist()]


class Detector:
    """Objects in boxes. Only what they are is kept, not where: of one label the surest box."""

    def __init__(self, name: str, device: str):
        transformers = need("transformers", "neural", _PURPOSE)
        self.name, self._device = name, device
        self._prepare = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForObjectDetection, name).to(device).eval()

    def see(self, pictures: Sequence[Image]) -> list[list[Seen]]:
        if not pictures:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            said = self._model(**self._prepare(images=list(pictures), return_tensors="pt").to(self._device))
            found = self._prepare.post_process_object_detection(said, threshold=0.0)
        return [
            _named(
                self._model.config.id2label, zip(one["labels"].tolist(), one["scores"].tolist(), strict=True)
            )
            for one in found
        ]


class ZeroShot:
    """How well each label, put into a sentence, fits the picture.

    A confidence is a share among the labels given (CLIP), or stands for itself where the model was trained so (SigLIP).
    """

    def __init__(self, name: str, device: str, labels: Sequence[str] | None = None, prompt: str = PROMPT):
        transformers = need("transformers", "neural", _PURPOSE)
        if prompt.count("{label}") != 1:
            raise PortrayalError(f"The prompt must hold {{label}} once, got {prompt!r}.")
        if labels is not None and not labels:
            raise PortrayalError(f"The model '{name}' needs at least one label to choose from, got none.")
        self.name, self._device = name, device
        self._labels = dict(enumerate(labels or shipped_names("coco_categories.txt")))
        self._prepare = from_pretrained(transformers.AutoImageProcessor, name)
        self._model = from_pretrained(transformers.AutoModelForZeroShotImageClassification, name)
        self._model = self._model.to(device).eval()
        self._alone = self._model.config.model_type.startswith("siglip")
        cut = from_pretrained(transformers.AutoTokenizer, name)
        asked = [prompt.replace("{label}", label) for label in self._labels.values()]
        padding = (
            "max_length" if self._alone else True
        )  # SigLIP has only seen texts filled up to their length
        self._asked = cut(asked, padding=padding, truncation=True, return_tensors="pt").to(device)

    def see(self, pictures: Sequence[Image]) -> list[list[Seen]]:
        if not pictures:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            shown = self._prepare(images=list(pictures), return_tensors="pt").to(self._device)
            fits = self._model(**self._asked, **shown).logits_per_image.float()
            sure = fits.sigmoid() if self._alone else fits.softmax(dim=-1)
        return [_named(self._labels, enumerate(row)) for row in sure.tolist()]


def _named(labels: dict[int, str], found: Any) -> list[Seen]:
    """Class numbers with confidences, as labels; a number that the model has no name for is left out."""
    return surest_first((labels[number], float(sure)) for number, sure in found if number in labels)
