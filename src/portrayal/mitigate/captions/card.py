"""What is told of a remedy itself: what it changed, what it left, and what became of every number."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import LESS, MORE, ZERO, Statement

CARD = Card(
    name="remedy",
    title="What a remedy does to captions",
    question="How much does a remedy change, and what becomes of bias, errors and quality?",
    formula=(
        "neutral: in a system's caption, words that name a group become words that say the same of anybody, "
        "everywhere, or where there is no evidence: fewer than `least` of the image's references that name people "
        "name that group (none, where no reference names anybody). changed = captions with a rewritten word / "
        "captions; words and left: words that were rewritten, and words to rewrite that have no neutral one. balanced: "
        "images are kept so that groups are equally frequent, overall and as far as possible beside each object that "
        "30 images or more show. groups-apart = the share of the commonest group less that of the rarest among images; "
        "objects-apart = the same among the images that show an object, mean over frequent objects. change = the "
        "number after the remedy less the number before; beyond-random = the number on the balanced images less that "
        "on as many of each group drawn at random. Intervals and p of both are paired: images are drawn together; q "
        "corrects p over all rows of a system (Holm)."
    ),
    range="changed: 0 to 1. groups-apart, objects-apart: 0 to 1, 0 where groups are equally frequent.",
    needs=("captions",),
    uses=("references", "attributes", "objects"),
    paper=(
        "The rules are Portrayal's. Sets balanced beside objects: Wang, Zhao, Yatskar, Chang and Ordonez, Balanced "
        "Datasets Are Not Enough, ICCV 2019."
    ),
    caveats=(
        "Where there is evidence is read off people's captions of the same image. A system that runs on new images has "
        "none, so what is rewritten where there is no evidence shows what a rewrite could do, not what it will do.",
        "quality holds captions against the same references that are the evidence, so a gain in cider where there is "
        "no evidence is partly a gain by construction. See what happens everywhere, too.",
        "A caption that names nobody's group cannot name a wrong one: read wrong together with right and neutral, and "
        "with erasure.group-not-mentioned, which counts what people say and the caption does not.",
        "lic hides the words that are rewritten before it guesses. The neutral words are not hidden, so it can rise: a "
        "child is a child where boys and girls were hidden.",
        "A balanced set is smaller, and what is learnt from less is guessed less well: hold it against as many at "
        "random.",
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
            ("quality: cider", "the likeness to human captions (CIDEr)"),
        )
    ),
    terms=(
        Term("changed", "captions in which a word was rewritten", "share"),
        Term("words", "words that were rewritten", "count"),
        Term("left", "words to rewrite for which the lexicon lists no neutral one", "count"),
        Term("kept", "images of a balanced set", "count"),
        Term("groups-apart", "how far groups are from equally frequent", "share", "lower", 0.0),
        Term("objects-apart", "the same among images that show an object, and its mean", "share", "lower", 0.0),
        Term("change", "a number after the remedy less the number before (item: which number)", "as measured"),
        Term("beyond-random", "a number on balanced images less that on as many at random", "as measured"),
    ),
)  # fmt: skip
