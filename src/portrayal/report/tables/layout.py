"""The layout of measurements as tables (one per metric and attribute, a column per term), and the format of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.tables.by_term import limit_items, split_by_term
from portrayal.report.tables.counterbias import counterbias_tables
from portrayal.report.tables.mitigation import MITIGATION, mitigation_tables
from portrayal.report.tables.table import Table, TableRow, format_p
from portrayal.results import TOO_FEW, TOO_FEW_REASON, Measurement, Results, split_cautions

_IMAGE_COUNT = re.compile(r"\d[\d,]*")  # the count of images in the reason "too few: 12 images, ..."
_MAX_LISTED = 8  # numbers on too few images that a note lists
MDE_FACTOR = 2.8016  # MDE in standard errors: a two-sided test at 5 % with a power of 80 %


def make_tables(results: Results) -> list[Table]:
    """The tables of results, with rows and columns in the order of measurement.

    A term that only has rows of words or objects gets a table of its own. If a metric was measured under several
    settings, a table with their overall numbers side by side comes first.
    """
    ordinary, special = split_by_term(results)
    special += counterbias_tables([m for m in ordinary if m.metric == COUNTERBIAS])
    special += mitigation_tables([m for m in ordinary if m.metric == MITIGATION])
    ordinary = [m for m in ordinary if m.metric not in (COUNTERBIAS, MITIGATION)]
    results = replace(results, measurements=tuple(ordinary))
    units: dict[tuple[str, str], set[str | None]] = {}
    for m in results.measurements:
        units.setdefault((m.metric, m.term), set()).add(m.unit)
    item_only = _item_only_terms(results)
    tables: dict[tuple[str, str | None], Table] = {}
    rows: dict[tuple[str, str | None, str | None, str | None, str | None], TableRow] = {}
    for m in results.measurements:
        # If a term has several units, such as count and share, its columns name them.
        column = m.term if len(units[m.metric, m.term]) == 1 else f"{m.term} ({m.unit})"
        settings_key, own_term = _settings_key(m), m.term if (m.metric, m.term) in item_only else None
        table = tables.setdefault(
            (settings_key, own_term), Table(m.metric, m.attribute, dict(m.settings), subtitle=own_term)
        )
        if column not in table.columns:
            table.columns.append(column)
        key = (settings_key, own_term, m.system, m.group, m.item)
        if key not in rows:
            rows[key] = TableRow(m.system, m.group, m.item, {})
            table.rows.append(rows[key])
        rows[key].cells[column] = m
    return [*_add_overviews(list(tables.values())), *special]


def _settings_key(m: Measurement) -> str:
    return f"{m.metric}|{m.attribute}|{sorted(m.settings.items(), key=str)}"


def _item_only_terms(results: Results) -> set[tuple[str, str]]:
    """Terms with rows of words or objects only that no other term shares."""
    terms: dict[tuple[str, str | None, str | None, str | None], set[str]] = {}
    for m in results.measurements:
        terms.setdefault((_settings_key(m), m.system, m.group, m.item), set()).add(m.term)
    shared = {
        (m.metric, m.term)
        for m in results.measurements
        if m.item is None or len(terms[_settings_key(m), m.system, m.group, m.item]) > 1
    }
    all_terms = {(m.metric, m.term) for m in results.measurements}
    mixed_metrics = {metric for metric, _ in shared}  # others have one table
    return {(metric, term) for metric, term in all_terms - shared if metric in mixed_metrics}


def _add_overviews(tables: list[Table]) -> list[Table]:
    """The tables, with an overview before the first of a metric's tables if it has several settings."""
    result: list[Table] = []
    without_subtitle = [table for table in tables if table.subtitle is None]
    for table in tables:
        key = (table.metric, table.attribute)
        same = [other for other in without_subtitle if (other.metric, other.attribute) == key]
        if len(same) > 1:
            if table is same[0]:
                result.append(_overview(same))
            setting = _differing_settings(table.settings, same)
            table.subtitle = ", ".join(filter(None, (setting, table.subtitle)))
        result.append(table)
    return result


def _differing_settings(settings: dict[str, Any], tables: Sequence[Table]) -> str:
    """The first setting that differs from the first table; for the first table, the settings that differ in others.

    Settings are in order of importance: those that follow from others come later.
    """
    base = tables[0].settings
    others = [settings] if settings != base else [table.settings for table in tables[1:]]
    names = [next((name for name in base if base[name] != table.get(name)), None) for table in others]
    values = {name: settings.get(name) for name in dict.fromkeys(filter(None, names))}
    return ", ".join(f"{name} {'none' if value is None else value}" for name, value in values.items())


def _overview(tables: Sequence[Table]) -> Table:
    base = tables[0]
    overview = Table(base.metric, base.attribute, {}, subtitle="side by side", second_column="setting")
    for table in tables:
        setting = _differing_settings(table.settings, tables)
        if table is base and len(tables) > 2 and "," in setting:
            setting = "as given"
        for row in table.rows:
            if row.group is None and row.item is None:
                overview.columns += [term for term in row.cells if term not in overview.columns]
                overview.rows.append(TableRow(row.system, setting, None, row.cells))
    systems = list(dict.fromkeys(row.system for row in overview.rows))
    overview.rows.sort(key=lambda row: systems.index(row.system))
    headline = (
        base.metric if base.metric in overview.columns else overview.columns[0] if overview.columns else None
    )
    for term in dict.fromkeys([*overview.columns[:1], *([headline] if headline else [])]):
        overview.notes += _rank_agreement_notes(overview, term)
    return overview


def _rank_agreement_notes(overview: Table, term: str) -> list[str]:
    """A note with the rank correlation of systems between each setting and the first one."""
    by_setting: dict[str | None, dict[str | None, float]] = {}
    for row in overview.rows:
        m = row.cells.get(term)
        if m is not None and m.value is not None:
            by_setting.setdefault(row.group, {})[row.system] = m.value
    (first, base), *others = by_setting.items() or [(None, {})]
    agreements = []
    for setting, values in others:
        shared_systems = [system for system in base if system in values]
        agreement = rank_correlation([base[s] for s in shared_systems], [values[s] for s in shared_systems])
        if agreement is not None:
            agreements.append(f"{setting} {agreement:.2f}")
    if not agreements:
        return []
    return [
        f"The order of systems by {term}, compared with '{first}' (Spearman's correlation; 1: the same): "
        + ", ".join(agreements)
        + "."
    ]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's correlation; None for fewer than three values or if all are equal.

    >>> rank_correlation([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    if len(first) < 3:
        return None
    ranks = [
        [sum(b < a for b in values) + sum(b == a for b in values) / 2 for a in values]
        for values in (first, second)
    ]
    means = [sum(values_ranked) / len(values_ranked) for values_ranked in ranks]
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
    """Whether a value rests on too few images."""
    return m.value is not None and (m.reason or "").startswith(TOO_FEW_REASON)


def strongest_items(table: Table, limit: int) -> Table:
    """The table with the `limit` items most associated with each system's groups; other items are only counted.

    An item is associated with a group if its number is above the group's overall number and rests on enough images.
    Items are ranked by p, ties by their distance. If the closest number is best, both sides of the ideal count.
    """
    if table.show_all_items:
        return table
    if table.by_term:
        return limit_items(table, limit)
    by_group: dict[tuple[str | None, str | None], list[tuple[float, float, int]]] = {}
    for index, row in enumerate(table.rows):
        m = next(iter(row.cells.values()))
        excess = None if row.item is None or m.value is None else m.value - _baseline(table, row)
        if excess is not None and m.better == "closer" and m.ideal is not None:
            excess = abs(excess)
        if excess is not None and excess > 0 and not is_too_few(m):
            by_group.setdefault((row.system, row.group), []).append(
                (2.0 if m.p is None else m.p, -excess, index)
            )
    excess_by_row = {
        index: excess for entries in by_group.values() for _, excess, index in sorted(entries)[:limit]
    }
    shown: dict[str | None, list[tuple[int, float, TableRow]]] = {}
    groups = list(dict.fromkeys(row.group for row in table.rows))
    for index, row in enumerate(table.rows):
        if row.item is None:
            shown.setdefault(row.system, []).append((-1, float(index), row))
        elif index in excess_by_row:
            shown.setdefault(row.system, []).append((groups.index(row.group), excess_by_row[index], row))
    rows = [row for entries in shown.values() for _, _, row in sorted(entries, key=lambda entry: entry[:2])]
    return replace(table, rows=rows, n_hidden=len(table.rows) - len(rows))


def _baseline(table: Table, row: TableRow) -> float:
    """The reference of an item: the ideal of its term, else the number of its group for all items."""
    first = next(iter(row.cells.values()))
    if first.ideal is not None:
        return first.ideal
    overall = [r for r in table.rows if r.item is None and (r.system, r.group) == (row.system, row.group)]
    shares = [
        m.value for r in overall for m in r.cells.values() if m.unit == first.unit and m.value is not None
    ]
    return shares[0] if shares else 0.0


def format_number(value: float | None, unit: str | None) -> str:
    """A value with the digits of its unit; a dash if it is undefined."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 10 or float(value).is_integer() else f"{value:,.1f}"
    if unit in ("percent", "z"):
        return f"{value:.1f}"
    if 0 < abs(value) < 0.00995:  # two significant digits, where three places would show one or none
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}" if abs(value) >= 1e-6 else f"{value:.1e}"
    return f"{value + 0.0:.3f}"


def format_value(m: Measurement) -> str:
    """The value without its interval; a dagger marks too few images."""
    return format_number(m.value, m.unit) + ("†" if is_too_few(m) else "")


def format_cell(row: TableRow, column: str, format_measurement: Callable[[Measurement], str]) -> str:
    """The text of a cell: empty, a number, or a count with its share."""
    if column not in row.cells:
        return ""
    count = row.counts.get(column)
    text = format_measurement(row.cells[column])
    return text if count is None or count is row.cells[column] else f"{format_value(count)} · {text}"


def text_grid(table: Table, keep_second_column: bool = True) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table as text without markup.

    An empty second column is left out unless `keep_second_column` is set.
    """
    second_column = keep_second_column or table.has_second_column
    head = [
        table.first_column,
        *([table.second_column] if second_column else []),
        *(["item"] if table.has_items else []),
        *table.columns,
        *(["p", "q"] if table.has_p_values else []),
        "n",
    ]
    rows = [
        [
            row.system or "",
            *([row.group or "all"] if second_column else []),
            *([row.item or "all"] if table.has_items else []),
            *(format_cell(row, column, format_with_ci) for column in table.columns),
            *(row.p_and_q if table.has_p_values else ()),
            row.n,
        ]
        for row in table.rows
    ]
    return head, rows


def format_with_ci(m: Measurement) -> str:
    """The value with its confidence interval in brackets."""
    if m.low is None or m.high is None:
        return format_value(m)
    return f"{format_value(m)} [{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]"


def statistics_text(m: Measurement) -> str:
    """n, p, q and the minimum detectable effect (MDE) of a measurement."""
    parts = [f"n = {m.n:,} {m.n_unit or ''}".strip()] if m.n is not None else []
    parts += [f"p {format_p(m.p)}"] if m.p is not None else []
    parts += [f"q {format_p(m.q)}"] if m.q is not None else []
    if m.se_data:
        parts.append(f"MDE: {format_number(MDE_FACTOR * m.se_data, m.unit)}")
    return ", ".join(parts)


def settings_text(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def footnotes(rows: Sequence[TableRow]) -> list[str]:
    """The notes below rows: reasons of undefined values, remarks, cautions, and the meaning of daggers."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for term, m in row.cells.items():
            if m.value is None:
                about = " ".join(filter(None, (row.system, row.group, row.item, term)))
                reasons.setdefault(m.reason or "no reason was recorded", []).append(about)
    notes = [f"Undefined, {reason}: {', '.join(about)}." for reason, about in reasons.items()]
    notes += _remarks(rows)
    notes += table_cautions(rows)
    return notes + _too_few_note(rows)


def _too_few_note(rows: Sequence[TableRow]) -> list[str]:
    """What a dagger means, and the n of each number that has one: a row's n is that of its first number."""
    too_few = [
        (" ".join(filter(None, (term, row.system, row.group, row.item))), m)
        for row in rows
        for term, m in row.cells.items()
        if is_too_few(m)
    ]
    if not too_few:
        return []
    counts = [
        f"{about} {match.group()}" for about, m in too_few if (match := _IMAGE_COUNT.search(m.reason or ""))
    ]
    listed = "; ".join(counts[:_MAX_LISTED]) + (
        f"; {len(counts) - _MAX_LISTED} more" if len(counts) > _MAX_LISTED else ""
    )
    return [f"† Rests on fewer than {TOO_FEW} images: too few to rank{f' ({listed})' if listed else ''}."]


def _remarks(rows: Sequence[TableRow]) -> list[str]:
    """The remarks on defined numbers, each after its terms, and its systems unless all have it."""

    def remark(m: Measurement) -> list[str]:
        applies = m.value is not None and not is_too_few(m) and m.group is None
        return [m.reason] if applies and m.reason else []

    return [f"{about}: {reason}." for about, reason in _group_by_text(rows, remark)]


def table_cautions(rows: Sequence[TableRow]) -> list[str]:
    """The cautions of a table's numbers, each once with its terms and systems."""
    return [
        f"Caution ({about}): {caution}"
        for about, caution in _group_by_text(rows, lambda m: split_cautions(m.caution))
    ]


def study_cautions(provenance: Mapping[str, Any]) -> list[str]:
    """The cautions about the study of results, each once."""
    cautions = provenance.get("cautions")
    sentences = (
        [entry.get("sentence") for entry in cautions if isinstance(entry, Mapping)]
        if isinstance(cautions, list)
        else []
    )
    return list(dict.fromkeys(entry for entry in sentences if isinstance(entry, str)))


def _group_by_text(
    rows: Sequence[TableRow], texts_of: Callable[[Measurement], Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Pairs of terms and text, each text once; with systems unless all of them have it."""
    by_text: dict[str, tuple[dict[str, None], dict[str | None, None]]] = {}
    for row in rows:
        for term, m in row.cells.items():
            for text in texts_of(m):
                terms, systems = by_text.setdefault(text, ({}, {}))
                terms[term] = systems[row.system] = None
    all_systems = {row.system for row in rows}
    for text, (terms, systems) in by_text.items():
        suffix = "" if set(systems) == all_systems else f" of {', '.join(filter(None, systems))}"
        yield f"{', '.join(terms)}{suffix}", text
