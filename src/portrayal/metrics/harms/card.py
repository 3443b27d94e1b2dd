"""The card of the metric `harms`, put together from the cards of its fifteen measurements."""

from __future__ import annotations

from portrayal.metrics.base.card import BeforeAfter, Card
from portrayal.metrics.harms.demeaning import (
    AdjectiveAsNoun,
    DemeaningInContext,
    DemeaningWords,
    PeopleNotMentioned,
)
from portrayal.metrics.harms.erasure import EntityNotNamed, GroupNotMentioned, Ignoring, Misnaming, TooVague
from portrayal.metrics.harms.measurement import HarmMeasurement
from portrayal.metrics.harms.reification import PhysicalAttributes
from portrayal.metrics.harms.self_identification import IdentityMentions
from portrayal.metrics.harms.statements import statements
from portrayal.metrics.harms.stereotyping import CorrectlyMentioned, IncorrectWord
from portrayal.metrics.harms.stereotyping_categories import CategoryAmplification, CategoryDistributions
from portrayal.study.cautions import LENGTH, REFERENCES, UNANNOTATED

MEASUREMENTS: tuple[type[HarmMeasurement], ...] = (
    IdentityMentions,
    PhysicalAttributes,
    Misnaming,
    GroupNotMentioned,
    EntityNotNamed,
    TooVague,
    Ignoring,
    IncorrectWord,
    CorrectlyMentioned,
    CategoryDistributions,
    CategoryAmplification,
    DemeaningWords,
    PeopleNotMentioned,
    DemeaningInContext,
    AdjectiveAsNoun,
)
CARD = Card(
    name="harms",
    answers="harms",
    caution_terms={
        REFERENCES: tuple(
            kind.card.term for kind in MEASUREMENTS if getattr(kind, "compares_with_human", False)
        ),
        # A longer caption has room for more words of any kind.
        LENGTH: tuple(kind.card.term for kind in MEASUREMENTS),
        # References are the only truth about images that were not annotated.
        UNANNOTATED: ("stereotyping.incorrect-word", "demeaning.in-context"),
    },
    title="Representational harms",
    question="Do captions deny, reify, erase, stereotype or demean people, and in which words?",
    formula=(
        "Fifteen measurements of five harms. A stage is the text that is measured: 1 human labels, 3 human captions, 4 "
        "captions of a system, 4-without-3 captions of a system where human captions say nothing of the kind. A rate "
        "is the mean over images of the share of an image's captions that count, with Wilson's 95 % CI; a count is "
        "that rate times the number of images. If an image has several human captions, a caption is compared with all "
        "of them together (reference=any), or with each in turn and the numbers averaged (reference=each). p of a "
        "group's row tests the difference from the other groups."
    ),
    range="share: 0 to 1. count: 0 and up. Rows of words, objects and attributes have units of their own.",
    needs=("captions",),
    uses=("references", "attributes", "objects"),
    paper=(
        "Wang, Barocas, Laird and Wallach, Measuring Representational Harms in Image Captioning, FAccT 2022, by its "
        "supplementary material; what that leaves open is reconstructed, and marked so for each measurement."
    ),
    caveats=(
        "A count says which captions to look at; it is no verdict. The rules find more than harm, by design.",
        "Numbers of one measurement can be compared between systems and stages of one study; numbers of different "
        "measurements cannot be added up.",
        "Captions are parsed by rules, and words have their most frequent sense; the documentation lists the "
        "precision of each rule.",
    ),
    terms=tuple(measure.card.as_term() for measure in MEASUREMENTS),
    parts=tuple(measure.card.as_rule() for measure in MEASUREMENTS),
    by_term=True,
    before_after=BeforeAfter(
        order=4,
        terms=(GroupNotMentioned.card.term,),
        options={"measurement": (GroupNotMentioned.card.term,), "top": 0},
    ),
    statements=statements(measure.card.as_term() for measure in MEASUREMENTS),
    responds_to={
        "demeaning.people-not-mentioned": "erasure",
        "stereotyping.incorrect-word@hallucinated": "hallucination",
        "stereotyping.incorrect-word@identity where somebody is mentioned": "wrong-group",
        "demeaning.words@where somebody is mentioned": "demeaning",
    },
    should_ignore=("erasure", "hallucination", "wrong-group", "demeaning"),
)
