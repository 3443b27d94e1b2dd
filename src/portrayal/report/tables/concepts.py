"""Tables of models' biases toward concepts: by model, by concept, by template and by attack.

Such a metric has numbers for every kind of concepts, attack, template and bias. The default layout would have a table
for each combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.charts.concept_biases import BOTH
from portrayal.report.tables.table import Table, TableRow
from portrayal.results import Measurement

ALL = "all"
_HEADLINE_TERMS = ("b@v-l", "b@v", "b@l", "excess", "placebo", "corrected", "agreement")
_CONCEPT_TERMS = ("b@v-l", "b@v", "b@l", "corrected", "placebo", "observed")
_TEMPLATE_TERMS = ("b@v-l", "b@v", "b@l", "b@text")
_FLOOR_TERMS = ("floor", "excess", "pooled", "placebo", "corrected", "agreement")
_ATTACK_TERMS = ("attack-success", "p-before", "p-after", "drift", "moved", "undefined")
RowLabelFunction = Callable[[Measurement], str | None]


def concept_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """The tables of each metric, attribute and pair of groups."""
    rows_by_pair: dict[tuple[str, str | None, str], list[Measurement]] = {}
    for m in measurements:
        rows_by_pair.setdefault((m.metric, m.attribute, _group_pair(m)), []).append(m)
    tables = [table for rows in rows_by_pair.values() for table in _pair_tables(rows)]
    return [table for table in tables if table.rows]


def _pair_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """The tables of one metric, attribute and pair of groups."""
    overall_rows = [m for m in measurements if m.group is None and m.item is None]
    headline_rows = [
        m for m in overall_rows if _template_name(m) == ALL and m.settings.get("of", BOTH) == BOTH
    ]
    text_only_rows = [m for m in headline_rows if m.term == "b@text"]
    tables = [
        _table(headline_rows, _HEADLINE_TERMS, "means over concepts", "of", _case_label),
        _table(text_only_rows, ("b@text",), "texts alone, means over concepts", "of", _case_label),
    ]
    for case in dict.fromkeys(_case_label(m) for m in measurements if "kind" in m.settings):
        case_rows = [
            m for m in measurements if _case_label(m) == case and _template_name(m) == ALL and m.group is None
        ]
        item_rows = [m for m in case_rows if m.item is not None and m.settings.get("of", BOTH) == BOTH]
        item_terms = _CONCEPT_TERMS if any(m.term in _CONCEPT_TERMS for m in item_rows) else ("b@text",)
        tables.append(_table(item_rows, item_terms, f"each concept: {case}", "", lambda _: None))
    template_rows = [m for m in overall_rows if _template_name(m) != ALL]
    tables.append(
        _table(
            template_rows,
            _TEMPLATE_TERMS,
            "each template",
            "template",
            lambda m: f"{_case_label(m)}: {_template_name(m)}",
        )
    )
    attack_rows = [m for m in measurements if m.term in _ATTACK_TERMS]
    tables.append(
        _table(
            attack_rows,
            _ATTACK_TERMS,
            "the counterfactual images",
            "attack, group",
            lambda m: f"{_attack_name(m)}, {m.group or ALL}",
        )
    )
    floor_rows = [m for m in overall_rows if "of" in m.settings]
    tables.append(
        _table(
            floor_rows,
            _FLOOR_TERMS,
            "floors and pooled means",
            "of",
            lambda m: f"{m.settings['of']}, {_case_label(m)}",
        )
    )
    return tables


def _table(
    measurements: Iterable[Measurement],
    terms: Sequence[str],
    subtitle: str,
    second_column: str,
    row_label: RowLabelFunction,
) -> Table:
    """A table with a row for each system, item and row label, and a column for each of the terms that has a value."""
    selected = [m for m in measurements if m.term in terms]
    first_measurement = selected[0] if selected else None
    pair_text = _group_pair(first_measurement) if first_measurement is not None else ""
    settings = (
        {}
        if first_measurement is None
        else {
            name: first_measurement.settings[name]
            for name in first_measurement.settings
            if name not in _VARYING_SETTINGS
        }
    )
    table = Table(
        first_measurement.metric if first_measurement else "",
        first_measurement.attribute if first_measurement else None,
        settings,
        show_all_items=True,
        subtitle=f"{subtitle} ({pair_text})",
        second_column=second_column,
        items_drawn_elsewhere=True,
    )
    row_by_key: dict[tuple[str | None, str | None, str | None], TableRow] = {}
    for m in selected:
        key = (m.system, row_label(m), m.item)
        if key not in row_by_key:
            row_by_key[key] = TableRow(*key, {})
            table.rows.append(row_by_key[key])
        row_by_key[key].cells[m.term] = m
    present_terms = {term for row in table.rows for term in row.cells}
    table.columns = [term for term in terms if term in present_terms]
    return table


_VARYING_SETTINGS = ("kind", "template", "of", "attack")


def _group_pair(m: Measurement) -> str:
    """The pair of groups that are compared, such as "man or woman"."""
    groups = m.settings.get("groups")
    return " or ".join(map(str, groups)) if isinstance(groups, list | tuple) else ""


def _template_name(m: Measurement) -> str:
    return str(m.settings.get("template", ALL))


def _attack_name(m: Measurement) -> str:
    return str(m.settings.get("attack", "no image"))


def _case_label(m: Measurement) -> str:
    """The kind of concepts and the attack."""
    return f"{m.settings.get('kind', ALL)}, {_attack_name(m)}"
