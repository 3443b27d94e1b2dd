"""The page of a comparison: what changed from one audit to another, in sentences, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from portrayal.files import write_text
from portrayal.report.concept_specs import scale
from portrayal.report.embedded import hash_of, packed, template_text
from portrayal.report.interactive import Plots
from portrayal.report.interval_specs import Line, ends, forest, room_for
from portrayal.report.layout import DETECTABLE, number
from portrayal.report.page import PAGE_FILE
from portrayal.report.panel import Panel
from portrayal.report.questions import OTHER, QUESTIONS, Question, question_of
from portrayal.report.section import probability
from portrayal.results import Measurement, Results

_WIDTH = 310  # pixels of a chart, where a page does not say how wide it is
_APART = ("classifier", "split", "stage", "kind", "of", "attack")  # settings by which rows of one term differ
_ENDS = ("lower", "higher")
_SURE = 0.05


@dataclass(frozen=True)
class Part:
    """The rows of one metric and attribute."""

    metric: str
    attribute: str | None
    title: str
    rows: tuple[Measurement, ...]

    @cached_property
    def panels(self) -> list[Panel]:
        """One for each unit that headlines have: how far each number moved, with its interval and a line at 0."""
        whole = [m for m in self.rows if m.group is None and m.value is not None and m.low is not None]
        units = {unit: [m for m in whole if m.unit == unit] for unit in dict.fromkeys(m.unit for m in whole)}
        return [_panel(some, str(unit or "")) for unit, some in units.items() if len(some) > 1]


def write_comparison(differences: Results, folder: Path) -> Path:
    path = folder / PAGE_FILE
    write_text(path, render(differences))
    return path


def render(differences: Results) -> str:
    """Names are strangers' text: they enter through autoescaping, and as data of charts."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["probability"] = probability
    style = template_text("page.css")
    names = differences.provenance.get("compared")
    first, second = names if isinstance(names, list | tuple) and len(names) == 2 else ("first", "second")
    first, second = (str(name).rstrip("/").rpartition("/")[2] for name in (first, second))
    questions = _by_question(differences)
    plots = Plots([panel for _, parts in questions for part in parts for panel in part.panels])
    return environment.from_string(template_text("comparison.html")).render(
        first=first,
        second=second,
        origin=differences.provenance,
        sentences=sentences(differences),
        open=_open(differences),
        questions=questions,
        plots=plots,
        detectable=lambda m: number(DETECTABLE * m.se_data if m.se_data else None, m.unit),
        measurements=packed(differences.as_dict()),
        style=Markup(style),
        style_hash=hash_of(style),
    )


def moved(differences: Results) -> list[Measurement]:
    """The headlines that moved further than chance explains, once all of them are counted (Holm)."""
    return [
        m for m in differences.measurements if m.group is None and m.value and m.q is not None and m.q < _SURE
    ]


def sentences(differences: Results) -> list[str]:
    """One for each metric, attribute and system: the first number that moved, and which others did.

    >>> rose = Measurement("lic", "lic", system="oscar", attribute="gender", value=2.0, low=1.0, high=3.0, q=0.01,
    ...                    better="lower", unit="percent", settings={"first": 3.9, "second": 5.9, "paired": True})
    >>> sentences(Results((rose,)))
    ['lic by gender, oscar: lic rose from 3.9 to 5.9, which is worse (+2.0, 95 % interval 1.0 to 3.0, paired).']
    """
    found: dict[tuple[str, str | None, str | None], list[Measurement]] = {}
    for m in moved(differences):
        found.setdefault((m.metric, m.attribute, m.system), []).append(m)
    made = []
    for (metric, _, system), rows in found.items():
        # What a metric calls better or worse comes before what merely differs.
        first, *others = sorted(rows, key=lambda m: m.better not in _ENDS)
        more = list(dict.fromkeys(f"{m.term}{_which(m)}" for m in others if m.term != first.term))
        made.append(
            f"{metric}{_by(first)}, {system}: {_told(first)}"
            + (f"; also {', '.join(more)}" if more else "")
            + "."
        )
    return made


def _told(m: Measurement) -> str:
    way = "rose" if m.value is not None and m.value > 0 else "fell"
    ends = [number(m.settings.get(name), m.unit) for name in ("first", "second")]
    which = {" (better)": ", which is better", " (worse)": ", which is worse"}.get(_which(m), "")
    paired = "paired" if m.settings.get("paired") else "not paired"
    return f"{m.term} {way} from {ends[0]} to {ends[1]}{which} ({_difference(m)}, {paired})"


def _open(differences: Results) -> tuple[int, int]:
    """How many headlines did not move as far as can be told, and how many are undefined."""
    whole = [m for m in differences.measurements if m.group is None]
    undefined = sum(m.value is None for m in whole)
    return len(whole) - undefined - len(moved(differences)), undefined


def _by_question(differences: Results) -> list[tuple[Question, list[Part]]]:
    cards = differences.provenance.get("cards")
    known: dict[str, Any] = cards if isinstance(cards, dict) else {}
    parts: dict[tuple[str, str | None], list[Measurement]] = {}
    for m in differences.measurements:
        parts.setdefault((m.metric, m.attribute), []).append(m)
    made = [
        Part(metric, attribute, _title(known.get(metric), metric), tuple(rows))
        for (metric, attribute), rows in parts.items()
    ]
    return [
        (question, some)
        for question in (*QUESTIONS, OTHER)
        if (some := [part for part in made if question_of(part.metric) == question])
    ]


def _title(card: Any, metric: str) -> str:
    return str(card.get("title", metric)) if isinstance(card, dict) else metric


def _by(m: Measurement) -> str:
    return f" by {m.attribute}" if m.attribute else ""


def _which(m: Measurement) -> str:
    """Whether a change is for the better, where a metric says which end is."""
    if m.better not in _ENDS or not m.value:
        return ""
    return " (better)" if (m.value > 0) == (m.better == "higher") else " (worse)"


def _difference(m: Measurement) -> str:
    if m.value is None:
        return number(None, m.unit)
    value = f"{'+' if m.value > 0 else ''}{number(m.value, m.unit)}"
    if m.low is None or m.high is None:
        return value
    return f"{value}, 95 % interval {number(m.low, m.unit)} to {number(m.high, m.unit)}"


def _panel(rows: Sequence[Measurement], unit: str) -> Panel:
    """A point and its interval for each headline, and a line where nothing changed."""
    everybody = list(dict.fromkeys(m.system or "" for m in rows))
    lines = [
        Line(_label(m), m.value or 0.0, m.low, m.high, 0.0, m.system or "", False, _tip(m), m.system)
        for name in everybody
        for m in rows
        if (m.system or "") == name
    ]
    about = "; ".join(f"{m.system} {_label(m)} {_difference(m)}" for m in rows)
    title = [f"second less first, {unit}"]
    spec = forest(lines, title, ends(lines), scale(everybody), room_for(lines), _WIDTH)
    return Panel(unit, about, spec, "The table of this section holds the same numbers.")


def _tip(m: Measurement) -> dict[str, str]:
    """What a point says when it is pointed at."""
    moved_from = {name: number(m.settings.get(name), m.unit) for name in ("first", "second")}
    return {"system": m.system or "", "term": _label(m), **moved_from, "difference": _difference(m)}


def _label(m: Measurement) -> str:
    """Settings tell rows of one term apart."""
    apart = [str(m.settings[name]) for name in _APART if m.settings.get(name) is not None]
    return " ".join([m.term, *apart])
