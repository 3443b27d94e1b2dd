"""Tables of mitigations: how much bias they remove from a model, and what else they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.tables.table import Table, TableRow
from portrayal.results import Measurement, Results

MITIGATION = "mitigation"
_OWN = (
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


def mitigation_tables(measurements: Sequence[Measurement]) -> list[Table]:
    tables = []
    for attribute in dict.fromkeys(m.attribute for m in measurements):
        own = [m for m in measurements if m.attribute == attribute]
        tables += [
            _table(own, ("drop", "drop-share"), "bias removed, against vanilla", "of", _about_bias),
            _table(
                own, ("words-right", "words-lost"), "masked words", "texts", lambda m: m.settings["texts"]
            ),
            _table(own, ("group-right",), "perceived group", "", lambda _: None),
            _table(own, ("change",), "what else changed, against vanilla", "of", _about_change),
        ]
    return [table for table in tables if table.rows]


def _table(
    measurements: Iterable[Measurement],
    terms: Sequence[str],
    subtitle: str,
    second_column: str,
    row_label: Callable[[Measurement], str | None],
) -> Table:
    selected = [m for m in measurements if m.term in terms]
    first = selected[0] if selected else None
    settings = (
        {} if first is None else {name: value for name, value in first.settings.items() if name not in _OWN}
    )
    table = Table(
        MITIGATION,
        first.attribute if first else None,
        settings,
        list(terms),
        subtitle=subtitle,
        second_column=second_column,
        show_all_items=True,
    )
    rows: dict[tuple[str | None, str | None], TableRow] = {}
    for m in selected:
        key = (m.system, row_label(m))
        if key not in rows:
            rows[key] = TableRow(*key, None, {})
            table.rows.append(rows[key])
        rows[key].cells[m.term] = m
    order = list(dict.fromkeys(row.group for row in table.rows))
    table.rows.sort(key=lambda row: order.index(row.group))
    return table


def _about_bias(m: Measurement) -> str:
    return f"{m.settings['of']}, {m.settings['kind']}, {m.settings['attack']}"


def _about_change(m: Measurement) -> str:
    where = m.settings.get("texts") or m.settings.get("fitted")
    return f"{m.settings['of']}, {where}" if where else str(m.settings["of"])


SummaryTable = tuple[str, list[str], list[list[str]]]  # title, columns, and a row for each method
_BIASES = ("b@v-l", "b@v", "b@l")
_SEARCHES = ("tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10")


def summary_tables(results: Results) -> list[SummaryTable]:
    """The paper's tables of bias by method (Table 4) and retrieval recall (Table 5), and a table of costs."""
    rows = [m for m in results.measurements if m.group is None and m.item is None]
    methods = list(dict.fromkeys(str(m.system) for m in rows))

    def table(title: str, columns: dict[str, dict[str, str]]) -> SummaryTable:
        cells_of = {name: {m.system: m for m in rows if _is(m, wanted)} for name, wanted in columns.items()}
        cells_of = {name: cells for name, cells in cells_of.items() if cells}
        lines = [[method, *(_cell(cells.get(method)) for cells in cells_of.values())] for method in methods]
        return title, ["method", *cells_of], lines if cells_of else []

    counterbias = [m for m in rows if m.metric == "counterbias"]
    attacks = _values(counterbias, "attack")
    summaries = [
        table(
            f"Remaining bias, {kind}: excess over the noise floor, in percent",
            {
                f"{of}, {attack}": {
                    "metric": "counterbias",
                    "term": "excess",
                    "of": of,
                    "kind": kind,
                    "attack": attack,
                }
                for attack in attacks
                for of in _BIASES
            },
        )
        for kind in _values(counterbias, "kind")
    ]
    for fitted in _values(rows, "fitted"):
        columns = {term: {"metric": "retrieval-recall", "term": term, "fitted": fitted} for term in _SEARCHES}
        summaries.append(table(f"Retrieval recall, {fitted}", columns))
    costs = {
        f"{label}, {texts}": {"term": term, "texts": texts}
        for texts in _values(rows, "texts")
        for term, label in (("words-right", "words right"), ("words-lost", "-log P"))
    }
    if attacks:
        costs["P(group | V), percent"] = {"term": "p-before", "attack": attacks[-1]}
    costs["group right"] = {"term": "group-right"}
    summaries.append(table("Costs", costs))
    return [summary for summary in summaries if summary[2]]


def _values(rows: Iterable[Measurement], name: str) -> list[str]:
    return list(dict.fromkeys(str(m.settings[name]) for m in rows if name in m.settings))


def _is(m: Measurement, wanted: dict[str, str]) -> bool:
    fields = {"metric": m.metric, "term": m.term}
    return all(fields.get(name, m.settings.get(name)) == value for name, value in wanted.items())


def _cell(m: Measurement | None) -> str:
    if m is None:
        return ""
    if m.value is None:
        return "undefined"
    digits = 1 if m.unit == "percent" else 3
    interval = "" if m.low is None or m.high is None else f" [{m.low:.{digits}f}, {m.high:.{digits}f}]"
    return f"{m.value:.{digits}f}{interval}"
