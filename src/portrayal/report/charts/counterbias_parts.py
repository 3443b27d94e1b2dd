"""Parts of the charts of concepts: their order, the colours of groups, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from portrayal.report.charts.counterbias_data import Concepts
from portrayal.report.charts.counterbias_specs import Spec, scale

MOST = 80  # concepts in one chart: those farthest from 0
UNKNOWN = "not known"  # whom raters tie a concept to
TIED = "tied by raters to"  # the title of the colours


def tie_scale(models: Sequence[Concepts], tied: Mapping[str, str], *terms: str) -> tuple[Spec, Spec]:
    """Groups in the order in which they are given, so that a group has one colour in every chart."""
    shown = {tied.get(one, UNKNOWN) for model in models for term in terms for one in model.values(term)}
    groups = [*models[0].groups, *sorted(set(tied.values()) - set(models[0].groups))]
    colour, shape = scale([*groups, UNKNOWN], neutral=UNKNOWN)
    kept = [n for n, name in enumerate([*groups, UNKNOWN]) if name in shown]
    made = [{name: [values[n] for n in kept] for name, values in one.items()} for one in (colour, shape)]
    return made[0], made[1]


def ordered(values: Mapping[str, float]) -> list[tuple[str, float]]:
    """From what leans most to the first group to what leans least; of very many those farthest from 0."""
    farthest = sorted(values.items(), key=lambda one: -abs(one[1]))[:MOST]
    return sorted(farthest, key=lambda one: -one[1])


def left_out(models: Sequence[Concepts], *terms: str) -> str:
    """A sentence on what has no value in one of these terms, or nothing."""
    return told_left_out([(one.system, "", "", one.undefined(*terms)) for one in models])


def only_some(concepts: int) -> str:
    """A sentence where `ordered` keeps fewer than there are, or nothing."""
    return f" Of {concepts} concepts those {MOST} farthest from 0 are drawn." if concepts > MOST else ""


def told_left_out(undefined: Iterable[tuple[str, str, str, Sequence[str]]]) -> str:
    told = [
        f"{len(names)} of " + " ".join(filter(None, (system, attack, term)))
        for system, attack, term, names in undefined
        if names
    ]
    return f" Left out because undefined: {', '.join(dict.fromkeys(told))}." if told else ""
