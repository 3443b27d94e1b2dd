"""Tables of measurements (one per metric and attribute, with a column per term), and formats of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from portrayal.report.cards import CONCEPTS, METHODS, headline_terms, metric_cards, metrics_of_layout
from portrayal.report.tables.by_term import limit_items, split_by_term
from portrayal.report.tables.concepts import concept_tables
from portrayal.report.tables.methods import method_tables
from portrayal.report.tables.table import Table, TableRow, format_p
from portrayal.results import TOO_FEW, TOO_FEW_REASON, Measurement, Results, split_cautions

_IMAGE_COUNT_PATTERN = re.compile(r"\d[\d,]*")  # the count of images in the reason "too few: 12 images, ..."
_MAX_COUNTS_IN_NOTE = 8  # image counts that the note on too few images lists
MDE_FACTOR = 2.8016  # MDE in standard errors, for a two-sided test at 5 % with a power of 80 %


def make_tables(results: Results) -> list[Table]:
    """The tables of results, with rows and columns in the order of measurement.

    A term that has rows of items only (words or objects) has its own table. If a metric was measured under several
    settings, a table with the overall numbers of all settings comes first.
    """
    measurements, special_tables = split_by_term(results)
    for layout, layout_tables in ((CONCEPTS, concept_tables), (METHODS, method_tables)):
        metrics = metrics_of_layout(results, layout)
        special_tables += layout_tables([m for m in measurements if m.metric in metrics])
        measurements = [m for m in measurements if m.metric not in metrics]
    results = replace(results, measurements=tuple(measurements))
    units_by_term: dict[tuple[str, str], set[str | None]] = {}
    for m in results.measurements:
        units_by_term.setdefault((m.metric, m.term), set()).add(m.unit)
    item_only_terms = _item_only_terms(results)
    table_by_key: dict[tuple[str, str | None], Table] = {}
    row_by_key: dict[tuple[str, str | None, str | None, str | None, str | None], TableRow] = {}
    for m in results.measurements:
        # If a term has several units, such as count and share, its columns name them.
        column = m.term if len(units_by_term[m.metric, m.term]) == 1 else f"{m.term} ({m.unit})"
        settings_key, table_term = _settings_key(m), m.term if (m.metric, m.term) in item_only_terms else None
        table = table_by_key.setdefault(
            (settings_key, table_term), Table(m.metric, m.attribute, dict(m.settings), subtitle=table_term)
        )
        if column not in table.columns:
            table.columns.append(column)
        row_key = (settings_key, table_term, m.system, m.group, m.item)
        if row_key not in row_by_key:
            row_by_key[row_key] = TableRow(m.system, m.group, m.item, {})
            table.rows.append(row_by_key[row_key])
        row_by_key[row_key].cells[column] = m
    cards = metric_cards(results)
    for table in (*table_by_key.values(), *special_tables):
        table.headline = headline_terms(cards.get(table.metric), table.metric)
    return [*_add_overviews(list(table_by_key.values())), *special_tables]


def _settings_key(m: Measurement) -> str:
    return f"{m.metric}|{m.attribute}|{sorted(m.settings.items(), key=str)}"


def _item_only_terms(results: Results) -> set[tuple[str, str]]:
    """The metric and term of each term that only has rows of items, which no other term has."""
    terms_by_row: dict[tuple[str, str | None, str | None, str | None], set[str]] = {}
    for m in results.measurements:
        terms_by_row.setdefault((_settings_key(m), m.system, m.group, m.item), set()).add(m.term)
    terms_of_other_rows = {
        (m.metric, m.term)
        for m in results.measurements
        if m.item is None or len(terms_by_row[_settings_key(m), m.system, m.group, m.item]) > 1
    }
    all_terms = {(m.metric, m.term) for m in results.measurements}
    mixed_metrics = {metric for metric, _ in terms_of_other_rows}  # the other metrics have one table each
    return {(metric, term) for metric, term in all_terms - terms_of_other_rows if metric in mixed_metrics}


def _add_overviews(tables: list[Table]) -> list[Table]:
    """The tables, with an overview before the first table of each metric with several settings."""
    tables_with_overviews: list[Table] = []
    without_subtitle = [table for table in tables if table.subtitle is None]
    for table in tables:
        metric_and_attribute = (table.metric, table.attribute)
        metric_tables = [
            candidate
            for candidate in without_subtitle
            if (candidate.metric, candidate.attribute) == metric_and_attribute
        ]
        if len(metric_tables) > 1:
            if table is metric_tables[0]:
                tables_with_overviews.append(_overview(metric_tables))
            setting_text = _differing_settings(table.settings, metric_tables)
            table.subtitle = ", ".join(filter(None, (setting_text, table.subtitle)))
        tables_with_overviews.append(table)
    return tables_with_overviews


def _differing_settings(settings: dict[str, Any], tables: Sequence[Table]) -> str:
    """The first setting that differs from the first table, as text; for the first table, those that differ in others.

    Settings are in order of importance: settings that depend on others come later.
    """
    first_settings = tables[0].settings
    other_settings = [settings] if settings != first_settings else [table.settings for table in tables[1:]]
    differing_names = [
        next((name for name in first_settings if first_settings[name] != table.get(name)), None)
        for table in other_settings
    ]
    values = {name: settings.get(name) for name in dict.fromkeys(filter(None, differing_names))}
    return ", ".join(f"{name} {'none' if value is None else value}" for name, value in values.items())


def _overview(tables: Sequence[Table]) -> Table:
    """A table with the overall numbers of one metric, with a row for each system and setting."""
    first_table = tables[0]
    overview = Table(
        first_table.metric,
        first_table.attribute,
        {},
        subtitle="side by side",
        second_column="setting",
        headline=first_table.headline,
    )
    for table in tables:
        setting_text = _differing_settings(table.settings, tables)
        if table is first_table and len(tables) > 2 and "," in setting_text:
            setting_text = "as given"
        for row in table.rows:
            if row.group is None and row.item is None:
                overview.columns += [term for term in row.cells if term not in overview.columns]
                overview.rows.append(TableRow(row.system, setting_text, None, row.cells))
    systems = list(dict.fromkeys(row.system for row in overview.rows))
    overview.rows.sort(key=lambda row: systems.index(row.system))
    headline = [term for term in overview.headline if term in overview.columns]
    for term in dict.fromkeys([*overview.columns[:1], *headline[:1]]):
        overview.notes += _rank_agreement_notes(overview, term)
    return overview


def _rank_agreement_notes(overview: Table, term: str) -> list[str]:
    """A note with the rank correlation over systems between each setting and the first one; empty if undefined."""
    values_by_setting: dict[str | None, dict[str | None, float]] = {}
    for row in overview.rows:
        m = row.cells.get(term)
        if m is not None and m.value is not None:
            values_by_setting.setdefault(row.group, {})[row.system] = m.value
    (first_setting, first_values), *other_settings = values_by_setting.items() or [(None, {})]
    correlation_texts = []
    for setting, values in other_settings:
        shared_systems = [system for system in first_values if system in values]
        correlation = rank_correlation(
            [first_values[system_name] for system_name in shared_systems],
            [values[system_name] for system_name in shared_systems],
        )
        if correlation is not None:
            correlation_texts.append(f"{setting} {correlation:.2f}")
    if not correlation_texts:
        return []
    return [
        f"The order of systems by {term}, compared with '{first_setting}' (Spearman's correlation; 1: the same): "
        + ", ".join(correlation_texts)
        + "."
    ]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than three values, or if all values on one side are equal.

    >>> rank_correlation([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    if len(first) < 3:
        return None
    ranks = [
        [sum(b < a for b in values) + sum(b == a for b in values) / 2 for a in values]
        for values in (first, second)
    ]
    means = [sum(ranking) / len(ranking) for ranking in ranks]
    cross_products = [
        sum((a - means[i]) * (b - means[j]) for a, b in zip(ranks[i], ranks[j], strict=True))
        for i, j in ((0, 1), (0, 0), (1, 1))
    ]
    return (
        None
        if not cross_products[1] * cross_products[2]
        else round(cross_products[0] / math.sqrt(cross_products[1] * cross_products[2]), 12)
    )


def is_too_few(m: Measurement) -> bool:
    """Whether a value comes from too few images."""
    return m.value is not None and (m.reason or "").startswith(TOO_FEW_REASON)


def strongest_items(table: Table, limit: int) -> Table:
    """The table with the `limit` items that are most associated with each system's groups.

    `n_hidden` counts the other items. An item is associated with a group if its number is above the group's overall
    number and comes from enough images. Items are ranked by p, and by their excess if p is equal. For terms whose best
    value is the closest to an ideal, the excess is the distance from it on either side.
    """
    if table.show_all_items:
        return table
    if table.by_term:
        return limit_items(table, limit)
    candidates_by_group: dict[tuple[str | None, str | None], list[tuple[float, float, int]]] = {}
    for index, row in enumerate(table.rows):
        m = next(iter(row.cells.values()))
        excess = None if row.item is None or m.value is None else m.value - _baseline(table, row)
        if excess is not None and m.better == "closer" and m.ideal is not None:
            excess = abs(excess)
        if excess is not None and excess > 0 and not is_too_few(m):
            candidates_by_group.setdefault((row.system, row.group), []).append(
                (2.0 if m.p is None else m.p, -excess, index)
            )
    excess_by_row_index = {
        index: excess
        for candidates in candidates_by_group.values()
        for _, excess, index in sorted(candidates)[:limit]
    }
    shown_by_system: dict[str | None, list[tuple[int, float, TableRow]]] = {}
    groups = list(dict.fromkeys(row.group for row in table.rows))
    for index, row in enumerate(table.rows):
        if row.item is None:
            shown_by_system.setdefault(row.system, []).append((-1, float(index), row))
        elif index in excess_by_row_index:
            shown_by_system.setdefault(row.system, []).append(
                (groups.index(row.group), excess_by_row_index[index], row)
            )
    rows = [
        row
        for shown_rows in shown_by_system.values()
        for _, _, row in sorted(shown_rows, key=lambda shown_row: shown_row[:2])
    ]
    return replace(table, rows=rows, n_hidden=len(table.rows) - len(rows))


def _baseline(table: Table, row: TableRow) -> float:
    """The number that an item is compared with: the ideal of its term, else the overall number of its group."""
    measurement = next(iter(row.cells.values()))
    if measurement.ideal is not None:
        return measurement.ideal
    overall_rows = [
        overall_row
        for overall_row in table.rows
        if overall_row.item is None and (overall_row.system, overall_row.group) == (row.system, row.group)
    ]
    overall_values = [
        m.value
        for overall_row in overall_rows
        for m in overall_row.cells.values()
        if m.unit == measurement.unit and m.value is not None
    ]
    return overall_values[0] if overall_values else 0.0


def format_number(value: float | None, unit: str | None) -> str:
    """A value with the digits of its unit; a dash if it is undefined."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 10 or float(value).is_integer() else f"{value:,.1f}"
    if unit in ("percent", "z"):
        return f"{value:.1f}"
    # Two significant digits for values of which three decimals would show one digit or none.
    if 0 < abs(value) < 0.00995:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}" if abs(value) >= 1e-6 else f"{value:.1e}"
    return f"{value + 0.0:.3f}"


def format_value(m: Measurement) -> str:
    """The value without its interval, with a dagger if it comes from too few images."""
    return format_number(m.value, m.unit) + ("†" if is_too_few(m) else "")


def format_cell(row: TableRow, column: str, format_measurement: Callable[[Measurement], str]) -> str:
    """The text of a cell: empty, a number, or a count with its share."""
    if column not in row.cells:
        return ""
    count = row.counts.get(column)
    value_text = format_measurement(row.cells[column])
    return (
        value_text if count is None or count is row.cells[column] else f"{format_value(count)} · {value_text}"
    )


def text_grid(table: Table, keep_second_column: bool = True) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table as text without markup.

    An empty second column is dropped unless `keep_second_column` is set.
    """
    shows_second_column = keep_second_column or table.has_second_column
    header = [
        table.first_column,
        *([table.second_column] if shows_second_column else []),
        *(["item"] if table.has_items else []),
        *table.columns,
        *(["p", "q"] if table.has_p_values else []),
        "n",
    ]
    rows = [
        [
            row.system or "",
            *([row.group or "all"] if shows_second_column else []),
            *([row.item or "all"] if table.has_items else []),
            *(format_cell(row, column, format_with_ci) for column in table.columns),
            *(row.p_and_q if table.has_p_values else ()),
            row.n,
        ]
        for row in table.rows
    ]
    return header, rows


def format_with_ci(m: Measurement) -> str:
    """The value with its confidence interval in brackets."""
    if m.low is None or m.high is None:
        return format_value(m)
    return f"{format_value(m)} [{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]"


def statistics_text(m: Measurement) -> str:
    """n, p, q and the minimum detectable effect (MDE) of a measurement."""
    statistics = [f"n = {m.n:,} {m.n_unit or ''}".strip()] if m.n is not None else []
    statistics += [f"p {format_p(m.p)}"] if m.p is not None else []
    statistics += [f"q {format_p(m.q)}"] if m.q is not None else []
    if m.se_data:
        statistics.append(f"MDE: {format_number(MDE_FACTOR * m.se_data, m.unit)}")
    return ", ".join(statistics)


def settings_text(settings: dict[str, Any]) -> str:
    """The settings as text, in alphabetical order."""
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def footnotes(rows: Sequence[TableRow]) -> list[str]:
    """The notes below a table: reasons of undefined values, remarks, cautions, and the meaning of daggers."""
    labels_by_reason: dict[str, list[str]] = {}
    for row in rows:
        for term, m in row.cells.items():
            if m.value is None:
                cell_label = " ".join(filter(None, (row.system, row.group, row.item, term)))
                labels_by_reason.setdefault(m.reason or "no reason was recorded", []).append(cell_label)
    notes = [
        f"Undefined, {reason}: {', '.join(cell_labels)}." for reason, cell_labels in labels_by_reason.items()
    ]
    notes += _remarks(rows)
    notes += table_cautions(rows)
    return notes + _too_few_note(rows)


def _too_few_note(rows: Sequence[TableRow]) -> list[str]:
    """The note on what a dagger means, with the number of images of each number that has one.

    The column n is that of the first number in a row only.
    """
    too_few_cells = [
        (" ".join(filter(None, (term, row.system, row.group, row.item))), m)
        for row in rows
        for term, m in row.cells.items()
        if is_too_few(m)
    ]
    if not too_few_cells:
        return []
    image_counts = [
        f"{cell_label} {match.group()}"
        for cell_label, m in too_few_cells
        if (match := _IMAGE_COUNT_PATTERN.search(m.reason or ""))
    ]
    listed_counts = "; ".join(image_counts[:_MAX_COUNTS_IN_NOTE]) + (
        f"; {len(image_counts) - _MAX_COUNTS_IN_NOTE} more" if len(image_counts) > _MAX_COUNTS_IN_NOTE else ""
    )
    return [
        f"† Rests on fewer than {TOO_FEW} images: too few to rank{f' ({listed_counts})' if listed_counts else ''}."
    ]


def _remarks(rows: Sequence[TableRow]) -> list[str]:
    """The remarks on defined numbers, each after its terms, and after its systems unless all have it."""

    def get_remarks(m: Measurement) -> list[str]:
        applies = m.value is not None and not is_too_few(m) and m.group is None
        return [m.reason] if applies and m.reason else []

    return [f"{scope}: {reason}." for scope, reason in _group_by_text(rows, get_remarks)]


def table_cautions(rows: Sequence[TableRow]) -> list[str]:
    """The cautions of a table's numbers, each once with its terms and systems."""
    return [
        f"Caution ({scope}): {caution}"
        for scope, caution in _group_by_text(rows, lambda m: split_cautions(m.caution))
    ]


def study_cautions(provenance: Mapping[str, Any]) -> list[str]:
    """The cautions about the study of results, each once."""
    cautions = provenance.get("cautions")
    sentences = (
        [caution.get("sentence") for caution in cautions if isinstance(caution, Mapping)]
        if isinstance(cautions, list)
        else []
    )
    return list(dict.fromkeys(caution for caution in sentences if isinstance(caution, str)))


def _group_by_text(
    rows: Sequence[TableRow], get_texts: Callable[[Measurement], Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield each text once, after the terms that have it, and their systems unless all systems have it."""
    scope_by_text: dict[str, tuple[dict[str, None], dict[str | None, None]]] = {}
    for row in rows:
        for term, m in row.cells.items():
            for text in get_texts(m):
                terms, systems = scope_by_text.setdefault(text, ({}, {}))
                terms[term] = systems[row.system] = None
    all_systems = {row.system for row in rows}
    for text, (terms, systems) in scope_by_text.items():
        suffix = "" if set(systems) == all_systems else f" of {', '.join(filter(None, systems))}"
        yield f"{', '.join(terms)}{suffix}", text
