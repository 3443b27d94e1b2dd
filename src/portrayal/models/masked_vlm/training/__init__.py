"""Training of masked vision-language networks: masked words, image-text matching and contrastive learning."""

from portrayal.models.masked_vlm.training.data import ImageTextPairs
from portrayal.models.masked_vlm.training.loop import TrainingConfig, train

__all__ = ["ImageTextPairs", "TrainingConfig", "train"]
