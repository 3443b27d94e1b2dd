"""A comparison of methods as results."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from portrayal.engine import Progress, available_cores
from portrayal.mitigate.compare import Comparison, run
from portrayal.mitigate.evaluation import Marks
from portrayal.mitigate.measurements import CARDS, Rows
from portrayal.results import Results, command_line, provenance


def compared(
    comparison: Comparison,
    out: Path,
    *,
    seed: int = 0,
    n_resamples: int = 1000,
    progress: Progress | None = None,
) -> Results:
    """Train and examine what is not yet there, and say how methods differ."""
    started = time.time()
    marks: dict[str, list[Marks]] = {}
    device = comparison.model.device
    for method, _, found in run(comparison, out, None, device, available_cores(), progress):
        marks.setdefault(method.name, []).append(found)
    exam, attack = comparison.exam(), comparison.attack
    settings: dict[str, Any] = {
        "model": comparison.start,
        "data": comparison.data,
        "seeds": list(comparison.seeds),
    }
    settings |= {"steps": comparison.recipe.steps, "batch_size": comparison.recipe.batch_size}
    if exam.questions is not None:
        settings["groups"] = list(exam.questions.groups)
    told = {
        "epsilon": round(attack.epsilon, 6), "norm": attack.norm, "attack_steps": attack.most,
        "step_size": round(attack.stride, 6), "stop_at": attack.stop_at,
    }  # fmt: skip
    made = Rows(exam, marks, comparison.attribute, settings, told, seed, n_resamples).results()
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study={
            "name": f"remedies for {comparison.start.partition(' ')[0]} on {comparison.data}",
            "digest": comparison.start.rpartition(" ")[2],
            "systems": list(marks),
            "images": len({one.image for one in exam.instances}),
            "instances": len(exam.instances),
            "groups": {},
        },
        cards={name: card.as_dict() for name, card in CARDS.items()},
        skipped=[],
        methods={
            method.name: {"about": method.about, **comparison.dose.told(method)}
            for method in comparison.methods
        },
        exam=comparison.examined,
    )
    return replace(made, provenance=origin)
