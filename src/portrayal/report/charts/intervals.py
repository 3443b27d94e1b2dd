"""The chart of a table: a point and its interval for each number that matters, in a panel for each term or ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence

from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.charts.counterbias_specs import scale
from portrayal.report.charts.forest import Line, ends, forest, room_for
from portrayal.report.charts.interval_points import (
    Point,
    fitting,
    headlines,
    is_drawn,
    lines,
    points,
    ranked,
)
from portrayal.report.charts.panel import Chart, Panel
from portrayal.report.tables.layout import is_too_few
from portrayal.report.tables.table import Section
from portrayal.results import HUMAN, TOO_FEW, Results

RANKINGS = 12  # panels of words or objects at most
BESIDE = "The table of this section holds the same numbers."
_WIDE = 310  # pixels, where a page does not say how wide it is
_LONG = 32  # letters that fit below an axis
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "closer": "closer to the line is better",
}


def systems(results: Results) -> list[str]:
    """In the order in which they were measured, so that a system has one colour and shape in every chart."""
    return list(dict.fromkeys(m.system or "" for m in results.measurements))


def chart(section: Section, everybody: Sequence[str], title: str = "") -> Chart | None:
    """None where there is nothing to draw, or other charts of the page draw it."""
    if not is_drawn(section) or (section.metric == COUNTERBIAS and section.has_items):
        return None
    found, second = points(section), section.second if section.grouped else ""
    wholes, items = headlines(found), ranked(found)
    chosen = [(term, False, fitting(some)) for term, some in wholes.items()]
    for (system, group), some in list(items.items())[:RANKINGS]:
        chosen.append((" · ".join(filter(None, (system, group, some[0].term))), True, fitting(some)))
    made = [(name, ranking, some, lines(some, second)) for name, ranking, some in chosen]
    made = [one for one in made if len(one[3]) > 1]
    zero = [name for name, _, _, here in made if not any(line.value for line in here)]
    made = [one for one in made if one[0] not in zero]  # nothing to see: the table says it in fewer words
    if not made:
        return None
    room = room_for(line for *_, here in made for line in here)
    ranks = ends([line for _, ranking, _, here in made if ranking for line in here] or made[0][3])
    panels, colours = [], scale(everybody, neutral=HUMAN)
    for name, ranking, some, here in made:
        reach = ranks if ranking else ends(here)
        if all(map(math.isfinite, reach)):
            spec = forest(here, _axis(some[0]), reach, colours, room, _WIDE)
            panels.append(Panel(name, _told(name, here, second), spec, BESIDE))
    drawn = [one for _, _, some, _ in made for one in some]
    every = [one for some in (*wholes.values(), *items.values()) for one in some]
    terms = len({one.term for one in found if one.item is None and one.m.low is not None})
    return (
        Chart(title, _reading(drawn, _defined(every), (len(wholes), terms), zero), tuple(panels))
        if panels
        else None
    )


def _defined(some: Sequence[Point]) -> int:
    return sum(one.m.value is not None for one in some)


def _axis(one: Point) -> list[str]:
    """The unit and which end is better, on one line where it is short."""
    parts = [part for part in (one.m.unit, _BETTER.get(one.m.better or "")) if part]
    return parts if sum(map(len, parts)) > _LONG else [", ".join(parts)]


def _told(name: str, some: Sequence[Line], second: str) -> str:
    """The main numbers, for those who do not see the drawing."""
    about = []
    for one in (min(some, key=lambda one: one.value), max(some, key=lambda one: one.value)):
        who = " ".join(filter(None, (one.tip["system"], one.tip.get(second), one.tip.get("item"))))
        about.append(f"{who} {one.tip['value']}, interval {one.tip['interval']}")
    ideals = {one.ideal for one in some}
    ideal = next(iter(ideals)) if len(ideals) == 1 else None
    told = f"{name}: {len(some)} numbers with their intervals. Lowest: {about[0]}. Highest: {about[1]}."
    return told if ideal is None else f"{told} Ideal: {ideal:.3g}."


def _reading(drawn: Sequence[Point], of: int, terms: tuple[int, int], zero: Sequence[str]) -> str:
    """How to read it, and what is not in it."""
    dashed = "; a dashed line is the ideal" if any(one.m.ideal is not None for one in drawn) else ""
    told = [f"A point is a number, its line the interval{dashed}."]
    if any(is_too_few(one.m) for one in drawn):
        told.append(f"Hollow: rests on fewer than {TOO_FEW} images.")
    if gone := sum(one.m.value is None for one in drawn):
        told.append(f"{gone} undefined {'number is' if gone == 1 else 'numbers are'} not drawn.")
    if zero:
        told.append(f"Not drawn, since all its numbers are 0: {', '.join(zero)}.")
    if terms[0] < terms[1]:
        told.append(f"{terms[0]} of {terms[1]} terms with intervals are drawn.")
    if _defined(drawn) < of:
        told.append(f"{_defined(drawn)} of {of} numbers are drawn.")
    return " ".join([*told, BESIDE])
