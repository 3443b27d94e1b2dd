"""The measurements of CounterBias without an image, which compare a text-only model with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from portrayal.counterfactual.prompts import Prompts
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.means import Array
from portrayal.metrics.counterbias.terms import ALL

_TEXT_SUPPORT = 10**9  # texts are not a sample of a population, so they are never too few


def add_text_measurements(
    builder: ResultBuilder,
    model: str,
    log_probs: Mapping[tuple[str, str], Array],
    prompts: Prompts,
    settings: Mapping[str, object],
) -> None:
    """Add b@text: log P(T) without an image, in the first group's text minus in the second's."""
    names = [template.name for template in prompts.templates]
    for kind, concepts in prompts.concepts.items():
        by_concept = np.array(
            [log_probs[kind, concept][:, 0] - log_probs[kind, concept][:, 1] for concept in concepts]
        )
        n_texts = len(names) * len(concepts)
        for number, name in ((None, ALL), *enumerate(names)):
            row_builder = replace(builder, settings={**settings, "kind": kind, "template": name})
            differences = by_concept if number is None else by_concept[:, [number]]
            row_builder.add(
                "b@text", float(np.abs(differences).mean()), system=model,
                n=n_texts if number is None else len(concepts), n_unit="text", support=_TEXT_SUPPORT,
            )  # fmt: skip
            for concept, values in zip(concepts, differences, strict=True):
                row_builder.add(
                    "b@text", float(values.mean()), system=model, item=concept, n=len(values), n_unit="text",
                    support=_TEXT_SUPPORT,
                )  # fmt: skip
