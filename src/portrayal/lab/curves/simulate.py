"""Many studies of one setting, measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from portrayal.errors import Undefined
from portrayal.lab.curves.claims import SYSTEM, Claim, arrange
from portrayal.lab.study import describe_scenes
from portrayal.lab.world import LEANING, make_scenes
from portrayal.metrics import find_metric

ALARM = 0.05


@dataclass(frozen=True)
class Outcome:
    """What one study says of one term."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    ideal: float | None = None

    @property
    def alarm(self) -> bool | None:
        """Does it claim that something is there: p below .05, else an interval without the ideal value?

        None where the term makes no such claim: it has neither.
        """
        if self.p is not None:
            return self.p < ALARM
        if self.ideal is None or self.low is None or self.high is None:
            return None
        return not self.low - 1e-12 <= self.ideal <= self.high + 1e-12

    def covers(self, truth: float) -> bool | None:
        if self.low is None or self.high is None:
            return None
        return self.low - 1e-12 <= truth <= self.high + 1e-12


Outcomes = dict[str, list[Outcome]]  # term -> an outcome per study


def simulate(
    _: Any,
    metric: str,
    terms: Sequence[str],
    levels: Mapping[str, float],
    scenes: int,
    seeds: Sequence[int],
    n_resamples: int,
) -> Outcomes:
    """Make a study per seed and measure it. The same seed gives the same scenes whatever the dials are at."""
    found = find_metric(metric)
    world, annotators, captioner = arrange(levels)
    outcomes: Outcomes = {term: [] for term in terms}
    options: dict[str, Any] = {
        **found.quick,
        **({"bootstrap": n_resamples} if "bootstrap" in found.options else {}),
    }
    if found.by_term is not None:
        options[found.by_term] = tuple(dict.fromkeys(found.card.claimed(term)[0] for term in terms))
    for seed in seeds:
        study = describe_scenes(
            make_scenes(scenes, seed, world),
            seed,
            annotators,
            [captioner],
            references="references" in (*found.card.needs, *found.card.uses),
            rankings="rankings" in found.card.needs,
        )
        try:
            results = found(study, attribute=LEANING, sources=[SYSTEM], seed=seed, **options)
        except Undefined:
            results = None
        for term in terms:
            row = Claim(metric, term, "").row(results) if results else None
            outcomes[term].append(
                Outcome() if row is None else Outcome(row.value, row.low, row.high, row.p, row.ideal)
            )
    return outcomes


def save(outcomes: Outcomes, folder: Path) -> None:
    """Written as a journal keeps it."""
    made = {term: [asdict(one) for one in several] for term, several in outcomes.items()}
    (folder / "outcomes.json").write_text(json.dumps(made), encoding="utf-8")


def load(folder: Path) -> Outcomes:
    made = json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))
    return {term: [Outcome(**one) for one in several] for term, several in made.items()}
