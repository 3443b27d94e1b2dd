"""What a masked vision-language network can do, whatever is inside it."""

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
class Looked:
    """Pictures as a network sees them, to be reused with any number of texts."""

    tokens: Tensor  # (pictures, tokens, width)
    there: Tensor | None = None  # False where a smaller picture was filled up; None: all are there
    texts: int = 1  # that are read with each picture, one after the other
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        """Of texts: as many as pictures, or some with each."""
        return len(self.tokens) * self.texts

    def with_each(self, texts: int) -> Looked:
        """The same pictures, to be read with so many texts each. What was made of them serves these too."""
        made = Looked(self.tokens, self.there, texts)
        object.__setattr__(made, "_made", self._made)
        return made

    def repeated(self) -> Looked:
        """A picture for every text, for a network that cannot read several with one."""
        if self.texts == 1:
            return self
        return self[torch.arange(len(self), device=self.tokens.device)]

    def once(self, part: nn.Module, make: Callable[[Tensor], T]) -> T:
        """What a part of a network makes of the pictures, which is the same for every text that is read with them.

        Kept where nothing is learnt: with gradients it belongs to one step, and weights change from step to step.
        """
        if torch.is_grad_enabled():
            return make(self.tokens)
        if part not in self._made:
            self._made[part] = make(self.tokens)
        made: T = self._made[part]
        return made

    def __getitem__(self, some: slice | Tensor) -> Looked:
        if isinstance(some, slice) and some.indices(len(self)) == (0, len(self), 1):
            return self
        each = self.texts
        if each > 1 and isinstance(some, slice):
            start, stop, step = some.indices(len(self))
            if step == 1 and start % each == stop % each == 0:
                some = slice(start // each, stop // each)
            else:
                some = torch.arange(start, stop, step, device=self.tokens.device)
        if each > 1 and isinstance(some, Tensor):  # some of a picture's texts: each with a picture of its own
            some, each = some // each, 1
        return Looked(self.tokens[some], None if self.there is None else self.there[some], each)

    @staticmethod
    def together(parts: Sequence[Looked]) -> Looked:
        """Pictures that were seen apart, with a text each; those of fewer tokens are filled up."""
        longest = max(part.tokens.shape[1] for part in parts)
        if len(parts) == 1:
            return parts[0]
        if all(part.there is None and part.tokens.shape[1] == longest for part in parts):
            return Looked(torch.cat([part.tokens for part in parts]))
        tokens, there = [], []
        for part in parts:
            missing = longest - part.tokens.shape[1]
            known = part.there
            if known is None:
                known = torch.ones(part.tokens.shape[:2], dtype=torch.bool, device=part.tokens.device)
            tokens.append(nn.functional.pad(part.tokens, (0, 0, 0, missing)))
            there.append(nn.functional.pad(known, (0, missing)))
        return Looked(torch.cat(tokens), torch.cat(there))


class Network(nn.Module, ABC):
    """Pixels are from 0 to 1; what a network makes of that range (mean, deviation) is its own affair."""

    side: int  # of the pictures it takes, in pixels; 0: it takes none
    patch: int
    square: bool = True  # False: a picture keeps its shape, and `side` is its shorter side
    matching: bool = False  # whether it tells if a picture and a text belong together
    filling: bool = True  # whether it fills masks
    _mean: Tensor
    _deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]):
        super().__init__()
        for name, values in (("_mean", mean), ("_deviation", deviation)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    @abstractmethod
    def look(self, pictures: Tensor) -> Looked:
        """What it sees in pictures of one size: (pictures, 3, height, width)."""

    @abstractmethod
    def fuse(self, looked: Looked | None, ids: Tensor, there: Tensor) -> Tensor:
        """Hidden states of texts that are read with their pictures; `there` is False where a text was filled up."""

    @abstractmethod
    def words(self, hidden: Tensor) -> Tensor:
        """A logit for every word of the vocabulary."""

    def match(self, hidden: Tensor) -> Tensor:
        """Two logits for each text: that it does not belong to the picture, and that it does."""
        raise NotImplementedError

    def normalised(self, pictures: Tensor) -> Tensor:
        return ((pictures - self._mean) / self._deviation).to(self._mean.dtype)


class Comparable(ABC):
    """A network that can compare many pictures with many texts, each read once."""

    @abstractmethod
    def read(self, ids: Tensor, there: Tensor) -> Tensor:
        """What it makes of texts without pictures."""

    @abstractmethod
    def fuse_read(self, looked: Looked | None, read: Tensor, there: Tensor) -> Tensor:
        """As `fuse`, of texts that are read already."""

    @abstractmethod
    def picture_vectors(self, looked: Looked) -> Tensor:
        """Of length 1."""

    @abstractmethod
    def text_vectors(self, read: Tensor) -> Tensor:
        """Of length 1."""

    @abstractmethod
    def temperature(self) -> Tensor:
        """By which their products are divided."""


def token_mask(there: Tensor | None) -> Tensor | None:
    """As attention wants it: (texts, 1, 1, tokens); None where all are there, which is faster."""
    return None if there is None else there[:, None, None, :]


def normal_weights(network: nn.Module, spread: float = 0.02) -> None:
    """Where training starts."""
    for part in network.modules():
        if isinstance(part, nn.Linear | nn.Conv2d):
            nn.init.trunc_normal_(part.weight, std=spread)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
