"""Names known to results, to distinguish a mistyped name from a missing row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from portrayal.errors import PortrayalError, find_name, unknown_name
from portrayal.gating.rules import FIELDS, Rule
from portrayal.results import HUMAN, Measurement, Results

Catalogue = Mapping[str, Iterable[str]]  # metric -> its terms

_AGGREGATE_VALUES = (
    "",
    "all",
    "null",
    "none",
)  # values of a selector for the aggregate row of all people or items
_ARROW = re.compile(r"\s*->\s*")  # "a -> b" is the typed form of the systems of a comparison


@dataclass(frozen=True)
class RowSelection:
    """A rule's names in the spelling of the results, with accepted values per field; None is the aggregate row."""

    metric: str
    term: str
    accepted: Mapping[str, frozenset[str | None]]

    def matches(self, m: Measurement, without: str | None = None) -> bool:
        """Return whether the rule matches a row, or would match it `without` one of its selectors.

        Rules apply to systems: human captions match only if the rule selects them.
        """
        if m.system == HUMAN and "system" not in self.accepted:
            return False
        return (m.metric, m.term) == (self.metric, self.term) and all(
            value_of(m, field) in values for field, values in self.accepted.items() if field != without
        )


def value_of(m: Measurement, field: str) -> str | None:
    """Return the value that a selector is compared with: a field of the row, or a setting as text."""
    value = getattr(m, field) if field in FIELDS else m.settings.get(field)
    return None if value is None else str(value)


class KnownNames:
    """Known metrics, terms, systems, attributes, groups, items and settings, from the rows and their provenance.

    Cards, the study and skipped metrics add names without a row. `catalogue` adds metrics that the results lack.
    """

    def __init__(self, results: Results, catalogue: Catalogue | None = None):
        self._rows: dict[str, list[Measurement]] = {}
        for m in results.measurements:
            self._rows.setdefault(m.metric, []).append(m)
        self._cards = _as_object(results.provenance.get("cards"))
        study = _as_object(results.provenance.get("study"))
        groups = {name: _as_object(counts) for name, counts in _as_object(study.get("groups")).items()}
        skipped = skipped_metrics(results)
        self._catalogue = {name: set(terms) for name, terms in (catalogue or {}).items()}
        self._metrics = {*self._rows, *self._cards, *self._catalogue, *(skip["metric"] for skip in skipped)}
        self._known_values: dict[str, set[str | None]] = {
            "system": {m.system for m in results.measurements} | set(_strings(study.get("systems"))),
            "attribute": {m.attribute for m in results.measurements}
            | set(groups)
            | {skip["attribute"] for skip in skipped if skip["attribute"]},
            "group": {m.group for m in results.measurements}
            | {name for group_counts in groups.values() for name in group_counts},
        }

    def select(self, rule: Rule, allow_undefined: bool = False) -> RowSelection:
        """Return the rule's names in the spelling of the results.

        Raises an error that lists every unknown name. With `allow_undefined`, unknown items pass, because the captions
        of this study may lack a word or object.
        """
        try:
            metric = find_name("metric", rule.metric, self._metrics)
        except PortrayalError as error:
            raise PortrayalError(f"{rule.location}: {error}") from None
        errors: list[str] = []
        term = rule.term
        accepted: dict[str, frozenset[str | None]] = {}
        try:
            term = find_name(f"term of '{metric}'", rule.term, self._terms(metric))
        except PortrayalError as error:
            errors.append(self._selector_hint(rule.term, metric) or str(error))
        for field, typed in rule.where:
            try:
                accepted[field] = self._accepted_values(metric, field, typed, allow_undefined)
            except PortrayalError as error:
                errors.append(str(error))
        if errors:
            raise PortrayalError("\n".join(f"{rule.location}: {sentence}" for sentence in errors))
        return RowSelection(metric, term, accepted)

    def _selector_hint(self, term: str, metric: str) -> str | None:
        """Return a hint if a value follows "@" without the name of its field: error@female."""
        name, _, value = (part.strip() for part in term.partition("@"))
        if not value or not _contains_name(name, self._terms(metric)):
            return None
        fields = [
            field for field, known in self._known_values.items() if _contains_name(value, filter(None, known))
        ]
        hint = f" Did you mean '{fields[0]}={value}'?" if fields else ""
        return f"Expected name=value after '@'. Got {value!r} instead.{hint}"

    def _terms(self, metric: str) -> set[str]:
        card_terms = {str(term["name"]) for term in self._card_terms(metric) if "name" in term}
        return card_terms | {m.term for m in self._rows.get(metric, ())} | self._catalogue.get(metric, set())

    def _card_terms(self, metric: str) -> list[dict[str, Any]]:
        terms = _as_object(self._cards.get(metric)).get("terms")
        return [_as_object(term) for term in terms] if isinstance(terms, list | tuple) else []

    def _accepted_values(
        self, metric: str, field: str, typed: str, allow_undefined: bool
    ) -> frozenset[str | None]:
        """Return the values that a selector accepts, in the spelling of the results."""
        rows = self._rows.get(metric, [])
        if field not in FIELDS:
            names = {name for m in rows for name in m.settings}
            if rows and field not in names:
                raise unknown_name(f"selector of '{metric}'", field, {*FIELDS, *names})
        known = self._known_values.get(field) or {value_of(m, field) for m in rows}
        if field in ("item", "unit"):
            known = known | self._card_values(metric, field)
        values = {value for value in known if value is not None}
        accepted: set[str | None] = set()
        # Every metric may have an aggregate row of all people and items; rows without a system are rare.
        if typed.lower() in _AGGREGATE_VALUES and (field in ("group", "item") or None in known):
            accepted.add(None)
        spelled = _ARROW.sub(" → ", typed) if field == "system" else typed
        if field == "system" and spelled.casefold() == HUMAN:
            return frozenset({HUMAN})
        if accepted and not _contains_name(spelled, values):
            return frozenset(accepted)
        unchecked = not rows and field not in self._known_values  # there is nothing to check against
        if unchecked or (field == "item" and allow_undefined and not _contains_name(spelled, values)):
            return frozenset({spelled})
        kind = field if field in FIELDS else f"value of '{field}'"
        return frozenset({*accepted, find_name(kind, spelled, values)})

    def _card_values(self, metric: str, field: str) -> set[str | None]:
        terms = self._card_terms(metric)
        if field == "unit":
            return {unit for term in terms if isinstance(unit := term.get("unit"), str)}
        return {item for term in terms for item in _strings(term.get("items"))}


def skipped_metrics(results: Results) -> list[dict[str, str]]:
    """Return the metrics that an audit skipped: metric, attribute ("" for all) and reason."""
    skipped = results.provenance.get("skipped")
    return [
        {name: str(skip.get(name) or "") for name in ("metric", "attribute", "reason")}
        for skip in (skipped if isinstance(skipped, list | tuple) else ())
        if isinstance(skip, Mapping) and skip.get("metric")
    ]


def _contains_name(name: str, known: Iterable[str]) -> bool:
    return name.casefold() in {other.casefold() for other in known}


def _as_object(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one: provenance may come from other programs."""
    return {str(name): content for name, content in value.items()} if isinstance(value, Mapping) else {}


def _strings(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []
