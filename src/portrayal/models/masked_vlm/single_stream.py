"""A single-stream network: one encoder for the patches of an image and the words of a text (ViLT of Transformers)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from portrayal.errors import need
from portrayal.models.masked_vlm.network import ImageEmbeddings, VLMNetwork, extended_attention_mask

_PIXEL_MEAN = _PIXEL_STD = (0.5, 0.5, 0.5)


class SingleNetwork(VLMNetwork):
    """Wrapper of a `ViltForMaskedLM`, or of a `ViltForImageAndTextRetrieval` (matching head, no MLM head).

    The layers are those of Transformers, except for the patch embedding. `ViltModel` selects the patches of an
    image in random order at every call. That is slow and changes the last digits from call to call. Here
    patches keep their order.

    Parameters
    ----------
    model
        The model of Transformers.
    has_new_match_head
        Add an untrained matching head.
    square
        Whether images are resized to squares.
    """

    def __init__(self, model: Any, has_new_match_head: bool = False, square: bool = False):
        super().__init__(_PIXEL_MEAN, _PIXEL_STD)
        self.square = square
        config = model.config
        self.inner = model
        self.image_size, self.patch_size = int(config.image_size), int(config.patch_size)
        self.has_mlm_head = hasattr(model, "mlm_score")
        self._has_rank_output = hasattr(model, "rank_output")
        self.has_match_head = has_new_match_head or self._has_rank_output
        if has_new_match_head:
            self.itm_score = nn.Linear(config.hidden_size, 2)
            nn.init.trunc_normal_(self.itm_score.weight, std=0.02)
            nn.init.zeros_(self.itm_score.bias)

    def encode_image(self, pixels: Tensor) -> ImageEmbeddings:
        """Return patch embeddings with position and modality embeddings."""
        vilt_embeddings = self.inner.vilt.embeddings
        patches = vilt_embeddings.patch_embeddings(self.normalize(pixels))
        grid_size = self.image_size // self.patch_size
        positions = (
            vilt_embeddings.position_embeddings[:, 1:].transpose(1, 2).unflatten(2, (grid_size, grid_size))
        )
        if patches.shape[2:] != positions.shape[2:]:
            positions = functional.interpolate(
                positions, size=patches.shape[2:], mode="bilinear", align_corners=True
            )
        tokens = (patches + positions).flatten(2).transpose(1, 2)
        cls_token = (vilt_embeddings.cls_token + vilt_embeddings.position_embeddings[:, :1]).expand(
            len(tokens), -1, -1
        )
        return ImageEmbeddings(
            torch.cat([cls_token, tokens], dim=1) + vilt_embeddings.token_type_embeddings.weight[1]
        )

    def cross_encode(self, images: ImageEmbeddings | None, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states of the words, which attend to the words and to the patches of the image, if any."""
        vilt = self.inner.vilt
        hidden = (
            vilt.embeddings.text_embeddings(input_ids=ids) + vilt.embeddings.token_type_embeddings.weight[0]
        )
        if images is not None:
            images = images.expanded()
            hidden = torch.cat([hidden, images.tokens], dim=1)
            image_mask = images.attention_mask
            if image_mask is None:
                image_mask = attention_mask.new_ones(images.tokens.shape[:2])
            attention_mask = torch.cat([attention_mask, image_mask], dim=1)
        mask = extended_attention_mask(attention_mask)
        assert mask is not None
        min_value = torch.finfo(hidden.dtype).min
        attention_bias = torch.zeros_like(mask, dtype=hidden.dtype).masked_fill(~mask, min_value)
        states: Tensor = vilt.layernorm(vilt.encoder(hidden, attention_mask=attention_bias).last_hidden_state)
        return states[:, : ids.shape[1]]

    def word_logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.inner.mlm_score(hidden)
        return logits

    def match_logits(self, hidden: Tensor) -> Tensor:
        pooled = self.inner.vilt.pooler(hidden)
        if self._has_rank_output:  # a single logit: match against no match
            logit: Tensor = self.inner.rank_output(pooled)
            return torch.cat([torch.zeros_like(logit), logit], dim=1)
        logits: Tensor = self.itm_score(pooled)
        return logits


def build_vilt(**config: Any) -> Any:
    """Return an untrained ViLT of Transformers."""
    transformers = need("transformers", "neural", "A model of ViLT's kind")
    return transformers.ViltForMaskedLM(transformers.ViltConfig(**config))
