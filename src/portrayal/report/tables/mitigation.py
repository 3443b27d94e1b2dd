"""Tables of what remedies change in a model: the bias that is gone, and what else changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.tables.table import Row, Section
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


def remedy_sections(measurements: Sequence[Measurement]) -> list[Section]:
    made = []
    for attribute in dict.fromkeys(m.attribute for m in measurements):
        here = [m for m in measurements if m.attribute == attribute]
        made += [
            _table(here, ("drop", "drop-share"), "bias that is gone, against vanilla", "of", _about_bias),
            _table(
                here, ("words-right", "words-lost"), "words filled in", "texts", lambda m: m.settings["texts"]
            ),
            _table(here, ("group-right",), "whom the model sees", "", lambda _: None),
            _table(here, ("change",), "what else changed, against vanilla", "of", _about_change),
        ]
    return [section for section in made if section.rows]


def _table(
    some: Iterable[Measurement],
    terms: Sequence[str],
    part: str,
    second: str,
    told: Callable[[Measurement], str | None],
) -> Section:
    kept = [m for m in some if m.term in terms]
    first = kept[0] if kept else None
    settings = (
        {} if first is None else {name: value for name, value in first.settings.items() if name not in _OWN}
    )
    section = Section(
        MITIGATION,
        first.attribute if first else None,
        settings,
        list(terms),
        part=part,
        second=second,
        whole=True,
    )
    rows: dict[tuple[str | None, str | None], Row] = {}
    for m in kept:
        key = (m.system, told(m))
        if key not in rows:
            rows[key] = Row(*key, None, {})
            section.rows.append(rows[key])
        rows[key].cells[m.term] = m
    order = list(dict.fromkeys(row.group for row in section.rows))
    section.rows.sort(key=lambda row: order.index(row.group))
    return section


def _about_bias(m: Measurement) -> str:
    return f"{m.settings['of']}, {m.settings['kind']}, {m.settings['attack']}"


def _about_change(m: Measurement) -> str:
    where = m.settings.get("texts") or m.settings.get("fitted")
    return f"{m.settings['of']}, {where}" if where else str(m.settings["of"])


Table = tuple[str, list[str], list[list[str]]]  # its title, its columns, and a line for each method
_BIASES = ("b@v-l", "b@v", "b@l")
_SEARCHES = ("tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10")


def tables(results: Results) -> list[Table]:
    """As the paper has them: bias by method (Table 4), what is found in a search (Table 5); and what else it costs."""
    rows = [m for m in results.measurements if m.group is None and m.item is None]
    methods = list(dict.fromkeys(str(m.system) for m in rows))

    def table(title: str, columns: dict[str, dict[str, str]]) -> Table:
        found = {name: {m.system: m for m in rows if _is(m, told)} for name, told in columns.items()}
        found = {name: cells for name, cells in found.items() if cells}
        lines = [[method, *(_cell(cells.get(method)) for cells in found.values())] for method in methods]
        return title, ["method", *found], lines if found else []

    asked = [m for m in rows if m.metric == "counterbias"]
    ways = _values(asked, "attack")
    made = [
        table(
            f"Bias left, {kind}: excess over the floor, in percent",
            {
                f"{of}, {way}": {
                    "metric": "counterbias",
                    "term": "excess",
                    "of": of,
                    "kind": kind,
                    "attack": way,
                }
                for way in ways
                for of in _BIASES
            },
        )
        for kind in _values(asked, "kind")
    ]
    for when in _values(rows, "fitted"):
        columns = {term: {"metric": "retrieval-recall", "term": term, "fitted": when} for term in _SEARCHES}
        made.append(table(f"Searching, {when}: share found", columns))
    costs = {
        f"{said}, {texts}": {"term": term, "texts": texts}
        for texts in _values(rows, "texts")
        for term, said in (("words-right", "words right"), ("words-lost", "-log P"))
    }
    if ways:
        costs["P(group | V), percent"] = {"term": "p-before", "attack": ways[-1]}
    costs["group right"] = {"term": "group-right"}
    made.append(table("What it costs", costs))
    return [one for one in made if one[2]]


def _values(rows: Iterable[Measurement], name: str) -> list[str]:
    return list(dict.fromkeys(str(m.settings[name]) for m in rows if name in m.settings))


def _is(m: Measurement, told: dict[str, str]) -> bool:
    own = {"metric": m.metric, "term": m.term}
    return all(own.get(name, m.settings.get(name)) == value for name, value in told.items())


def _cell(m: Measurement | None) -> str:
    if m is None:
        return ""
    if m.value is None:
        return "undefined"
    digits = 1 if m.unit == "percent" else 3
    interval = "" if m.low is None or m.high is None else f" [{m.low:.{digits}f}, {m.high:.{digits}f}]"
    return f"{m.value:.{digits}f}{interval}"
