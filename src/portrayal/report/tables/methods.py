"""Tables of mitigations: how much of a model's bias they remove, and what else they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.tables.table import Table, TableRow
from portrayal.results import Measurement, Results

_VARYING_SETTINGS = (
    "attack",
    "kind",
    "of",
    "texts",
    "fitted",
    "rerank",
    "epsilon",
    "norm",
    "attack_steps",
    "step",
    "stop_at",
)


def method_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """The tables of each metric and attribute."""
    rows_by_attribute: dict[tuple[str, str | None], list[Measurement]] = {}
    for m in measurements:
        rows_by_attribute.setdefault((m.metric, m.attribute), []).append(m)
    tables = []
    for attribute_rows in rows_by_attribute.values():
        tables += [
            _table(
                attribute_rows, ("drop", "drop-share"), "bias removed, against vanilla", "of", _bias_label
            ),
            _table(
                attribute_rows,
                ("words-right", "words-lost"),
                "masked words",
                "texts",
                lambda m: m.settings["texts"],
            ),
            _table(attribute_rows, ("group-right",), "perceived group", "", lambda _: None),
            _table(attribute_rows, ("change",), "what else changed, against vanilla", "of", _change_label),
        ]
    return [table for table in tables if table.rows]


def _table(
    measurements: Iterable[Measurement],
    terms: Sequence[str],
    subtitle: str,
    second_column: str,
    row_label: Callable[[Measurement], str | None],
) -> Table:
    """A table with a row for each system and row label, sorted by row label, and a column for each term."""
    selected = [m for m in measurements if m.term in terms]
    first_measurement = selected[0] if selected else None
    settings = (
        {}
        if first_measurement is None
        else {
            name: value for name, value in first_measurement.settings.items() if name not in _VARYING_SETTINGS
        }
    )
    table = Table(
        first_measurement.metric if first_measurement else "",
        first_measurement.attribute if first_measurement else None,
        settings,
        list(terms),
        subtitle=subtitle,
        second_column=second_column,
        show_all_items=True,
    )
    row_by_key: dict[tuple[str | None, str | None], TableRow] = {}
    for m in selected:
        key = (m.system, row_label(m))
        if key not in row_by_key:
            row_by_key[key] = TableRow(*key, None, {})
            table.rows.append(row_by_key[key])
        row_by_key[key].cells[m.term] = m
    row_labels = list(dict.fromkeys(row.group for row in table.rows))
    table.rows.sort(key=lambda row: row_labels.index(row.group))
    return table


def _bias_label(m: Measurement) -> str:
    """The bias term, the kind of concepts and the attack."""
    return f"{m.settings['of']}, {m.settings['kind']}, {m.settings['attack']}"


def _change_label(m: Measurement) -> str:
    """What changed, and the texts or the fit ("zero-shot" or "fine-tuned") that it was measured with."""
    texts_or_fitted = m.settings.get("texts") or m.settings.get("fitted")
    return f"{m.settings['of']}, {texts_or_fitted}" if texts_or_fitted else str(m.settings["of"])


SummaryTable = tuple[str, list[str], list[list[str]]]  # title, column names, and a row for each method
_BIAS_TERMS = ("b@v-l", "b@v", "b@l")
_RECALL_TERMS = ("tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10")


def summary_tables(results: Results) -> list[SummaryTable]:
    """The paper's tables of bias by method (Table 4) and retrieval recall (Table 5), and a table of costs."""
    rows = [m for m in results.measurements if m.group is None and m.item is None]
    methods = list(dict.fromkeys(str(m.system) for m in rows))

    def make_table(title: str, columns: dict[str, dict[str, str]]) -> SummaryTable:
        cells_by_column = {
            name: {m.system: m for m in rows if _matches(m, criteria)} for name, criteria in columns.items()
        }
        cells_by_column = {name: cells for name, cells in cells_by_column.items() if cells}
        text_rows = [
            [method, *(_cell(cells.get(method)) for cells in cells_by_column.values())] for method in methods
        ]
        return title, ["method", *cells_by_column], text_rows if cells_by_column else []

    remaining_bias = [m for m in rows if m.term == "excess"]
    attacks = _setting_values(remaining_bias, "attack")
    summaries = [
        make_table(
            f"Remaining bias, {kind}: excess over the noise floor, in percent",
            {
                f"{bias_term}, {attack}": {
                    "term": "excess",
                    "of": bias_term,
                    "kind": kind,
                    "attack": attack,
                }
                for attack in attacks
                for bias_term in _BIAS_TERMS
            },
        )
        for kind in _setting_values(remaining_bias, "kind")
    ]
    for fitted in _setting_values(rows, "fitted"):
        columns = {term: {"term": term, "fitted": fitted} for term in _RECALL_TERMS}
        summaries.append(make_table(f"Retrieval recall, {fitted}", columns))
    costs = {
        f"{label}, {texts}": {"term": term, "texts": texts}
        for texts in _setting_values(rows, "texts")
        for term, label in (("words-right", "words right"), ("words-lost", "-log P"))
    }
    if attacks:
        costs["P(group | V), percent"] = {"term": "p-before", "attack": attacks[-1]}
    costs["group right"] = {"term": "group-right"}
    summaries.append(make_table("Costs", costs))
    return [summary for summary in summaries if summary[2]]


def _setting_values(rows: Iterable[Measurement], name: str) -> list[str]:
    """The distinct values of a setting in the order of rows."""
    return list(dict.fromkeys(str(m.settings[name]) for m in rows if name in m.settings))


def _matches(m: Measurement, criteria: dict[str, str]) -> bool:
    """Whether a row has the given term and settings."""
    return all(
        (m.term if name == "term" else m.settings.get(name)) == value for name, value in criteria.items()
    )


def _cell(m: Measurement | None) -> str:
    if m is None:
        return ""
    if m.value is None:
        return "undefined"
    digits = 1 if m.unit == "percent" else 3
    interval = "" if m.low is None or m.high is None else f" [{m.low:.{digits}f}, {m.high:.{digits}f}]"
    return f"{m.value:.{digits}f}{interval}"
