"""A masked language model without an image encoder, such as BERT: a baseline for vision-language models."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.network import ImageEmbeddings, VLMNetwork

_UNUSED_MEAN_STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


class TextNetwork(VLMNetwork):
    """Wrapper of a masked language model of Transformers. `cross_encode` returns its logits, not hidden states."""

    image_size, patch_size = 0, 1

    def __init__(self, model: Any):
        super().__init__(*_UNUSED_MEAN_STD)
        self.inner = model

    def encode_image(self, pixels: Tensor) -> ImageEmbeddings:  # noqa: ARG002
        raise PortrayalError("A text-only model takes no images.")

    def cross_encode(self, images: ImageEmbeddings | None, ids: Tensor, attention_mask: Tensor) -> Tensor:
        if images is not None:
            raise PortrayalError("A text-only model takes no images.")
        logits: Tensor = self.inner(input_ids=ids, attention_mask=attention_mask.long()).logits
        return logits

    def word_logits(self, hidden: Tensor) -> Tensor:
        return hidden
