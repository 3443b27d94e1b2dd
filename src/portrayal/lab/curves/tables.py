"""Response curves as tables: one row per term, and all numbers of a term."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from portrayal.lab.curves.curve import Curve, StudyShare
from portrayal.metrics import find_metric

SUMMARY = ("term", "dial", "Spearman", "false positives", "coverage at 0", "coverage", "power", "reacts to")
SHORT = ("term", "dial", "Spearman", "false positives", "coverage")
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
    """Return a row for each curve, with the columns of `SUMMARY`."""
    return [
        [
            curve.name,
            curve.dial,
            _number(curve.spearman),
            _percent(curve.false_positive_rate),
            _percent(curve.coverage_at_zero),
            _percent(curve.coverage),
            _power(curve),
            ", ".join(reaction.dial for reaction in curve.reactions if reaction.reacts) or "–",
        ]
        for curve in curves
    ]


def short(curves: Sequence[Curve]) -> list[list[str]]:
    """Return a row for each curve, with the columns of `SHORT`; the findings mention the rest."""
    return [[*row[:4], row[5]] for row in summary(curves)]


def findings(curve: Curve) -> list[str]:
    """Return the criteria that a curve fails, and the note of the metric's card on it."""
    sentences = list(curve.failures)
    if curve.conservative and curve.false_positive_rate is not None:
        sentences.append(
            f"is conservative: it is significant in {curve.false_positive_rate.value:.1%} of studies where nothing "
            "is planted"
        )
    note = find_metric(curve.metric).card.lab_notes.get(curve.term)
    return [*sentences, *([f"Note: {note}."] if note else [])]


def long_csv(curves: Sequence[Curve]) -> str:
    """Return all numbers of the curves as CSV, one per line."""
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
    """Return the numbers of one curve as tables: title, columns and rows."""
    response = [
        [f"{p.scenes:,}", f"{p.level:g}", _number(p.value), _interval(p.low, p.high), str(p.studies)]
        for p in curve.points
    ]
    tables = [
        ("Value against its dial", ["images", curve.dial, "value", "mean interval", "studies"], response)
    ]
    false_positives = [
        [
            f"{curve.study_scenes:,}",
            "0",
            _percent(curve.false_positive_rate),
            _studies(curve.false_positive_rate),
        ]
    ]
    false_positives += [
        [f"{p.scenes:,}", f"{p.level:g}", _percent(p.share), _studies(p.share)] for p in curve.power
    ]
    tables.append(
        ("False positives and power", ["images", curve.dial, "share of studies", "studies"], false_positives)
    )
    coverage = [
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
    tables.append(
        (
            "Coverage of its interval",
            [curve.dial, "truth", "share of studies", "studies"],
            coverage,
        )
    )
    ignored = [
        [
            reaction.dial,
            f"{reaction.turned:g}",
            f"{_number(reaction.change)} ({_interval(reaction.low, reaction.high)})",
            "–" if reaction.part_of_range is None else f"{reaction.part_of_range:.0%}",
            f"{_percent(reaction.false_positive_rate_before)} to {_percent(reaction.false_positive_rate)}",
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
            "false positives",
            "reacts",
        ]
        tables.append(("Dials it should ignore", head, ignored))
    return tables


def _long(curve: Curve) -> list[tuple[object, ...]]:
    def share(
        part: str, scenes: int | None, level: float, rate: StudyShare | None, *other: object
    ) -> tuple[object, ...]:
        cells = (None, None, None, None) if rate is None else (rate.value, rate.low, rate.high, rate.studies)
        return (part, scenes, level, *(other or (None, None)), *cells)

    rows: list[tuple[object, ...]] = [
        ("response", p.scenes, p.level, None, None, p.value, p.low, p.high, p.studies) for p in curve.points
    ]
    rows.append(share("false positives", curve.study_scenes, 0.0, curve.false_positive_rate))
    rows.append(share("coverage", curve.study_scenes, 0.0, curve.coverage_at_zero))
    rows.append(share("coverage", curve.study_scenes, curve.coverage_level, curve.coverage))
    rows += [share("power", p.scenes, p.level, p.share) for p in curve.power]
    for r in curve.reactions:
        rows.append(
            (
                "change",
                curve.study_scenes,
                curve.coverage_level,
                r.dial,
                r.turned,
                r.change,
                r.low,
                r.high,
                None,
            )
        )
        rows.append(
            share(
                "false positives, dial turned",
                curve.study_scenes,
                0.0,
                r.false_positive_rate,
                r.dial,
                r.turned,
            )
        )
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) >= 0.0005 or value == 0 else f"{value:.1g}"


def _percent(share: StudyShare | None) -> str:
    return "–" if share is None else f"{share.value:.1%}"


def _studies(share: StudyShare | None) -> str:
    return "0" if share is None else str(share.studies)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _power(curve: Curve) -> str:
    """Return the power at the middle of the small levels, by size of study."""
    levels = sorted({p.level for p in curve.power})
    if not levels:
        return "–"
    middle = levels[len(levels) // 2]
    estimates = [p for p in curve.power if p.level == middle and p.share is not None]
    if not estimates:
        return "–"
    return f"at {middle:g}: " + ", ".join(
        f"{p.share.value:.0%} of {p.scenes:,}" for p in estimates if p.share
    )
