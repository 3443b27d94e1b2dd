"""What a network learns from: pictures, each with several texts, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from portrayal.models.masked_vlm.vocabulary import Reader, padded

_COMMON = 0.03  # the share of all words from which on a word is common


@dataclass(frozen=True)
class Pairs:
    """Pictures with captions that tell them from others, and with further texts that only say something about them."""

    pictures: Tensor  # (pictures, height, width, 3), from 0 to 255
    captions: Tensor  # (pictures, captions each, tokens)
    sentences: Tensor  # (pictures, sentences each, tokens)
    often: Tensor  # (vocabulary), from 0 to 1: how willingly a word is hidden, less where it is in every text
    pad: int
    mask: int
    ends: bool = True  # whether a text has a number for its end, which is no word

    def __len__(self) -> int:
        return len(self.pictures)

    def on(self, device: str) -> Pairs:
        moved = [part.to(device) for part in (self.pictures, self.captions, self.sentences, self.often)]
        return Pairs(moved[0], moved[1], moved[2], moved[3], self.pad, self.mask, self.ends)

    @classmethod
    def made_from(
        cls,
        pictures: NDArray[np.uint8],
        captions: Sequence[Sequence[str]],
        sentences: Sequence[Sequence[str]],
        reader: Reader,
    ) -> Pairs:
        told, said = _numbers(captions, reader), _numbers(sentences, reader)
        often = _willingness([told, said], len(reader), reader.pad)
        return cls(torch.from_numpy(pictures), told, said, often, reader.pad, reader.mask, reader.ends)


def _numbers(texts: Sequence[Sequence[str]], reader: Reader) -> Tensor:
    """As many texts of each picture."""
    each = len(texts[0])
    rows = padded([reader.caption(text) for some in texts for text in some], reader.pad)
    return torch.tensor(rows, dtype=torch.int32).view(len(texts), each, -1)


def _willingness(texts: Sequence[Tensor], words: int, pad: int) -> Tensor:
    """1 for words that make up less than `_COMMON` of either kind of text; the more common, the less."""
    shares = []
    for some in texts:
        counts = torch.bincount(some.flatten().long(), minlength=words).double()
        counts[pad] = 0
        shares.append(counts / counts.sum())
    return (_COMMON / torch.stack(shares).amax(dim=0)).clamp(max=1.0).float()
