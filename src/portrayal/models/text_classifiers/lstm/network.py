"""The published LSTM: two bidirectional layers and a linear output on the last states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from portrayal.models.text_classifiers.tasks import FIRST_WORD

EMBEDDING_SIZE, HIDDEN_SIZE = 100, 256
Dropout = Callable[[Tensor], Tensor]


class LstmNetwork(nn.Module):
    """An LSTM classifier. `words` is the size of the vocabulary, including padding and the unknown word.

    The embeddings of both start at 0, and that of padding stays 0.

    >>> sum(part.numel() for part in LstmNetwork(1000).parameters()) - 100 * 1000
    2310657
    """

    def __init__(self, words: int, groups: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(words, EMBEDDING_SIZE, padding_idx=0)
        self.layers = nn.ModuleList(
            nn.LSTM(inputs, HIDDEN_SIZE, bidirectional=True) for inputs in (EMBEDDING_SIZE, 2 * HIDDEN_SIZE)
        )
        # Two groups need one logit, the log odds of the second; more groups need one each.
        self.output = nn.Linear(2 * HIDDEN_SIZE, 1 if groups == 2 else groups)
        with torch.no_grad():
            self.embedding.weight[:FIRST_WORD] = 0

    def forward(self, tokens: Tensor, lengths: Tensor, dropout: Dropout) -> Tensor:
        """Return the logits (captions, outputs) of codes (words, captions)."""
        return self.logits_from_embeddings(dropout(self.embedding(tokens)), lengths, dropout)

    def logits_from_embeddings(self, embedded: Tensor, lengths: Tensor, dropout: Dropout) -> Tensor:
        """Return the logits of embedded words (words, captions, width).

        Captions of one length form a batch, since padding would be slower.
        """
        distinct_lengths = lengths.unique().tolist()
        if len(distinct_lengths) == 1:
            return self._equal_length_logits(embedded, dropout)
        logits = embedded.new_empty(len(lengths), self.output.out_features)
        for length in distinct_lengths:
            selected = (lengths == length).nonzero()[:, 0]
            logits = logits.index_put(
                (selected,), self._equal_length_logits(embedded[:length, selected], dropout)
            )
        return logits

    def _equal_length_logits(self, embedded: Tensor, dropout: Dropout) -> Tensor:
        states = embedded.to(next(self.layers.parameters()).dtype)
        for index, layer in enumerate(self.layers):
            states, (last, _) = layer(dropout(states) if index else states)
        logits: Tensor = self.output(dropout(torch.cat((last[0], last[1]), dim=1).float()))
        return logits


def initial_network(seed: int, words: int, groups: int) -> LstmNetwork:
    """Initialise a network from a seed, with the same weights on every machine."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LstmNetwork(words, groups)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of the true groups: (..., outputs) and (...) to (...)."""
    if logits.shape[-1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(
            logits[..., 0], target.float(), reduction="none"
        )
    flat = nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), target.reshape(-1), reduction="none"
    )
    return flat.reshape(target.shape)


def probabilities(logits: Tensor) -> Tensor:
    """Probability of each group; double precision keeps large logits below 1."""
    if logits.shape[-1] == 1:
        return torch.sigmoid(torch.cat((-logits, logits), dim=-1).double())
    return torch.softmax(logits.double(), dim=-1)
