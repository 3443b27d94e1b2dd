"""Run the studies of a plan on the engine and draw a curve for every claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from portrayal.engine import Checkpoint, Progress, Task, executor_for, run_tasks
from portrayal.errors import PortrayalError
from portrayal.lab.curves.claims import Claim, claims_of
from portrayal.lab.curves.curve import (
    Curve,
    Power,
    Share,
    alarm_share,
    mean_value,
    range_of,
    reaction,
    response,
    spearman,
)
from portrayal.lab.curves.plan import FULL, QUICK, Budget, Setting, settings, tasks
from portrayal.lab.curves.simulate import Outcome, Outcomes, load, save
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
    """A curve for every term of these metrics (by default of all) whose card names a dial."""
    chosen = list(dict.fromkeys(find_metric(name) for name in (METRICS if metrics is None else metrics)))
    for metric in chosen:
        if metrics is not None and not metric.card.responds_to:
            raise PortrayalError(f"The card of '{metric.name}' names no dial to hold it against.")
    budget = budget or (QUICK if quick else FULL)
    planned = [(metric, setting) for metric in chosen for setting in settings(metric, budget)]
    work: list[Task[Outcomes]] = []
    places: list[tuple[int, int]] = []  # of each setting: its part of the tasks
    for metric, setting in planned:
        terms = [claim.term for claim in claims_of(metric.card) if claim.dial == setting.dial]
        n_resamples = (
            20 if setting.part == "truth" else budget.n_resamples
        )  # of the truth only the value is wanted
        made = tasks(setting, terms, n_resamples, seed)
        places.append((len(work), len(work) + len(made)))
        work += made
    kept = None if checkpoint is None else Checkpoint(checkpoint, save, load)
    done = run_tasks(work, None, executor=executor_for(workers), checkpoint=kept, progress=progress)
    found = {
        (metric.name, setting): _joined(done[start:end])
        for (metric, setting), (start, end) in zip(planned, places, strict=True)
    }
    return [_curve(metric, claim, found, budget) for metric in chosen for claim in claims_of(metric.card)]


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    return {term: [one for part in parts for one in part[term]] for term in parts[0]}


def _curve(metric: Metric, claim: Claim, found: dict[tuple[str, Setting], Outcomes], budget: Budget) -> Curve:
    def of(part: str) -> list[tuple[Setting, list[Outcome]]]:
        return [
            (setting, outcomes[claim.term])
            for (name, setting), outcomes in found.items()
            if name == claim.metric and setting.dial == claim.dial and setting.part == part
        ]

    points = tuple(response(s.scenes, s.level, outcomes) for s, outcomes in of("response"))
    nothing = [one for _, outcomes in of("alarm") for one in outcomes]
    something = [one for _, outcomes in of("coverage") for one in outcomes]
    truth = {s.level: mean_value(outcomes) for s, outcomes in of("truth")}
    tests = any(one.alarm is not None for one in nothing)
    unit = metric.card.term(metric.card.claimed(claim.term)[0]).unit
    grows = unit == "z"  # with the size of the study, so that it has no true value to cover
    at_zero, at_level = (None if grows else truth.get(level) for level in (0.0, budget.coverage_level))
    own_range = range_of(points)
    ignored = {(s.ignored, s.level): outcomes for s, outcomes in of("ignored")}
    reactions = []
    for dial, turned in dict.fromkeys(key for key, _ in ignored if key is not None):
        if turned:
            (before, after), (quiet, loud) = (
                [ignored[(dial, place), level] for place in (0.0, turned)]
                for level in (budget.coverage_level, 0.0)
            )
            reactions.append(reaction(dial, turned, before, after, quiet, loud, own_range))
    return Curve(
        claim.metric,
        claim.term,
        claim.dial,
        claim.falls,
        unit,
        points,
        spearman(points),
        budget.scenes,
        alarm_share(nothing),
        at_zero,
        None if at_zero is None else Share.of([one.covers(at_zero) for one in nothing]),
        budget.coverage_level,
        at_level,
        None if at_level is None else Share.of([one.covers(at_level) for one in something]),
        tuple(Power(s.scenes, s.level, alarm_share(outcomes, tests)) for s, outcomes in of("power")),
        tuple(reactions),
    )
