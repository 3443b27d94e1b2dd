"""An index of all measurements for search, filters and sorting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.tables.layout import format_number, is_too_few, settings_text, statistics_text
from portrayal.results import Measurement

FILTERS = ("metric", "attribute", "system", "group", "term")
_SEARCHED = (*FILTERS, "item", "reason")
NAMED_SORTS = (*FILTERS, "item")
NUMBER_SORTS = ("value", "n", "p", "evidence")
SORTS = ("", *NAMED_SORTS, *NUMBER_SORTS)


@dataclass(frozen=True)
class Matches:
    """The matching measurements, and the choices of each filter with the number of measurements that each leaves."""

    measurements: list[Measurement]
    choices: dict[str, list[tuple[str | None, int]]]


class MeasurementIndex:
    """The measurements of one results file; `count` returns the number of evidence rows of an id."""

    def __init__(self, measurements: Sequence[Measurement], count: Callable[[str], int]) -> None:
        self._measurements = list(measurements)
        self._count = count
        self._by_id = {m.id: m for m in measurements}
        self._text = {
            m.id: "\n".join(filter(None, (getattr(m, name) for name in _SEARCHED))).casefold()
            for m in measurements
        }

    def __len__(self) -> int:
        return len(self._measurements)

    def get(self, identifier: str) -> Measurement | None:
        return self._by_id.get(identifier)

    def find(
        self,
        filters: Mapping[str, str | None],
        search: str = "",
        sort: str = "",
        descending: bool = False,
    ) -> Matches:
        """The measurements that hold every word of `search` and every filter's value.

        A filter of None matches rows without a value, such as a group of None: all people.
        """
        words = search.casefold().split()
        matching: list[Measurement] = []
        counts: dict[str, dict[str | None, int]] = {name: {} for name in FILTERS}
        for m in self._measurements:
            if words and not all(word in self._text[m.id] for word in words):
                continue
            failed = [name for name, value in filters.items() if getattr(m, name) != value]
            if not failed:
                matching.append(m)
            # A filter's choices ignore its own value.
            for name in FILTERS if not failed else failed if len(failed) == 1 else ():
                value = getattr(m, name)
                counts[name][value] = counts[name].get(value, 0) + 1
        choices = {
            name: sorted(counts_of.items(), key=lambda choice: choice[0] or "")
            for name, counts_of in counts.items()
        }
        return Matches(self._sorted(matching, sort, descending), choices)

    def as_row(self, m: Measurement) -> dict[str, Any]:
        """A measurement as a JSON row, with formatted texts."""
        return m.as_dict() | {
            "shown": format_number(m.value, m.unit) + ("†" if is_too_few(m) else ""),
            "interval": ""
            if m.low is None or m.high is None
            else f"95 % CI [{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]",
            "facts": statistics_text(m),
            "settings": settings_text(dict(m.settings)),
            "evidence": self._count(m.id),
        }

    def _sorted(self, measurements: list[Measurement], sort: str, descending: bool) -> list[Measurement]:
        """Sorted measurements. Those without a value come last in both directions."""
        if not sort:
            return measurements[::-1] if descending else measurements
        key: Callable[[Measurement], Any] = (
            (lambda m: self._count(m.id)) if sort == "evidence" else lambda m: getattr(m, sort)
        )
        defined = [m for m in measurements if key(m) is not None]
        return [*sorted(defined, key=key, reverse=descending), *(m for m in measurements if key(m) is None)]
