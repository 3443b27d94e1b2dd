"""The published network: two layers of LSTM that read a caption in both directions, one output on the last states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from portrayal.models.text_classifiers.tasks import FIRST

EMBEDDING, HIDDEN = 100, 256
Drop = Callable[[Tensor], Tensor]


class Network(nn.Module):
    """`words` counts the unknown word and padding too; both begin at 0, and padding stays there.

    >>> sum(part.numel() for part in Network(1000).parameters()) - 100 * 1000
    2310657
    """

    def __init__(self, words: int, groups: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(words, EMBEDDING, padding_idx=0)
        self.layers = nn.ModuleList(
            nn.LSTM(inputs, HIDDEN, bidirectional=True) for inputs in (EMBEDDING, 2 * HIDDEN)
        )
        # Two groups need one number, the log odds of the second; more need one each.
        self.output = nn.Linear(2 * HIDDEN, 1 if groups == 2 else groups)
        with torch.no_grad():
            self.embedding.weight[:FIRST] = 0

    def forward(self, tokens: Tensor, lengths: Tensor, drop: Drop) -> Tensor:
        """(words, captions) of codes to (captions, outputs)."""
        return self.read(drop(self.embedding(tokens)), lengths, drop)

    def read(self, embedded: Tensor, lengths: Tensor, drop: Drop) -> Tensor:
        """The same from words that are embedded already: (words, captions, width).

        Captions of one length are read together, since those need no padding, which would take a slower way.
        """
        found = lengths.unique().tolist()
        if len(found) == 1:
            return self._read_even(embedded, drop)
        made = embedded.new_empty(len(lengths), self.output.out_features)
        for length in found:
            mine = (lengths == length).nonzero()[:, 0]
            made = made.index_put((mine,), self._read_even(embedded[:length, mine], drop))
        return made

    def _read_even(self, embedded: Tensor, drop: Drop) -> Tensor:
        read = embedded.to(next(self.layers.parameters()).dtype)
        for number, layer in enumerate(self.layers):
            read, (last, _) = layer(drop(read) if number else read)
        made: Tensor = self.output(drop(torch.cat((last[0], last[1]), dim=1).float()))
        return made


def begin(seed: int, words: int, groups: int) -> Network:
    """A network as it starts with a seed, on every machine alike."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(words, groups)


def surprise(logits: Tensor, target: Tensor) -> Tensor:
    """Of each caption's true group, as a loss: (..., outputs) and (...) to (...)."""
    if logits.shape[-1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(
            logits[..., 0], target.float(), reduction="none"
        )
    flat = nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), target.reshape(-1), reduction="none"
    )
    return flat.reshape(target.shape)


def probabilities(logits: Tensor) -> Tensor:
    """Of every group; in double precision, in which a sure guess is not yet a certain one."""
    if logits.shape[-1] == 1:
        return torch.sigmoid(torch.cat((-logits, logits), dim=-1).double())
    return torch.softmax(logits.double(), dim=-1)
