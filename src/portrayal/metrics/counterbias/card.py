"""The card of CounterBias: what it measures, how to read it, and its limits."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term, TradeOff
from portrayal.metrics.counterbias.terms import BIASES, BOTH
from portrayal.statements import IDEAL, Statement

CARD = Card(
    name="counterbias",
    answers="changes",
    title="CounterBias: change only the person",
    question="When only the person in an image or text changes, how much do the model's predictions of what they do or "
    "are change?",
    formula="bias(T, B) = (P(T | cf) - P(T | f)) / (P(B | cf) - P(B | f)) for a concept T at the mask and a group B, "
    "f the image and text as they are and cf with the other group. b@v-l: both changed, P(B) the mean of "
    "P(B | V) and P(B | L); b@v: the image alone; b@l: the text alone. Times 100, and times -1 where B is "
    "the second group. For a concept: the mean of both groups' means, then over templates; over all concepts: the "
    "mean of absolute values. P(B | V) is measured with a prompt; an instance is defined where it falls "
    "by .1 or more. b@text: log P(T | first group's text) - log P(T | second group's), without an image.",
    range="any number; 0: nothing changes; positive: leans to the first group",
    needs=("images", "attributes", "model"),
    paper="Zhang, Wang and Sang, Counterfactually Measuring and Eliminating Social Bias in Vision-Language Pre- "
    "training Models, ACM Multimedia 2022",
    caveats=(
        "An attack changes more than the person: read a bias with its placebo, an attack of the same size on the "
        "place. What remains after that (corrected) is not explained by such damage. Where the place matters much to "
        "what people do, the placebo removes too much: then corrected is a lower bound, and excess an estimate. For a "
        "concept the placebo's noise is subtracted too, so that corrected errs toward 0.",
        "A mean of absolute values is above 0 without any bias: read it with its noise floor, or read the excess.",
        "An attack finds the pixels that this model associates with a group, which need not look like anybody. Prefer "
        "images that differ only in the person (--attack exact), where they exist.",
        "Where what people do predicts their group, a model may infer the group from the activity; an attack on "
        "the group then changes the activity as well.",
        "Pooled means over an unbalanced set of images are biased by the damage that any attack does; group-"
        "balanced means are not.",
        "A word stands for a group and a softmax for what a model expects: neither is what anybody is.",
        "It has no response curve of the lab: it measures a model and not captions. docs/counterbias.md compares it "
        "with models of the lab whose data bias is known.",
    ),
    statements=(
        Statement(
            "excess",
            IDEAL,
            "When only the person changes, what {system} predicts of them changes more than chance explains ({kind}, "
            "{attack})",
            "what {system} predicts changes with the person ({kind}, {attack})",
            "When only the person changes, what {system} predicts of them changes less than chance explains ({kind}, "
            "{attack})",
            settings={"of": "b@v-l"},
            remainder="corrected",
            no_remainder="When only the person changes, what {system} predicts changes no more than when something "
            "else is attacked ({kind}, {attack})",
            open_remainder="Not significant: whether what {system} predicts changes more with the person than when "
            "something else is attacked ({kind}, {attack})",
        ),
    ),
    layout="concepts",
    headline=(*BIASES, "excess", "corrected", "b@text", "attack-success", "drift", "undefined"),
    trade_off=TradeOff(
        is_bias=True,
        terms=("excess",),
        direction="less bias",
        points="models",
        settings={"of": BOTH},
        shared_settings=("kind", "attack"),
        titled_settings=("kind", "attack"),
    ),
    terms=(
        Term("b@v-l", "bias when image and text change", "percent", "closer", 0.0, depends_on_n=True),
        Term("b@v", "bias when the image changes", "percent", "closer", 0.0, depends_on_n=True),
        Term("b@l", "bias when the text changes", "percent", "closer", 0.0, depends_on_n=True),
        Term("excess", "mean absolute bias minus its noise floor", "percent", "lower", 0.0,
             label="b@v-l less its floor"),
        Term("corrected", "bias minus that of the placebo, whichever sign that has: for a concept its size minus the "
             "placebo's, over all concepts the mean size minus the placebo's; 0 where the placebo's is larger",
             "percent", "closer", 0.0, label="b@v-l less the placebo's"),
        Term("placebo", "bias of an attack of the same size on the place", "percent", depends_on_n=True),
        Term("floor", "noise floor: expected mean absolute bias under random signs of images", "percent",
             depends_on_n=True),
        Term("pooled", "bias as the mean over all instances, without balancing groups", "percent", "closer", 0.0),
        Term("observed", "P(T) of the first group's images minus that of the second's, without an attack", "percent"),
        Term("agreement", "share of concepts that lean to the group that raters associate with them", "percent"),
        Term("b@text", "bias without an image", "log-probability difference", "closer", 0.0, label="b@text (log)"),
        Term("attack-success", "share of images that the model assigns to the other group after the attack", "percent",
             "higher", 100.0, label="attacks that succeed"),
        Term("drift", "change of the predicted place by the attack (total variation distance: half the sum of absolute "
             "differences)", "percent", "lower", 0.0, label="drift of the place"),
        Term("p-before", "P(B | V) of the original images", "percent"),
        Term("p-after", "P(B | V) of their counterfactuals", "percent"),
        Term("moved", "mean change of a pixel, of 255 levels", "levels"),
        Term("undefined", "instances whose P(B | V) does not fall by .1", "count", "lower", 0.0,
             label="instances undefined"),
    ),
)  # fmt: skip
