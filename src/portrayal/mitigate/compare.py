"""Train and evaluate several methods over several seeds, and cache the results."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from portrayal.counterfactual.attack import Attack
from portrayal.mitigate.evaluation import EvaluationScores, EvaluationSet, evaluate
from portrayal.mitigate.methods import Hyperparameters, Method
from portrayal.mitigate.training import TrainingPlan, fine_tune_retrieval, train_mitigated
from portrayal.mitigate.training_data import TrainingData
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.training import TrainingConfig

MODELS, SCORES = "models", "scores"
# Called with the step, the number of finished units, and the number of all units.
ReportProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Comparison:
    """A comparison of methods. Data are functions, so that they are made only if a result is not cached."""

    model: TorchMaskedVLM
    start: str
    data: str
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    recipe: TrainingConfig
    retrieval_recipe: TrainingConfig  # fine-tuning for retrieval, of each mitigated model
    hyperparameters: Hyperparameters
    attack: Attack
    evaluated_on: str  # description of the evaluation set
    attribute: str
    training_data: Callable[[], TrainingData]
    evaluation_set: Callable[[], EvaluationSet]

    def plan(self, method: Method, seed: int) -> TrainingPlan:
        return TrainingPlan(
            self.start, self.data, method, self.hyperparameters, replace(self.recipe, seed=seed)
        )

    def scores_file(self, out: Path, method: Method, seed: int) -> Path:
        """Return the cache file of the scores; its name has a digest of all settings that determine them."""
        settings = [
            self.plan(method, seed).digest,
            self.evaluated_on,
            self.attack,
            replace(self.retrieval_recipe, precision="float32"),
        ]
        digest = hashlib.sha256(json.dumps([*map(str, settings)]).encode()).hexdigest()[:12]
        return out / SCORES / f"{method.name}-{seed}-{digest}.npz"


def run_comparison(
    comparison: Comparison,
    out: Path,
    only: Sequence[tuple[str, int]] | None = None,
    device: str = "cpu",
    cores: int = 1,
    report_progress: ReportProgress | None = None,
) -> Iterator[tuple[Method, int, EvaluationScores]]:
    """Yield the scores of the mitigated model for every method and seed, or for those in `only`.

    Cached scores are read instead of computed.
    """
    # Seconds, of each job that was not cached.
    durations: list[float] = []
    jobs = [(method, seed) for seed in comparison.seeds for method in comparison.methods]
    for index, (method, seed) in enumerate(jobs):
        if only is not None and (method.name, seed) not in only:
            continue
        file = comparison.scores_file(out, method, seed)
        if not file.is_file():
            title = f"{index + 1} of {len(jobs)}{_time_left(durations, len(jobs) - index)}: {method.name}, seed {seed}"
            started = time.monotonic()
            _train_and_evaluate(
                comparison, out, method, seed, device, cores, _titled(report_progress, title)
            ).save(file)
            durations.append(time.monotonic() - started)
        yield method, seed, EvaluationScores.load(file)


def _train_and_evaluate(
    comparison: Comparison,
    out: Path,
    method: Method,
    seed: int,
    device: str,
    cores: int,
    report_progress: ReportProgress | None,
) -> EvaluationScores:
    plan = comparison.plan(method, seed)
    model = train_mitigated(
        comparison.model,
        comparison.training_data(),
        plan,
        out / MODELS / f"{method.name}-{seed}",
        device,
        None if report_progress is None else lambda done, total: report_progress("training", done, total),
    )
    evaluation_set, fine_tuned = comparison.evaluation_set(), None
    if evaluation_set.pool is not None:
        retrieval_recipe = replace(comparison.retrieval_recipe, seed=seed)
        fine_tuned = fine_tune_retrieval(model, comparison.training_data().pairs, retrieval_recipe, device)
    return evaluate(
        model, fine_tuned, evaluation_set, comparison.attack, cores=cores, report_progress=report_progress
    )


def _time_left(durations: Sequence[float], remaining: int) -> str:
    """Return the expected remaining time as text, given the durations of finished jobs in seconds.

    >>> _time_left([60, 120], 4)
    ', about 6 min left'
    """
    if not durations:
        return ""
    return f", about {max(1, round(sum(durations) / len(durations) * remaining / 60))} min left"


def _titled(report_progress: ReportProgress | None, title: str) -> ReportProgress | None:
    return (
        None
        if report_progress is None
        else lambda step, done, total: report_progress(f"{title}, {step}", done, total)
    )
