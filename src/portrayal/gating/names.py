"""Which names results know, so that a mistyped one is told from a row that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from portrayal.errors import PortrayalError, find_name, unknown_name
from portrayal.gating.rules import FIELDS, Rule
from portrayal.results import HUMAN, Measurement, Results

Catalogue = Mapping[str, Iterable[str]]  # metric -> its terms

_EVERYONE = ("", "all", "null", "none")  # how a selector asks for the row of all people or items
_ARROW = re.compile(r"\s*->\s*")  # "a -> b" is how a keyboard writes the systems of a comparison


@dataclass(frozen=True)
class Selection:
    """A rule's names as the results spell them. A field accepts these values; None is the row of all."""

    metric: str
    term: str
    accepted: Mapping[str, frozenset[str | None]]

    def matches(self, m: Measurement, without: str | None = None) -> bool:
        """Whether the rule is about a row, or would be `without` one of its selectors.

        A rule is about systems: human captions are held to it only where it asks for them.
        """
        if m.system == HUMAN and "system" not in self.accepted:
            return False
        return (m.metric, m.term) == (self.metric, self.term) and all(
            value_of(m, field) in values for field, values in self.accepted.items() if field != without
        )


def value_of(m: Measurement, field: str) -> str | None:
    """What a selector is held against: a field of the row, or a setting as text."""
    value = getattr(m, field) if field in FIELDS else m.settings.get(field)
    return None if value is None else str(value)


class Names:
    """Metrics, terms, systems, attributes, groups, items and settings: of the rows, and of their provenance.

    A card, a study or a skipped metric names what has no row. `catalogue` adds metrics that the results do not hold.
    """

    def __init__(self, results: Results, catalogue: Catalogue | None = None):
        self._rows: dict[str, list[Measurement]] = {}
        for m in results.measurements:
            self._rows.setdefault(m.metric, []).append(m)
        self._cards = _table(results.provenance.get("cards"))
        study = _table(results.provenance.get("study"))
        groups = {name: _table(counts) for name, counts in _table(study.get("groups")).items()}
        skipped = skipped_metrics(results)
        self._catalogue = {name: set(terms) for name, terms in (catalogue or {}).items()}
        self._metrics = {*self._rows, *self._cards, *self._catalogue, *(skip["metric"] for skip in skipped)}
        self._everywhere: dict[str, set[str | None]] = {
            "system": {m.system for m in results.measurements} | set(_texts(study.get("systems"))),
            "attribute": {m.attribute for m in results.measurements}
            | set(groups)
            | {skip["attribute"] for skip in skipped if skip["attribute"]},
            "group": {m.group for m in results.measurements}
            | {name for own in groups.values() for name in own},
        }

    def select(self, rule: Rule, allow_undefined: bool = False) -> Selection:
        """The rule's names as the results spell them.

        Raises an error with every name that is not known. A word or object that the captions of this study may lack
        (an item) is let pass with `allow_undefined`.
        """
        try:
            metric = find_name("metric", rule.metric, self._metrics)
        except PortrayalError as error:
            raise PortrayalError(f"{rule.place}: {error}") from None
        wrong: list[str] = []
        term = rule.term
        accepted: dict[str, frozenset[str | None]] = {}
        try:
            term = find_name(f"term of '{metric}'", rule.term, self._terms(metric))
        except PortrayalError as error:
            wrong.append(self._half_selector(rule.term, metric) or str(error))
        for field, typed in rule.where:
            try:
                accepted[field] = self._values(metric, field, typed, allow_undefined)
            except PortrayalError as error:
                wrong.append(str(error))
        if wrong:
            raise PortrayalError("\n".join(f"{rule.place}: {sentence}" for sentence in wrong))
        return Selection(metric, term, accepted)

    def _half_selector(self, term: str, metric: str) -> str | None:
        """What to type where a value follows "@" without the name of its field: error@female."""
        name, _, value = (part.strip() for part in term.partition("@"))
        if not value or not _alike(name, self._terms(metric)):
            return None
        fields = [field for field, known in self._everywhere.items() if _alike(value, filter(None, known))]
        hint = f" Did you mean '{fields[0]}={value}'?" if fields else ""
        return f"Expected name=value after '@'. Got {value!r} instead.{hint}"

    def _terms(self, metric: str) -> set[str]:
        told = {str(term["name"]) for term in self._card_terms(metric) if "name" in term}
        return told | {m.term for m in self._rows.get(metric, ())} | self._catalogue.get(metric, set())

    def _card_terms(self, metric: str) -> list[dict[str, Any]]:
        terms = _table(self._cards.get(metric)).get("terms")
        return [_table(term) for term in terms] if isinstance(terms, list | tuple) else []

    def _values(self, metric: str, field: str, typed: str, allow_undefined: bool) -> frozenset[str | None]:
        """What a selector accepts, as the results spell it."""
        rows = self._rows.get(metric, [])
        if field not in FIELDS:
            names = {name for m in rows for name in m.settings}
            if rows and field not in names:
                raise unknown_name(f"selector of '{metric}'", field, {*FIELDS, *names})
        known = self._everywhere.get(field) or {value_of(m, field) for m in rows}
        if field in ("item", "unit"):
            known = known | self._on_card(metric, field)
        values = {value for value in known if value is not None}
        accepted: set[str | None] = set()
        # Every metric may have a row of all people and all items; a row without a system is a rare thing.
        if typed.lower() in _EVERYONE and (field in ("group", "item") or None in known):
            accepted.add(None)
        spelled = _ARROW.sub(" → ", typed) if field == "system" else typed
        if field == "system" and spelled.casefold() == HUMAN:
            return frozenset({HUMAN})
        if accepted and not _alike(spelled, values):
            return frozenset(accepted)
        unchecked = not rows and field not in self._everywhere  # nothing here says what is right
        if unchecked or (field == "item" and allow_undefined and not _alike(spelled, values)):
            return frozenset({spelled})
        kind = field if field in FIELDS else f"value of '{field}'"
        return frozenset({*accepted, find_name(kind, spelled, values)})

    def _on_card(self, metric: str, field: str) -> set[str | None]:
        terms = self._card_terms(metric)
        if field == "unit":
            return {unit for term in terms if isinstance(unit := term.get("unit"), str)}
        return {item for term in terms for item in _texts(term.get("items"))}


def skipped_metrics(results: Results) -> list[dict[str, str]]:
    """What an audit did not measure: metric, attribute ("" where it is all) and reason."""
    skipped = results.provenance.get("skipped")
    return [
        {name: str(skip.get(name) or "") for name in ("metric", "attribute", "reason")}
        for skip in (skipped if isinstance(skipped, list | tuple) else ())
        if isinstance(skip, Mapping) and skip.get("metric")
    ]


def _alike(name: str, known: Iterable[str]) -> bool:
    return name.casefold() in {other.casefold() for other in known}


def _table(value: object) -> dict[str, Any]:
    """Provenance may come from other programs: what is no object says nothing."""
    return {str(name): content for name, content in value.items()} if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []
