"""The questions that an audit answers, in the order of the page. A metric's card names the one that it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question: a section of the page, with all metrics that answer it."""

    name: str
    heading: str
    description: str


QUESTIONS = (
    Question("names", "Who is named, and rightly?",
             "Whether captions name the group of the person shown, the wrong one, or none."),
    Question("leaks", "What do captions give away?",
             "Whether a classifier can predict the group of the person shown from a caption."),
    Question("amplifies", "What is amplified?",
             "Whether captions associate groups with objects more strongly than the images do."),
    Question("associations", "Which words and things go with which group?",
             "Which words, objects and places in a list go with one group more than with others."),
    Question("changes", "What changes when only the person changes?",
             "Whether a model says something else of the same scene with somebody else in it."),
    Question("harms", "Which words harm?",
             "Which captions deny, reify, erase, stereotype or demean people."),
    Question("quality", "How good are captions, and for whom?",
             "How similar they are to human captions, what is made up, and whether that is so for every group."),
    Question("mitigation", "Does a mitigation work?",
             "How much of a bias a mitigation removes, and what it costs."),
    Question("other", "Further numbers", "What else was measured."),
)  # fmt: skip
OTHER_QUESTION = QUESTIONS[-1]
_BY_NAME = {question.name: question for question in QUESTIONS}


def question_of(card: Mapping[str, Any] | None) -> Question:
    """Return the question that a metric answers, by its card as results have it.

    >>> question_of({"answers": "harms"}).heading, question_of(None).heading
    ('Which words harm?', 'Further numbers')
    """
    name = (card or {}).get("answers")
    return _BY_NAME.get(name, OTHER_QUESTION) if isinstance(name, str) else OTHER_QUESTION
