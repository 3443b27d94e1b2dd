"""What models see in pictures, and what they say of them. Nothing heavy is loaded until a model is."""

from portrayal.models.vision.detections import Seen, Seer
from portrayal.models.vision.loading import kind_of, load_seer
from portrayal.models.vision.vote import Vote, agreed, noticed

__all__ = ["Seen", "Seer", "Vote", "agreed", "kind_of", "load_seer", "noticed"]
