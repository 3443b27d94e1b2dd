"""A model with probabilities known by hand: red means man, green means beach, text and red mean fishing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

WORDS = ("man", "woman", "person", "fishing", "cooking", "chef", "athlete", "beach", "park", "other")
SIDE = 8
SLOPE = 40.0  # slope of the logit of the group in red
BY_RED, BY_TEXT = 0.4, 0.1  # change of P(fishing)


def toy(by_red: float = BY_RED, by_text: float = BY_TEXT, damage: float = 0.0, name: str = "toy"):
    """P(fishing | V, L) = .5 + by_red (P(man | V) - .5) + by_text (1 or -1), P(cooking) the rest up to .98.

    `damage` is subtracted for every change of blue, which has no meaning.
    """
    import torch

    from portrayal.models.masked_vlm import FunctionModel

    def log_probs(images, texts):
        n_texts = len(texts)
        red, green, blue = (
            (0.5 * torch.ones(n_texts),) * 3 if images is None else images.mean(dim=(2, 3)).unbind(1)
        )
        man = torch.sigmoid(SLOPE * (red - 0.5))
        beach = torch.sigmoid(SLOPE * (green - 0.5))
        rows = []
        for row, text in enumerate(texts):
            if "in the picture" in text:
                probabilities = {"man": 0.8 * man[row], "woman": 0.8 * (1 - man[row]), "person": 0.15}
            elif "place" in text:
                probabilities = {"beach": 0.9 * beach[row], "park": 0.9 * (1 - beach[row])}
            else:
                direction = 1.0 if " man" in f" {text.lower()}" else -1.0
                fishing = (
                    0.5 + by_red * (man[row] - 0.5) + by_text * direction - damage * (blue[row] - 0.5).abs()
                )
                probabilities = {
                    "fishing": fishing,
                    "cooking": 0.98 - fishing,
                    "chef": 0.01,
                    "athlete": 0.005,
                }
            columns = [torch.as_tensor(probabilities.get(word, 1e-4)) for word in WORDS]
            rows.append(torch.stack([value.to(torch.float32) for value in columns]))
        probs = torch.stack(rows).clamp(min=1e-6)
        return (probs / probs.sum(dim=1, keepdim=True).clamp(min=1)).log()

    return FunctionModel(log_probs, WORDS, SIDE, name)


def write_image(path: Path, red: float, green: float = 0.5, blue: float = 0.5) -> Path:
    colours = [round(255 * value) for value in (red, green, blue)]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((SIDE, SIDE, 3), colours, dtype=np.uint8)).save(path)
    return path
