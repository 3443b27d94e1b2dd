"""Simulate many studies of one setting and measure each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from portrayal.errors import Undefined
from portrayal.lab.curves.claims import SYSTEM, Claim, set_dials
from portrayal.lab.study import describe_scenes
from portrayal.lab.world import BIASED_ATTRIBUTE, make_scenes
from portrayal.metrics import find_metric

ALPHA = 0.05


@dataclass(frozen=True)
class Outcome:
    """The value of a term in one study, with its interval, p-value and ideal value."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    ideal: float | None = None

    @property
    def significant(self) -> bool | None:
        """Whether p is below .05 or, without a p-value, the interval excludes the ideal value.

        None where the term has neither.
        """
        if self.p is not None:
            return self.p < ALPHA
        if self.ideal is None or self.low is None or self.high is None:
            return None
        return not self.low - 1e-12 <= self.ideal <= self.high + 1e-12

    def covers(self, truth: float) -> bool | None:
        if self.low is None or self.high is None:
            return None
        return self.low - 1e-12 <= truth <= self.high + 1e-12


# Term -> an outcome per study.
Outcomes = dict[str, list[Outcome]]


def simulate(
    _: Any,
    metric: str,
    terms: Sequence[str],
    levels: Mapping[str, float],
    scenes: int,
    seeds: Sequence[int],
    bootstrap: int,
) -> Outcomes:
    """Make a study per seed and measure it. A seed gives the same scenes at all levels of the captioner's dials."""
    measured_metric = find_metric(metric)
    world, annotators, captioner = set_dials(levels)
    outcomes: Outcomes = {term: [] for term in terms}
    options: dict[str, Any] = {
        **measured_metric.quick_options,
        **({"bootstrap": bootstrap} if "bootstrap" in measured_metric.options else {}),
    }
    if measured_metric.term_option is not None:
        options[measured_metric.term_option] = tuple(
            dict.fromkeys(measured_metric.card.parse_claim(term)[0] for term in terms)
        )
    for seed in seeds:
        study = describe_scenes(
            make_scenes(scenes, seed, world),
            seed,
            annotators,
            [captioner],
            references="references" in (*measured_metric.card.needs, *measured_metric.card.uses),
            rankings="rankings" in measured_metric.card.needs,
        )
        try:
            results = measured_metric(
                study, attribute=BIASED_ATTRIBUTE, sources=[SYSTEM], seed=seed, **options
            )
        except Undefined:
            results = None
        for term in terms:
            row = Claim(metric, term, "").row(results) if results else None
            outcomes[term].append(
                Outcome() if row is None else Outcome(row.value, row.low, row.high, row.p, row.ideal)
            )
    return outcomes


def save_outcomes(outcomes: Outcomes, folder: Path) -> None:
    """Write outcomes to a folder of the checkpoint."""
    data = {term: [asdict(outcome) for outcome in term_outcomes] for term, term_outcomes in outcomes.items()}
    (folder / "outcomes.json").write_text(json.dumps(data), encoding="utf-8")


def load_outcomes(folder: Path) -> Outcomes:
    data = json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))
    return {term: [Outcome(**outcome) for outcome in term_outcomes] for term, term_outcomes in data.items()}
