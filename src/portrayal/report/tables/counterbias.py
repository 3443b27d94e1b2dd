"""Tables of CounterBias: what is said of models, of concepts, of templates and of the attack, each in one table.

Its numbers are many: for every kind of concepts, way to change a picture, template and bias. Laid out like those of
other metrics they would fill a table for each combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from portrayal.report.charts.counterbias_data import BOTH, METRIC
from portrayal.report.tables.table import Row, Section
from portrayal.results import Measurement

ALL = "all"
_HEADLINES = ("b@v-l", "b@v", "b@l", "excess", "placebo", "corrected", "agreement")
_CONCEPTS = ("b@v-l", "b@v", "b@l", "corrected", "placebo", "observed")
_TEMPLATES = ("b@v-l", "b@v", "b@l", "b@text")
_FURTHER = ("floor", "excess", "pooled", "placebo", "corrected", "agreement")
_ATTACK = ("attack-success", "p-before", "p-after", "drift", "moved", "undefined")
Told = Callable[[Measurement], str | None]


def counterfactual_sections(measurements: Sequence[Measurement]) -> list[Section]:
    made: list[Section] = []
    for about in dict.fromkeys((m.attribute, _pair(m)) for m in measurements):
        made += _of_pair([m for m in measurements if (m.attribute, _pair(m)) == about])
    return [section for section in made if section.rows]


def _of_pair(here: Sequence[Measurement]) -> list[Section]:
    whole = [m for m in here if m.group is None and m.item is None]
    headlines = [m for m in whole if _template(m) == ALL and m.settings.get("of", BOTH) == BOTH]
    without = [m for m in headlines if m.term == "b@text"]
    made = [
        _table(headlines, _HEADLINES, "means over concepts", "of", _case),
        _table(without, ("b@text",), "texts alone, means over concepts", "of", _case),
    ]
    for case in dict.fromkeys(_case(m) for m in here if "kind" in m.settings):
        own = [m for m in here if _case(m) == case and _template(m) == ALL and m.group is None]
        items = [m for m in own if m.item is not None and m.settings.get("of", BOTH) == BOTH]
        terms = _CONCEPTS if any(m.term in _CONCEPTS for m in items) else ("b@text",)
        made.append(_table(items, terms, f"each concept: {case}", "", lambda _: None))
    told = [m for m in whole if _template(m) != ALL]
    made.append(
        _table(told, _TEMPLATES, "each template", "template", lambda m: f"{_case(m)}: {_template(m)}")
    )
    attacks = [m for m in here if m.term in _ATTACK]
    made.append(
        _table(
            attacks,
            _ATTACK,
            "the changed pictures",
            "picture, group",
            lambda m: f"{_way(m)}, {m.group or ALL}",
        )
    )
    further = [m for m in whole if "of" in m.settings]
    made.append(
        _table(
            further, _FURTHER, "floors and pooled means", "of", lambda m: f"{m.settings['of']}, {_case(m)}"
        )
    )
    return made


def _table(some: Iterable[Measurement], terms: Sequence[str], part: str, second: str, told: Told) -> Section:
    """A line for each system, item and what `told` says."""
    kept = [m for m in some if m.term in terms]
    first = kept[0] if kept else None
    pair = _pair(first) if first is not None else ""
    settings = (
        {} if first is None else {name: first.settings[name] for name in first.settings if name not in _VARY}
    )
    section = Section(
        METRIC,
        first.attribute if first else None,
        settings,
        whole=True,
        part=f"{part} ({pair})",
        second=second,
    )
    rows: dict[tuple[str | None, str | None, str | None], Row] = {}
    for m in kept:
        key = (m.system, told(m), m.item)
        if key not in rows:
            rows[key] = Row(*key, {})
            section.rows.append(rows[key])
        rows[key].cells[m.term] = m
    found = {term for row in section.rows for term in row.cells}
    section.terms = [term for term in terms if term in found]
    return section


_VARY = ("kind", "template", "of", "attack")


def _pair(m: Measurement) -> str:
    groups = m.settings.get("groups")
    return " or ".join(map(str, groups)) if isinstance(groups, list | tuple) else ""


def _template(m: Measurement) -> str:
    return str(m.settings.get("template", ALL))


def _way(m: Measurement) -> str:
    return str(m.settings.get("attack", "no picture"))


def _case(m: Measurement) -> str:
    return f"{m.settings.get('kind', ALL)}, {_way(m)}"
