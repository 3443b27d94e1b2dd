"""The card of object distance: what it measures, and what its numbers cannot say."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.object_distance.measurements import MIN_IMAGES_LISTED
from portrayal.results import TOO_FEW

CARD = Card(
    name="object-distance",
    answers="associations",
    title="Similarity of objects and words for groups",
    question="How similar in meaning are the objects of the images to words for each group?",
    formula=(
        "cosine(o, g) of the vectors of an object and of a word for the group (level 'word'), of the object and a "
        "sentence about the group ('template': this is a man), or of a caption that names the group and the objects of "
        "its image as one text ('caption'); cosine(g) is the mean over the objects of each image, then over images. "
        "'neutral' is a word for a person that names no group. to-group(g) = cosine(g) / sum over groups of "
        "cosine(g'); to-neutral(g) = cosine(g) / cosine(neutral): ratios of means, undefined where what is divided "
        "by is not positive. nearest(o, g): images in which o is the object nearest to g. For all people: the mean "
        "over groups, the largest share, and the ratio of that mean to neutral."
    ),
    range="cosine: -1 to 1. to-group: 1 / number of groups where objects are equally close to each.",
    needs=("captions", "objects"),
    uses=("references",),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Tables 1, 2 and 3).",
    caveats=(
        "At the levels 'word' and 'template' it describes the vectors and the objects of the images, independently of "
        "the captions: systems that describe the same images have the same numbers.",
        "The paper calls this a distance; a high cosine means close.",
        "An object with an unknown word is unknown: it is left out and counted, and neither set to zero nor "
        "represented "
        "by its known words (cell, of cell phone). A label of several words is the mean of their vectors.",
        "Labels of people (person, man, rider) are left out: they are close to every group.",
        "A negative cosine on one side gives a share above 1 and one below 0; such a row states it.",
        "Ratios of cosines depend on how the vectors lie around their mean: compare them for one set of vectors only.",
        f"Objects of fewer than {MIN_IMAGES_LISTED} images are not listed, those of fewer than {TOO_FEW} not ranked.",
    ),
    terms=(
        Term("cosine", "mean cosine of objects and the group", "cosine"),
        Term("to-group", "the group's share of the groups' cosines", "share"),
        Term("to-neutral", "ratio of the group's cosine to that of the neutral word", "ratio"),
        Term("nearest", "images in which the object is the nearest to the group", "count"),
        Term("unknown", "objects (at level 'caption', images) without a known word", "count"),
    ),
    fits_model=True,
    responds_to={"cosine@object": "data-bias"},
    should_ignore=("length", "wrong-group", "amplification"),
)
