"""The card of LIC: what it measures, how to read it, and its limits."""

from __future__ import annotations

from portrayal.metrics.base.card import BeforeAfter, Card, Term, TradeOff
from portrayal.statements import IDEAL, Statement
from portrayal.study.cautions import LENGTH

CARD = Card(
    name="lic",
    answers="leaks",
    title="What captions give away (LIC)",
    question="How well can a classifier predict the group of the person shown from a caption, and is it easier than "
    "from human captions of the same images?",
    formula=(
        "The words of the list that the settings name (mask) are hidden; where none are, a caution says so. A "
        "classifier is trained to predict the group from these captions. A test caption scores "
        "the probability of the true group where that is the predicted one, else 0. lic_m = 100 x the mean over groups "
        "of the groups' mean scores, over the system's captions; lic_d = the same over human captions of the same "
        "images, restricted to the system's vocabulary; lic = lic_m_paired - lic_d, both on the images with enough "
        "human captions. null_m and null_d: the same with permuted labels. "
        "lic_excess = (lic_m_paired - its null) - (lic_d - null_d). "
        "p of lic_m and lic_d: permutation test, (1 + permutations that reach them) / (1 + permutations); of lic and "
        "lic_excess: from the paired bootstrap. word: contribution of a word to the log odds of the group, mean over "
        "the group's test captions that have it."
    ),
    range="lic_m, lic_d: 0 to 100. lic: -100 to 100; above 0 the system's captions give away more than human captions.",
    needs=("captions", "attributes"),
    paper=(
        "Hirota, Nakashima and Garcia, Quantifying Societal Bias Amplification in Image Captioning, CVPR 2022; "
        "reproduced and extended by Türk et al., Exploring the Explainability of Bias in Image Captioning Models, "
        "2023, and by Antequera et al., RELIC, 2023."
    ),
    caveats=(
        "Chance is not 25 (for two groups): an uninformed classifier still has some confidence. Read "
        "lic_m against its null, and lic_excess rather than lic.",
        "A classifier that is trained on more captions predicts better: on one system's captions lic_m is 45.7 with "
        "10,780 images and 42.2 with 1,000 of them. Compare lic_m, accuracy and the nulls only between equally many "
        "images; compare says where they are not.",
        "Captions of one system repeat each other. The published split trains and tests on the same caption; "
        "'crossfit' never does. A system that repeats itself looks different under the two, and both are shown.",
        "What gives a group away is not wrong in itself: an activity that the image shows and that is more common in "
        "one group gives it away too. lic compares the system with humans who saw the same images.",
        "It depends on the classifier, the word list and the vocabulary: --sensitivity shows by how much.",
        "The label is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term("lic_m", "what the system's captions give away (ideal: its null)", "percent", "lower", depends_on_n=True),
        Term("lic_m_calibrated", "the same with calibrated (temperature-scaled) probabilities", "percent", "lower",
             depends_on_n=True),
        Term("lic_d", "what human captions of the same images give away", "percent", depends_on_n=True),
        Term("lic_m_paired", "lic_m on the images with enough human captions", "percent", "lower",
             depends_on_n=True),
        Term("lic", "what the system gives away beyond human captions", "percent", "lower", 0.0, depends_on_n=True),
        Term("lic_excess", "lic minus the chance level of both sides", "percent", "lower", 0.0, depends_on_n=True),
        Term("null_m", "lic_m with permuted labels; the interval holds 95 % of the permutations", "percent",
             depends_on_n=True),
        Term("null_d", "lic_d with permuted labels", "percent", depends_on_n=True),
        Term("accuracy", "captions whose group is predicted correctly, mean over groups", "percent", depends_on_n=True),
        Term("confidence", "probability of the predicted group, mean over groups", "percent",
             depends_on_n=True),
        Term("duplicates", "captions of several images; under a published split, test captions that are in training",
             "percent", depends_on_n=True),
        Term("unseen", "lic_m on test captions that are not in training (n: how many; raw or masked text)", "percent",
             "lower", depends_on_n=True),
        Term("word", "contribution of the word to this group, in the captions that have it", "contribution", None, 0.0),
        Term("attribution", "total attribution of the words of a correctly classified caption (neural classifiers, "
             "with --explain); over groups their sum", "contribution"),
    ),
    statements=(
        Statement(
            "lic",
            IDEAL,
            "Captions of {system} are easier to classify by {attribute} than human captions",
            "captions of {system} are easier to classify by {attribute} than human captions",
            "Captions of {system} are harder to classify by {attribute} than human captions",
            findings=(),
            note="no finding by itself: captions that say only what is in the images can differ as much",
        ),
    ),
    caution_terms={LENGTH: ("lic", "lic_excess")},
    responds_to={"lic_m": "data-bias", "lic": "amplification", "lic_excess": "amplification"},
    uses=("references",),
    side_by_side=("lic_m_paired", "lic_d"),
    trade_off=TradeOff(
        is_bias=True,
        terms=("lic", "lic_m"),
        direction="gives less away",
        shared_settings=("classifier", "split", "balance"),
        titled_settings=("split",),
    ),
    before_after=BeforeAfter(
        order=1,
        terms=("lic_m", "lic_d", "lic", "lic_excess"),
        offered_options=("classifier", "split", "seeds", "permutations", "device"),
    ),
    should_ignore=("wrong-group", "neutral", "hallucination", "length", "vocabulary", "repetition"),
    fits_model=True,
    lab_notes=dict.fromkeys(
        ("lic", "lic_excess"),
        "a captioner that truthfully names what is shown uses fewer different words for it than five annotators, and "
        "a small vocabulary is easier to classify; dials that change the number of different captions move "
        "it for the same reason",
    ),
)  # fmt: skip
