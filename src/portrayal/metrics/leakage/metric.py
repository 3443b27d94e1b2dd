"""Leakage: what a system's labels reveal about the group of the person shown, beyond what true labels reveal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.base.options import Bootstrap, Synonyms
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.leakage.card import CARD
from portrayal.metrics.leakage.labels import HumanLabels, SourceLabels
from portrayal.metrics.leakage.measurements import LeakageMeasurements
from portrayal.metrics.shared.caption_mentions import object_finder
from portrayal.metrics.shared.classifier.cross_validation import BY_IMAGE, Protocol
from portrayal.metrics.shared.classifier.linear_classifier import MAX_C, LinearClassifier
from portrayal.metrics.shared.classifier.splits import FOLDS, REPEATS
from portrayal.stats import RESAMPLES
from portrayal.study import Study

N_PERMUTATIONS = 200  # of group labels, for the chance level
DEFAULT_C = 0.1
MIN_CONFIDENCE = 0.5


@metric(
    CARD,
    slow=True,
    quick_options={"permutations": 40},
    not_general=("confidence",),
    measured_sources=lambda study, options: (
        study.labellers if options.get("outputs") == "labels" else study.sources
    ),
    english=True,
)
def leakage(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    outputs: Annotated[
        Literal["captions", "labels"],
        "Outputs of a system: the objects that its captions name, or its labels among the study's objects.",
    ] = "captions",
    confidence: Annotated[float, "Minimum confidence of a model's label.", 0] = MIN_CONFIDENCE,
    mistakes: Annotated[
        Literal["label", "overall", "flip"],
        "How label noise is added to true labels: with the system's precision and recall of each label, or over all "
        "labels, or by flipping labels at random until its F1 is reached, as published.",
    ] = "label",
    permutations: Annotated[
        int, "Number of label permutations for the chance level; 0: none.", 0
    ] = N_PERMUTATIONS,
    C: Annotated[float, "Inverse regularisation strength C of the logistic regression.", 1e-6] = DEFAULT_C,
    folds: Annotated[int, "Number of cross-validation folds.", 2] = FOLDS,
    repeats: Annotated[int, "Number of repeats with other folds and label noise.", 1] = REPEATS,
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Leakage of each source's labels, compared with true labels that have as many errors.

    >>> import polars as pl, portrayal
    >>> n, skis = 200, lambda i: i % 2 == 0 or i % 8 == 1
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(n), "system": ["s"] * n,
    ...                            "caption": ["a person with skis" if skis(i) else "a person" for i in range(n)]}),
    ...     attributes=pl.DataFrame({"image_id": range(n), "gender": ["male", "female"] * (n // 2)}),
    ...     objects=pl.DataFrame({"image_id": range(n), "labels": [["skis"] if skis(i) else [] for i in range(n)]}))
    >>> results = portrayal.metrics.leakage(study, permutations=0)
    >>> {m.term: m.value for m in results.measurements if m.group is None and m.system == "s"}
    {'on-outputs': 0.875, 'on-truth': 0.875, 'difference': 0.0, 'predictability': 0.0, 'on-labels': 0.875, 'f1': 1.0}
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"A group can only be predicted among several, and '{attribute}' has {len(groups)}.")
    if not C <= MAX_C:
        raise PortrayalError(f"The option 'C' must be {MAX_C:g} or less. Got {C!r} instead.")
    by_captions = outputs == "captions"
    if synonyms is not None and not by_captions:
        raise PortrayalError("The option 'synonyms' is for objects found in captions, and these are labels.")
    group_of = {image: groups.index(group) for image, group in study.labels(attribute).iter_rows()}
    labels = HumanLabels.of(study, group_of, attribute)
    preconditions_met()
    settings = {
        "outputs": "captions" if by_captions else "labels",
        "confidence": None if by_captions else confidence,
        "mistakes": mistakes,
        "permutations": permutations,
        "C": C,
        "folds": folds,
        "repeats": repeats,
        "synonyms": None,
    }
    labels_of: dict[str, SourceLabels] = {}
    if by_captions:
        finder, settings["synonyms"] = object_finder(labels.names, synonyms)
        labels_of = {source: labels.from_captions(source, finder) for source in sources}
    else:
        labels_of = {source: labels.from_source(source, confidence) for source in sources}
    builder = ResultBuilder(CARD, attribute, settings)
    seeds = tuple(range(repeats * seed, repeats * (seed + 1)))
    protocol = Protocol(
        BY_IMAGE, "weights", seeds, folds, LinearClassifier(len(groups), C, scoring="accuracy")
    )
    for system, source_labels in labels_of.items():
        LeakageMeasurements(
            builder,
            system,
            source_labels,
            labels.names,
            groups,
            protocol,
            mistakes,
            permutations,
            seed,
            bootstrap,
        ).measure()
    return builder
