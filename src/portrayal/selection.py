"""Selections of measurements: the rows that a filter keeps, and the headline of each metric."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from portrayal.errors import PortrayalError, find_name, unknown_name

ALL = "all"  # stands for None in texts: all people, all words or objects


class Row(Protocol):
    """What a selection reads of a measurement."""

    @property
    def metric(self) -> str: ...
    @property
    def term(self) -> str: ...
    @property
    def system(self) -> str | None: ...
    @property
    def attribute(self) -> str | None: ...
    @property
    def group(self) -> str | None: ...
    @property
    def item(self) -> str | None: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...


R = TypeVar("R", bound=Row)


def select_rows(rows: Sequence[R], fields: Collection[str], wanted: Mapping[str, Any]) -> list[R]:
    """Return the rows whose fields have the wanted values: one value, or any of a list. None is a value too.

    `fields` are the names of a row's fields; any other name is that of a setting.
    """
    settings = {name for row in rows for name in row.settings}
    for name in wanted:
        if name not in fields and name not in settings:
            raise unknown_name("field of a measurement", name, {*fields, *settings})
    accepted = {
        name: _known_values(name, _as_list(value), (_value_of(row, name, fields) for row in rows))
        for name, value in wanted.items()
    }
    return [
        row
        for row in rows
        if all(_value_of(row, name, fields) in values for name, values in accepted.items())
    ]


def selection_texts(wanted: Mapping[str, Any]) -> list[str]:
    """Return a text for each condition of a selection.

    >>> selection_texts({"metric": "lic", "group": [None, "female"]})
    ['metric: lic', 'group: all, female']
    """
    return [
        f"{name}: {', '.join(ALL if value is None else str(value) for value in _as_list(values))}"
        for name, values in wanted.items()
    ]


def headline_rows(rows: Sequence[R], cards: object) -> list[R]:
    """Return one row about all people for each metric, attribute and system, of the term that stands for its metric.

    Of several settings the first one counts, or the one that the card makes statements about.
    """
    by_metric: dict[str, list[R]] = {}
    for row in rows:
        if row.group is None and row.item is None:
            by_metric.setdefault(row.metric, []).append(row)
    headlines = []
    for metric, own in by_metric.items():
        card = _mapping(_mapping(cards).get(metric))
        term = _headline_term(metric, list(dict.fromkeys(row.term for row in own)), card)
        by_source: dict[tuple[str | None, str | None], list[R]] = {}
        for row in own:
            if row.term == term:
                by_source.setdefault((row.attribute, row.system), []).append(row)
        headlines += [_closest_to_card(candidates, card) for candidates in by_source.values()]
    return headlines


def _headline_term(metric: str, measured: Sequence[str], card: Mapping[str, Any]) -> str:
    """Return the first measured term of the headline; else the metric's name, then terms of statements, then others.

    Terms with a direction come before those without.
    """
    terms = _mappings(card.get("terms"))
    headline = card.get("headline")
    preferred: list[Any] = [
        *(headline if isinstance(headline, list | tuple) else ()),
        metric,
        *(statement.get("term") for statement in _statements(card)),
        *(term.get("name") for term in terms if term.get("better")),
        *(term.get("name") for term in terms),
    ]
    return next((str(name) for name in preferred if name in measured), measured[0])


def _closest_to_card(rows: Sequence[R], card: Mapping[str, Any]) -> R:
    """Return the row with the settings of the card's statement and the unit of the card's term; else the first row."""
    term = rows[0].term
    settings = next((_mapping(s.get("settings")) for s in _statements(card) if s.get("term") == term), {})
    unit = next(
        (entry.get("unit") for entry in _mappings(card.get("terms")) if entry.get("name") == term), None
    )

    def differences(row: R) -> int:
        differing = [name for name, value in settings.items() if row.settings.get(name) != value]
        return len(differing) + int(unit is not None and row.unit != unit)

    return min(rows, key=differences)


def _statements(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statements of a card that are not about single items."""
    return [statement for statement in _mappings(card.get("statements")) if statement.get("item") is None]


def _value_of(row: Row, name: str, fields: Collection[str]) -> Any:
    return getattr(row, name) if name in fields else row.settings.get(name)


def _known_values(name: str, wanted: Sequence[Any], values: Iterable[Any]) -> list[Any]:
    """Return the wanted values in the spelling of the rows; one that occurs nowhere is an error."""
    known = list({repr(value): value for value in values}.values())
    texts = [value for value in known if isinstance(value, str)]
    found: list[Any] = []
    for value in wanted:
        if value in known:
            found.append(value)
        elif isinstance(value, str) and texts:
            found.append(find_name(name, value, texts))
        else:
            raise _unknown_value(name, value, known)
    return found


def _unknown_value(name: str, value: object, known: Sequence[Any]) -> PortrayalError:
    return unknown_name(name, str(value), [str(other) for other in known if other is not None])


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def _mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one: the cards of foreign results may be anything."""
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [_mapping(entry) for entry in value] if isinstance(value, list | tuple) else []
