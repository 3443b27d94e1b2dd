"""Counterparts of texts: the same text with the words of the other group, aligned token by token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from portrayal.lexicon import Lexicon
from portrayal.lexicon.mention_finder import MentionFinder
from portrayal.lexicon.swap import Swapper
from portrayal.models.masked_vlm.vocabulary import Tokenizer

# A text that names neither group or both, or has no counterpart.
NO_GROUP = 2
HAS_COUNTERPART, NO_SINGLE_GROUP, NO_SWAP, LENGTH_CHANGES = (
    "have a counterpart",
    "name no single group",
    "have a word without a counterpart",
    "change their number of pieces",
)


@dataclass(frozen=True)
class Counterparts:
    """The group that each text names, and its counterpart. The two texts differ in the words for the group only."""

    # (images, texts): 0, 1 or NO_GROUP
    group: Tensor
    # Token ids of the shape of the texts; the text itself where it has no counterpart.
    ids: Tensor

    def to(self, device: str) -> Counterparts:
        return Counterparts(self.group.to(device), self.ids.to(device))


def make_counterparts(
    texts: Sequence[Sequence[str]],
    ids: Tensor,
    tokenizer: Tokenizer,
    lexicon: Lexicon,
    groups: tuple[str, str],
) -> tuple[Counterparts, Counter[str]]:
    """Return the counterparts of texts, and the number of texts by whether they have one.

    `ids` are the tokenized texts, of shape (images, texts, tokens).
    """
    finder, swapper = MentionFinder(lexicon), Swapper(lexicon)
    cache: dict[str, tuple[int, list[int], str]] = {}

    def counterpart_of(text: str) -> tuple[int, list[int], str]:
        named_groups = finder.groups(text)
        own_ids = tokenizer.encode_caption(text)
        if len(named_groups) != 1 or named_groups[0] not in groups:
            return NO_GROUP, own_ids, NO_SINGLE_GROUP
        swapped = swapper.swap(text, to=groups[1 - groups.index(named_groups[0])])
        if swapped.unswapped or not swapped.changed:
            return NO_GROUP, own_ids, NO_SWAP
        # Compared before truncation, and word by word, since differences in length may cancel.
        replacements = [(text, swapped.text), *swapped.changed]
        if any(
            len(tokenizer.encode(before)) != len(tokenizer.encode(after)) for before, after in replacements
        ):
            return NO_GROUP, own_ids, LENGTH_CHANGES
        return groups.index(named_groups[0]), tokenizer.encode_caption(swapped.text), HAS_COUNTERPART

    counterpart_ids = ids.clone().numpy()
    group = np.full(ids.shape[:2], NO_GROUP, dtype=np.int64)
    counts: Counter[str] = Counter()
    for row, image_texts in enumerate(texts):
        for column, text in enumerate(image_texts):
            counterpart = cache.get(text)
            if counterpart is None:
                counterpart = cache[text] = counterpart_of(text)
            counts[counterpart[2]] += 1
            if counterpart[0] != NO_GROUP:
                group[row, column] = counterpart[0]
                counterpart_ids[row, column, : len(counterpart[1])] = counterpart[1]
    return Counterparts(torch.from_numpy(group), torch.from_numpy(counterpart_ids)), counts


def logit_adjustment(texts: Sequence[tuple[Tensor, Counterparts]], n_words: int, pad: int) -> Tensor:
    """Return log P(word | the text names the group) minus the log of its mean over groups.

    The shape is (groups and NO_GROUP, words). The groups' own words, padding and texts without a group have 0.
    """
    counts = torch.zeros(NO_GROUP, n_words, dtype=torch.float64)
    is_group_word = torch.zeros(n_words, dtype=torch.bool)
    for ids, counterparts in texts:
        for group in range(NO_GROUP):
            names_group = counterparts.group == group
            own_ids, other_ids = ids[names_group].long(), counterparts.ids[names_group].long()
            counts[group] += torch.bincount(own_ids[own_ids != pad], minlength=n_words).double()
            is_group_word[own_ids[own_ids != other_ids]] = True
            is_group_word[other_ids[own_ids != other_ids]] = True
    adjustment = torch.zeros(NO_GROUP + 1, n_words)
    total = counts.sum(dim=1, keepdim=True)
    # 0 where only one group is named.
    if not total.all():
        return adjustment
    # One per word on average, in proportion to the totals, so that unseen words have an adjustment of 0.
    pseudocounts = total / total.mean()
    shares = (counts + pseudocounts) / (total + pseudocounts * n_words)
    adjustment[:NO_GROUP] = (shares.log() - shares.mean(dim=0).log()).float()
    adjustment[:, is_group_word] = 0.0
    return adjustment
