"""All measurements as a list that can be searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.tables.layout import facts, is_too_few, number, settings_text
from portrayal.results import Measurement

FILTERS = ("metric", "attribute", "system", "group", "term")
_SEARCHED = (*FILTERS, "item", "reason")
NAMED_SORTS = (*FILTERS, "item")
NUMBER_SORTS = ("value", "n", "p", "evidence")
SORTS = ("", *NAMED_SORTS, *NUMBER_SORTS)


@dataclass(frozen=True)
class Found:
    """The measurements that were asked for, and what each filter could be set to, with how many would be left."""

    measurements: list[Measurement]
    choices: dict[str, list[tuple[str | None, int]]]


class Listing:
    """The measurements of one results file; `count` says how many rows of evidence one has."""

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
    ) -> Found:
        """Those that have every word of `search` and every filter's value. A filter of None asks for rows about
        no particular one, such as all people.
        """
        words = search.casefold().split()
        kept: list[Measurement] = []
        counts: dict[str, dict[str | None, int]] = {name: {} for name in FILTERS}
        for m in self._measurements:
            if words and not all(word in self._text[m.id] for word in words):
                continue
            wrong = [name for name, value in filters.items() if getattr(m, name) != value]
            if not wrong:
                kept.append(m)
            # A filter's choices are those that its own setting does not hide.
            for name in FILTERS if not wrong else wrong if len(wrong) == 1 else ():
                value = getattr(m, name)
                counts[name][value] = counts[name].get(value, 0) + 1
        choices = {name: sorted(of.items(), key=lambda one: one[0] or "") for name, of in counts.items()}
        return Found(self._sorted(kept, sort, descending), choices)

    def told(self, m: Measurement) -> dict[str, Any]:
        """A measurement with what a reader wants written out."""
        return m.as_dict() | {
            "shown": number(m.value, m.unit) + ("†" if is_too_few(m) else ""),
            "interval": ""
            if m.low is None or m.high is None
            else f"{number(m.low, m.unit)} to {number(m.high, m.unit)}",
            "facts": facts(m),
            "settings": settings_text(dict(m.settings)),
            "evidence": self._count(m.id),
        }

    def _sorted(self, found: list[Measurement], sort: str, descending: bool) -> list[Measurement]:
        """Those without a value come last whichever way the others go."""
        if not sort:
            return found[::-1] if descending else found
        of: Callable[[Measurement], Any] = (
            (lambda m: self._count(m.id)) if sort == "evidence" else lambda m: getattr(m, sort)
        )
        known = [m for m in found if of(m) is not None]
        return [*sorted(known, key=of, reverse=descending), *(m for m in found if of(m) is None)]
