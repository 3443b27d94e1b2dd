"""Tables of a metric with many terms: a line per term and a column per system, then a table of each term's parts, or
one of groups where terms have no other parts.

A metric's card says whether it is laid out so. A term that comes as a count and as a share has both in one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portrayal.report.tables.table import SUMMARY, Row, Section
from portrayal.results import Measurement, Results

STAGE = "stage"
GROUPS = "by group"


def split(results: Results) -> tuple[list[Measurement], list[Section]]:
    """The measurements that are laid out as others are, and the sections of those that are not."""
    cards = results.provenance.get("cards")
    cards = cards if isinstance(cards, dict) else {}
    turned = {name for name, card in cards.items() if isinstance(card, dict) and card.get("by_term") is True}
    rest = [m for m in results.measurements if m.metric not in turned]
    folded: dict[str, list[Measurement]] = {}
    for m in results.measurements:
        if m.metric in turned:
            settings = {name: value for name, value in m.settings.items() if name != STAGE}
            folded.setdefault(f"{m.metric}|{m.attribute}|{sorted(settings.items(), key=str)}", []).append(m)
    return rest, [section for several in folded.values() for section in _sections(several)]


def _sections(several: Sequence[Measurement]) -> list[Section]:
    stages = list(dict.fromkeys(m.settings.get(STAGE) for m in several))
    first = several[0]
    settings = {name: value for name, value in first.settings.items() if name != STAGE or len(stages) == 1}

    def column(m: Measurement) -> str:
        stage = m.settings.get(STAGE)
        return m.system or "" if len(stages) == 1 else f"{m.system} ({stage})"

    ordered = sorted(
        several, key=lambda m: str(m.settings.get(STAGE))
    )  # stable: systems as they were measured
    columns = list(dict.fromkeys(column(m) for m in ordered))
    summary = Section(first.metric, first.attribute, settings, columns, part=SUMMARY, first="measurement")
    parts: dict[str, Section] = {}
    rows: dict[tuple[Any, ...], Row] = {}
    apart = any(m.item is not None for m in several)  # else groups are all there is, and fit into one table
    for m in several:
        whole = m.group is None and m.item is None
        section, label = summary, m.term
        if not whole:
            part = m.term if apart else GROUPS
            if part not in parts:
                about = "unit" if apart else summary.first
                parts[part] = Section(
                    first.metric, first.attribute, settings, columns, part=part, first=about
                )
            section = parts[part]
            if apart:
                label = "share" if m.unit == "count" else m.unit or ""
        key = (section.part, label, m.group, m.item)
        if key not in rows:
            rows[key] = Row(label, m.group, m.item, {})
            section.rows.append(rows[key])
        # A count stands beside the share it belongs to.
        place = rows[key].beside if m.unit == "count" else rows[key].cells
        place[column(m)] = m
    for row in rows.values():  # where there is a count alone
        for name, m in row.beside.items():
            row.cells.setdefault(name, m)
    return [summary, *parts.values()]


def limited(section: Section, most: int) -> Section:
    """The section with the first items of each kind ("gender: man" is of the kind gender); they come ranked."""
    seen: dict[tuple[Any, ...], int] = {}
    kept = []
    for row in section.rows:
        if row.item is not None:
            kind, colon, _ = row.item.partition(": ")
            key = (row.system, row.group, kind if colon else None)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > most:
                continue
        kept.append(row)
    return Section(
        section.metric, section.attribute, section.settings, section.terms, kept, len(section.rows) - len(kept),
        section.part, section.second, section.notes, section.first,
    )  # fmt: skip
