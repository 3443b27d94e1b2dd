"""The card of what a remedy changes in a model."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import LESS, MORE, ZERO, Statement

WORDS_RIGHT, WORDS_LOST, GROUP_RIGHT = "words-right", "words-lost", "group-right"
DROP, DROP_SHARE, CHANGE = "drop", "drop-share", "change"

CARD = Card(
    name="mitigation",
    title="What a remedy changes in a model",
    question="How much less bias has a model after a remedy than after as much training without one, and what is lost?",
    formula="Every method trains the same model for as many steps on the same pictures and texts; vanilla adds "
    "nothing. excess: CounterBias's mean absolute bias less its floor. drop: vanilla's excess less the method's; "
    "drop-share: drop of vanilla's excess. change: a number less vanilla's. words-right and words-lost: of words "
    "hidden in texts of pictures that were held out, the share that comes first and the mean of -log P. "
    "group-right: of pictures, the share whose own group's word is likelier than the other's. All are means over "
    "seeds; differences are taken seed by seed and picture by picture.",
    range="drop and change: any number, 0: nothing changed; shares: 0 to 1",
    needs=("pictures", "model"),
    paper="Zhang, Wang and Sang, Counterfactually Measuring and Eliminating Social Bias in Vision-Language Pre- "
    "training Models, ACM Multimedia 2022",
    caveats=(
        "A method that trains against an attack is graded by a near relative of that attack: what the same model says "
        "of pictures in which the person was really changed (exact) is the number to believe.",
        "A model that no longer sees whom a picture shows has little bias left to be found: read group-right and "
        "P(group | V) beside every drop.",
        "In the lab image-swap learns from other pictures that are drawn as those are that exact bias is measured "
        "with, though of other scenes: there it is a ceiling. Of a study it is as good as the pictures that are given.",
        "Words of biased texts are easier for a biased model: the balanced set says what was lost, the biased one also "
        "what is no longer guessed.",
        "Intervals draw pictures and seeds; they do not say how another data set or another model would come out.",
        "No curve of the lab: it measures models and not captions. docs/mitigation.md holds the methods against models "
        "of the lab whose data bias is known.",
    ),
    statements=(
        Statement(
            DROP,
            ZERO,
            "{system} leaves less bias than as much training without it ({of}, {kind}, {attack})",
            "{system} leaves less bias than as much training without it ({of}, {kind}, {attack})",
            "{system} leaves more bias than as much training without it ({of}, {kind}, {attack})",
            findings=(MORE, LESS),
            settings={"of": "b@v-l"},
        ),
    ),
    terms=(
        Term(DROP, "by how much the bias is less than vanilla's", "percent", "higher"),
        Term(DROP_SHARE, "how much of vanilla's bias is gone", "share", "higher", 1.0),
        Term(CHANGE, "a number less vanilla's", "share", "higher"),
        Term(WORDS_RIGHT, "hidden words found", "share", "higher", 1.0),
        Term(WORDS_LOST, "what is lost on a hidden word (-log P)", "nats", "lower", 0.0),
        Term(GROUP_RIGHT, "pictures whose own group is likelier", "share", "higher", 1.0),
    ),
)  # fmt: skip
