"""The questions that an audit answers, and which metrics answer them: the order of the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    name: str
    heading: str
    asks: str
    metrics: tuple[str, ...]


QUESTIONS = (
    Question("names", "Who is named, and rightly?",
             "Whether captions name the group of the person shown, the wrong one, or none.", ("error", "naming-ratio")),
    Question("leaks", "What do captions give away?",
             "Whether a classifier can predict the group of the person shown from a caption.", ("lic",)),
    Question("amplifies", "What is amplified?",
             "Whether captions tie groups to objects more strongly than the images do.", ("amplification", "leakage")),
    Question("ties", "Which words and things go with whom?",
             "Which words, objects and places in a list go with one group more than with others.",
             ("cooccurrence", "word-odds", "object-distance", "gender-score", "gender-estimation", "cloze",
              "retrieval-skew")),
    Question("changes", "What changes when only the person changes?",
             "Whether a model says something else of the same scene with somebody else in it.", ("counterbias",)),
    Question("harms", "Which words harm?",
             "Which captions deny, reify, erase, stereotype or demean people.", ("harms",)),
    Question("quality", "How good are captions, and for whom?",
             "How like people's captions they are, what is made up, and whether that is so for every group.",
             ("quality", "retrieval-recall")),
    Question("remedies", "Does a remedy work?",
             "How much of a bias a remedy takes away, and what it costs.", ("mitigation", "remedy")),
)  # fmt: skip
OTHER = Question("other", "Further numbers", "What else was measured.", ())
_OF = {metric: question for question in QUESTIONS for metric in question.metrics}


def question_of(metric: str) -> Question:
    return _OF.get(metric, OTHER)
