"""Which numbers of a table are drawn with their intervals: the terms, the lines, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portrayal.report.charts.forest import Line
from portrayal.report.tables.layout import bare, is_too_few, number
from portrayal.report.tables.table import SUMMARY, Section
from portrayal.results import Measurement

TERMS = 6  # drawn of one table at most
LINES = 48  # in one panel at most
ALL = "all"


@dataclass(frozen=True)
class Point:
    """A number as a table has it: its term, and the names that the line has there."""

    term: str
    system: str
    group: str | None
    item: str | None
    m: Measurement

    @property
    def by(self) -> str:
        return self.m.system or self.system


def points(section: Section) -> list[Point]:
    """Where columns are systems and lines are terms, the names change places."""
    made = []
    for row in section.rows:
        for column in (one for one in section.terms if one in row.cells):
            m = row.cells[column]
            term, system = (row.system or "", column) if section.by_term else (column, row.system or "")
            made.append(Point(term, system, row.group, row.item, m))
    return made


def is_drawn(section: Section) -> bool:
    """Of a metric with many tables the summary is; the tables of its parts hold too many small numbers."""
    return not section.by_term or section.part == SUMMARY


def headlines(found: Sequence[Point]) -> dict[str, list[Point]]:
    """By term the numbers about all words or objects, for the terms that have intervals, the main ones first chosen."""
    by_term: dict[str, list[Point]] = {}
    for one in found:
        if one.item is None:
            by_term.setdefault(one.term, []).append(one)
    able = [term for term, some in by_term.items() if _drawable(some)]
    chosen = sorted(able, key=lambda term: _rank(by_term[term]))[:TERMS]
    return {term: by_term[term] for term in able if term in chosen}


def ranked(found: Sequence[Point]) -> dict[tuple[str, str | None], list[Point]]:
    """By system and group its words or objects, each with the number they were ranked by where that has an interval."""
    items = [one for one in found if one.item is not None]
    by_term: dict[str, list[Point]] = {}
    for one in items:
        by_term.setdefault(one.term, []).append(one)
    able = [some for some in by_term.values() if _drawable(some)]
    if not able:
        return {}
    tested = [some for some in able if any(one.m.p is not None for one in some)]
    telling = min(tested or able, key=lambda some: some[0].m.unit == "count")
    made: dict[tuple[str, str | None], list[Point]] = {}
    for one in telling:
        made.setdefault((one.system, one.group), []).append(one)
    return made


def fitting(some: Sequence[Point]) -> list[Point]:
    """As many as one panel can hold: all, else those about all people, else the first."""
    if len(some) <= LINES:
        return list(some)
    whole = [one for one in some if one.group is None]
    return (whole if len(whole) > 1 else list(some))[:LINES]


def lines(some: Sequence[Point], second: str) -> list[Line]:
    """What is undefined is left out. Where systems have several lines, the name of a system stands above its own."""
    known = [one for one in some if one.m.value is not None]
    several = len({one.group for one in known}) > 1
    items = any(one.item is not None for one in known)
    made = []
    order = list(dict.fromkeys(one.system for one in known))
    for one in sorted(known, key=lambda one: order.index(one.system)):
        m, label = one.m, (one.item or ALL) if items else (one.group or ALL) if several else one.system
        block = one.system if several and not items else None
        tip = told(one, second)
        made.append(Line(label, m.value or 0.0, m.low, m.high, m.ideal, one.by, is_too_few(m), tip, block))
    return made


def told(one: Point, second: str) -> dict[str, str]:
    """As the page writes it."""
    m = one.m
    made = {"system": one.system}
    made |= {second: one.group or ALL} if second else {}
    made |= {"item": one.item} if one.item is not None else {}
    made |= {"term": one.term, "value": f"{bare(m)} {m.unit or ''}".strip()}
    known = m.low is not None and m.high is not None
    made["interval"] = f"{number(m.low, m.unit)} to {number(m.high, m.unit)}" if known else "not known"
    made |= {"n": f"{m.n:,} {m.n_unit or ''}".strip()} if m.n is not None else {}
    return made


def _drawable(some: Sequence[Point]) -> bool:
    """One point alone shows nothing, and a chart without intervals would say too much."""
    known = [one for one in some if one.m.value is not None]
    return len(known) > 1 and any(one.m.low is not None for one in known)


def _rank(some: Sequence[Point]) -> int:
    """What a metric is named after, then what it calls good or bad, then the rest as they come."""
    first = some[0].m
    return 0 if first.term == first.metric else 1 if first.ideal is not None or first.better else 2
