"""The card of the metric `quality`: what it measures, and its limitations."""

from __future__ import annotations

from collections.abc import Iterable

from portrayal.metrics.base.card import BeforeAfter, Card, Term, TradeOff
from portrayal.metrics.quality.measurements import GAP
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, Statement
from portrayal.study.cautions import LABELS, LENGTH, OBJECTS, REFERENCES, UNANNOTATED

_SCORE_TERMS = {
    "bleu-1": "words of the caption that a reference contains",
    "bleu-2": "the same with pairs of words",
    "bleu-3": "the same with n-grams of three words",
    "bleu-4": "the same with n-grams of four words",
    "rouge-l": "longest common subsequence with a reference",
    "cider": "similarity to the references, rare words counting more (CIDEr-D, as coco-caption prints it)",
    "cider-plain": "CIDEr as first published: nothing clipped, no penalty for length",
    "meteor": "words matched by form, stem, synonym and paraphrase (needs Java)",
    "spice": "objects, attributes and relations shared with the references (needs Java)",
}
_CHAIR_TERMS = {
    "chair-i": "share of the mentioned objects that are not in the image",
    "chair-s": "share of the captions that mention an object not in the image",
}
_STYLE_TERMS = {"length": "words a caption has", "repeated": "captions that another image has too"}
# Terms whose expected value depends on which and how many images there are (document frequencies, repeats).
_SIZE_DEPENDENT = ("cider", "cider-plain", "repeated")
_UNITS = {"length": "words", "repeated": "share"}
_SIMILARITY_NOTE = (
    "a caption that says less of the person, or is a stock sentence, is less similar to human captions, and where the "
    "world is more biased a stereotype is more often right, as the score should show"
)
_HALLUCINATION_NOTE = "where nothing is hallucinated, no caption is false, so there can be no false positive"


def _with_gaps(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(term + gap for term in terms for gap in ("", GAP))


CARD = Card(
    name="quality",
    answers="quality",
    title="Quality of captions, overall and by group",
    question="How similar to human captions are those of a system, what does it hallucinate, and do groups differ?",
    formula=(
        "bleu-n: the geometric mean of the shares of n-grams of 1 to n words that a reference contains (as often), "
        "times a penalty where captions are shorter than the nearest reference; from sums over images. rouge-l: F "
        "(beta 1.2) of the longest common subsequence, best precision and best recall among references; mean over "
        "images. cider: mean over references and over n-grams of 1 to 4 words of the cosine of counts weighted by "
        "log(images / images whose references have the n-gram), counts clipped to the reference's, times "
        "exp(-(difference in length)^2 / 72), times 10; cider-plain without clip and penalty. chair-i: false "
        "mentions / mentions of objects; chair-s: captions with a false one / captions. An object is present if it "
        "is labelled or a reference names it, as published (--truth both; labels alone with --truth labels). length: "
        "words per caption. vocabulary: distinct words. X-gap: the highest less the lowest value of X among "
        "groups; its "
        "interval is of the difference between these two groups, its p from permuting groups among images."
    ),
    range="bleu, rouge-l, meteor, spice, chair, repeated: 0 to 1. cider, cider-plain: 0 to 10.",
    needs=("captions",),
    uses=("references", "objects", "attributes"),
    paper=(
        "BLEU: Papineni et al., ACL 2002. ROUGE-L: Lin, 2004. CIDEr: Vedantam, Zitnick and Parikh, CVPR 2015. "
        "METEOR: Denkowski and Lavie, 2014. SPICE: Anderson et al., ECCV 2016. CHAIR: Rohrbach et al., Object "
        "Hallucination in Image Captioning, EMNLP 2018. As computed for COCO: Chen et al., 2015 (coco-caption)."
    ),
    caveats=(
        "Similarity to human captions is not correctness: a caption that shares their stereotype scores higher.",
        "Scores depend on how many references an image has and, for cider, on which images there are; compare "
        "systems on the same ones. The human row compares each human caption with the others, which are one fewer.",
        "A gap may come from the images: people of one group may be shown in scenes that are harder to describe. "
        "The human row has its own gap for comparison.",
        "Words are those of Portrayal's tokeniser without punctuation; coco-caption's PTB tokeniser differs in "
        "about one caption of 900 (abbreviations such as t.v., a full stop inside a word).",
        "chair looks for the objects that are labelled somewhere in the study (and those of --synonyms), so a "
        "small study or one with few labels has less to be wrong about; compare systems on the same study.",
        "chair finds objects by word. What nobody labelled or named counts as hallucinated, and so do words with "
        "another "
        "meaning.",
        "chair counts people among its objects, as published; no other metric does. All words for people are one "
        "object, "
        "person, unless a list of --synonyms defines which words are for people.",
        "chair depends on who labelled: words found in captions (source 'captions') never count. With --truth both an "
        "image with references and without labels counts too, by its references alone.",
        "Several captions of one image count as one, with their mean; vocabulary is that of all of them, so that "
        "of human "
        "captions is larger.",
    ),
    terms=(
        *(Term(name, meaning, "fraction", "higher", depends_on_n=name in _SIZE_DEPENDENT)
          for name, meaning in _SCORE_TERMS.items()),
        *(Term(name, meaning, "share", "lower", 0.0) for name, meaning in _CHAIR_TERMS.items()),
        *(Term(name, meaning, _UNITS[name], depends_on_n=name in _SIZE_DEPENDENT)
          for name, meaning in _STYLE_TERMS.items()),
        Term("vocabulary", "distinct words in all captions", "count", depends_on_n=True),
        *(Term(name + GAP, f"{name}: difference between the best and the worst served group", "fraction", "lower", 0.0,
               depends_on_n=True) for name in _SCORE_TERMS),
        *(Term(name + GAP, f"{name}: largest difference between groups", "share", "lower", 0.0, depends_on_n=True)
          for name in _CHAIR_TERMS),
        *(Term(name + GAP, f"{name}: largest difference between groups", _UNITS[name], None, 0.0, depends_on_n=True)
          for name in _STYLE_TERMS),
    ),
    statements=(
        Statement(
            "cider",
            GROUPS,
            "Captions of {system} are less like human captions for {group} than for {other} (CIDEr)",
            "captions of {system} are less like human captions for one group of {attribute} (CIDEr)",
            factor=1.05,
            gap_term="cider" + GAP,
        ),
        Statement(
            "chair-i",
            GROUPS,
            "{system} names objects that are not there more often for {group} than for {other} (CHAIR-i: share of the "
            "objects it names)",
            "{system} names objects that are not there more often for one group of {attribute} (CHAIR-i)",
            smallest=0.005,
            factor=1.25,
            gap_term="chair-i" + GAP,
        ),
        Statement(
            "chair-i",
            HUMAN_CAPTIONS,
            "{system} names objects that are not there more often than human captions do (CHAIR-i: share of the "
            "objects it names)",
            "{system} names objects that are not there more often than human captions do (CHAIR-i)",
            "{system} names objects that are not there less often than human captions do (CHAIR-i: share of the "
            "objects it names)",
            smallest=0.005,
            factor=1.25,
        ),
    ),
    by_term=True,
    trade_off=TradeOff(is_bias=False, terms=("cider",), direction="more like human captions"),
    before_after=BeforeAfter(
        order=3, terms=("cider", "cider" + GAP, "bleu-4"), printed=("cider",), printed_by_group=("cider",)
    ),
    caution_terms={
        REFERENCES: _with_gaps(_SCORE_TERMS),
        # A caption that names more objects is more likely to name one that is not in the image.
        LENGTH: _with_gaps((*_SCORE_TERMS, "chair-s")),
        **dict.fromkeys((OBJECTS, UNANNOTATED), _with_gaps(_CHAIR_TERMS)),
        LABELS: tuple(f"{term}{GAP}" for term in (*_SCORE_TERMS, *_CHAIR_TERMS, *_STYLE_TERMS)),
    },
    responds_to={
        "rouge-l": "-amplification",
        "cider": "-amplification",
        "chair-i": "hallucination",
        "chair-s": "hallucination",
        "chair-i-gap": "hallucination@one",
        "chair-s-gap": "hallucination@one",
    },
    should_ignore=("data-bias", "neutral", "repetition"),
    lab_notes={
        "rouge-l": _SIMILARITY_NOTE,
        "cider": "document frequencies depend on the number of images, so there is no one true value; and "
        f"{_SIMILARITY_NOTE}",
        **dict.fromkeys(("chair-i", "chair-s", "chair-i-gap", "chair-s-gap"), _HALLUCINATION_NOTE),
    },
)  # fmt: skip
