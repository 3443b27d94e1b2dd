"""The card of the metric `mitigation`: the effect of a mitigation method on a model."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import LESS, MORE, ZERO, Statement

WORDS_RIGHT, WORDS_LOST, GROUP_RIGHT = "words-right", "words-lost", "group-right"
DROP, DROP_SHARE, CHANGE = "drop", "drop-share", "change"

CARD = Card(
    name="mitigation",
    answers="mitigation",
    layout="methods",
    title="Effect of a mitigation method on a model",
    question="How much less bias does a model have after mitigation than after the same training without it, and at "
    "what cost?",
    formula="Every method trains the same model for the same number of steps on the same images and texts; vanilla is "
    "the training without mitigation. excess: CounterBias's mean absolute bias minus its noise floor (the expected "
    "value under random signs). drop: vanilla's excess minus the method's; drop-share: drop / vanilla's excess. "
    "change: a number minus vanilla's. words-right and words-lost: top-1 accuracy and mean -log P of masked words in "
    "texts of held-out images. group-right: share of images for which the word of the own group has a higher "
    "probability than the other's. All are means over seeds; differences are paired by seed and by image.",
    range="drop and change: any number, 0: no change; shares: 0 to 1",
    needs=("images", "model"),
    paper="Zhang, Wang and Sang, Counterfactually Measuring and Eliminating Social Bias in Vision-Language Pre- "
    "training Models, ACM Multimedia 2022",
    caveats=(
        "A method that trains against an attack is evaluated with a similar attack, which favours it. The bias on "
        "exact counterfactual images (exact) is the number to trust.",
        "A model that no longer recognises the group in an image has little measurable bias: read group-right and "
        "P(group | V) with every drop.",
        "In the lab, image-swap trains on counterfactual images from the renderer that also makes the images for exact "
        "bias, though of other scenes: there it is an upper bound. On a study it is as good as the given images.",
        "Words of biased texts are easier for a biased model: the balanced set shows the loss of accuracy, the biased "
        "set also shows the predictions that no longer follow the bias.",
        "Intervals resample images and seeds; they do not cover another data set or another model.",
        "No response curve: no dial of the lab turns it, since it measures models and not captions. docs/mitigation.md "
        "compares the methods on models of the lab with known data bias.",
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
        Term(DROP, "vanilla's bias minus the method's", "percent", "higher"),
        Term(DROP_SHARE, "share of vanilla's bias that is removed", "share", "higher", 1.0),
        Term(CHANGE, "a number minus vanilla's", "share", "higher"),
        Term(WORDS_RIGHT, "accuracy on masked words", "share", "higher", 1.0),
        Term(WORDS_LOST, "mean loss on masked words (-log P)", "nats", "lower", 0.0),
        Term(GROUP_RIGHT, "images whose own group has the higher probability", "share", "higher", 1.0),
    ),
)  # fmt: skip
