"""The card of amplification: what it measures, and what its numbers cannot say."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.results import TOO_FEW
from portrayal.statements import IDEAL, Statement

_SELECTION_NOTE = (
    "it is a mean over the objects that captions name, so longer or shorter captions change which ones are in it; "
    "hallucinated objects weaken associations; and only associations in the labels are counted, of which a world "
    "without "
    "data bias has none"
)
_NOISE_NOTE = (
    "sets that few captions name change by chance, the more so the fewer captions name a group; in larger studies more "
    "sets become common enough to count, so there is no one true value; and only associations in the labels count"
)
_SIGN_NOTE = "weak associations often get the wrong sign in small studies, which the interval does not cover"
CARD = Card(
    name="amplification",
    answers="amplifies",
    title="Amplification of associations between groups and objects",
    question="Do captions associate groups with objects more strongly than the labels of the same images do?",
    formula=(
        "Truth: the labelled group a and the labelled objects t of an image. Prediction: the one group the caption "
        "names, and the objects it names. "
        "ba = sum over (o, g) with b*(o, g) > 1/|G| of (b~(o, g) - b*(o, g)), divided by the number of objects with a "
        "share on both sides, where b(o, g) is the share of group g among the captions or images with object o. "
        "a-to-t = mean over pairs of y (P(t^|a) - P(t|a)) and t-to-a = mean of y (P(a^|t) - P(a|t)), with y = 1 if "
        "P(a, t) > P(a) P(t) and -1 otherwise, over all labelled images; P(a^|t) is among the captions that name "
        "exactly one group. In ba, t-to-a and multi, b* and P(a|t) are over the same images: an image counts for the "
        "share of its captions that name exactly one group (--images all: every labelled image counts in full, as "
        "published). "
        "a-to-t-named: a-to-t with P(t^|a) P(t) / P(t^) in the place of P(t^|a). "
        "multi: as ba with sets of objects instead of objects, the differences taken without their sign; "
        "multi-signed with it; multi-floor is the multi that noise alone gives, sqrt(2/pi) times the standard error of "
        "each difference (over resamples of images, or over captions where few name the set), and multi-excess what is "
        "above it; multi-variance: the variance of the differences over sets and groups."
    ),
    range="-1 to 1; multi and multi-variance: 0 and up. 0 where associations are as in the labels.",
    needs=("captions", "attributes", "objects"),
    paper=(
        "ba: Zhao et al., EMNLP 2017. a-to-t, t-to-a: Wang and Russakovsky, Directional Bias Amplification, ICML 2021. "
        "multi: Zhao, Andrews and Xiang, Men Also Do Laundry, ICML 2023."
    ),
    caveats=(
        "With --images all, as published, captions that name one group are compared with all images: where a caption "
        "names a group depends on what the image shows, so ba, t-to-a and multi then mix who is named wrongly with "
        "who is not named, and even their sign can depend on it.",
        "Captions leave objects unnamed: P(t^|a) is mostly below P(t|a), so a-to-t mixes associations with omissions. "
        "a-to-t-named, t-to-a and ba do not: they divide by what was named.",
        "ba counts rare objects as much as common ones; the directional terms do too.",
        "multi is a mean of absolute values, which noise keeps above 0, and so is multi-variance. Read multi-excess "
        "and multi-signed beside them.",
        f"Sets of objects are those of one or two objects in at least {TOO_FEW} labelled images (--set-minimum).",
        "The sign of an association is taken from the labels as they are; intervals do not cover its uncertainty.",
        "Labels of people (person, man, rider) are left out. Objects are human labels, or, where there are "
        "none, those of models.",
        "Objects in captions are found by word (the label, its plural, common synonyms), not by meaning.",
    ),
    terms=(
        # A mean over objects: larger studies name more of them, and the sign of rare ones is less often due to chance.
        Term(
            "ba",
            "mean growth of the shares of positively associated groups",
            "share",
            "closer",
            0.0,
            depends_on_n=True,
        ),
        Term(
            "a-to-t",
            "how much more the group predicts the objects named than those present",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "a-to-t-named",
            "the same as if every object were named as often as it is labelled",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "t-to-a",
            "how much more the objects predict the group named than the one shown",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "multi",
            "mean size of the change over sets of objects (ideal: its floor)",
            "share",
            "lower",
            depends_on_n=True,
        ),
        Term("multi-signed", "the same with its sign", "share", "closer", 0.0),
        Term(
            "multi-floor", "what multi would be if only noise changed the shares", "share", depends_on_n=True
        ),
        Term("multi-excess", "multi less its floor", "share", "lower", 0.0),
        Term(
            "multi-variance",
            "variance of the change over sets and groups",
            "share",
            "lower",
            depends_on_n=True,
        ),
    ),
    statements=(
        Statement(
            "ba",
            IDEAL,
            "{system} associates objects with {attribute} more strongly than the images do (ba)",
            "{system} associates objects with {attribute} more strongly than the images do (ba)",
            "{system} associates objects with {attribute} less strongly than the images do (ba)",
            smallest=0.005,
            choice="amplification",
            supporting_terms=("a-to-t-named", "t-to-a"),
        ),
        Statement(
            "t-to-a",
            IDEAL,
            "{system} takes {attribute} from the objects: they predict the group it names more than the group shown "
            "(t-to-a)",
            "the objects predict the group that {system} names more than the group shown (t-to-a)",
            "The objects predict the group that {system} names less than the group shown (t-to-a)",
            smallest=0.005,
            choice="amplification",
            supporting_terms=("ba", "a-to-t-named"),
        ),
    ),
    responds_to={
        **dict.fromkeys(
            ("ba", "a-to-t", "a-to-t-named", "multi", "multi-signed", "multi-excess", "multi-variance"),
            "amplification",
        ),
        "t-to-a": "guessed-group",
    },
    should_ignore=("neutral", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    lab_notes={
        "ba": _SELECTION_NOTE,
        "a-to-t": "captions leave things unnamed, so P(t^|a) lies below P(t|a) for every group and a faithful system "
        f"seems to weaken associations; and {_SIGN_NOTE}. It was made for predicted labels; "
        "read a-to-t-named instead",
        "a-to-t-named": _SELECTION_NOTE,
        "multi-signed": _SELECTION_NOTE,
        "multi": _NOISE_NOTE,
        "multi-excess": _NOISE_NOTE,
        "multi-variance": _NOISE_NOTE,
        "t-to-a": "it counts associations in the labels, of which a world without data bias has none; and "
        "{_SIGN_NOTE}",
    },
)
