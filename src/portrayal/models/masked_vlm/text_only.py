"""A masked language model, which reads texts alone: BERT and its kin, to hold vision-language models against."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.network import Looked, Network

_NO_PICTURES = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


class TextNetwork(Network):
    """Wraps a masked language model of Transformers. `fuse` gives its logits, and `words` hands them on."""

    side, patch = 0, 1

    def __init__(self, model: Any):
        super().__init__(*_NO_PICTURES)
        self.inner = model

    def look(self, pictures: Tensor) -> Looked:  # noqa: ARG002
        raise PortrayalError("A model that reads texts alone takes no pictures.")

    def fuse(self, looked: Looked | None, ids: Tensor, there: Tensor) -> Tensor:
        if looked is not None:
            raise PortrayalError("A model that reads texts alone takes no pictures.")
        scores: Tensor = self.inner(input_ids=ids, attention_mask=there.long()).logits
        return scores

    def words(self, hidden: Tensor) -> Tensor:
        return hidden
