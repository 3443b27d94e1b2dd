"""The labels of a study in the words of a lexicon."""

from __future__ import annotations

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.shared.mentions import lexicon_names
from portrayal.study import Study


def group_labels(study: Study, attribute: str, lexicon: Lexicon) -> dict[str, str]:
    """Image to group, by the lexicon's name for it; empty where the study has no such labels."""
    if not study.has_attribute(attribute):
        return {}
    try:
        names = lexicon_names(study.groups(attribute), lexicon, attribute)
    except Undefined:  # the lexicon speaks of other groups than the labels
        return {}
    labelled = ((image, names[group]) for image, group in study.labels(attribute).iter_rows())
    return {image: name for image, name in labelled if name is not None}
