"""Several methods over several seeds: each trained and examined, one after the other, and kept."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from portrayal.counterfactual.attack import Attack
from portrayal.mitigate.evaluation import Exam, Marks, examine
from portrayal.mitigate.methods import Dose, Method
from portrayal.mitigate.training import Plan, fitted_to_searching, remedied
from portrayal.mitigate.training_data import Material
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.training import Recipe

MODELS, MARKS = "models", "marks"
ReportProgress = Callable[[str, int, int], None]  # what is done, how far it is, and how far it goes


@dataclass(frozen=True)
class Comparison:
    """What is compared. Data are made when they are first needed: what is kept is not made again."""

    model: MaskedModel
    start: str
    data: str
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    recipe: Recipe
    fitting: Recipe  # to searching, of each remedied model
    dose: Dose
    attack: Attack
    examined: str  # what the exam is, in words
    attribute: str  # what the groups are groups of
    material: Callable[[], Material]
    exam: Callable[[], Exam]

    def plan(self, method: Method, seed: int) -> Plan:
        return Plan(self.start, self.data, method, self.dose, replace(self.recipe, seed=seed))

    def marked(self, out: Path, method: Method, seed: int) -> Path:
        """Where marks are kept, under a name that changes with all that decides them."""
        asked = [
            self.plan(method, seed).digest,
            self.examined,
            self.attack,
            replace(self.fitting, precision="float32"),
        ]
        digest = hashlib.sha256(json.dumps([*map(str, asked)]).encode()).hexdigest()[:12]
        return out / MARKS / f"{method.name}-{seed}-{digest}.npz"


def run(
    comparison: Comparison,
    out: Path,
    only: Sequence[tuple[str, int]] | None = None,
    device: str = "cpu",
    cores: int = 1,
    report_progress: ReportProgress | None = None,
) -> Iterator[tuple[Method, int, Marks]]:
    """Of every method and seed, or `only` of some, what the remedied model says. What is finished is read."""
    spent: list[float] = []  # seconds, on each that was made now
    wanted = [(method, seed) for seed in comparison.seeds for method in comparison.methods]
    for number, (method, seed) in enumerate(wanted):
        if only is not None and (method.name, seed) not in only:
            continue
        file = comparison.marked(out, method, seed)
        if not file.is_file():
            title = f"{number + 1} of {len(wanted)}{_left(spent, len(wanted) - number)}: {method.name}, seed {seed}"
            begun = time.monotonic()
            _one(comparison, out, method, seed, device, cores, _titled(report_progress, title)).save(file)
            spent.append(time.monotonic() - begun)
        yield method, seed, Marks.load(file)


def _one(
    comparison: Comparison,
    out: Path,
    method: Method,
    seed: int,
    device: str,
    cores: int,
    report_progress: ReportProgress | None,
) -> Marks:
    plan = comparison.plan(method, seed)
    model = remedied(
        comparison.model,
        comparison.material(),
        plan,
        out / MODELS / f"{method.name}-{seed}",
        device,
        None if report_progress is None else lambda done, of: report_progress("training", done, of),
    )
    exam, fitted = comparison.exam(), None
    if exam.pool is not None:
        fitting = replace(comparison.fitting, seed=seed)
        fitted = fitted_to_searching(model, comparison.material().pairs, fitting, device)
    return examine(model, fitted, exam, comparison.attack, cores=cores, report_progress=report_progress)


def _left(spent: Sequence[float], more: int) -> str:
    """When all will be done, if the others take as long.

    >>> _left([60, 120], 4)
    ', about 6 min left'
    """
    if not spent:
        return ""
    return f", about {max(1, round(sum(spent) / len(spent) * more / 60))} min left"


def _titled(report_progress: ReportProgress | None, title: str) -> ReportProgress | None:
    return (
        None
        if report_progress is None
        else lambda step, done, of: report_progress(f"{title}, {step}", done, of)
    )
