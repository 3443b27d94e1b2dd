"""Image-text retrieval with a masked vision-language model, and recall at k."""

from typing import Any, Protocol


class RetrievalModel(Protocol):
    """The interface of models for retrieval, which `TorchMaskedVLM` implements."""

    name: str
    network: Any
    tokenizer: Any
    device: str
    batch_size: int

    def __hash__(self) -> int: ...
    def preprocess(self, images: Any, /) -> Any: ...
    def encode_images(self, images: Any, /) -> Any: ...
    def match_logits(self, images: Any, texts: Any, /) -> Any: ...
    def image_features(self, images: Any, /) -> Any: ...
    def text_features(self, texts: Any, /) -> Any: ...
