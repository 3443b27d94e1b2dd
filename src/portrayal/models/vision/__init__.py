"""Image models: classifiers, detectors and captioners. PyTorch is imported when a model is loaded."""

from portrayal.models.vision.detections import Detection, ImageModel
from portrayal.models.vision.loading import image_model_kind, load_image_model
from portrayal.models.vision.vote import Vote, agreed_detections, confident_detections

__all__ = [
    "Detection",
    "ImageModel",
    "Vote",
    "agreed_detections",
    "confident_detections",
    "image_model_kind",
    "load_image_model",
]
