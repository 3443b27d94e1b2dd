"""Reference shares of the groups, which the top of a list is compared with."""

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
    shares: Array | None  # None: the shares of each list itself

    def of(self, listed: RankedList, groups: int) -> Array:
        """The reference shares for one list; nan where they are the list's own and no item has a known group."""
        return shares(listed.cumulative_counts(groups)[-1]) if self.shares is None else self.shares


def choose_reference(
    name: str | Mapping[str, float], study: Study, attribute: str
) -> tuple[Reference, tuple[str, ...]]:
    """The chosen reference, and the groups that are compared.

    Groups are those of ranked items, those of the study's images where labels come from there, and those that the
    reference names.
    """
    ranked_groups = set(study.ranked_items(attribute)[attribute].drop_nulls())
    labelled = study.has_attribute(attribute)
    if labelled and (name == STUDY or attribute not in study.rankings.columns):
        ranked_groups |= set(study.groups(attribute))
    custom_shares = _custom_shares(name)
    groups = tuple(sorted(ranked_groups | set(custom_shares or ())))
    if not ranked_groups:
        raise Undefined(f"No ranked item has a group of '{attribute}'.")
    if len(groups) < 2:
        raise Undefined(f"Lists can only be skewed between groups, and '{attribute}' has {len(groups)}.")
    if custom_shares is not None:
        # A misspelt name leaves the correct one without a share.
        missing = sorted(ranked_groups - set(custom_shares))
        if missing:
            raise PortrayalError(
                f"The option 'reference' must give a share to every group. '{missing[0]}' has none; it names "
                f"{', '.join(custom_shares)}."
            )
        label = ",".join(f"{group}={custom_shares[group]:g}" for group in groups)
        return Reference(label, np.array([custom_shares[group] for group in groups])), groups
    if name == EQUAL:
        return Reference(EQUAL, np.full(len(groups), 1 / len(groups))), groups
    if name == STUDY:
        if not labelled:
            raise Undefined(f"The study's images have no labels of '{attribute}' to be a reference.")
        counts = study.group_counts(attribute)
        return Reference(STUDY, shares(np.array([float(counts.get(group, 0)) for group in groups]))), groups
    return Reference(LIST, None), groups


def _custom_shares(reference: str | Mapping[str, float]) -> dict[str, float] | None:
    """Custom shares, validated; None where the reference is given by name."""
    if isinstance(reference, str):
        if reference in (LIST, STUDY, EQUAL):
            return None
        if "=" not in reference:
            raise unknown_name("reference", reference, (LIST, STUDY, EQUAL, "GROUP=SHARE,.."))
        pairs: Sequence[tuple[str, str]] = [_pair(part) for part in reference.split(",")]
    else:
        pairs = [(group, str(share)) for group, share in reference.items()]
    custom: dict[str, float] = {}
    for group, text in pairs:
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not group or group in custom or not 0 <= share <= 1:
            raise PortrayalError(
                f"The option 'reference' must be GROUP=SHARE,.. with shares of 0 to 1. Got {f'{group}={text}'!r} in it."
            )
        custom[group] = share
    if not math.isclose(sum(custom.values()), 1, abs_tol=1e-6):
        raise PortrayalError(
            f"The shares of the option 'reference' must add up to 1. Got {sum(custom.values()):g} instead."
        )
    return {group: share / sum(custom.values()) for group, share in custom.items()}


def _pair(part: str) -> tuple[str, str]:
    group, _, share = part.rpartition("=")
    return group.strip(), share.strip()
