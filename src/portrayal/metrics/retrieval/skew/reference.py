"""What the top of a list is held against: the shares that groups would have if nothing were skewed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.metrics.retrieval.skew.formulas import Array, shares
from portrayal.metrics.retrieval.skew.ranked_lists import RankedList
from portrayal.study import Study

LIST, STUDY, EQUAL = "list", "study", "equal"


@dataclass(frozen=True)
class Reference:
    label: str
    shares: Array | None  # None: every list has its own

    def of(self, listed: RankedList, groups: int) -> Array:
        """The shares for one list; nan where they are its own and it shows nobody."""
        return shares(listed.counted(groups)[-1]) if self.shares is None else self.shares


def choose_reference(
    asked: str | Mapping[str, float], study: Study, attribute: str
) -> tuple[Reference, tuple[str, ...]]:
    """The reference asked for, and the groups that are compared: those of ranked items, those of the study's images
    where labels come from there, and those that the reference names.
    """
    found = set(study.ranked(attribute)[attribute].drop_nulls())
    known = study.has_attribute(attribute)
    if known and (asked == STUDY or attribute not in study.rankings.columns):
        found |= set(study.groups(attribute))
    given = _given(asked)
    groups = tuple(sorted(found | set(given or ())))
    if not found:
        raise Undefined(f"No ranked item has a group of '{attribute}'.")
    if len(groups) < 2:
        raise Undefined(f"Lists can only be skewed between groups, and '{attribute}' has {len(groups)}.")
    if given is not None:
        # A name that is misspelt leaves the right one without a share.
        missing = sorted(found - set(given))
        if missing:
            raise PortrayalError(
                f"The option 'reference' must give a share to every group. '{missing[0]}' has none; it names "
                f"{', '.join(given)}."
            )
        label = ",".join(f"{group}={given[group]:g}" for group in groups)
        return Reference(label, np.array([given[group] for group in groups])), groups
    if asked == EQUAL:
        return Reference(EQUAL, np.full(len(groups), 1 / len(groups))), groups
    if asked == STUDY:
        if not known:
            raise Undefined(f"The study's images have no labels of '{attribute}' to be a reference.")
        counts = study.group_counts(attribute)
        return Reference(STUDY, shares(np.array([float(counts.get(group, 0)) for group in groups]))), groups
    return Reference(LIST, None), groups


def _given(asked: str | Mapping[str, float]) -> dict[str, float] | None:
    """Shares that were written out, checked; None where a reference is asked for by its name."""
    if isinstance(asked, str):
        if asked in (LIST, STUDY, EQUAL):
            return None
        if "=" not in asked:
            raise unknown_name("reference", asked, (LIST, STUDY, EQUAL, "GROUP=SHARE,.."))
        pairs: Sequence[tuple[str, str]] = [_pair(part) for part in asked.split(",")]
    else:
        pairs = [(group, str(share)) for group, share in asked.items()]
    given: dict[str, float] = {}
    for group, text in pairs:
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not group or group in given or not 0 <= share <= 1:
            raise PortrayalError(
                f"The option 'reference' must be GROUP=SHARE,.. with shares of 0 to 1. Got {f'{group}={text}'!r} in it."
            )
        given[group] = share
    if not math.isclose(sum(given.values()), 1, abs_tol=1e-6):
        raise PortrayalError(
            f"The shares of the option 'reference' must add up to 1. Got {sum(given.values()):g} instead."
        )
    return {group: share / sum(given.values()) for group, share in given.items()}


def _pair(part: str) -> tuple[str, str]:
    group, _, share = part.rpartition("=")
    return group.strip(), share.strip()
