"""The card of retrieval recall: how often the right caption or image is found, by group."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term, TradeOff
from portrayal.metrics.retrieval.recall.measurements import CUTOFFS

CARD = Card(
    name="retrieval-recall",
    answers="quality",
    title="Retrieval of captions and images (recall)",
    question="How often does a vision-language model find the right caption for an image, and the right image for "
    "a caption, and equally often for every group?",
    formula=(
        "All images with human captions are retrieved by all their captions, and the other way round. "
        "tr@k (text retrieval): the share of images with one of their own captions among the k best scored of all "
        "captions. ir@k (image retrieval): the share of captions whose own image is among the k best scored of all "
        "images. Ties count with their expected share in random order: in a block of t equal scores, o of them "
        "relevant, of which s are in the top k, 1 - C(t - o, s) / C(t, s). So a model that tells nothing apart has the "
        "chance level: k / images for ir@k. "
        "Scores: a model with separate image and text embeddings compares all pairs (cosine similarity), and its "
        "matching head reranks the first --rerank of each query; the others follow. Without embeddings the matching "
        "head scores every pair. "
        "Rows by group: queries are the images of a group (tr) or their captions (ir), among all captions and images. "
        "Intervals are over images."
    ),
    range="0 to 1; the chance level stands beside each number.",
    needs=("references", "images", "model"),
    uses=("attributes",),
    paper=(
        "Recall@k of image-caption retrieval: Hodosh, Young and Hockenmaier, JAIR 2013; Karpathy and Fei-Fei, CVPR "
        "2015. Similarity, then reranking by matching: Li et al., Align before Fuse (ALBEF), NeurIPS 2021."
    ),
    caveats=(
        "Recall is higher with fewer candidates: compare models on the same images and captions only, "
        "and published numbers on the published test set with --captions 5.",
        "Another caption may fit an image as well as its own; it counts as a miss. Identical captions are different "
        "captions with tied ranks.",
        "A group may be harder to find because its images are more similar, not because the model knows it less.",
        "Pairs are ordered by the logit of a match, as in the code of ALBEF and TCL. Captions longer than the model "
        "reads are truncated and counted.",
        "Intervals describe other query images on the same set of candidates, not another set.",
        "It measures a model, not captions: no dial of the lab's captioners moves it, so it has no response curve.",
    ),
    trade_off=TradeOff(
        is_bias=False,
        terms=("tr@1", "ir@1"),
        direction="finds more",
        points="models",
        titled_settings=("fitted",),
    ),
    terms=(
        *(Term(f"tr@{k}", f"images with one of their captions in the top {k}" if k > 1 else
               "images with one of their captions at rank 1", "share", "higher", 1.0, depends_on_n="searched")
          for k in CUTOFFS),
        *(Term(f"ir@{k}", f"captions with their image in the top {k}" if k > 1 else
               "captions with their image at rank 1", "share", "higher", 1.0, depends_on_n="searched")
          for k in CUTOFFS),
    ),
)  # fmt: skip
