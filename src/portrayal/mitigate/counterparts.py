"""The other text: what training reads with the words of the other group, word by word in the same places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from portrayal.lexicon import Lexicon
from portrayal.lexicon.mentions import Finder
from portrayal.lexicon.swap import Swapper
from portrayal.models.masked_vlm.vocabulary import Reader

NOBODY = 2  # a text that names neither group, or both, or has no counterpart
TWIN, NO_GROUP, NO_WORD, NO_ROOM = (
    "have a counterpart",
    "name no single group",
    "have a word without a counterpart",
    "change their number of pieces",
)


@dataclass(frozen=True)
class Twins:
    """Of texts: whom each names, and the same said of the other group. Where they differ stand the group's words."""

    group: Tensor  # (pictures, texts each): 0, 1 or NOBODY
    ids: Tensor  # as long as the texts; the text itself where it has no counterpart

    def on(self, device: str) -> Twins:
        return Twins(self.group.to(device), self.ids.to(device))


def twins_of(
    texts: Sequence[Sequence[str]], ids: Tensor, reader: Reader, lexicon: Lexicon, groups: tuple[str, str]
) -> tuple[Twins, Counter[str]]:
    """`ids` are the texts as `reader` reads them: (pictures, texts each, tokens). And how many have no counterpart."""
    finder, swapper = Finder(lexicon), Swapper(lexicon)
    known: dict[str, tuple[int, list[int], str]] = {}

    def twin(text: str) -> tuple[int, list[int], str]:
        named = finder.groups(text)
        own = reader.caption(text)
        if len(named) != 1 or named[0] not in groups:
            return NOBODY, own, NO_GROUP
        swapped = swapper.swap(text, to=groups[1 - groups.index(named[0])])
        if swapped.left or not swapped.changed:
            return NOBODY, own, NO_WORD
        # Before they are cut, which makes all of one length, and word by word: one may make up for another.
        changed = [(text, swapped.text), *swapped.changed]
        if any(len(reader.read(was)) != len(reader.read(becomes)) for was, becomes in changed):
            return NOBODY, own, NO_ROOM
        return groups.index(named[0]), reader.caption(swapped.text), TWIN

    made = ids.clone().numpy()
    group = np.full(ids.shape[:2], NOBODY, dtype=np.int64)
    counts: Counter[str] = Counter()
    for row, some in enumerate(texts):
        for column, text in enumerate(some):
            found = known.get(text)
            if found is None:
                found = known[text] = twin(text)
            counts[found[2]] += 1
            if found[0] != NOBODY:
                group[row, column] = found[0]
                made[row, column, : len(found[1])] = found[1]
    return Twins(torch.from_numpy(group), torch.from_numpy(made)), counts


def leanings(texts: Sequence[tuple[Tensor, Twins]], words: int, pad: int) -> Tensor:
    """(groups and nobody, words): log P(word | the text names the group) less the log of its mean over the groups.

    The groups' own words, fillers and texts that name nobody have 0.
    """
    counts = torch.zeros(NOBODY, words, dtype=torch.float64)
    own = torch.zeros(words, dtype=torch.bool)
    for ids, twins in texts:
        for group in range(NOBODY):
            some = twins.group == group
            here, other = ids[some].long(), twins.ids[some].long()
            counts[group] += torch.bincount(here[here != pad], minlength=words).double()
            own[here[here != other]] = True
            own[other[here != other]] = True
    made = torch.zeros(NOBODY + 1, words)
    total = counts.sum(dim=1, keepdim=True)
    if not total.all():  # nothing leans where only one group is named
        return made
    more = (
        total / total.mean()
    )  # of each word one more on average: in proportion, so that unseen words do not lean
    shares = (counts + more) / (total + more * words)
    made[:NOBODY] = (shares.log() - shares.mean(dim=0).log()).float()
    made[:, own] = 0.0
    return made
