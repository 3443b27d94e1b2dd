"""A masked model from any function that predicts masked words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from portrayal.errors import PortrayalError, shown
from portrayal.models.masked_vlm.model import (
    ImageInput,
    MaskedVLM,
    SubwordPolicy,
    TextInput,
    check_pixel_range,
)
from portrayal.models.masked_vlm.vocabulary import MASK

if TYPE_CHECKING:
    from PIL.Image import Image

MaskFunction = Callable[["Tensor | Sequence[Tensor] | None", Sequence[str]], Tensor]
_SUM_TOLERANCE = 0.01  # maximum log of the sum of the probabilities, which should be 0 or less


class FunctionModel(MaskedVLM):
    """A model that wraps a function.

    `function(images, texts)` returns log-probabilities (texts, words) at the one mask of each text. An attack uses
    its gradients.

    Parameters
    ----------
    function
        A function of pixels, or None, and texts.
    words
        The words of the columns of the result.
    image_size
        Side in pixels of the square images that the function takes.
    """

    def __init__(self, function: MaskFunction, words: Sequence[str], image_size: int, name: str = "given"):
        self.name, self.image_size, self._function = name, image_size, function
        self._column = {word: column for column, word in enumerate(words)}
        if len(self._column) != len(words):
            raise PortrayalError("Words must be distinct: some are named twice.")

    def preprocess(self, images: Sequence[Image]) -> Tensor | list[Tensor]:
        from portrayal.models.masked_vlm.pixels import preprocess_square

        return preprocess_square(images, self.image_size)

    def encode_images(self, images: Tensor | Sequence[Tensor]) -> Tensor:
        """Return the pixels: a function has no image embeddings to reuse."""
        return images if isinstance(images, Tensor) else torch.stack(list(images))

    def log_probs(self, images: ImageInput, texts: TextInput) -> Tensor:
        if images is not None and not isinstance(images, Tensor):
            images = self.encode_images(images)  # type: ignore[arg-type]
        if isinstance(texts, str):
            texts = [texts] * (1 if images is None else len(images))
        if not texts:
            raise PortrayalError("Expected at least one text.")
        if images is not None:
            check_pixel_range(images)
            if len(images) != len(texts):
                raise PortrayalError(
                    f"Expected one text for each image: got {len(images)} images, {len(texts)} texts."
                )
        for text in texts:
            if text.count(MASK) != 1:
                raise PortrayalError(f"A function predicts one {MASK} for each text, got {shown(text)}.")
        log_probs = self._function(images, texts)
        expected = (len(texts), len(self._column))
        if not isinstance(log_probs, Tensor) or tuple(log_probs.shape) != expected:
            shape = tuple(log_probs.shape) if isinstance(log_probs, Tensor) else type(log_probs).__name__
            raise PortrayalError(
                f"The function of '{self.name}' must return a tensor {expected}, got {shape}."
            )
        max_log_sum = float(log_probs.detach().logsumexp(dim=1).max())
        if not max_log_sum <= _SUM_TOLERANCE:
            raise PortrayalError(
                f"The function of '{self.name}' must return log-probabilities, which add up to 1 at most; got "
                f"numbers that add up to {torch.tensor(max_log_sum).exp():g}."
            )
        return log_probs[:, None]

    def _vocabulary_log_probs(
        self,
        images: ImageInput,
        texts: TextInput,
        words: Sequence[str],
        subword_policy: SubwordPolicy,  # noqa: ARG002 (every word is one column)
    ) -> Tensor:
        if len(set(words)) < len(words):
            raise PortrayalError("Words must be distinct: some are named twice.")
        unknown = [word for word in words if word not in self._column]
        if unknown:
            raise PortrayalError(f"The model '{self.name}' does not know {', '.join(map(shown, unknown))}.")
        return self.log_probs(images, texts)[:, 0, [self._column[word] for word in words]]
