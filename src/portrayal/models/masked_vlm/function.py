"""Any function that fills masks, used like a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from portrayal.errors import PortrayalError, shown
from portrayal.models.masked_vlm.model import FillsMasks, Images, Pieces, Texts, check_range
from portrayal.models.masked_vlm.vocabulary import MASK

if TYPE_CHECKING:
    from PIL.Image import Image

Function = Callable[["Tensor | Sequence[Tensor] | None", Sequence[str]], Tensor]
_SUM = 0.01  # how far from 1 the probabilities may add up


class GivenModel(FillsMasks):
    """`function(images, texts)` gives log-probabilities (texts, words) at the one mask of each text.

    `words` are what its columns stand for; `side` is that of the square pictures it takes. Whatever gradients it has
    are passed on.
    """

    def __init__(self, function: Function, words: Sequence[str], side: int, name: str = "given"):
        self.name, self.side, self._function = name, side, function
        self._column = {word: number for number, word in enumerate(words)}
        if len(self._column) != len(words):
            raise PortrayalError("Each word has one column: some are named twice.")

    def pixels(self, pictures: Sequence[Image]) -> Tensor | list[Tensor]:
        from portrayal.models.masked_vlm.pixels import square_pixels

        return square_pixels(pictures, self.side)

    def encode(self, images: Tensor | Sequence[Tensor]) -> Tensor:
        """There is nothing to reuse: pixels stay pixels."""
        return images if isinstance(images, Tensor) else torch.stack(list(images))

    def log_probs(self, images: Images, texts: Texts) -> Tensor:
        if images is not None and not isinstance(images, Tensor):
            images = self.encode(images)  # type: ignore[arg-type]
        if isinstance(texts, str):
            texts = [texts] * (1 if images is None else len(images))
        if not texts:
            raise PortrayalError("There is no text to read.")
        if images is not None:
            check_range(images)
            if len(images) != len(texts):
                raise PortrayalError(
                    f"There is a text for each picture: got {len(images)} pictures, {len(texts)} texts."
                )
        for text in texts:
            if text.count(MASK) != 1:
                raise PortrayalError(f"A function is asked about one {MASK} a text, got {shown(text)}.")
        said = self._function(images, texts)
        expected = (len(texts), len(self._column))
        if not isinstance(said, Tensor) or tuple(said.shape) != expected:
            found = tuple(said.shape) if isinstance(said, Tensor) else type(said).__name__
            raise PortrayalError(f"The function of '{self.name}' gives a tensor {expected}, got {found}.")
        highest = float(said.detach().logsumexp(dim=1).max())
        if not highest <= _SUM:
            raise PortrayalError(
                f"The function of '{self.name}' gives log-probabilities, which add up to 1 at most; got numbers that "
                f"add up to {torch.tensor(highest).exp():g}."
            )
        return said[:, None]

    def _over_vocabulary(
        self,
        images: Images,
        texts: Texts,
        words: Sequence[str],
        pieces: Pieces,  # noqa: ARG002 (every word it knows is whole)
    ) -> Tensor:
        if len(set(words)) < len(words):
            raise PortrayalError("Each word is asked about once: some are named twice.")
        unknown = [word for word in words if word not in self._column]
        if unknown:
            raise PortrayalError(f"The model '{self.name}' does not know {', '.join(map(shown, unknown))}.")
        return self.log_probs(images, texts)[:, 0, [self._column[word] for word in words]]
