"""Measurements laid out for reading: one table per metric and attribute, a column per term."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.tables.by_term import limited, split
from portrayal.report.tables.counterbias import counterfactual_sections
from portrayal.report.tables.mitigation import MITIGATION, remedy_sections
from portrayal.report.tables.table import Row, Section, probability
from portrayal.results import TOO_FEW, TOO_FEW_REASON, Measurement, Results, split_cautions

_COUNT = re.compile(r"\d[\d,]*")  # of images, in the reason of a number on too few
_LISTED = 8  # numbers on too few images that a note names one by one
DETECTABLE = 2.8016  # standard errors: what a two-sided test at 5 % finds with 80 % probability


def sections(results: Results) -> list[Section]:
    """The long table folded: rows and columns stand in the order in which they were measured.

    A term that has rows of its own for words or objects gets a table of its own. Where a metric was measured under
    several settings, a table with its headlines side by side comes first.
    """
    usual, turned = split(results)
    turned += counterfactual_sections([m for m in usual if m.metric == COUNTERBIAS])
    turned += remedy_sections([m for m in usual if m.metric == MITIGATION])
    usual = [m for m in usual if m.metric not in (COUNTERBIAS, MITIGATION)]
    results = replace(results, measurements=tuple(usual))
    units: dict[tuple[str, str], set[str | None]] = {}
    for m in results.measurements:
        units.setdefault((m.metric, m.term), set()).add(m.unit)
    alone = _terms_alone(results)
    folded: dict[tuple[str, str | None], Section] = {}
    rows: dict[tuple[str, str | None, str | None, str | None, str | None], Row] = {}
    for m in results.measurements:
        # A term may come as a count and as a share; then its columns say which is which.
        column = m.term if len(units[m.metric, m.term]) == 1 else f"{m.term} ({m.unit})"
        place, apart = _place(m), m.term if (m.metric, m.term) in alone else None
        section = folded.setdefault(
            (place, apart), Section(m.metric, m.attribute, dict(m.settings), part=apart)
        )
        if column not in section.terms:
            section.terms.append(column)
        key = (place, apart, m.system, m.group, m.item)
        if key not in rows:
            rows[key] = Row(m.system, m.group, m.item, {})
            section.rows.append(rows[key])
        rows[key].cells[column] = m
    return [*_with_overviews(list(folded.values())), *turned]


def _place(m: Measurement) -> str:
    return f"{m.metric}|{m.attribute}|{sorted(m.settings.items(), key=str)}"


def _terms_alone(results: Results) -> set[tuple[str, str]]:
    """Terms that speak of words or objects only, in rows that no other term shares."""
    terms: dict[tuple[str, str | None, str | None, str | None], set[str]] = {}
    for m in results.measurements:
        terms.setdefault((_place(m), m.system, m.group, m.item), set()).add(m.term)
    shared = {
        (m.metric, m.term)
        for m in results.measurements
        if m.item is None or len(terms[_place(m), m.system, m.group, m.item]) > 1
    }
    everything = {(m.metric, m.term) for m in results.measurements}
    several = {metric for metric, _ in shared}  # a metric with one kind of row has one table
    return {(metric, term) for metric, term in everything - shared if metric in several}


def _with_overviews(found: list[Section]) -> list[Section]:
    """The sections, and before the first of several settings of one metric their headlines side by side."""
    made: list[Section] = []
    whole = [section for section in found if section.part is None]
    for section in found:
        about = (section.metric, section.attribute)
        same = [other for other in whole if (other.metric, other.attribute) == about]
        if len(same) > 1:
            if section is same[0]:
                made.append(_overview(same))
            told = _difference(section.settings, same)
            section.part = ", ".join(filter(None, (told, section.part)))
        made.append(section)
    return made


def _difference(settings: dict[str, Any], among: Sequence[Section]) -> str:
    """The first setting by which it differs from the first of them; for that one, by which the others differ from it.

    Settings stand in the order of how much they say: what follows from another comes after it.
    """
    base = among[0].settings
    others = [settings] if settings != base else [one.settings for one in among[1:]]
    names = [next((name for name in base if base[name] != one.get(name)), None) for one in others]
    told = {name: settings.get(name) for name in dict.fromkeys(filter(None, names))}
    return ", ".join(f"{name} {'none' if value is None else value}" for name, value in told.items())


def _overview(same: Sequence[Section]) -> Section:
    base = same[0]
    made = Section(base.metric, base.attribute, {}, part="side by side", second="setting")
    for section in same:
        told = _difference(section.settings, same)
        if section is base and len(same) > 2 and "," in told:
            told = "as asked for"
        for row in section.rows:
            if row.group is None and row.item is None:
                made.terms += [term for term in row.cells if term not in made.terms]
                made.rows.append(Row(row.system, told, None, row.cells))
    systems = list(dict.fromkeys(row.system for row in made.rows))
    made.rows.sort(key=lambda row: systems.index(row.system))
    headline = base.metric if base.metric in made.terms else made.terms[0] if made.terms else None
    for term in dict.fromkeys([*made.terms[:1], *([headline] if headline else [])]):
        made.notes += _orders(made, term)
    return made


def _orders(overview: Section, term: str) -> list[str]:
    """How far each setting ranks the systems as the first one does."""
    by_setting: dict[str | None, dict[str | None, float]] = {}
    for row in overview.rows:
        m = row.cells.get(term)
        if m is not None and m.value is not None:
            by_setting.setdefault(row.group, {})[row.system] = m.value
    (first, base), *others = by_setting.items() or [(None, {})]
    told = []
    for setting, values in others:
        shared = [system for system in base if system in values]
        agreement = rank_correlation([base[s] for s in shared], [values[s] for s in shared])
        if agreement is not None:
            told.append(f"{setting} {agreement:.2f}")
    if not told:
        return []
    return [
        f"The order of systems by {term}, held against '{first}' (Spearman's correlation; 1: the same): "
        + ", ".join(told)
        + "."
    ]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's; None for fewer than three, or where all are equal.

    >>> rank_correlation([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    if len(one) < 3:
        return None
    ranks = [
        [sum(b < a for b in values) + sum(b == a for b in values) / 2 for a in values]
        for values in (one, other)
    ]
    means = [sum(each) / len(each) for each in ranks]
    products = [
        sum((a - means[i]) * (b - means[j]) for a, b in zip(ranks[i], ranks[j], strict=True))
        for i, j in ((0, 1), (0, 0), (1, 1))
    ]
    return (
        None
        if not products[1] * products[2]
        else round(products[0] / math.sqrt(products[1] * products[2]), 12)
    )


def is_too_few(m: Measurement) -> bool:
    return m.value is not None and (m.reason or "").startswith(TOO_FEW_REASON)


def strongest(section: Section, most: int) -> Section:
    """The section with what goes most with each system's groups; the other items are counted, not shown.

    An item goes with a group when its number is above the group's own, and rests on enough. By p; among equals the
    farthest above first. Where numbers lean to either side of an ideal, both sides count.
    """
    if section.whole:
        return section
    if section.by_term:
        return limited(section, most)
    ranked: dict[tuple[str | None, str | None], list[tuple[float, float, int]]] = {}
    for index, row in enumerate(section.rows):
        m = next(iter(row.cells.values()))
        above = None if row.item is None or m.value is None else m.value - _middle(section, row)
        if above is not None and m.better == "closer" and m.ideal is not None:
            above = abs(above)
        if above is not None and above > 0 and not is_too_few(m):
            ranked.setdefault((row.system, row.group), []).append(
                (2.0 if m.p is None else m.p, -above, index)
            )
    kept = {index: above for entries in ranked.values() for _, above, index in sorted(entries)[:most]}
    shown: dict[str | None, list[tuple[int, float, Row]]] = {}
    groups = list(dict.fromkeys(row.group for row in section.rows))
    for index, row in enumerate(section.rows):
        if row.item is None:
            shown.setdefault(row.system, []).append((-1, float(index), row))
        elif index in kept:
            shown.setdefault(row.system, []).append((groups.index(row.group), kept[index], row))
    rows = [row for entries in shown.values() for _, _, row in sorted(entries, key=lambda entry: entry[:2])]
    return replace(section, rows=rows, hidden=len(section.rows) - len(rows))


def _middle(section: Section, row: Row) -> float:
    """What an item is held against: the ideal of its term, else the same group's number for all items."""
    first = next(iter(row.cells.values()))
    if first.ideal is not None:
        return first.ideal
    whole = [r for r in section.rows if r.item is None and (r.system, r.group) == (row.system, row.group)]
    shares = [
        m.value for r in whole for m in r.cells.values() if m.unit == first.unit and m.value is not None
    ]
    return shares[0] if shares else 0.0


def number(value: float | None, unit: str | None) -> str:
    """A value as people read it; what is undefined is a dash, never a zero."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 10 or float(value).is_integer() else f"{value:,.1f}"
    if unit in ("percent", "z"):
        return f"{value:.1f}"
    if 0 < abs(value) < 0.00995:  # two digits that mean something, where three places would show one or none
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}" if abs(value) >= 1e-6 else f"{value:.1e}"
    return f"{value + 0.0:.3f}"


def bare(m: Measurement) -> str:
    """A value alone; a dagger marks what rests on too little."""
    return number(m.value, m.unit) + ("†" if is_too_few(m) else "")


def cell(row: Row, column: str, write: Callable[[Measurement], str]) -> str:
    """What a table shows in one place: nothing, a number, or a count with its share."""
    if column not in row.cells:
        return ""
    count = row.beside.get(column)
    told = write(row.cells[column])
    return told if count is None or count is row.cells[column] else f"{bare(count)} · {told}"


def with_interval(m: Measurement) -> str:
    """A value and its interval."""
    if m.low is None or m.high is None:
        return bare(m)
    return f"{bare(m)} [{number(m.low, m.unit)}, {number(m.high, m.unit)}]"


def facts(m: Measurement) -> str:
    """What stands beside a number for those who ask: n, p, and the smallest effect this much data would find."""
    parts = [f"n = {m.n:,} {m.n_unit or ''}".strip()] if m.n is not None else []
    parts += [f"p {probability(m.p)}"] if m.p is not None else []
    parts += [f"q {probability(m.q)}"] if m.q is not None else []
    if m.se_data:
        parts.append(f"detectable: {number(DETECTABLE * m.se_data, m.unit)}")
    return ", ".join(parts)


def settings_text(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def footnotes(rows: Sequence[Row]) -> list[str]:
    """Why dashes stand where they stand, what a number leaves out, and what a dagger means: a sentence per reason."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for term, m in row.cells.items():
            if m.value is None:
                about = " ".join(filter(None, (row.system, row.group, row.item, term)))
                reasons.setdefault(m.reason or "no reason was recorded", []).append(about)
    notes = [f"Undefined, {reason}: {', '.join(about)}." for reason, about in reasons.items()]
    notes += _remarks(rows)
    notes += cautions(rows)
    return notes + _too_few(rows)


def _too_few(rows: Sequence[Row]) -> list[str]:
    """What a dagger means, and on how many images each number that has one rests: a row's n is that of its first."""
    few = [
        (" ".join(filter(None, (term, row.system, row.group, row.item))), m)
        for row in rows
        for term, m in row.cells.items()
        if is_too_few(m)
    ]
    if not few:
        return []
    counts = [f"{about} {found.group()}" for about, m in few if (found := _COUNT.search(m.reason or ""))]
    listed = "; ".join(counts[:_LISTED]) + (
        f"; {len(counts) - _LISTED} more" if len(counts) > _LISTED else ""
    )
    return [f"† Rests on fewer than {TOO_FEW} images: too few to rank{f' ({listed})' if listed else ''}."]


def _remarks(rows: Sequence[Row]) -> list[str]:
    """What is to be known of numbers that are defined, by the terms it holds for, and the systems unless it is all."""

    def remark(m: Measurement) -> list[str]:
        told = m.value is not None and not is_too_few(m) and m.group is None
        return [m.reason] if told and m.reason else []

    return [f"{about}: {reason}." for about, reason in _by_text(rows, remark)]


def cautions(rows: Sequence[Row]) -> list[str]:
    """The cautions of a table's numbers, each sentence once with the terms and systems it holds for."""
    return [
        f"Caution ({about}): {caution}"
        for about, caution in _by_text(rows, lambda m: split_cautions(m.caution))
    ]


def caution_sentences(provenance: Mapping[str, Any]) -> list[str]:
    """The cautions about the study that results were made from, each sentence once."""
    found = provenance.get("cautions")
    sentences = (
        [one.get("sentence") for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    )
    return list(dict.fromkeys(one for one in sentences if isinstance(one, str)))


def _by_text(
    rows: Sequence[Row], texts_of: Callable[[Measurement], Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Each text once, after the terms it holds for, and the systems unless it holds for all."""
    concerned: dict[str, tuple[dict[str, None], dict[str | None, None]]] = {}
    for row in rows:
        for term, m in row.cells.items():
            for text in texts_of(m):
                terms, systems = concerned.setdefault(text, ({}, {}))
                terms[term] = systems[row.system] = None
    everybody = {row.system for row in rows}
    for text, (terms, systems) in concerned.items():
        whose = "" if set(systems) == everybody else f" of {', '.join(filter(None, systems))}"
        yield f"{', '.join(terms)}{whose}", text
