"""The card of leakage: what it measures, how to read it, and its limits."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import IDEAL, Statement

CARD = Card(
    name="leakage",
    answers="amplifies",
    title="What named objects give away (leakage)",
    question="How well can a classifier predict the group of the person shown from the objects that a system names, "
    "and is it easier than from the objects that are in the image?",
    formula=(
        "An attacker (logistic regression with cross-validation) predicts the group from the labels of an image. "
        "Its accuracy is the mean over groups of the share of the group's images that are classified correctly, so "
        "that chance is 1 / groups. on-outputs: from the labels that the system gives. "
        "on-truth: from human labels with noise, at random with respect to the group, that gives them the "
        "micro-F1 of the system's labels. difference = on-outputs - on-truth. "
        "predictability = (on-outputs - on-truth) / (on-outputs + on-truth). on-labels: from human labels without "
        "noise. f1 = 2 x correct / (named + true), over all images and labels. "
        "p of on-outputs: permutation test, (1 + permutations that reach it) / (1 + permutations); of difference "
        "and predictability: from the paired bootstrap."
    ),
    range="on-outputs, on-truth, on-labels, f1: 0 to 1. difference, predictability: -1 to 1; above 0 the system's "
    "labels give away more than true labels with as many errors.",
    needs=("attributes", "objects"),
    paper=(
        "Wang, Zhao, Yatskar, Chang and Ordonez, Balanced Datasets Are Not Enough, ICCV 2019 (leakage). "
        "predictability: the relative form of Tokas, Nair and Kerner, Making Bias Amplification in Balanced Datasets "
        "Directional and Interpretable, 2024."
    ),
    caveats=(
        "Objects that are associated with a group in the world give it away too: where true labels do (on-labels), "
        "correct labels do, and that is not due to the system. Read difference, not on-outputs.",
        "Errors hide a group, so true labels get as many (--mistakes). 'label': the outputs of each label are "
        "permuted among the images that have it, and among those that do not, so that each label keeps its precision, "
        "recall and F1. 'overall' keeps them over all labels together, and 'flip', the published way, flips any label "
        "at random until F1 is reached. Both treat labels that a system always names like those it never does: in the "
        "lab, where captions leave out objects that are hardly associated with a group, on-truth falls too far and a "
        "faithful system seems to leak (by .07 and .04).",
        "Labels say what is anywhere in an image, captions what matters in it, which may be more "
        "closely associated with a group. Human captions can lie above 0 for that reason (system human; .02 in COCO): "
        "compare a system's difference with theirs.",
        "F1 is matched over all groups, not for each: where labels are worse for one group, that itself reveals "
        "the group, and counts as due to the system. f1 is shown for each group.",
        "Noise is added label by label: labels that are missing together, as in a short caption, no longer are.",
        "A group's own accuracy also reflects how images without informative labels are classified: where one "
        "group's is high for that reason, the others' are low. Only their mean is to be read against chance, and only "
        "it is compared.",
        "A linear attacker is a lower bound: what it does not find may still be there.",
        "Labels of people (person, man, rider) are left out. An image without labels counts as one where none of the "
        "objects is. Objects in captions are found by word (the label, its plural, common synonyms), not by meaning.",
        "The group is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term("on-outputs", "accuracy from what the system names (ideal: under permuted labels)", "share", "lower",
             depends_on_n=True),
        Term("on-truth", "accuracy from true labels with as many errors", "share", depends_on_n=True),
        Term("difference", "what the system gives away beyond them", "share", "lower", 0.0, depends_on_n=True),
        Term("predictability", "the same, relative to their sum", "share", "lower", 0.0, depends_on_n=True),
        Term("on-labels", "accuracy from true labels", "share", depends_on_n=True),
        Term("f1", "how well what is named agrees with true labels", "share", "higher", 1.0),
    ),
    statements=(
        Statement(
            "difference",
            IDEAL,
            "A classifier predicts {attribute} better from the objects {system} names than from those in the image",
            "a classifier predicts {attribute} better from the objects {system} names than from those in the image",
            "A classifier predicts {attribute} worse from the objects {system} names than from those in the image",
            smallest=0.005,
        ),
    ),
    responds_to={"difference": "amplification", "predictability": "amplification"},
    uses=("captions",),
    should_ignore=("wrong-group", "neutral", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    fits_model=True,
    lab_notes=dict.fromkeys(
        ("difference", "predictability"),
        "the more the world itself associates with a group, the less is left that amplification could add; without "
        "amplification, data bias does not move it",
    ),
)  # fmt: skip
