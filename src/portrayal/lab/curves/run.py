"""Run the simulated studies and summarise them as a response curve for every claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from portrayal.engine import Checkpoint, Progress, Task, executor_for, run_tasks
from portrayal.errors import PortrayalError
from portrayal.lab.curves.claims import Claim, claims_of
from portrayal.lab.curves.curve import (
    Curve,
    PowerEstimate,
    StudyShare,
    curve_point,
    mean_value,
    range_of,
    reaction,
    rejection_rate,
    spearman,
)
from portrayal.lab.curves.plan import FULL, QUICK, Budget, StudySetting, settings, tasks
from portrayal.lab.curves.simulate import Outcome, Outcomes, load_outcomes, save_outcomes
from portrayal.metrics import METRICS, Metric, find_metric


def curves(
    metrics: Sequence[str] | None = None,
    *,
    quick: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
    workers: int = 1,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> list[Curve]:
    """Return the response curves of metrics: one for every term whose card names a dial.

    Parameters
    ----------
    metrics
        Names of metrics; by default all that name a dial.
    quick
        Use a small budget: sooner, with rough numbers.
    budget
        Number and size of the simulated studies.
    seed
        Seed of the studies.
    workers
        Processes that work at the same time.
    checkpoint
        Folder for finished tasks; the same call resumes from it.
    progress
        Listener for progress.
    """
    chosen = list(dict.fromkeys(find_metric(name) for name in (METRICS if metrics is None else metrics)))
    for metric in chosen:
        if metrics is not None and not metric.card.responds_to:
            raise PortrayalError(f"The card of '{metric.name}' names no dial, so it has no response curve.")
    budget = budget or (QUICK if quick else FULL)
    planned = [(metric, setting) for metric in chosen for setting in settings(metric, budget)]
    work: list[Task[Outcomes]] = []
    task_ranges: list[tuple[int, int]] = []  # of each setting: its part of the tasks
    for metric, setting in planned:
        terms = [claim.term for claim in claims_of(metric.card) if claim.dial == setting.dial]
        # Of the true value, only the value is used and not its interval.
        n_resamples = 20 if setting.part == "truth" else budget.n_resamples
        setting_tasks = tasks(setting, terms, n_resamples, seed)
        task_ranges.append((len(work), len(work) + len(setting_tasks)))
        work += setting_tasks
    checkpoint_store = None if checkpoint is None else Checkpoint(checkpoint, save_outcomes, load_outcomes)
    done = run_tasks(
        work, None, executor=executor_for(workers), checkpoint=checkpoint_store, progress=progress
    )
    outcomes = {
        (metric.name, setting): _joined(done[start:end])
        for (metric, setting), (start, end) in zip(planned, task_ranges, strict=True)
    }
    return [_curve(metric, claim, outcomes, budget) for metric in chosen for claim in claims_of(metric.card)]


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    return {term: [outcome for part in parts for outcome in part[term]] for term in parts[0]}


def _curve(
    metric: Metric, claim: Claim, outcomes_of: dict[tuple[str, StudySetting], Outcomes], budget: Budget
) -> Curve:
    def part_outcomes(part: str) -> list[tuple[StudySetting, list[Outcome]]]:
        return [
            (setting, outcomes[claim.term])
            for (name, setting), outcomes in outcomes_of.items()
            if name == claim.metric and setting.dial == claim.dial and setting.part == part
        ]

    points = tuple(curve_point(s.scenes, s.level, outcomes) for s, outcomes in part_outcomes("response"))
    null_outcomes = [outcome for _, outcomes in part_outcomes("null") for outcome in outcomes]
    planted_outcomes = [outcome for _, outcomes in part_outcomes("coverage") for outcome in outcomes]
    truth = {s.level: mean_value(outcomes) for s, outcomes in part_outcomes("truth")}
    tests = any(outcome.significant is not None for outcome in null_outcomes)
    unit = metric.card.term(metric.card.parse_claim(claim.term)[0]).unit
    grows_with_n = unit == "z"  # with the size of the study, so that it has no true value to cover
    at_zero, at_level = (None if grows_with_n else truth.get(level) for level in (0.0, budget.coverage_level))
    own_range = range_of(points)
    ignored = {(s.ignored, s.level): outcomes for s, outcomes in part_outcomes("ignored")}
    reactions = []
    for dial, turned in dict.fromkeys(key for key, _ in ignored if key is not None):
        if turned:
            (before, after), (null_before, null_after) = (
                [ignored[(dial, dial_level), level] for dial_level in (0.0, turned)]
                for level in (budget.coverage_level, 0.0)
            )
            reactions.append(reaction(dial, turned, before, after, null_before, null_after, own_range))
    return Curve(
        claim.metric,
        claim.term,
        claim.dial,
        claim.falls,
        unit,
        points,
        spearman(points),
        budget.scenes,
        rejection_rate(null_outcomes),
        at_zero,
        None if at_zero is None else StudyShare.of([outcome.covers(at_zero) for outcome in null_outcomes]),
        budget.coverage_level,
        at_level,
        None
        if at_level is None
        else StudyShare.of([outcome.covers(at_level) for outcome in planted_outcomes]),
        tuple(
            PowerEstimate(s.scenes, s.level, rejection_rate(outcomes, tests))
            for s, outcomes in part_outcomes("power")
        ),
        tuple(reactions),
    )
