"""Tables of CounterBias: one of models, one of concepts, one of templates and one of the attack.

It has numbers for every kind of concepts, attack, template and bias. The usual layout would make a table for each
combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.charts.counterbias_data import BOTH, METRIC
from portrayal.report.tables.table import Table, TableRow
from portrayal.results import Measurement

ALL = "all"
_HEADLINES = ("b@v-l", "b@v", "b@l", "excess", "placebo", "corrected", "agreement")
_CONCEPTS = ("b@v-l", "b@v", "b@l", "corrected", "placebo", "observed")
_TEMPLATES = ("b@v-l", "b@v", "b@l", "b@text")
_FURTHER = ("floor", "excess", "pooled", "placebo", "corrected", "agreement")
_ATTACK = ("attack-success", "p-before", "p-after", "drift", "moved", "undefined")
RowLabel = Callable[[Measurement], str | None]


def counterbias_tables(measurements: Sequence[Measurement]) -> list[Table]:
    tables: list[Table] = []
    for key in dict.fromkeys((m.attribute, _pair(m)) for m in measurements):
        tables += _of_pair([m for m in measurements if (m.attribute, _pair(m)) == key])
    return [table for table in tables if table.rows]


def _of_pair(measurements: Sequence[Measurement]) -> list[Table]:
    overall = [m for m in measurements if m.group is None and m.item is None]
    headlines = [m for m in overall if _template(m) == ALL and m.settings.get("of", BOTH) == BOTH]
    text_only = [m for m in headlines if m.term == "b@text"]
    tables = [
        _table(headlines, _HEADLINES, "means over concepts", "of", _case),
        _table(text_only, ("b@text",), "texts alone, means over concepts", "of", _case),
    ]
    for case in dict.fromkeys(_case(m) for m in measurements if "kind" in m.settings):
        case_rows = [m for m in measurements if _case(m) == case and _template(m) == ALL and m.group is None]
        items = [m for m in case_rows if m.item is not None and m.settings.get("of", BOTH) == BOTH]
        terms = _CONCEPTS if any(m.term in _CONCEPTS for m in items) else ("b@text",)
        tables.append(_table(items, terms, f"each concept: {case}", "", lambda _: None))
    per_template = [m for m in overall if _template(m) != ALL]
    tables.append(
        _table(per_template, _TEMPLATES, "each template", "template", lambda m: f"{_case(m)}: {_template(m)}")
    )
    attacks = [m for m in measurements if m.term in _ATTACK]
    tables.append(
        _table(
            attacks,
            _ATTACK,
            "the counterfactual images",
            "attack, group",
            lambda m: f"{_way(m)}, {m.group or ALL}",
        )
    )
    further = [m for m in overall if "of" in m.settings]
    tables.append(
        _table(
            further, _FURTHER, "floors and pooled means", "of", lambda m: f"{m.settings['of']}, {_case(m)}"
        )
    )
    return tables


def _table(
    measurements: Iterable[Measurement],
    terms: Sequence[str],
    subtitle: str,
    second_column: str,
    row_label: RowLabel,
) -> Table:
    """A row for each system, item and result of `row_label`."""
    selected = [m for m in measurements if m.term in terms]
    first = selected[0] if selected else None
    pair = _pair(first) if first is not None else ""
    settings = (
        {} if first is None else {name: first.settings[name] for name in first.settings if name not in _VARY}
    )
    table = Table(
        METRIC,
        first.attribute if first else None,
        settings,
        show_all_items=True,
        subtitle=f"{subtitle} ({pair})",
        second_column=second_column,
    )
    rows: dict[tuple[str | None, str | None, str | None], TableRow] = {}
    for m in selected:
        key = (m.system, row_label(m), m.item)
        if key not in rows:
            rows[key] = TableRow(*key, {})
            table.rows.append(rows[key])
        rows[key].cells[m.term] = m
    present = {term for row in table.rows for term in row.cells}
    table.columns = [term for term in terms if term in present]
    return table


_VARY = ("kind", "template", "of", "attack")


def _pair(m: Measurement) -> str:
    groups = m.settings.get("groups")
    return " or ".join(map(str, groups)) if isinstance(groups, list | tuple) else ""


def _template(m: Measurement) -> str:
    return str(m.settings.get("template", ALL))


def _way(m: Measurement) -> str:
    return str(m.settings.get("attack", "no image"))


def _case(m: Measurement) -> str:
    return f"{m.settings.get('kind', ALL)}, {_way(m)}"
