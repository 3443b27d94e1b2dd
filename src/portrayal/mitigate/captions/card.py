"""The card of the metric `caption-mitigation`: the effect of caption mitigation on captions and on other metrics."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import LESS, MORE, ZERO, Statement

CARD = Card(
    name="caption-mitigation",
    answers="mitigation",
    title="Effect of caption mitigation",
    question="How much does mitigation change captions, and how do bias, errors and quality change?",
    formula=(
        "neutral: in a system's caption, words that name a group become neutral words, everywhere or where there is no "
        "evidence: the group is named by less than `min_share` of the image's references that mention people (always, "
        "where no reference mentions people). changed = captions with a rewritten word / captions; words and left: "
        "number of rewritten words, and of group words without a neutral one. balanced: images are kept so that groups "
        "are equally frequent, overall and as far as possible for each object in 30 images or more. groups-apart = "
        "share of the most frequent group minus that of the least frequent among images; objects-apart = the same "
        "among the images with an object, mean over frequent objects. change = the number after mitigation minus the "
        "number before; beyond-random = the number on the balanced images minus that on a random sample with as many "
        "images of each group. Intervals and p of both are paired (images are resampled together); q corrects p over "
        "all rows of a system (Holm)."
    ),
    range="changed: 0 to 1. groups-apart, objects-apart: 0 to 1, 0 where groups are equally frequent.",
    needs=("captions",),
    uses=("references", "attributes", "objects"),
    paper=(
        "The rules are Portrayal's. Sets balanced for objects: Wang, Zhao, Yatskar, Chang and Ordonez, Balanced "
        "Datasets Are Not Enough, ICCV 2019."
    ),
    caveats=(
        "Evidence comes from human captions of the same image. A system that runs on new images has none, so the "
        "rewrite where there is no evidence shows what a rewrite could do, not what it will do.",
        "quality compares captions with the same references that are the evidence, so a gain in cider where there is "
        "no evidence is partly by construction. Compare it with the rewrite everywhere.",
        "A caption that names no group cannot name a wrong one: read wrong together with right and neutral, and with "
        "erasure.group-not-mentioned, which counts groups that human captions name and the caption does not.",
        "lic masks group words before classification. The neutral words are not masked, so lic can rise: `child` stays "
        "visible where `boy` and `girl` were masked.",
        "A balanced set is smaller, and a classifier trained on fewer captions is less accurate: compare it with the "
        "random set of the same size.",
        "Words are changed one by one: 'a man and a woman' becomes 'a person and a person', and a verb far from its "
        "pronoun may keep its ending.",
    ),
    statements=tuple(
        Statement(
            "change",
            ZERO,
            f"With {{system}}, {what} rises",
            f"{what} changes with {{system}}",
            f"With {{system}}, {what} falls",
            findings=(MORE, LESS),
            item=item,
        )
        for item, what in (
            ("lic: lic", "how much easier captions are to classify by {attribute} than human captions"),
            ("error: wrong", "the share of captions that name the wrong group of {attribute}"),
            ("error: right", "the share of captions that name the right group of {attribute}"),
            ("harms: erasure.group-not-mentioned", "the share of captions without the group that human captions name"),
            ("quality: cider", "the similarity to human captions (CIDEr)"),
        )
    ),
    terms=(
        Term("changed", "captions in which a word was rewritten", "share"),
        Term("words", "rewritten words", "count"),
        Term("left", "group words without a neutral word in the lexicon", "count"),
        Term("kept", "images of a balanced set", "count"),
        Term("groups-apart", "difference between the most and the least frequent group", "share", "lower", 0.0),
        Term("objects-apart", "the same among images with an object, and its mean", "share", "lower", 0.0),
        Term("change", "a number after mitigation minus the number before (item: which number)", "as measured"),
        Term("beyond-random", "a number on balanced images minus that on a random sample of equal size", "as measured"),
    ),
)  # fmt: skip
