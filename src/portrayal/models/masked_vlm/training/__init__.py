"""Training masked vision-language networks: masked words, matching pairs, and comparing pictures with texts."""

from portrayal.models.masked_vlm.training.data import Pairs
from portrayal.models.masked_vlm.training.loop import Recipe, train

__all__ = ["Pairs", "Recipe", "train"]
