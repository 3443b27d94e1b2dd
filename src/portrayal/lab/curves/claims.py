"""The claims in a metric's card: the dial that each term follows, and the dials that it should ignore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from portrayal.errors import PortrayalError, unknown_name
from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import Captioner
from portrayal.lab.dials import dial_name, dials_of
from portrayal.lab.language import object_label
from portrayal.lab.world import ACTIVITY_PAIRS, ATTRIBUTES, BIASED_ATTRIBUTE, World
from portrayal.metrics.base.card import Card
from portrayal.results import Measurement, Results

ONE_GROUP = "one"
OBJECT = "object"
# The group of "@one".
GROUP = next(iter(ATTRIBUTES[BIASED_ATTRIBUTE]))
# An object associated with this group, for terms that have rows per object.
ITEM = object_label(ACTIVITY_PAIRS[0].concepts[GROUP])
SYSTEM = "captioner"

# Dials that leave nothing to measure at 1 have a lower maximum when a metric should ignore them.
_MAX_LEVELS = {"neutral": 0.8, "erasure": 0.8}


@dataclass(frozen=True)
class Claim:
    """One term of a metric and the dial it follows."""

    metric: str
    # Followed by "@one" for the row of one group, by "@object" for an object associated with it, or by "@" and the name
    # of an item.
    term: str
    dial: str
    # The term falls as the dial is increased.
    falls: bool = False

    def row(self, results: Results) -> Measurement | None:
        """Return the measurement that the claim is about: the term's headline, or the row of one group or item."""
        measured = {m.term for m in results.measurements}
        # The name of a term may contain an "@" (tr@1).
        name, _, target = (self.term, "", "") if self.term in measured else self.term.rpartition("@")
        group = GROUP if target in (ONE_GROUP, OBJECT) else None
        rows = [m for m in results.measurements if m.term == name and m.group == group and m.system == SYSTEM]
        if target not in ("", ONE_GROUP, OBJECT):
            return next((m for m in rows if m.item == target), None)
        headline = [m for m in rows if m.item is None and target != OBJECT]
        candidates = headline or [m for m in rows if m.item == ITEM]
        return candidates[0] if candidates else None


def claims_of(card: Card) -> list[Claim]:
    """Return the claims of a card; raise an error for unknown terms and dials."""
    claims = []
    for term, dial in card.responds_to.items():
        name, target = card.parse_claim(term)
        known = {card_term.name: card_term.items for card_term in card.terms}
        if name not in known or target not in ("", ONE_GROUP, OBJECT, *known[name]):
            raise unknown_name(f"term of '{card.name}' in its claims", term, list(known))
        find_dial(dial.removeprefix("-"))
        claims.append(Claim(card.name, term, dial.removeprefix("-"), dial.startswith("-")))
    for dial in card.should_ignore:
        find_dial(dial)
    return claims


def find_dial(dial: str) -> tuple[type, str]:
    """Return the class and the field of a dial, given its name, which may end in "@one"."""
    name, _, target = dial.partition("@")
    for cls in (World, Captioner):
        for field, dial_of_field in dials_of(cls).items():
            if dial_name(field) == name:
                if target and (target != ONE_GROUP or not dial_of_field.per_group):
                    raise PortrayalError(f"The dial '{name}' cannot be turned for '{target}' alone.")
                return cls, field
    known = [dial_name(field) for cls in (World, Captioner) for field in dials_of(cls)]
    raise unknown_name("dial", name, known)


def max_level(dial: str) -> float:
    return _MAX_LEVELS.get(dial.partition("@")[0], 1.0)


def set_dials(levels: Mapping[str, float]) -> tuple[World, Annotators, Captioner]:
    """Return a world, annotators and a captioner without faults, with some dials set."""
    world, captioner = World(), Captioner(SYSTEM)
    for dial, level in levels.items():
        cls, field = find_dial(dial)
        if cls is World:
            world = replace(world, **{field: level})  # type: ignore[arg-type]  # a field that find_dial knows
        else:
            value = {GROUP: level} if dial.endswith(f"@{ONE_GROUP}") else level
            captioner = replace(captioner, **{field: value})  # type: ignore[arg-type]
    return world, Annotators(mistakes=0.0), captioner
