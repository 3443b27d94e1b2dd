"""Cautions about object labels: labels that look like words of captions, and images without labels."""

from __future__ import annotations

from collections import Counter

import polars as pl

from portrayal.lexicon import ObjectFinder
from portrayal.lexicon.people import person_words
from portrayal.metrics.shared.caption_mentions import labelled_images
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.study.formats.raw_table import NO_LABEL

# Images that are examined: enough to decide, at a bounded cost.
MAX_IMAGES = 2000
MIN_REFERENCES = 3  # of an image: with fewer, too many words of the captions behind the labels are not here
MIN_LABELS = 50  # named by exactly one reference
MIN_ONCE_TO_NEVER_RATIO = 5  # times as many labels named once as labels named by no reference


def caption_word_caution(study: Study) -> str | None:
    """A caution if the human object labels look like words of captions, else None.

    Annotators label much that no reference names. Labels made from captions lack exactly these: many labels are named
    by one reference, and hardly any by none. (COCO's instances: 10 % by one, 46 % by none. Labels made from COCO's
    captions: 23 % and 3 %.) The share of named labels alone does not decide, since references of simple images name
    everything.
    """
    counts = _count_references_naming(study)
    if counts[1] < MIN_LABELS or counts[1] < MIN_ONCE_TO_NEVER_RATIO * counts[0]:
        return None
    share = 1 - counts[0] / counts.total()
    return (
        f"{100 * share:.1f} % of the human object labels stand in one of the image's own references, "
        "many in one only: they look like words of captions, not annotations of images. CHAIR, harms stage 1, leakage "
        "and amplification would be measured against captions. Import annotated instances instead, "
        "or say what the labels are (import ... --objects-source captions)."
    )


def unannotated_caution(study: Study) -> str | None:
    """A caution if some captioned images have object labels and others have none, else None."""
    annotated = labelled_images(study)
    if not annotated:
        return None
    captioned = set(study.captions["image_id"])
    missing = len(captioned - annotated)
    if not missing:
        return None
    return (
        f"{missing:,} of {len(captioned):,} captioned images have no object label: what is in them is not known, and "
        "leakage and amplification leave them out. If annotators found nothing there, say so (an empty list of labels, "
        f"or a row of the kind '{NO_LABEL}')."
    )


def _count_references_naming(study: Study) -> Counter[int]:
    """Histogram of the number of references that name a label, over human labels of objects other than people."""
    references = (
        study.references.group_by("image_id", maintain_order=True)
        .agg("caption")
        .filter(pl.col("caption").list.len() >= MIN_REFERENCES)
    )
    human = study.annotations.filter((pl.col("kind") == "object") & (pl.col("source") == HUMAN))
    labels = {label for label in human["label"].unique() if label.casefold() not in person_words()}
    by_image = (
        human.filter(pl.col("label").is_in(sorted(labels))).group_by("image_id").agg(pl.col("label").unique())
    )
    finder = ObjectFinder(sorted(labels))
    counts: Counter[int] = Counter()
    images = references.join(by_image, on="image_id", maintain_order="left").head(MAX_IMAGES)
    for captions, annotated in images.select("caption", "label").iter_rows():
        named = Counter(label for caption in captions for label in finder.labels(caption))
        counts.update(named[label] for label in annotated)
    return counts
