"""The interface of masked vision-language networks, and the image embeddings that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class ImageEmbeddings:
    """The output of an image encoder, which can be reused for several texts."""

    tokens: Tensor  # (images, tokens, width)
    attention_mask: Tensor | None = None  # (images, tokens), False at padding; None: no padding
    texts_per_image: int = 1  # number of consecutive texts that share an image
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        """Return the number of texts: images times texts per image."""
        return len(self.tokens) * self.texts_per_image

    def with_texts_per_image(self, n: int) -> ImageEmbeddings:
        """Return the same images with n texts each. Both objects share the cache."""
        embeddings = ImageEmbeddings(self.tokens, self.attention_mask, n)
        object.__setattr__(embeddings, "_cache", self._cache)
        return embeddings

    def expanded(self) -> ImageEmbeddings:
        """Return the embeddings with the images repeated, one for each text."""
        if self.texts_per_image == 1:
            return self
        return self[torch.arange(len(self), device=self.tokens.device)]

    def cached(self, module: nn.Module, compute: Callable[[Tensor], T]) -> T:
        """Return `compute(tokens)`, which a module computes once for all texts of the images.

        Results are cached in inference only, since weights change during training.
        """
        if torch.is_grad_enabled():
            return compute(self.tokens)
        if module not in self._cache:
            self._cache[module] = compute(self.tokens)
        result: T = self._cache[module]
        return result

    def __getitem__(self, index: slice | Tensor) -> ImageEmbeddings:
        if isinstance(index, slice) and index.indices(len(self)) == (0, len(self), 1):
            return self
        texts_per_image = self.texts_per_image
        if texts_per_image > 1 and isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1 and start % texts_per_image == stop % texts_per_image == 0:
                index = slice(start // texts_per_image, stop // texts_per_image)
            else:
                index = torch.arange(start, stop, step, device=self.tokens.device)
        # The selected texts of an image may be fewer, so each text gets its own copy of the image.
        if texts_per_image > 1 and isinstance(index, Tensor):
            index, texts_per_image = index // texts_per_image, 1
        return ImageEmbeddings(
            self.tokens[index],
            None if self.attention_mask is None else self.attention_mask[index],
            texts_per_image,
        )

    @staticmethod
    def concat(batches: Sequence[ImageEmbeddings]) -> ImageEmbeddings:
        """Return embeddings of one text per image concatenated; images with fewer tokens are padded."""
        max_tokens = max(batch.tokens.shape[1] for batch in batches)
        if len(batches) == 1:
            return batches[0]
        if all(batch.attention_mask is None and batch.tokens.shape[1] == max_tokens for batch in batches):
            return ImageEmbeddings(torch.cat([batch.tokens for batch in batches]))
        tokens, masks = [], []
        for batch in batches:
            n_missing = max_tokens - batch.tokens.shape[1]
            mask = batch.attention_mask
            if mask is None:
                mask = torch.ones(batch.tokens.shape[:2], dtype=torch.bool, device=batch.tokens.device)
            tokens.append(nn.functional.pad(batch.tokens, (0, 0, 0, n_missing)))
            masks.append(nn.functional.pad(mask, (0, n_missing)))
        return ImageEmbeddings(torch.cat(tokens), torch.cat(masks))


class VLMNetwork(nn.Module, ABC):
    """Base class of networks. Pixels are from 0 to 1, and are normalized with the mean and deviation of the network."""

    image_size: int  # side of the images in pixels; 0: the network takes no images
    patch_size: int
    square: bool = True  # whether images are square; if not, `image_size` is the shorter side
    # whether it predicts if an image and a text match (image-text matching, ITM)
    has_match_head: bool = False
    has_mlm_head: bool = True  # whether it predicts masked words
    _mean: Tensor
    _std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        for name, values in (("_mean", mean), ("_std", std)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    @abstractmethod
    def encode_image(self, pixels: Tensor) -> ImageEmbeddings:
        """Return the embeddings of images of one size: (images, 3, height, width)."""

    @abstractmethod
    def cross_encode(self, images: ImageEmbeddings | None, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states of texts that attend to their images; the mask is False at padding."""

    @abstractmethod
    def word_logits(self, hidden: Tensor) -> Tensor:
        """Return a logit for every word of the vocabulary."""

    def match_logits(self, hidden: Tensor) -> Tensor:
        """Return two logits for each text: it does not match the image, it does."""
        raise NotImplementedError

    def normalize(self, pixels: Tensor) -> Tensor:
        return ((pixels - self._mean) / self._std).to(self._mean.dtype)


class DualEncoder(ABC):
    """A network with separate encoders, so that many images can be compared with many texts."""

    @abstractmethod
    def encode_text(self, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states of texts without images."""

    @abstractmethod
    def cross_encode_text(
        self, images: ImageEmbeddings | None, text_states: Tensor, attention_mask: Tensor
    ) -> Tensor:
        """Like `cross_encode`, for texts that `encode_text` has encoded."""

    @abstractmethod
    def image_features(self, images: ImageEmbeddings) -> Tensor:
        """Return unit vectors of images."""

    @abstractmethod
    def text_features(self, text_states: Tensor) -> Tensor:
        """Return unit vectors of texts."""

    @abstractmethod
    def temperature(self) -> Tensor:
        """Return the temperature that divides similarities."""


def extended_attention_mask(attention_mask: Tensor | None) -> Tensor | None:
    """Return the mask as (texts, 1, 1, tokens); None where there is no padding, which is faster."""
    return None if attention_mask is None else attention_mask[:, None, None, :]


def init_weights(network: nn.Module, std: float = 0.02) -> None:
    """Initialise the weights for training."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=std)
