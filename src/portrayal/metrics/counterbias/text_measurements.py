"""The rows of CounterBias that need no picture, so that a model of texts alone can stand beside others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from portrayal.counterfactual.prompts import Questions
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.means import Array
from portrayal.metrics.counterbias.terms import ALL

_NO_IMAGES = 10**9  # rests on texts, of which there are no others to draw: they are never too few


def text_rows(
    builder: ResultBuilder,
    model: str,
    said: Mapping[tuple[str, str], Array],
    questions: Questions,
    settings: Mapping[str, object],
) -> None:
    """b@text: without a picture, log P(T) in the first group's text less that in the second's."""
    names = [template.name for template in questions.templates]
    for kind, concepts in questions.concepts.items():
        by_concept = np.array([said[kind, concept][:, 0] - said[kind, concept][:, 1] for concept in concepts])
        asked = len(names) * len(concepts)
        for number, name in ((None, ALL), *enumerate(names)):
            builder.settings = {**settings, "kind": kind, "template": name}
            some = by_concept if number is None else by_concept[:, [number]]
            builder.add(
                "b@text", float(np.abs(some).mean()), system=model, n=asked if number is None else len(concepts),
                n_unit="text", support=_NO_IMAGES,
            )  # fmt: skip
            for concept, values in zip(concepts, some, strict=True):
                builder.add(
                    "b@text", float(values.mean()), system=model, item=concept, n=len(values), n_unit="text",
                    support=_NO_IMAGES,
                )  # fmt: skip
