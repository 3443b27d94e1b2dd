"""The simulated studies for the response curves of a metric: budgets and the settings of the studies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portrayal.engine import Task, code_digest
from portrayal.lab.curves.claims import claims_of, max_level
from portrayal.lab.curves.simulate import Outcomes, simulate
from portrayal.metrics import Metric

# Studies per task: a balance between the overhead of a task and the work that an interruption loses.
_BATCH_SIZE = 20


@dataclass(frozen=True)
class Budget:
    """Number and size of the simulated studies.

    Parameters
    ----------
    levels, sizes, studies
        Response curve: the levels of the dial, the scenes per study, and the studies per point.
    scenes
        Scenes per study wherever one size is used.
    null_studies
        Studies with the dial at 0, for the false-positive rate.
    coverage, coverage_level
        Studies for the coverage of the interval, and their level of the dial.
    truth, truths
        Scenes per study and number of the large studies that estimate the true value.
    power_levels, power_sizes, power
        Power: the levels of the dial, the scenes per study, and the studies of each.
    ignored
        Studies for each dial that should be ignored.
    n_resamples
        Bootstrap resamples of each study.
    """

    levels: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    sizes: tuple[int, ...] = (300, 1000)
    studies: int = 8
    scenes: int = 1000
    null_studies: int = 400
    coverage: int = 200
    coverage_level: float = 0.4
    truth: int = 20_000
    truths: int = 3
    power_levels: tuple[float, ...] = (0.05, 0.1, 0.2)
    power_sizes: tuple[int, ...] = (300, 1000, 3000)
    power: int = 40
    ignored: int = 30
    n_resamples: int = 200


FULL = Budget()
QUICK = Budget(
    levels=(0.0, 0.2, 0.5, 1.0),
    sizes=(600,),
    studies=4,
    scenes=600,
    null_studies=60,
    coverage=20,
    truth=5000,
    power_levels=(0.1,),
    power_sizes=(300, 600),
    power=20,
    ignored=10,
    n_resamples=100,
)


@dataclass(frozen=True)
class StudySetting:
    """A set of simulated studies: their purpose, the levels of the dials, and their size."""

    metric: str
    dial: str
    # response, null, coverage, truth, power or ignored
    part: str
    levels: tuple[tuple[str, float], ...]
    scenes: int
    studies: int

    @property
    def level(self) -> float:
        return dict(self.levels)[self.dial]

    @property
    def ignored(self) -> tuple[str, float] | None:
        """The dial that should be ignored and its level, or None."""
        return next(((dial, level) for dial, level in self.levels if dial != self.dial), None)


def settings(metric: Metric, budget: Budget) -> Iterator[StudySetting]:
    """Yield the settings of all studies that are simulated for a metric."""
    card = metric.card
    for dial in dict.fromkeys(claim.dial for claim in claims_of(card)):

        def setting_at(
            part: str,
            level: float,
            scenes: int,
            studies: int,
            *other_dials: tuple[str, float],
            dial: str = dial,
        ) -> StudySetting:
            return StudySetting(card.name, dial, part, ((dial, level), *other_dials), scenes, studies)

        for size in budget.sizes:
            for level in budget.levels:
                yield setting_at("response", level, size, budget.studies)
        yield setting_at("null", 0.0, budget.scenes, budget.null_studies)
        if budget.coverage:
            yield setting_at("coverage", budget.coverage_level, budget.scenes, budget.coverage)
            size, studies = budget.truth, budget.truths
            # The length of a ranked list does not grow with the study.
            if card.fits_model or "rankings" in card.needs:
                size, studies = budget.scenes, size * studies // budget.scenes
            for level in (0.0, budget.coverage_level):
                yield setting_at("truth", level, size, studies)
        for level in budget.power_levels:
            for size in budget.power_sizes:
                yield setting_at("power", level, size, budget.power)
        for other in card.should_ignore if budget.ignored else ():
            if other.partition("@")[0] == dial.partition("@")[0]:
                continue
            for level in (0.0, budget.coverage_level):
                for turned in (0.0, max_level(other)):
                    yield setting_at("ignored", level, budget.scenes, budget.ignored, (other, turned))


_FIRST_SEEDS = {
    "response": 0,
    "null": 10_000,
    "coverage": 20_000,
    "truth": 30_000,
    "power": 40_000,
    "ignored": 50_000,
}


def tasks(setting: StudySetting, terms: Sequence[str], n_resamples: int, seed: int) -> list[Task[Outcomes]]:
    """Return the tasks of one setting. Settings of one part share their seeds, so that studies are paired."""
    first = seed * 1_000_000 + _FIRST_SEEDS[setting.part]
    batches = []
    for start in range(0, setting.studies, _BATCH_SIZE):
        arguments = {
            "metric": setting.metric,
            "terms": list(terms),
            "levels": dict(setting.levels),
            "scenes": setting.scenes,
            "seeds": list(range(first + start, first + min(start + _BATCH_SIZE, setting.studies))),
            "bootstrap": n_resamples,
        }
        key = hashlib.sha256(json.dumps([code_digest(), arguments], sort_keys=True).encode()).hexdigest()[:24]
        turned = ", ".join(f"{dial} {level:g}" for dial, level in setting.levels)
        batches.append(Task(key, f"{setting.metric} · {setting.part} · {turned}", simulate, arguments))
    return batches
