"""What is asked of a model, and its answers: nothing here needs one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from portrayal.counterfactual.concepts import (
    BIAS_PROMPT,
    CONTROL_PROMPT,
    CONTROL_WORDS,
    Template,
    usual_templates,
)
from portrayal.counterfactual.formulas import Array

OVER = ("vocabulary", "candidates")
BIAS_OVER = ("vocabulary", "groups")
EXACT = "exact"  # the other picture is given, and not made
ATTACKS = ("pgd", "fgsm", EXACT)


class Stride(NamedTuple):
    """How far an attack moves pixels, from 0 to 1, in how many steps of which size."""

    epsilon: float
    step_size: float
    steps: int


# What limits an attack, and how it goes unless something else is said. Small steps of l2 stop sooner and damage less
# of what is not about the person than steps that move every pixel alike.
NORMS = {"linf": Stride(8 / 255, 2 / 255, 10), "l2": Stride(8 / 255, 0.5 / 255, 20)}
USUAL_NORM = {"pgd": "l2", "fgsm": "linf"}  # the latter is by its name a step of signs
NONE = ("text", "gray")  # how no picture is shown


@dataclass(frozen=True)
class Questions:
    """What is asked, and of which two groups."""

    words: Mapping[str, str]  # of the two groups; bias is toward the first
    concepts: Mapping[str, Sequence[str]]  # kind -> the concepts among which a mask is filled
    templates: Sequence[Template] = field(default_factory=usual_templates)
    normalize_over: Literal["vocabulary", "candidates"] = "vocabulary"
    bias_prompt: str = BIAS_PROMPT
    bias_normalize_over: Literal["vocabulary", "groups"] = "vocabulary"
    control_prompt: str = CONTROL_PROMPT
    control_words: Sequence[str] = CONTROL_WORDS

    @property
    def digest(self) -> str:
        """Tells questions from others: templates, words of the placebo, and candidates where they matter."""
        asked = [[template.text for template in self.templates], list(self.control_words)]
        if self.normalize_over == "candidates":
            asked += [[kind, *concepts] for kind, concepts in self.concepts.items()]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:8]

    @property
    def groups(self) -> tuple[str, str]:
        first, second = self.words
        return first, second

    def other(self, group: str) -> str:
        first, second = self.groups
        return second if group == first else first


@dataclass(frozen=True)
class Answers:
    """Probabilities, a row for each instance; the last axis of what is seen is the picture (see `formulas`)."""

    target: Array  # (instances, templates, pictures, texts): P(T | V, L)
    present: Array  # (instances, pictures): P(B | V)
    share: Array  # (instances, pictures): P(B' | V) of P(B | V) and P(B' | V) together
    controls: Array  # (instances, pictures, control words): among the control words
    moved: Array  # (instances, pictures): mean distance of a pixel from where it was
    seen: Mapping[int, NDArray[np.uint8]]  # instance -> (pictures, height, width, 3), of those to be shown
