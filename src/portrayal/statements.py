"""What a metric's card lets a page say of its numbers: the comparison, the words, and what counts as a finding.

Cards travel in the results, so a page can be written without knowing any metric.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

IDEAL, ZERO, HUMAN_CAPTIONS, GROUPS, ITEMS = "ideal", "zero", "human", "groups", "items"
COMPARISONS = (IDEAL, ZERO, HUMAN_CAPTIONS, GROUPS, ITEMS)
MORE, LESS = "more", "less"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Statement:
    """One sentence that a page can make of a term.

    `against` is what the value is compared with: its `ideal`; `zero`, of a change that has no ideal; the same term of
    `human` captions; other `groups` (the two that differ most; what human captions show as clearly is no finding);
    `items`: which words or objects go with which group. `more` and `less` are the sentences for a value above and below
    it, `question` what stays open where neither can be said. For groups, `more` speaks of the group that is worse off.
    Sentences may hold {system}, {attribute}, {group}, {other}, {n}, and the name of any setting.

    Only a side in `findings` is a finding; on the other side, or where `findings` is empty, the sentence is an
    observation, and `note` says why. A difference below `smallest`, or by a factor below `factor`, is too small to be a
    finding. Of statements with the same `choice`, one is made: the first that is a finding, else the first.
    `beside` are terms whose agreement is told in the same sentence. `gap_term` is the metric's own difference between
    groups, whose interval is then the sentence's too. `group_term` has the group rows that say which group {group} is.
    `remainder` is the term that says how much of the value is left after a control; `no_remainder` and
    `open_remainder` replace the sentence where that is nothing, or cannot be said.
    """

    term: str
    against: str
    more: str
    question: str
    less: str = ""
    findings: tuple[str, ...] = (MORE,)
    note: str = ""
    smallest: float = 0.0
    factor: float = 1.0
    worse: str = ""  # of groups: "higher" or "lower" where the term's own direction does not say
    item: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    choice: str = ""
    beside: tuple[str, ...] = ()
    gap_term: str = ""
    group_term: str = ""
    remainder: str = ""
    no_remainder: str = ""
    open_remainder: str = ""

    def __post_init__(self) -> None:
        if self.against not in COMPARISONS:
            raise ValueError(
                f"A statement compares with one of {', '.join(COMPARISONS)}. Got {self.against!r}."
            )
        if self.against in (IDEAL, ZERO, HUMAN_CAPTIONS) and not self.less:
            raise ValueError(f"The statement about '{self.term}' has no sentence for a value below.")


_FIELDS = {one.name: one for one in dataclasses.fields(Statement)}
_LISTS = ("findings", "beside")


def statements_of(card: object) -> list[Statement]:
    """The statements of a card as results carry it; those that are not sound are left out: results are untrusted."""
    listed = card.get("statements") if isinstance(card, Mapping) else None
    found = []
    for entry in listed if isinstance(listed, list | tuple) else ():
        if isinstance(entry, Mapping) and all(isinstance(entry.get(name), str) for name in ("term", "more")):
            known = {name: value for name, value in entry.items() if name in _FIELDS}
            for name in _LISTS:
                listed_names = known.get(name) or ()
                known[name] = (
                    tuple(map(str, listed_names)) if isinstance(listed_names, list | tuple) else None
                )
            try:
                statement = Statement(**known)
            except (TypeError, ValueError):
                continue
            if all(_is_sound(name, getattr(statement, name)) for name in _FIELDS):
                found.append(statement)
    return found


def _is_sound(name: str, value: object) -> bool:
    if name == "item":
        return isinstance(value, str | None)
    if name in _LISTS:
        return isinstance(value, tuple)
    if name == "settings":
        return isinstance(value, Mapping)
    if name in ("smallest", "factor"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def fill(sentence: str, values: Mapping[str, object]) -> str:
    """A sentence with its placeholders filled; plain replacement, since a results file may come from anybody.

    >>> fill("{system} names {group.__class__}", {"system": "oscar"})
    'oscar names {group.__class__}'
    """
    return _PLACEHOLDER.sub(lambda name: str(values.get(name.group(1), name.group(0))), sentence)
