"""The configuration of LIC, and its variants for the sensitivity analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from portrayal.errors import Undefined
from portrayal.lexicon import canonical_name, shipped_lexicons
from portrayal.metrics.shared.classifier.corpus_builder import VOCABULARIES
from portrayal.metrics.shared.classifier.cross_validation import PUBLISHED, Protocol
from portrayal.metrics.shared.classifier.linear_classifier import MAX_C, LinearClassifier
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.neural import NeuralClassifier, Trainer
from portrayal.models.text_classifiers.configs import config_to_dict
from portrayal.study import Study


@dataclass(frozen=True)
class LicSettings:
    """All options that determine the numbers."""

    split: str
    balance: str
    seeds: tuple[int, ...]
    folds: int
    C: float
    vocabulary: str | None
    mask: Mask
    permutations: int
    references: int | None
    seeds_follow: bool = False  # seeds follow from the seed of the run, which is in the provenance
    classifier: str = "linear"
    trainer: Trainer | None = None  # of a neural classifier

    @property
    def published(self) -> bool:
        return self.split in PUBLISHED

    @property
    def explained(self) -> bool:
        """Whether word contributions are measured."""
        return self.trainer is None or self.trainer.explain > 0

    def row_settings(self, vocabulary: str | None) -> dict[str, Any]:
        settings = {
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
            config = config_to_dict(self.trainer.config)
            settings |= {name: value for name, value in config.items() if name != "kind"}
            settings["explain"] = self.trainer.explain
            settings["unknown"] = "pieces" if self.trainer.split_unknown else "word"
        return settings

    def protocol(self, groups: int) -> Protocol:
        weighted = not self.published and self.balance == "weights"
        classifier = (
            LinearClassifier(groups, self.C, weighted)
            if self.trainer is None
            else NeuralClassifier(groups, weighted, frozenset(self.mask.tokens), self.trainer)
        )
        return Protocol(self.split, self.balance, self.seeds, self.folds, classifier)


def variants(settings: LicSettings, study: Study, attribute: str, default_rule: str) -> Iterator[LicSettings]:
    """Yield the configuration with one option changed at a time; `default_rule` is the default vocabulary
    rule.
    """
    try:
        default_mask = Mask.for_attribute(attribute, None, None, always=True)
    except Undefined:  # a list was given, or masking is off: there is no default list to change to
        default_mask = Mask()
    if settings.mask.lists:
        yield replace(settings, mask=Mask.for_attribute(attribute, None, False))
        yield replace(settings, mask=replace(settings.mask, remove=not settings.mask.remove))
    elif default_mask.lists:
        yield replace(settings, mask=default_mask)
    used = {words.name for words, _ in settings.mask.lists or default_mask.lists}
    for words in shipped_lexicons():
        if words.attribute == canonical_name(attribute) and words.name not in used:
            yield replace(settings, mask=Mask.for_attribute(attribute, words, True, settings.mask.remove))
    if study.references.height:
        for rule in VOCABULARIES:
            if rule != (settings.vocabulary or default_rule) and (
                rule != "system" or default_rule == "system"
            ):
                yield replace(settings, vocabulary=rule)
    if not settings.published:
        balance = "subsample" if settings.balance == "weights" else "weights"
        yield replace(settings, balance=balance)
    if settings.trainer is not None:
        return
    for C in (settings.C / 10, settings.C * 10):
        if C <= MAX_C:
            yield replace(settings, C=C)
