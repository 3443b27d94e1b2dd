"""Curves as tables: one line a term, and all the numbers of one term."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from portrayal.lab.curves.curve import Curve, Share
from portrayal.metrics import find_metric

SUMMARY = ("term", "dial", "Spearman", "false alarms", "coverage at 0", "coverage", "power", "reacts to")
SHORT = ("term", "dial", "Spearman", "false alarms", "coverage")
_COLUMNS = (
    "metric",
    "term",
    "dial",
    "part",
    "scenes",
    "level",
    "other",
    "turned",
    "value",
    "low",
    "high",
    "studies",
)


def summary(curves: Sequence[Curve]) -> list[list[str]]:
    """A line for each curve, in the columns of SUMMARY."""
    return [
        [
            curve.name,
            curve.dial,
            _number(curve.spearman),
            _percent(curve.false_alarms),
            _percent(curve.coverage_at_zero),
            _percent(curve.coverage),
            _power(curve),
            ", ".join(reaction.dial for reaction in curve.reactions if reaction.reacts) or "–",
        ]
        for curve in curves
    ]


def short(curves: Sequence[Curve]) -> list[list[str]]:
    """The same for a terminal, in the columns of SHORT; what is left out is among the findings."""
    return [[*row[:4], row[5]] for row in summary(curves)]


def findings(curve: Curve) -> list[str]:
    """What a reader must know of a curve: what it does not hold, and what the metric's card says of it."""
    found = list(curve.failures)
    if curve.cautious and curve.false_alarms is not None:
        found.append(
            f"is cautious: it alarms in {curve.false_alarms.value:.1%} of studies where nothing is planted"
        )
    note = find_metric(curve.metric).card.lab_notes.get(curve.term)
    return [*found, *([f"Note: {note}."] if note else [])]


def long_csv(curves: Sequence[Curve]) -> str:
    """Every number, one a line."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for curve in curves:
        for row in _long(curve):
            rows.writerow(
                ["" if cell is None else cell for cell in (curve.metric, curve.term, curve.dial, *row)]
            )
    return text.getvalue()


def details(curve: Curve) -> list[tuple[str, list[str], list[list[str]]]]:
    """The numbers of one curve as titled tables."""
    response = [
        [f"{p.scenes:,}", f"{p.level:g}", _number(p.value), _between(p.low, p.high), str(p.studies)]
        for p in curve.points
    ]
    made = [("Value against its dial", ["images", curve.dial, "value", "mean interval", "studies"], response)]
    alarms = [[f"{curve.alarm_scenes:,}", "0", _percent(curve.false_alarms), _studies(curve.false_alarms)]]
    alarms += [[f"{p.scenes:,}", f"{p.level:g}", _percent(p.share), _studies(p.share)] for p in curve.power]
    made.append(("How often it alarms", ["images", curve.dial, "share of studies", "studies"], alarms))
    covers = [
        [
            "0",
            _number(curve.truth_at_zero),
            _percent(curve.coverage_at_zero),
            _studies(curve.coverage_at_zero),
        ],
        [
            f"{curve.coverage_level:g}",
            _number(curve.truth),
            _percent(curve.coverage),
            _studies(curve.coverage),
        ],
    ]
    made.append(
        (
            "How often its interval holds the truth",
            [curve.dial, "truth", "share of studies", "studies"],
            covers,
        )
    )
    ignored = [
        [
            reaction.dial,
            f"{reaction.turned:g}",
            f"{_number(reaction.change)} ({_between(reaction.low, reaction.high)})",
            "–" if reaction.part_of_range is None else f"{reaction.part_of_range:.0%}",
            f"{_percent(reaction.alarms_before)} to {_percent(reaction.alarms)}",
            "yes" if reaction.reacts else "no",
        ]
        for reaction in curve.reactions
    ]
    if ignored:
        head = [
            "dial",
            "turned to",
            "change of the value",
            "part of its range",
            "alarms where nothing is planted",
            "reacts",
        ]
        made.append(("Dials it should ignore", head, ignored))
    return made


def _long(curve: Curve) -> list[tuple[object, ...]]:
    def share(
        part: str, scenes: int | None, level: float, found: Share | None, *other: object
    ) -> tuple[object, ...]:
        known = (
            (None, None, None, None) if found is None else (found.value, found.low, found.high, found.studies)
        )
        return (part, scenes, level, *(other or (None, None)), *known)

    rows: list[tuple[object, ...]] = [
        ("response", p.scenes, p.level, None, None, p.value, p.low, p.high, p.studies) for p in curve.points
    ]
    rows.append(share("false alarms", curve.alarm_scenes, 0.0, curve.false_alarms))
    rows.append(share("coverage", curve.alarm_scenes, 0.0, curve.coverage_at_zero))
    rows.append(share("coverage", curve.alarm_scenes, curve.coverage_level, curve.coverage))
    rows += [share("power", p.scenes, p.level, p.share) for p in curve.power]
    for r in curve.reactions:
        rows.append(
            (
                "change",
                curve.alarm_scenes,
                curve.coverage_level,
                r.dial,
                r.turned,
                r.change,
                r.low,
                r.high,
                None,
            )
        )
        rows.append(share("alarms", curve.alarm_scenes, 0.0, r.alarms, r.dial, r.turned))
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) >= 0.0005 or value == 0 else f"{value:.1g}"


def _percent(share: Share | None) -> str:
    return "–" if share is None else f"{share.value:.1%}"


def _studies(share: Share | None) -> str:
    return "0" if share is None else str(share.studies)


def _between(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _power(curve: Curve) -> str:
    """At the middle one of the small levels, by size of study."""
    levels = sorted({p.level for p in curve.power})
    if not levels:
        return "–"
    middle = levels[len(levels) // 2]
    found = [p for p in curve.power if p.level == middle and p.share is not None]
    if not found:
        return "–"
    return f"at {middle:g}: " + ", ".join(f"{p.share.value:.0%} of {p.scenes:,}" for p in found if p.share)
