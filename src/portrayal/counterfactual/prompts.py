"""The prompts of CounterBias, and the probabilities that a model gives for them. This module does not need PyTorch."""

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
EXACT = "exact"  # the counterfactual images of the manifest are used
ATTACKS = ("pgd", "fgsm", EXACT)


class AttackSize(NamedTuple):
    """Default size of an attack on pixels from 0 to 1."""

    epsilon: float
    step_size: float
    steps: int


# Default attack sizes. An l2 attack takes smaller steps and stops sooner than an linf attack, which changes all pixels
# by the same amount. It therefore damages less of the image that is unrelated to the person.
NORMS = {"linf": AttackSize(8 / 255, 2 / 255, 10), "l2": AttackSize(8 / 255, 0.5 / 255, 20)}
DEFAULT_NORM = {"pgd": "l2", "fgsm": "linf"}  # fgsm is defined as one step along the sign of the gradient
BLANK_IMAGES = ("text", "gray")  # how to query a model without an image


@dataclass(frozen=True)
class Prompts:
    """The words of the two groups, the concepts, and the texts with a mask: templates, bias prompt, control prompt."""

    words: Mapping[str, str]  # group -> its word; a positive bias is toward the first group
    concepts: Mapping[str, Sequence[str]]  # kind -> candidate concepts at the mask
    templates: Sequence[Template] = field(default_factory=default_templates)
    normalize_over: Literal["vocabulary", "candidates"] = "vocabulary"
    bias_prompt: str = BIAS_PROMPT
    bias_normalize_over: Literal["vocabulary", "groups"] = "vocabulary"
    control_prompt: str = CONTROL_PROMPT
    control_words: Sequence[str] = CONTROL_WORDS

    @property
    def digest(self) -> str:
        """Return a digest of the templates, the control words, and the candidates if probabilities depend on them."""
        content = [[template.text for template in self.templates], list(self.control_words)]
        if self.normalize_over == "candidates":
            content += [[kind, *concepts] for kind, concepts in self.concepts.items()]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]

    @property
    def groups(self) -> tuple[str, str]:
        first, second = self.words
        return first, second

    def other_group(self, group: str) -> str:
        first, second = self.groups
        return second if group == first else first


@dataclass(frozen=True)
class ModelOutputs:
    """The probabilities that a model gives for each instance; nan where undefined.

    The axis `images` has the factual image, the counterfactual one and, if there is one, the placebo. The axis `texts`
    has the text with the word of the person's own group and the one with the word of the other. See `formulas` for the
    symbols.
    """

    concept_probs: Array  # (instances, templates, images, texts): P(T | V, L)
    group_probs: Array  # (instances, images): P(B | V), for the own group B
    other_group_share: (
        Array  # (instances, images): P(B' | V) / (P(B | V) + P(B' | V)), for the other group B'
    )
    control_probs: Array  # (instances, images, control words): probabilities among the control words
    pixel_change: Array  # (instances, images): mean absolute change of a pixel from the factual image
    images: Mapping[int, NDArray[np.uint8]]  # index of an instance -> (images, height, width, 3)
