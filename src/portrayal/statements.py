"""Statements that a metric's card defines for reports: the comparison, the sentences, and what is a finding.

Cards are stored in results files, so that a report needs no knowledge of any metric.
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
    """One sentence that a report can make from a term.

    `against` is what the value is compared with: its `ideal`; `zero`, for a change without an ideal; the same term of
    `human` captions; other `groups` (the two that differ most; a difference that human captions show as clearly is no
    finding); `items`: which words or objects are associated with which group. `more` and `less` are the sentences for a
    value above and below it, `question` names what is not significant otherwise. For groups, `more` is about the group
    that is worse off. Sentences may contain {system}, {attribute}, {group}, {other}, {n}, and the name of any setting.

    Only a side in `findings` is a finding; on the other side, or where `findings` is empty, the sentence is an
    observation, and `note` says why. A difference below `smallest`, or by a factor below `factor`, is too small to be a
    finding. Of statements with the same `choice`, one is made: the first that is a finding, else the first.
    `supporting_terms` are terms whose agreement is stated in the same sentence. `gap_term` is the metric's own
    difference between groups, whose interval the sentence then uses. `group_term` has the group rows that define which
    group {group} is. `remainder` is the term for how much of the value is left after a control; `no_remainder` and
    `open_remainder` replace the sentence where nothing is left, or the remainder is not significant.
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
    worse: str = ""  # of groups: "higher" or "lower", where the term has no direction
    item: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    choice: str = ""
    supporting_terms: tuple[str, ...] = ()
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


_FIELDS = {field.name: field for field in dataclasses.fields(Statement)}
_LIST_FIELDS = ("findings", "supporting_terms")


def statements_of(card: object) -> list[Statement]:
    """The valid statements of a card of a results file; invalid ones are left out, since files are untrusted."""
    entries = card.get("statements") if isinstance(card, Mapping) else None
    statements = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, Mapping) and all(isinstance(entry.get(name), str) for name in ("term", "more")):
            fields = {name: value for name, value in entry.items() if name in _FIELDS}
            for name in _LIST_FIELDS:
                listed_names = fields.get(name) or ()
                fields[name] = (
                    tuple(map(str, listed_names)) if isinstance(listed_names, list | tuple) else None
                )
            try:
                statement = Statement(**fields)
            except (TypeError, ValueError):
                continue
            if all(_is_valid(name, getattr(statement, name)) for name in _FIELDS):
                statements.append(statement)
    return statements


def _is_valid(name: str, value: object) -> bool:
    if name == "item":
        return isinstance(value, str | None)
    if name in _LIST_FIELDS:
        return isinstance(value, tuple)
    if name == "settings":
        return isinstance(value, Mapping)
    if name in ("smallest", "factor"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def fill(sentence: str, values: Mapping[str, object]) -> str:
    """A sentence with its placeholders filled, by plain replacement, since results files are untrusted.

    >>> fill("{system} names {group.__class__}", {"system": "oscar"})
    'oscar names {group.__class__}'
    """
    return _PLACEHOLDER.sub(lambda name: str(values.get(name.group(1), name.group(0))), sentence)
