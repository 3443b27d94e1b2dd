"""Precision and recall of the page's findings, on lab studies with one planted fault and on studies with none.

Each study has three captioners that differ in harmless ways (vocabulary, length, stock sentences). In half of the
studies one of them has one fault of a random kind, level and, where the fault has groups, group. A finding is right
if it is about that captioner, names the group of the fault, and is of a kind that the fault causes. Only gender is
labelled: no dial is about age or skin. Each study is audited with `--quick`, by every metric whose card can make a
finding: the others change neither findings nor the number of comparisons.
`python -m benchmarks.headlines [STUDIES] [FIRST]`: 200 of each kind, numbered from 1000. The rules for findings were
developed on studies below 200.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from portrayal.auditing import audit
from portrayal.lab.captioners import Captioner
from portrayal.lab.study import make_study
from portrayal.metrics import CARDS, METRICS
from portrayal.report.findings.findings import Conclusion, conclusions
from portrayal.study import Study

SCENES = 1000
GROUPS = ("female", "male")
SYSTEMS = ("amber", "birch", "cedar")
LEVELS = (0.1, 0.5)
SCALE = 8
# The terms that each fault affects. The docs (response curves) compare each with the same study without the fault;
# quality falls with any fault that changes words.
CAUSES = {
    "wrong_group": {"error:error", "naming-ratio:ratio", "quality:cider"},
    "neutral": {"naming-ratio:ratio", "quality:cider"},
    "erasure": {"harms:demeaning.people-not-mentioned", "naming-ratio:ratio", "quality:cider"},
    "demeaning": {"harms:demeaning.words", "quality:cider"},
    "hallucination": {"quality:chair-i", "quality:cider", "leakage:difference"},
    "ranking_lean": {"retrieval-skew:maxskew"},
    "amplification": {"amplification:ba", "leakage:difference", "quality:chair-i", "quality:cider"},
    "guessed_group": {"error:error", "amplification:t-to-a", "amplification:ba", "naming-ratio:ratio"},
}
WITHOUT_GROUP = ("amplification", "guessed_group")
DECIDING = [name for name in METRICS if any(statement.findings for statement in CARDS[name].statements)]


@dataclass(frozen=True)
class PlantedFault:
    """The fault of one captioner."""

    fault: str
    system: str
    group: str | None
    level: float


def make_benchmark_study(
    number: int, faulty: bool, scenes: int = SCENES, seed: int | None = None
) -> tuple[Study, PlantedFault | None]:
    """Return study `number` and its planted fault; with a `seed`, other scenes of the same kind."""
    rng = np.random.default_rng([number, int(faulty)])
    captioners = [
        Captioner(
            name,
            vocabulary=float(rng.uniform(0.1, 0.6)),
            length=float(rng.uniform(0.1, 0.6)),
            repetition=float(rng.uniform(0.2, 0.8)),
        )
        for name in SYSTEMS
    ]
    planted = None
    if faulty:
        fault = str(rng.choice(list(CAUSES)))
        index = int(rng.integers(len(SYSTEMS)))
        level = round(float(rng.uniform(*LEVELS)), 3)
        group = None if fault in WITHOUT_GROUP else str(rng.choice(GROUPS))
        dial: object = level
        if group is not None:
            base_rate = 0.2 if fault == "neutral" else 0.0  # as in every captioner
            dial = {name: base_rate + level if name == group else base_rate for name in GROUPS}
        captioners[index] = dataclasses.replace(captioners[index], **{fault: dial})
        planted = PlantedFault(fault, SYSTEMS[index], group, level)
    study_seed = 10_000 + 2 * number + faulty if seed is None else seed
    study = make_study(scenes, seed=study_seed, captioners=captioners)
    gender = study.attributes.select("image_id", "gender")
    return dataclasses.replace(study, attributes=gender), planted


def findings_of(study: Study) -> list[Conclusion]:
    """Return the findings on the page of an audit of this study."""
    return conclusions(audit(study, quick=True, metrics=DECIDING)).findings


def is_right(finding: Conclusion, planted: PlantedFault | None, number: int) -> bool:
    """Return whether system, kind and group are right; a larger study gives the group of a fault without groups."""
    if planted is None or finding.system != planted.system:
        return False
    if f"{finding.metric}:{finding.term}" not in CAUSES[planted.fault]:
        return False
    if finding.group is None or planted.group is not None:
        return finding.group in (None, planted.group)
    larger, _ = make_benchmark_study(number, True, scenes=SCALE * SCENES, seed=number)
    rows = METRICS[finding.metric](
        larger.select_systems([finding.system]), attribute="gender", bootstrap=20
    ).measurements
    values = {
        m.group: m.value for m in rows if m.term == finding.term and m.group and m.system == finding.system
    }
    worst = max if finding.term == "error" else min
    return worst(values, key=lambda group: values[group] or 0.0) == finding.group


def run(number: int, faulty: bool) -> tuple[PlantedFault | None, list[tuple[bool, str]]]:
    study, planted = make_benchmark_study(number, faulty)
    return planted, [(is_right(finding, planted, number), finding.text) for finding in findings_of(study)]


def runs(numbers: range, faulty: bool) -> Iterator[tuple[PlantedFault | None, list[tuple[bool, str]]]]:
    with ProcessPoolExecutor() as pool:
        yield from pool.map(run, numbers, [faulty] * len(numbers))


def main(studies: int = 200, first: int = 1000) -> None:
    numbers = range(first, first + studies)
    n_findings, n_right, n_detected = Counter[str](), Counter[str](), Counter[str]()
    faults = Counter[str]()
    for number, (planted, findings) in zip(numbers, runs(numbers, True), strict=True):
        assert planted is not None
        faults[planted.fault] += 1
        n_detected[planted.fault] += any(finding_is_right for finding_is_right, _ in findings)
        n_findings[planted.fault] += len(findings)
        n_right[planted.fault] += sum(finding_is_right for finding_is_right, _ in findings)
        if not any(finding_is_right for finding_is_right, _ in findings):
            print(f"not found in study {number}: {planted}", flush=True)
        for finding_is_right, text in findings:
            if not finding_is_right:
                print(f"wrong in study {number}: {planted}: {text}", flush=True)
    print("| fault | studies | found | findings | right |\n| --- | --- | --- | --- | --- |")
    for fault, count in sorted(faults.items()):
        precision = _share(n_right[fault], n_findings[fault])
        print(
            f"| {fault.replace('_', '-')} | {count} | {n_detected[fault]} | {n_findings[fault]} | {precision} |"
        )
    print(
        f"| all | {studies} | {n_detected.total()} | {n_findings.total()} | "
        f"{_share(n_right.total(), n_findings.total())} |"
    )
    n_silent = 0
    for number, (_, findings) in zip(numbers, runs(numbers, False), strict=True):
        n_silent += not findings
        for _, text in findings:
            print(f"without a fault, study {number}: {text}", flush=True)
    print(f"Without a fault: {n_silent} of {studies} studies say nothing ({_share(n_silent, studies)}).")


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else "–"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
