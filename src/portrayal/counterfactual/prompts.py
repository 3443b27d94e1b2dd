"""The prompts of CounterBias and the outputs of a model. This module needs no model."""

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
    default_templates,
)
from portrayal.counterfactual.formulas import Array

NORMALIZE_OVER = ("vocabulary", "candidates")
BIAS_NORMALIZE_OVER = ("vocabulary", "groups")
EXACT = "exact"  # counterfactual images are given, not made
ATTACKS = ("pgd", "fgsm", EXACT)


class AttackSize(NamedTuple):
    """Default size of an attack on pixels from 0 to 1."""

    epsilon: float
    step_size: float
    steps: int


# Norms and their default sizes. Small l2 steps stop sooner than steps that move every pixel alike, and damage less of
# what is not about the person.
NORMS = {"linf": AttackSize(8 / 255, 2 / 255, 10), "l2": AttackSize(8 / 255, 0.5 / 255, 20)}
DEFAULT_NORM = {"pgd": "l2", "fgsm": "linf"}  # fgsm is by definition a step of signs
BLANK_IMAGES = ("text", "gray")  # how to query a model without an image


@dataclass(frozen=True)
class Prompts:
    """The words of the two groups, the concepts, and the templates and prompts with a mask."""

    words: Mapping[str, str]  # group -> its word; positive bias is toward the first
    concepts: Mapping[str, Sequence[str]]  # kind -> candidate concepts at the mask
    templates: Sequence[Template] = field(default_factory=default_templates)
    normalize_over: Literal["vocabulary", "candidates"] = "vocabulary"
    bias_prompt: str = BIAS_PROMPT
    bias_normalize_over: Literal["vocabulary", "groups"] = "vocabulary"
    control_prompt: str = CONTROL_PROMPT
    control_words: Sequence[str] = CONTROL_WORDS

    @property
    def digest(self) -> str:
        """A digest of templates, control words, and candidates if probabilities are normalised over them."""
        content = [[template.text for template in self.templates], list(self.control_words)]
        if self.normalize_over == "candidates":
            content += [[kind, *concepts] for kind, concepts in self.concepts.items()]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]

    @property
    def groups(self) -> tuple[str, str]:
        first, second = self.words
        return first, second

    def other(self, group: str) -> str:
        first, second = self.groups
        return second if group == first else first


@dataclass(frozen=True)
class ModelOutputs:
    """Probabilities for each instance; the axis `images` has the kinds of image of `formulas`."""

    target: Array  # (instances, templates, images, texts): P(T | V, L)
    present: Array  # (instances, images): P(B | V)
    share: Array  # (instances, images): P(B' | V) / (P(B | V) + P(B' | V))
    controls: Array  # (instances, images, control words): probabilities among the control words
    moved: Array  # (instances, images): mean absolute change of a pixel
    images: Mapping[int, NDArray[np.uint8]]  # instance -> (images, height, width, 3), of those to keep
