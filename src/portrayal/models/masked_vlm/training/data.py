"""Training data as tensors: images with several texts each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from portrayal.models.masked_vlm.vocabulary import Tokenizer, pad_rows

_COMMON_SHARE = 0.03  # minimum share of all words at which a word is common, and masked less often


@dataclass(frozen=True)
class ImageTextPairs:
    """Images with captions, which identify them, and short sentences, which fit other images too."""

    images: Tensor  # (images, height, width, 3), integers from 0 to 255
    captions: Tensor  # (images, captions per image, tokens)
    sentences: Tensor  # (images, sentences per image, tokens)
    masking_weights: Tensor  # (vocabulary), from 0 to 1: relative masking rate, lower for common words
    pad_id: int
    mask_id: int
    has_end_token: bool = True  # whether a text ends with a special token, which is never masked

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: str) -> ImageTextPairs:
        tensors = [
            tensor.to(device) for tensor in (self.images, self.captions, self.sentences, self.masking_weights)
        ]
        return ImageTextPairs(
            tensors[0], tensors[1], tensors[2], tensors[3], self.pad_id, self.mask_id, self.has_end_token
        )

    @classmethod
    def from_texts(
        cls,
        images: NDArray[np.uint8],
        captions: Sequence[Sequence[str]],
        sentences: Sequence[Sequence[str]],
        tokenizer: Tokenizer,
    ) -> ImageTextPairs:
        caption_ids, sentence_ids = _token_ids(captions, tokenizer), _token_ids(sentences, tokenizer)
        masking_weights = _masking_weights([caption_ids, sentence_ids], len(tokenizer), tokenizer.pad_id)
        return cls(
            torch.from_numpy(images),
            caption_ids,
            sentence_ids,
            masking_weights,
            tokenizer.pad_id,
            tokenizer.mask_id,
            tokenizer.has_end_token,
        )


def _token_ids(texts: Sequence[Sequence[str]], tokenizer: Tokenizer) -> Tensor:
    """Return token ids (images, texts per image, tokens); all images have the same number of texts."""
    texts_per_image = len(texts[0])
    rows = pad_rows(
        [tokenizer.encode_caption(text) for image_texts in texts for text in image_texts], tokenizer.pad_id
    )
    return torch.tensor(rows, dtype=torch.int32).view(len(texts), texts_per_image, -1)


def _masking_weights(texts: Sequence[Tensor], vocabulary_size: int, pad_id: int) -> Tensor:
    """Return the relative masking rate of each word: 1, and less for words that are common in either kind of text."""
    shares = []
    for ids in texts:
        counts = torch.bincount(ids.flatten().long(), minlength=vocabulary_size).double()
        counts[pad_id] = 0
        shares.append(counts / counts.sum())
    return (_COMMON_SHARE / torch.stack(shares).amax(dim=0)).clamp(max=1.0).float()
