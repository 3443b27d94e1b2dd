"""Searching pictures by captions and captions by pictures, and how often the right one is found."""

from typing import Any, Protocol


class Model(Protocol):
    """What is asked of a model; those of `portrayal.models.masked_vlm` have it."""

    name: str
    network: Any
    reader: Any
    device: str
    batch: int

    def __hash__(self) -> int: ...
    def pixels(self, pictures: Any, /) -> Any: ...
    def encode(self, images: Any, /) -> Any: ...
    def match_logits(self, images: Any, texts: Any, /) -> Any: ...
    def picture_vectors(self, images: Any, /) -> Any: ...
    def text_vectors(self, texts: Any, /) -> Any: ...
