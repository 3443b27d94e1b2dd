"""What a metric claims, as its card says: which dial each term follows, and which dials it does not feel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from portrayal.errors import PortrayalError, unknown_name
from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import Captioner
from portrayal.lab.dials import dials_of, spelled
from portrayal.lab.language import object_label
from portrayal.lab.world import ACTIVITY_PAIRS, ATTRIBUTES, LEANING, World
from portrayal.metrics.base.card import Card
from portrayal.results import Measurement, Results

ONE = "one"
OBJECT = "object"
GROUP = next(iter(ATTRIBUTES[LEANING]))  # the group that "@one" is about
ITEM = object_label(
    ACTIVITY_PAIRS[0].of[GROUP]
)  # an object that leans to it, for terms that have rows per object
SYSTEM = "captioner"

# Dials that would leave nothing to measure at 1 are turned up to here when a metric should not feel them.
_HIGHEST = {"neutral": 0.8, "erasure": 0.8}


@dataclass(frozen=True)
class Claim:
    """One term of a metric and the dial it follows."""

    metric: str
    # With "@one" where the row of one group is meant, "@object" where that of an object that leans to it, "@" and the
    # name of an item where it is that item's.
    term: str
    dial: str
    falls: bool = False  # as the dial is turned up

    def row(self, results: Results) -> Measurement | None:
        """The measurement that the claim is about: the term's headline, or the row of one group or object."""
        measured = {m.term for m in results.measurements}
        # A term's own name may hold an "@" (tr@1).
        name, _, whom = (self.term, "", "") if self.term in measured else self.term.rpartition("@")
        group = GROUP if whom in (ONE, OBJECT) else None
        rows = [m for m in results.measurements if m.term == name and m.group == group and m.system == SYSTEM]
        if whom not in ("", ONE, OBJECT):
            return next((m for m in rows if m.item == whom), None)
        headline = [m for m in rows if m.item is None and whom != OBJECT]
        found = headline or [m for m in rows if m.item == ITEM]
        return found[0] if found else None


def claims_of(card: Card) -> list[Claim]:
    claims = []
    for term, dial in card.responds_to.items():
        name, whom = card.claimed(term)
        known = {one.name: one.items for one in card.terms}
        if name not in known or whom not in ("", ONE, OBJECT, *known[name]):
            raise unknown_name(f"term of '{card.name}' in its claims", term, list(known))
        find_dial(dial.removeprefix("-"))
        claims.append(Claim(card.name, term, dial.removeprefix("-"), dial.startswith("-")))
    for dial in card.should_ignore:
        find_dial(dial)
    return claims


def find_dial(dial: str) -> tuple[type, str]:
    """The class and the field of a dial by its name, which may end in "@one"."""
    name, _, whom = dial.partition("@")
    for kind in (World, Captioner):
        for field, made in dials_of(kind).items():
            if spelled(field) == name:
                if whom and (whom != ONE or not made.per_group):
                    raise PortrayalError(f"The dial '{name}' cannot be turned for '{whom}' alone.")
                return kind, field
    known = [spelled(field) for kind in (World, Captioner) for field in dials_of(kind)]
    raise unknown_name("dial", name, known)


def highest(dial: str) -> float:
    return _HIGHEST.get(dial.partition("@")[0], 1.0)


def arrange(levels: Mapping[str, float]) -> tuple[World, Annotators, Captioner]:
    """The world, its annotators and a captioner that makes no mistake, with some dials turned."""
    world, captioner = World(), Captioner(SYSTEM)
    for dial, level in levels.items():
        kind, field = find_dial(dial)
        if kind is World:
            world = replace(world, **{field: level})  # type: ignore[arg-type]  # a field that find_dial knows
        else:
            value = {GROUP: level} if dial.endswith(f"@{ONE}") else level
            captioner = replace(captioner, **{field: value})  # type: ignore[arg-type]
    return world, Annotators(mistakes=0.0), captioner
