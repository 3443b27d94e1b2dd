"""The results of a comparison of mitigation methods."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from portrayal.engine import Progress, available_cores
from portrayal.mitigate.compare import Comparison, run_comparison
from portrayal.mitigate.evaluation import EvaluationScores
from portrayal.mitigate.measurements import CARDS, MitigationMeasurements
from portrayal.provenance import command_line, provenance
from portrayal.results import Results


def compare_methods(
    comparison: Comparison,
    out: Path,
    *,
    seed: int = 0,
    n_resamples: int = 1000,
    progress: Progress | None = None,
) -> Results:
    """Train and evaluate all methods and seeds that are not cached, and return the results.

    Parameters
    ----------
    comparison
        Model, data, methods and settings.
    out
        Folder for the models and cached scores.
    seed
        Seed of the bootstrap.
    n_resamples
        Number of bootstrap resamples.
    progress
        Listener for progress.
    """
    started = time.time()
    scores: dict[str, list[EvaluationScores]] = {}
    device = comparison.model.device
    for method, _, seed_scores in run_comparison(comparison, out, None, device, available_cores(), progress):
        scores.setdefault(method.name, []).append(seed_scores)
    evaluation_set, attack = comparison.evaluation_set(), comparison.attack
    settings: dict[str, Any] = {
        "model": comparison.start,
        "data": comparison.data,
        "seeds": list(comparison.seeds),
    }
    settings |= {"steps": comparison.recipe.steps, "batch_size": comparison.recipe.batch_size}
    if evaluation_set.prompts is not None:
        settings["groups"] = list(evaluation_set.prompts.groups)
    attack_settings = {
        "epsilon": round(attack.epsilon, 6), "norm": attack.norm, "attack_steps": attack.max_steps,
        "step_size": round(attack.effective_step_size, 6), "stop_at": attack.stop_at,
    }  # fmt: skip
    results = MitigationMeasurements(
        evaluation_set, scores, comparison.attribute, settings, attack_settings, seed, n_resamples
    ).results()
    run_provenance = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study={
            "name": f"mitigation of {comparison.start.partition(' ')[0]} on {comparison.data}",
            "digest": comparison.start.rpartition(" ")[2],
            "systems": list(scores),
            "images": len({instance.image for instance in evaluation_set.instances}),
            "instances": len(evaluation_set.instances),
            "groups": {},
        },
        cards={name: card.as_dict() for name, card in CARDS.items()},
        skipped=[],
        methods={
            method.name: {"description": method.description, **comparison.hyperparameters.used_by(method)}
            for method in comparison.methods
        },
        evaluated_on=comparison.evaluated_on,
    )
    return replace(results, provenance=run_provenance)
