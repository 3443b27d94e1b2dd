"""Everything that decides the numbers of a metric that guesses, and what to change to see how much each thing does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from portrayal.errors import Undefined
from portrayal.lexicon import canonical_name, shipped_lexicons
from portrayal.metrics.shared.classifier.captions import VOCABULARIES
from portrayal.metrics.shared.classifier.linear import Guesser
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.neural import NeuralGuesser, Trainer
from portrayal.metrics.shared.classifier.protocol import PUBLISHED, Protocol
from portrayal.models.text_classifiers.schedules import as_dict
from portrayal.study import Study

MAX_C = 1000.0  # with more a classifier that can tell all captions apart has no end to learning


@dataclass(frozen=True)
class Setup:
    """Everything that decides the numbers."""

    split: str
    balance: str
    seeds: tuple[int, ...]
    folds: int
    C: float
    vocabulary: str | None
    mask: Mask
    permutations: int
    references: int | None
    seeds_follow: bool = False  # from the seed of the whole run, which the provenance has
    classifier: str = "linear"
    trainer: Trainer | None = None  # of a neural classifier

    @property
    def published(self) -> bool:
        return self.split in PUBLISHED

    @property
    def explained(self) -> bool:
        """Whether it is told what each word adds."""
        return self.trainer is None or self.trainer.explain > 0

    def settings(self, vocabulary: str | None) -> dict[str, Any]:
        made = {
            "classifier": self.classifier,
            "split": self.split,
            "balance": "subsample" if self.published else self.balance,
            "repeats": len(self.seeds),
            "seeds": None if self.seeds_follow else list(self.seeds),
            "folds": None if self.published else self.folds,
            "C": self.C if self.trainer is None else None,
            "vocabulary": vocabulary,
            "mask": self.mask.label,
            "mask_mode": "remove" if self.mask.remove else "replace",
            "references": self.references,
            "permutations": self.permutations,
        }
        if self.trainer is not None:
            how = as_dict(self.trainer.classifier)
            made |= {name: value for name, value in how.items() if name != "kind"}
            made["explain"] = self.trainer.explain
            made["unknown"] = "pieces" if self.trainer.in_pieces else "word"
        return made

    def protocol(self, groups: int) -> Protocol:
        weighted = not self.published and self.balance == "weights"
        guesser = (
            Guesser(groups, self.C, weighted)
            if self.trainer is None
            else NeuralGuesser(groups, weighted, frozenset(self.mask.tokens), self.trainer)
        )
        return Protocol(self.split, self.balance, self.seeds, self.folds, guesser)


def variants(setup: Setup, study: Study, attribute: str, usual: str) -> Iterator[Setup]:
    """The settings with one thing changed at a time; `usual` is the vocabulary where none is asked for."""
    try:
        shown = Mask.for_attribute(attribute, None, None, always=True)
    except Undefined:  # the list was given, or words were left in: there is no default one to change to
        shown = Mask()
    if setup.mask.lists:
        yield replace(setup, mask=Mask.for_attribute(attribute, None, False))
        yield replace(setup, mask=replace(setup.mask, remove=not setup.mask.remove))
    elif shown.lists:
        yield replace(setup, mask=shown)
    used = {words.name for words, _ in setup.mask.lists or shown.lists}
    for words in shipped_lexicons():
        if words.attribute == canonical_name(attribute) and words.name not in used:
            yield replace(setup, mask=Mask.for_attribute(attribute, words, True, setup.mask.remove))
    if study.references.height:
        for rule in VOCABULARIES:
            if rule != (setup.vocabulary or usual) and (rule != "system" or usual == "system"):
                yield replace(setup, vocabulary=rule)
    if not setup.published:
        other = "subsample" if setup.balance == "weights" else "weights"
        yield replace(setup, balance=other)
    if setup.trainer is not None:
        return
    for strength in (setup.C / 10, setup.C * 10):
        if strength <= MAX_C:
            yield replace(setup, C=strength)
