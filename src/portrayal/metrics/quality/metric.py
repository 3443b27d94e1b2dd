"""How good captions are, for whom: the usual scores of captions, overall and by group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from portrayal.errors import PortrayalError
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Kept, Synonyms
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.quality import meteor, spice
from portrayal.metrics.quality.captions import Objects, read_speaker
from portrayal.metrics.quality.measurements import GAP, Rows
from portrayal.metrics.quality.scores import Measured, measure
from portrayal.results import HUMAN
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, Statement
from portrayal.stats import RESAMPLES
from portrayal.study import Study
from portrayal.study.cautions import LABELS, LENGTH, OBJECTS, REFERENCES, UNANNOTATED

_SCORES = {
    "bleu-1": "words of the caption that a reference has too",
    "bleu-2": "the same with pairs of words",
    "bleu-3": "the same with runs of three",
    "bleu-4": "the same with runs of four",
    "rouge-l": "longest common subsequence with a reference",
    "cider": "likeness to the references, rare words counting more (CIDEr-D, as coco-caption prints it)",
    "cider-plain": "CIDEr as first published: nothing clipped, no penalty for length",
    "meteor": "words matched by form, stem, synonym and paraphrase (needs Java)",
    "spice": "objects, attributes and relations shared with the references (needs Java)",
}
_FALSE = {
    "chair-i": "mentions of objects that are of things not in the image",
    "chair-s": "captions that mention something not in the image",
}
_STYLE = {"length": "words a caption has", "repeated": "captions said of another image too"}
# Which images there are decides what is rare, and how many decides how often captions repeat each other.
_OF_ALL = ("cider", "cider-plain", "repeated")
_UNITS = {"length": "words", "repeated": "share"}

_LIKE = (
    "a caption that says less of the person, or is a stock sentence, is less like people's, and where the world is "
    "more biased a stereotype is more often right, as the score should say"
)
_NONE = "where nothing is made up, no caption says anything false, so there is nothing to alarm at"


def _with_gaps(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(term + gap for term in terms for gap in ("", GAP))


CARD = Card(
    name="quality",
    title="How good captions are, and for whom",
    question="How like people's captions are a system's, what does it make up, and is it as good for every group?",
    formula=(
        "bleu-n: the geometric mean of the shares of runs of 1 to n words that a reference has too (as often), "
        "times a penalty where captions are shorter than the nearest reference; from sums over images. rouge-l: F "
        "(beta 1.2) of the longest common subsequence, best precision and best recall among references; mean over "
        "images. cider: mean over references and over runs of 1 to 4 words of the cosine of counts weighted by "
        "log(images / images whose references have the run), counts clipped to the reference's, times "
        "exp(-(difference in length)^2 / 72), times 10; cider-plain without clip and penalty. chair-i: false "
        "mentions / mentions of objects; chair-s: captions with a false one / captions. An object is there if it "
        "is labelled or a reference names it, as published (--truth both; labels alone with --truth labels). length: "
        "words a caption. vocabulary: different words. X-gap: the highest less the lowest value of X among groups; its "
        "interval is of the difference between these two groups, its p from dealing groups to images anew."
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
        "Likeness to people's captions is not being right: a caption that shares people's stereotype scores higher.",
        "Scores depend on how many references an image has and, for cider, on which images there are; compare "
        "systems on the same ones. People's row holds each person against the others, who are one fewer.",
        "A gap may come from the images: people of one group may be shown in scenes that are harder to describe. "
        "The human row has its own gap for comparison.",
        "Words are those of Portrayal's tokeniser without punctuation; coco-caption's PTB tokeniser differs in "
        "about one caption of 900 (abbreviations such as t.v., a full stop inside a word).",
        "chair looks for the objects that are labelled somewhere in the study (and those of --synonyms), so a "
        "small study or one with few labels has less to be wrong about; compare systems on the same study.",
        "chair finds objects by word. What nobody labelled or named counts as made up, and so do words with another "
        "meaning.",
        "chair counts people among its objects, as published; no other metric does. Whoever is named is one object, "
        "person, unless a list of --synonyms says which words are for people.",
        "chair rests on who labelled: words found in captions (source 'captions') never count. With --truth both an "
        "image with references and without labels counts too, by its references alone.",
        "Several captions of one image count as one, with their mean; vocabulary is of all of them, so people's "
        "is larger.",
    ),
    terms=(
        *(Term(name, told, "fraction", "higher", depends_on_n=name in _OF_ALL) for name, told in _SCORES.items()),
        *(Term(name, told, "share", "lower", 0.0) for name, told in _FALSE.items()),
        *(Term(name, told, _UNITS[name], depends_on_n=name in _OF_ALL) for name, told in _STYLE.items()),
        Term("vocabulary", "different words in all captions", "count", depends_on_n=True),
        *(Term(name + GAP, f"{name}: the best served group less the worst", "fraction", "lower", 0.0,
               depends_on_n=True) for name in _SCORES),
        *(Term(name + GAP, f"{name}: largest difference between groups", "share", "lower", 0.0, depends_on_n=True)
          for name in _FALSE),
        *(Term(name + GAP, f"{name}: largest difference between groups", _UNITS[name], None, 0.0, depends_on_n=True)
          for name in _STYLE),
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
    cautioned={
        REFERENCES: _with_gaps(_SCORES),
        LENGTH: _with_gaps((*_SCORES, "chair-s")),  # the more objects a caption names, the likelier one is not there
        **dict.fromkeys((OBJECTS, UNANNOTATED), _with_gaps(_FALSE)),
        LABELS: tuple(f"{term}{GAP}" for term in (*_SCORES, *_FALSE, *_STYLE)),
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
        "rouge-l": _LIKE,
        "cider": f"how rare a word is depends on how many images there are, so there is no one true value; and {_LIKE}",
        **dict.fromkeys(("chair-i", "chair-s", "chair-i-gap", "chair-s-gap"), _NONE),
    },
)  # fmt: skip


@metric(CARD, every_attribute=True, own=("confidence",), english=("chair-i", "chair-s"))
def quality(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    java: Annotated[
        Literal["no", "auto", "yes"],
        "METEOR and SPICE, which need Java and the extra 'meteor': leave out, give where they can run, or insist on "
        "METEOR.",
    ] = "no",
    truth: Annotated[
        Literal["both", "labels", "captions"],
        "What is in an image, for chair: what is labelled, what references name, or either (both, as published).",
    ] = "both",
    confidence: Annotated[
        float,
        "How sure a model must be of a label for it to count for chair, where people labelled nothing.",
        0,
    ] = 0.5,
    synonyms: Synonyms = None,
    evidence: Kept = 100,
) -> ResultBuilder:
    """Scores of every speaker's captions, of all images, of each group, and how far groups are apart.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["s", "s"], "caption": ["a dog runs", "a red bus"]}),
    ...     references=pl.DataFrame({"image_id": [1, 2], "caption": ["a dog runs", "a blue bus"]}))
    >>> found = portrayal.metrics.quality(study)
    >>> round(next(m.value for m in found.measurements if m.term == "bleu-1" and m.system == "s"), 4)
    0.8333
    """
    programs = _programs(java)
    preconditions_met()
    running = tuple(name for name, lack in programs.items() if lack is None)
    view = _objects(study, truth, synonyms, confidence)
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "java": java,
        "truth": truth if view else None,
        "objects": view.source if view else None,
        "confidence": confidence if view and view.source != HUMAN else None,
        "synonyms": view.synonyms if view else None,
    }
    builder = ResultBuilder(CARD, attribute, settings, keep_all=evidence == 0)
    for source in sources:
        told = read_speaker(study, source)
        measured = _measured(study, source, truth, synonyms, confidence, running)
        Rows(builder, source, told, measured, labels, seed, bootstrap, evidence).write(programs, view)
    return builder


@lru_cache(maxsize=2)
def _objects(study: Study, truth: str, synonyms: str | None, confidence: float) -> Objects | None:
    return Objects.of(study, truth, synonyms, confidence)


@lru_cache(maxsize=8)
def _measured(
    study: Study,
    source: str,
    truth: str,
    synonyms: str | None,
    confidence: float,
    programs: tuple[str, ...],
) -> Measured:
    """Kept, since captions are as good whichever attribute splits them."""
    return measure(read_speaker(study, source), _objects(study, truth, synonyms, confidence), programs)


def _programs(java: str) -> dict[str, str | None]:
    """The Java programs asked for, with the reason why one cannot run."""
    if java == "no":
        return {}
    found = {"meteor": meteor.lacking(), "spice": spice.lacking()}
    if java == "yes" and found["meteor"]:
        raise PortrayalError(f"{found['meteor']}.")
    if found["spice"] and java == "auto":
        del found["spice"]  # its files come with no package, so hardly anyone has them
    return found
