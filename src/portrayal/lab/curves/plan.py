"""Which studies are made to check a metric: budgets, and the settings they buy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portrayal.engine import Task, code_digest
from portrayal.lab.curves.claims import claims_of, highest
from portrayal.lab.curves.simulate import Outcomes, simulate
from portrayal.metrics import Metric

_BATCH = 20  # studies of a task: long enough to be worth sending, short enough to be done again


@dataclass(frozen=True)
class Budget:
    """How many studies of how many scenes."""

    levels: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    sizes: tuple[int, ...] = (300, 1000)  # scenes of a study on the response curve
    studies: int = 8  # at each of its points
    scenes: int = 1000  # of a study wherever one size is used
    alarms: int = 400  # studies at 0, for the rate of false alarms
    coverage: int = 200  # studies at a level where there is something to find
    coverage_level: float = 0.4
    truth: int = 20_000  # scenes of the studies that stand for the truth
    truths: int = 3  # such studies
    power_levels: tuple[float, ...] = (0.05, 0.1, 0.2)
    power_sizes: tuple[int, ...] = (300, 1000, 3000)
    power: int = 40
    ignored: int = 30  # studies for each dial that should be ignored
    n_resamples: int = 200


FULL = Budget()
QUICK = Budget(
    levels=(0.0, 0.2, 0.5, 1.0),
    sizes=(600,),
    studies=4,
    scenes=600,
    alarms=60,
    coverage=20,
    truth=5000,
    power_levels=(0.1,),
    power_sizes=(300, 600),
    power=20,
    ignored=10,
    n_resamples=100,
)


@dataclass(frozen=True)
class Setting:
    """Studies of one kind: what they are for, where the dials are, how large they are."""

    metric: str
    dial: str
    part: str  # response, alarm, coverage, truth, power, ignored
    levels: tuple[tuple[str, float], ...]
    scenes: int
    studies: int

    @property
    def level(self) -> float:
        return dict(self.levels)[self.dial]

    @property
    def ignored(self) -> tuple[str, float] | None:
        """The dial that should be ignored, and where it is."""
        return next(((dial, level) for dial, level in self.levels if dial != self.dial), None)


def settings(metric: Metric, budget: Budget) -> Iterator[Setting]:
    """Everything that is simulated for a metric."""
    card = metric.card
    for dial in dict.fromkeys(claim.dial for claim in claims_of(card)):

        def at(
            part: str, level: float, scenes: int, studies: int, *others: tuple[str, float], dial: str = dial
        ) -> Setting:
            return Setting(card.name, dial, part, ((dial, level), *others), scenes, studies)

        for size in budget.sizes:
            for level in budget.levels:
                yield at("response", level, size, budget.studies)
        yield at("alarm", 0.0, budget.scenes, budget.alarms)
        if budget.coverage:
            yield at("coverage", budget.coverage_level, budget.scenes, budget.coverage)
            size, studies = budget.truth, budget.truths
            if card.learns or "rankings" in card.needs:  # lists are as long however large the study
                size, studies = budget.scenes, size * studies // budget.scenes
            for level in (0.0, budget.coverage_level):
                yield at("truth", level, size, studies)
        for level in budget.power_levels:
            for size in budget.power_sizes:
                yield at("power", level, size, budget.power)
        for other in card.should_ignore if budget.ignored else ():
            if other.partition("@")[0] == dial.partition("@")[0]:
                continue
            for level in (0.0, budget.coverage_level):
                for turned in (0.0, highest(other)):
                    yield at("ignored", level, budget.scenes, budget.ignored, (other, turned))


_FIRST_SEED = {
    "response": 0,
    "alarm": 10_000,
    "coverage": 20_000,
    "truth": 30_000,
    "power": 40_000,
    "ignored": 50_000,
}


def tasks(setting: Setting, terms: Sequence[str], n_resamples: int, seed: int) -> list[Task[Outcomes]]:
    """The work of one setting in batches. Settings of one part share their seeds, so that they can be compared."""
    first = seed * 1_000_000 + _FIRST_SEED[setting.part]
    made = []
    for start in range(0, setting.studies, _BATCH):
        arguments = {
            "metric": setting.metric,
            "terms": list(terms),
            "levels": dict(setting.levels),
            "scenes": setting.scenes,
            "seeds": list(range(first + start, first + min(start + _BATCH, setting.studies))),
            "bootstrap": n_resamples,
        }
        key = hashlib.sha256(json.dumps([code_digest(), arguments], sort_keys=True).encode()).hexdigest()[:24]
        turned = ", ".join(f"{dial} {level:g}" for dial, level in setting.levels)
        made.append(Task(key, f"{setting.metric} · {setting.part} · {turned}", simulate, arguments))
    return made
