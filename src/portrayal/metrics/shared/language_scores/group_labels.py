"""The group labels of a study, by the names of a lexicon."""

from __future__ import annotations

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.shared.caption_mentions import lexicon_names
from portrayal.study import Study


def group_labels(study: Study, attribute: str, lexicon: Lexicon) -> dict[str, str]:
    """The lexicon's group of each labelled image; empty where the study has no such labels."""
    if not study.has_attribute(attribute):
        return {}
    try:
        names = lexicon_names(study.groups(attribute), lexicon, attribute)
    # The lexicon has other groups than the labels.
    except Undefined:
        return {}
    labelled = ((image, names[group]) for image, group in study.labels(attribute).iter_rows())
    return {image: name for image, name in labelled if name is not None}
