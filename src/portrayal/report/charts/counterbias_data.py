"""What a model ties to whom, concept by concept: the rows of `counterbias` as its charts need them.

A chart shows the mean over templates under the first setting there is of each model, kind of concept and attack.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from portrayal.results import Measurement, Results

METRIC = "counterbias"
BOTH, VISUAL, LANGUAGE, TEXT = TERMS = ("b@v-l", "b@v", "b@l", "b@text")
EXACT = "exact"  # the counterfactual pictures were given, not made by an attack
FEWEST = 3  # points that a correlation needs
_ALL = "all"  # the mean over templates
_ROW = ("template", "of")  # settings that tell rows of one measuring apart, not measurings


@dataclass(frozen=True)
class Concepts:
    """What one model says of the concepts of one kind, where pictures are changed in one way."""

    system: str
    attribute: str | None
    kind: str
    attack: str
    groups: tuple[str, ...]  # a positive bias leans to the first
    rows: Mapping[str, dict[str, Measurement]] = field(default_factory=lambda: {term: {} for term in TERMS})
    means: dict[str, Measurement] = field(default_factory=dict)  # by term: of the absolute values

    def values(self, term: str) -> dict[str, float]:
        """By concept; only what is defined."""
        return {concept: m.value for concept, m in self.rows[term].items() if m.value is not None}

    def undefined(self, *terms: str) -> list[str]:
        """Concepts that were measured, but have no value in one of these terms."""
        asked = dict.fromkeys(concept for term in terms for concept in self.rows[term])
        return [one for one in asked if any(one not in self.values(term) for term in terms)]

    def mean(self, term: str) -> float | None:
        """Of the absolute values: as it was measured, else over the concepts there are."""
        told = self.means.get(term)
        if told is not None and told.value is not None:
            return told.value
        sizes = [abs(value) for value in self.values(term).values()]
        return statistics.fmean(sizes) if sizes else None


def concepts(results: Results) -> list[Concepts]:
    """One for each model, attribute, kind and attack, in the order in which they were measured."""
    found: dict[tuple[str, str | None, str, str], Concepts] = {}
    first: dict[tuple[object, ...], object] = {}
    for m in results.measurements:
        if m.metric != METRIC or m.term not in TERMS or m.group is not None or m.system is None:
            continue
        if m.settings.get("template", _ALL) != _ALL:
            continue
        key = (m.system, m.attribute, str(m.settings.get("kind") or ""), str(m.settings.get("attack") or ""))
        settings = {name: value for name, value in m.settings.items() if name not in _ROW}
        if first.setdefault((*key, m.term), settings) != settings:
            continue  # measured in another way as well: the tables have it
        here = found.setdefault(key, Concepts(*key, groups_of(m)))
        if m.item is None:
            here.means.setdefault(m.term, m)
        else:
            here.rows[m.term].setdefault(m.item, m)
    return list(found.values())


def groups_of(m: Measurement) -> tuple[str, ...]:
    groups = m.settings.get("groups")
    return tuple(str(group) for group in groups) if isinstance(groups, list | tuple) else ()


def ties(results: Results) -> dict[str, str]:
    """By concept the group that raters tie it to; only what is known."""
    told = results.provenance.get("stereotypes")
    return {str(one): str(group) for one, group in told.items()} if isinstance(told, Mapping) else {}


def sides(groups: Sequence[str]) -> tuple[str, str]:
    """Toward whom a positive bias leans, and a negative one.

    >>> sides(["a", "b", "c"])
    ('a', 'b or c')
    """
    return (groups[0] if groups else "the first group", " or ".join(groups[1:]) or "others")


def agreeing(
    biases: Sequence[Mapping[str, float]], tied: Mapping[str, str], groups: Sequence[str]
) -> tuple[int, int]:
    """How many concepts lean in every one of the biases to whom raters tie them, and of how many that can be said.

    >>> agreeing([{"x": 2, "y": -1}, {"x": 1, "y": 3}], {"x": "a", "y": "b"}, ["a", "b"])
    (1, 2)
    """
    known = [one for one in tied if tied[one] in groups and all(one in bias for bias in biases)]
    signs = {one: 1 if tied[one] == groups[0] else -1 for one in known}
    return sum(all(bias[one] * signs[one] > 0 for bias in biases) for one in known), len(known)


def quadrants(x: Mapping[str, float], y: Mapping[str, float]) -> dict[tuple[int, int], float]:
    """By the signs of both, the share of concepts in percent. One at exactly 0 is in no quadrant.

    >>> quadrants({"a": 1, "b": 1, "c": -1, "d": 0}, {"a": 1, "b": -1, "c": -1, "d": 1})
    {(-1, -1): 25.0, (-1, 1): 0.0, (1, -1): 25.0, (1, 1): 25.0}
    """
    both = [one for one in x if one in y]
    corners = [(right, up) for right in (-1, 1) for up in (-1, 1)]
    inside = {
        (right, up): sum(x[one] * right > 0 and y[one] * up > 0 for one in both) for right, up in corners
    }
    return {corner: 100 * count / len(both) for corner, count in inside.items()} if both else {}


def correlation(x: Mapping[str, float], y: Mapping[str, float]) -> float | None:
    """Pearson's, over the concepts that have both; None for fewer than three, or where all are equal."""
    both = [one for one in x if one in y]
    one, other = [x[name] for name in both], [y[name] for name in both]
    if len(both) < FEWEST or len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return statistics.correlation(one, other)
