"""A network that reads patches of a picture and words in one stream: ViLT, as Transformers has it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from portrayal.errors import need
from portrayal.models.masked_vlm.network import Looked, Network, token_mask

HALF = (0.5, 0.5, 0.5)


class SingleNetwork(Network):
    """Wraps a `ViltForMaskedLM`, or a `ViltForImageAndTextRetrieval`, which matches and fills no masks.

    Layers are used as they are, but for how a picture is taken in.

    ViltModel picks the patches of a picture in random order with every call. The order means nothing to what comes
    after, since a patch knows its place, but digits then differ from call to call, and it is slow.
    """

    def __init__(self, model: Any, matching: bool = False, square: bool = False):
        super().__init__(HALF, HALF)
        self.square = square
        config = model.config
        self.inner = model
        self.side, self.patch = int(config.image_size), int(config.patch_size)
        self.filling = hasattr(model, "mlm_score")
        self._ranks = hasattr(model, "rank_output")
        self.matching = matching or self._ranks
        if matching:
            self.itm_score = nn.Linear(config.hidden_size, 2)
            nn.init.trunc_normal_(self.itm_score.weight, std=0.02)
            nn.init.zeros_(self.itm_score.bias)

    def look(self, pictures: Tensor) -> Looked:
        """Patches with their places, each knowing that it is part of a picture."""
        own = self.inner.vilt.embeddings
        patches = own.patch_embeddings(self.normalised(pictures))
        side = self.side // self.patch
        places = own.position_embeddings[:, 1:].transpose(1, 2).unflatten(2, (side, side))
        if patches.shape[2:] != places.shape[2:]:
            places = functional.interpolate(
                places, size=patches.shape[2:], mode="bilinear", align_corners=True
            )
        tokens = (patches + places).flatten(2).transpose(1, 2)
        first = (own.cls_token + own.position_embeddings[:, :1]).expand(len(tokens), -1, -1)
        return Looked(torch.cat([first, tokens], dim=1) + own.token_type_embeddings.weight[1])

    def fuse(self, looked: Looked | None, ids: Tensor, there: Tensor) -> Tensor:
        """Without a picture there are no patches to attend to: the words are alone."""
        own = self.inner.vilt
        hidden = (
            own.embeddings.text_embeddings(input_ids=ids) + own.embeddings.token_type_embeddings.weight[0]
        )
        if looked is not None:
            looked = looked.repeated()
            hidden = torch.cat([hidden, looked.tokens], dim=1)
            seen = looked.there
            if seen is None:
                seen = there.new_ones(looked.tokens.shape[:2])
            there = torch.cat([there, seen], dim=1)
        mask = token_mask(there)
        assert mask is not None
        lowest = torch.finfo(hidden.dtype).min
        added = torch.zeros_like(mask, dtype=hidden.dtype).masked_fill(~mask, lowest)
        read: Tensor = own.layernorm(own.encoder(hidden, attention_mask=added).last_hidden_state)
        return read[:, : ids.shape[1]]

    def words(self, hidden: Tensor) -> Tensor:
        made: Tensor = self.inner.mlm_score(hidden)
        return made

    def match(self, hidden: Tensor) -> Tensor:
        pooled = self.inner.vilt.pooler(hidden)
        if self._ranks:  # one logit, of a match against none
            score: Tensor = self.inner.rank_output(pooled)
            return torch.cat([torch.zeros_like(score), score], dim=1)
        scores: Tensor = self.itm_score(pooled)
        return scores


def vilt(**config: Any) -> Any:
    """An untrained ViLT of Transformers."""
    transformers = need("transformers", "neural", "A model of ViLT's kind")
    return transformers.ViltForMaskedLM(transformers.ViltConfig(**config))
