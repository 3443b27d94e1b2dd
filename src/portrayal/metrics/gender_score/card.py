"""The card of the Gender Score: what it measures, and what its numbers cannot say."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.gender_score.measurements import MIN_IMAGES_LISTED
from portrayal.results import TOO_FEW

CARD = Card(
    name="gender-score",
    answers="associations",
    title="Association of groups with the objects of images",
    question="How probable are captions of each group, given the objects of their images?",
    formula=(
        "A caption y of an image with objects o: P(y) is its probability by a language model (the arithmetic "
        "mean of its "
        "tokens' probabilities, the end included), s the cosine of caption and objects, c the objects' confidence. "
        "score(y) = P(y) ** alpha with alpha = ((1 - s) / (1 + s)) ** (1 - c); under negative evidence "
        "1 - (1 - P(y)) ** alpha. score(g) is the mean over captions naming group g ('neutral': a person, and no "
        "group), an image with several captions counting once. to-group(g) = score(g) / sum over groups of score(g'): "
        "a ratio of means. to-group-sum(g) is the same of sums over captions, which also counts how often a group is "
        "named. to-neutral(g) = score(g) / score(neutral). For all people: the score of all captions naming a group, "
        "the largest share, and the ratio to neutral ones. p of to-group: how often shares are as far from even "
        "when captions' groups are permuted among the images; p of an object's to-group-sum: as far from the "
        "share over "
        "all captions, by the same permutations; q corrects for the number of objects."
    ),
    range="score, to-group, to-group-sum: 0 to 1. to-neutral: 0 and up.",
    needs=("captions", "objects"),
    uses=("references", "attributes"),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Tables 3 and 4).",
    caveats=(
        "A score comes from language models: it depends on the words and the length of captions and on the "
        "models, not on "
        "groups alone. Compare groups and systems under one choice of models, and try others.",
        "to-group-sum is mostly counting: where one group is named twice as often, its share is near two thirds. Its "
        "ideal is the group's share in the study (labels, else human captions), not one half; to-group has no "
        "ideal, since captions of different images differ.",
        "The default models are trained on the human captions of this study, a language model for each half of the "
        "images on the other half. A pretrained model knows more, and has biases of its own.",
        "Cosines are used as they are: a negative one makes a caption less probable.",
        "Labels without a confidence (human labels) need one (--confidence); the nearer to 1, the less an object "
        "changes.",
        f"An object with fewer than {TOO_FEW} images whose captions name a group is neither tested nor ranked; with "
        f"fewer than {MIN_IMAGES_LISTED}, it is not listed unless it is named (--item).",
    ),
    terms=(
        Term("score", "mean score of the captions naming the group", "score"),
        Term("to-group", "the group's share of the groups' mean scores", "share"),
        Term("to-group-sum", "the group's share of all captions' scores", "share"),
        Term("to-neutral", "ratio of the group's mean score to that of neutral captions", "ratio"),
        Term("unscored", "captions about people that have no score", "count"),
    ),
    fits_model=True,
    responds_to={"to-group-sum@object": "data-bias"},
    should_ignore=("length", "neutral", "amplification", "vocabulary"),
)
