"""The questions that an audit answers and their metrics, in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question as a section of the page, and the metrics that answer it."""

    name: str
    heading: str
    description: str
    metrics: tuple[str, ...]


QUESTIONS = (
    Question("names", "Who is named, and rightly?",
             "Whether captions name the group of the person shown, the wrong one, or none.", ("error", "naming-ratio")),
    Question("leaks", "What do captions give away?",
             "Whether a classifier can predict the group of the person shown from a caption.", ("lic",)),
    Question("amplifies", "What is amplified?",
             "Whether captions associate groups with objects more strongly than the images do.",
             ("amplification", "leakage")),
    Question("associations", "Which words and things go with which group?",
             "Which words, objects and places in a list go with one group more than with others.",
             ("cooccurrence", "word-odds", "object-distance", "gender-score", "gender-estimation", "cloze",
              "retrieval-skew")),
    Question("changes", "What changes when only the person changes?",
             "Whether a model says something else of the same scene with somebody else in it.", ("counterbias",)),
    Question("harms", "Which words harm?",
             "Which captions deny, reify, erase, stereotype or demean people.", ("harms",)),
    Question("quality", "How good are captions, and for whom?",
             "How similar they are to human captions, what is made up, and whether that is so for every group.",
             ("quality", "retrieval-recall")),
    Question("mitigation", "Does a mitigation work?",
             "How much of a bias a mitigation removes, and what it costs.", ("mitigation", "caption-mitigation")),
)  # fmt: skip
OTHER_QUESTION = Question("other", "Further numbers", "What else was measured.", ())
_QUESTION_BY_METRIC = {metric: question for question in QUESTIONS for metric in question.metrics}


def question_of(metric: str) -> Question:
    """The question that a metric answers; `OTHER_QUESTION` for a metric that is not listed."""
    return _QUESTION_BY_METRIC.get(metric, OTHER_QUESTION)
