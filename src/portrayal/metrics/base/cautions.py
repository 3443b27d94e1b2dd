"""Cautions about a study, added to the measurements that they concern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from portrayal.metrics.base.card import Card
from portrayal.metrics.shared.object_labels import caption_word_caution, unannotated_caution
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
    TRUNCATED,
    UNANNOTATED,
    Caution,
    cautions,
)
from portrayal.study.study import COMBINED

# The stage of harms that is computed from image labels.
LABELS_STAGE = "1"


@lru_cache(maxsize=8)
def study_cautions(study: Study) -> tuple[Caution, ...]:
    """The cautions of a study, including those about its object labels, which need word lists."""
    about_objects = ((OBJECTS, caption_word_caution(study)), (UNANNOTATED, unannotated_caution(study)))
    return (*cautions(study), *(Caution(about, sentence) for about, sentence in about_objects if sentence))


def with_study_cautions(
    measurements: Sequence[Measurement], card: Card, study: Study, split_by_groups: bool
) -> tuple[Measurement, ...]:
    """The measurements with the cautions that apply to them; undefined measurements get none.

    `split_by_groups`: labels split the metric's numbers, though the metric does not need them.
    """
    all_cautions = study_cautions(study)
    if not all_cautions:
        return tuple(measurements)
    updated = []
    for m in measurements:
        sentences = [
            caution.sentence
            for caution in all_cautions
            if m.value is not None and applies_to(caution, m, card, split_by_groups)
        ]
        if sentences:
            m = replace(m, caution=join_cautions((m.caution, *sentences)))
        updated.append(m)
    return tuple(updated)


def applies_to(caution: Caution, m: Measurement, card: Card, split_by_groups: bool) -> bool:
    """Whether a caution applies to a measurement, by the needs and terms of the metric's card."""
    if {"rankings", "model"} & set(card.needs) or (caution.system is not None and caution.system != m.system):
        return False
    if caution.about in (REFERENCES, LENGTH):
        return m.term in card.caution_terms.get(caution.about, ())
    if caution.about in (OBJECTS, UNANNOTATED):
        from_labels = "objects" in card.needs or m.settings.get("stage") == LABELS_STAGE
        return from_labels or m.term in card.caution_terms.get(caution.about, ())
    # The system of such a caution is that of the row.
    if caution.about == TRUNCATED:
        return True
    if caution.about in (IMAGES, OTHER_IMAGES):
        return m.system != HUMAN
    if m.attribute is None or caution.attribute not in m.attribute.split(COMBINED):
        return False
    term_uses_groups = m.group is not None or m.term in card.caution_terms.get(LABELS, ())
    split_by_labels = "attributes" in card.needs or (split_by_groups and term_uses_groups)
    # A row with a reason already states that its group is too small.
    if caution.about == GROUPS:
        return split_by_labels and m.group == caution.group and m.reason is None
    return split_by_labels
