"""Cautions about a study, beside the rows that they concern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from portrayal.metrics.base.card import Card
from portrayal.metrics.shared.object_labels import caption_words, unannotated
from portrayal.results import HUMAN, Measurement, join_cautions
from portrayal.study import Study
from portrayal.study.cautions import (
    GROUPS,
    IMAGES,
    LABELS,
    LENGTH,
    OBJECTS,
    OTHER_IMAGES,
    REFERENCES,
    SHORTENED,
    UNANNOTATED,
    Caution,
    cautions,
)
from portrayal.study.study import COMBINED

LABELS_STAGE = "1"  # the stage of harms that reads the labels of images


@lru_cache(maxsize=8)
def study_cautions(study: Study) -> tuple[Caution, ...]:
    """The study's own cautions, and those about its object labels, which take word lists to find."""
    about_objects = ((OBJECTS, caption_words(study)), (UNANNOTATED, unannotated(study)))
    return (*cautions(study), *(Caution(about, sentence) for about, sentence in about_objects if sentence))


def cautioned(
    measurements: Sequence[Measurement], card: Card, study: Study, grouped: bool
) -> tuple[Measurement, ...]:
    """The measurements, each with the cautions that concern it after its own; one that is undefined needs none.

    `grouped`: labels split the metric's numbers, though it does not need them.
    """
    found = study_cautions(study)
    if not found:
        return tuple(measurements)
    made = []
    for m in measurements:
        sentences = [
            caution.sentence
            for caution in found
            if m.value is not None and concerns(caution, m, card, grouped)
        ]
        if sentences:
            m = replace(m, caution=join_cautions((m.caution, *sentences)))
        made.append(m)
    return tuple(made)


def concerns(caution: Caution, m: Measurement, card: Card, grouped: bool) -> bool:
    """Whether a number depends on what the caution is about: the card says what it needs and which terms do."""
    if {"rankings", "model"} & set(card.needs) or (caution.system is not None and caution.system != m.system):
        return False
    if caution.about in (REFERENCES, LENGTH):
        return m.term in card.cautioned.get(caution.about, ())
    if caution.about in (OBJECTS, UNANNOTATED):
        from_labels = "objects" in card.needs or m.settings.get("stage") == LABELS_STAGE
        return from_labels or m.term in card.cautioned.get(caution.about, ())
    if caution.about == SHORTENED:  # its system is the row's
        return True
    if caution.about in (IMAGES, OTHER_IMAGES):
        return m.system != HUMAN
    if m.attribute is None or caution.attribute not in m.attribute.split(COMBINED):
        return False
    of_groups = m.group is not None or m.term in card.cautioned.get(LABELS, ())
    split_by_labels = "attributes" in card.needs or (grouped and of_groups)
    if caution.about == GROUPS:  # a row with a reason says itself that its group is too small
        return split_by_labels and m.group == caution.group and m.reason is None
    return split_by_labels
