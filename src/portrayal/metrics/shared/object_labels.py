"""What a reader should know of object labels: whether they look like words of captions, and which images have none."""

from __future__ import annotations

from collections import Counter

import polars as pl

from portrayal.lexicon import ObjectFinder
from portrayal.lexicon.people import person_words
from portrayal.metrics.shared.mentions import labelled_images
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.study.formats.raw_table import NOTHING

MOST_IMAGES = 2000  # images read: enough to decide, and the cost stays bounded
FEWEST_REFERENCES = (
    3  # of an image: with fewer, too many words of the captions behind the labels are not here
)
FEWEST_LABELS = 50  # named by exactly one reference
TRUNCATED = 5  # times as many labels named once as labels named by no reference


def caption_words(study: Study) -> str | None:
    """A sentence if the human object labels look like words of captions, else None.

    Annotators label much that no reference names. Words of captions lack exactly these: many labels are named by one
    reference, and hardly any by none. (COCO's instances: 10 % by one, 46 % by none. Labels made from COCO's captions:
    23 % and 3 %.) The share of labels that are named decides nothing, since references of simple images name all there
    is.
    """
    counts = _references_naming(study)
    if counts[1] < FEWEST_LABELS or counts[1] < TRUNCATED * counts[0]:
        return None
    share = 1 - counts[0] / counts.total()
    return (
        f"{100 * share:.1f} % of the human object labels stand in one of the image's own references, "
        "many in one only: they look like words of captions, not annotations of images. CHAIR, harms stage 1, leakage "
        "and amplification would be measured against captions. Import annotated instances instead, "
        "or say what the labels are (import ... --objects-source captions)."
    )


def unannotated(study: Study) -> str | None:
    """A sentence if captioned images have no object labels beside others that have, else None."""
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
        f"or a row of the kind '{NOTHING}')."
    )


def _references_naming(study: Study) -> Counter[int]:
    """Number of references that name a label, counted over human labels of objects other than people."""
    references = (
        study.references.group_by("image_id", maintain_order=True)
        .agg("caption")
        .filter(pl.col("caption").list.len() >= FEWEST_REFERENCES)
    )
    human = study.annotated.filter((pl.col("kind") == "object") & (pl.col("source") == HUMAN))
    labels = {label for label in human["label"].unique() if label.casefold() not in person_words()}
    by_image = (
        human.filter(pl.col("label").is_in(sorted(labels))).group_by("image_id").agg(pl.col("label").unique())
    )
    finder = ObjectFinder(sorted(labels))
    counts: Counter[int] = Counter()
    both = references.join(by_image, on="image_id", maintain_order="left").head(MOST_IMAGES)
    for captions, annotated in both.select("caption", "label").iter_rows():
        named = Counter(label for caption in captions for label in finder.labels(caption))
        counts.update(named[label] for label in annotated)
    return counts
