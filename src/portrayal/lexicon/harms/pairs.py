"""Words that are harmless in general and demean one group: pairs of groups and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import Checked, loaded

ANY = "*"  # any attribute, any group


@dataclass(frozen=True)
class Pair:
    """Words that demean a group in context; `unless_seen` ones only where the thing itself is not in the picture."""

    attributes: frozenset[str]
    groups: frozenset[str]
    words: frozenset[str]
    unless_seen: bool
    why: str

    def about(self, person: Mapping[str, str]) -> bool:
        """Whether a person, as attributes and groups tell, belongs to the groups this is about.

        >>> [pair.about({"skin": "Dark"}) for pair in in_context() if "monkey" in pair.words]
        [True]
        """
        return any(
            not self.attributes.isdisjoint((attribute.strip().casefold(), ANY))
            and not self.groups.isdisjoint((group.strip().casefold(), ANY))
            for attribute, group in person.items()
        )


class Pairs(tuple[Pair, ...]):
    """The pairs of one file."""

    label: str

    def __new__(cls, pairs: Iterable[Pair] = (), label: str = "") -> Pairs:
        made = super().__new__(cls, pairs)
        made.label = label
        return made


def in_context(path: str | Path | None = None) -> Pairs:
    """The shipped pairs of a group and words that demean it in context, or those of a file."""
    return loaded("in_context", path, {"pairs"}, _pairs)


def _pairs(file: Checked) -> Pairs:
    listed = file.data.get("pairs")
    if not isinstance(listed, list) or not listed:
        file.note("a list [[pairs]]", shown(listed))
        return Pairs()
    made = []
    for number, entry in enumerate(listed, 1):
        what = f"pair {number}"
        if not isinstance(entry, dict) or set(entry) - {"attribute", "groups", "words", "unless_seen", "why"}:
            file.note(f"{what} with attribute, groups, words, unless_seen and why", shown(entry))
            continue
        unless_seen, why = entry.get("unless_seen", False), entry.get("why", "")
        if not isinstance(unless_seen, bool) or not isinstance(why, str):
            file.note(f"{what} with unless_seen as true or false and why as text", shown(entry))
            continue
        attributes, groups, words = (
            frozenset(file.words(f"{key} of {what}", entry.get(key)))
            for key in ("attribute", "groups", "words")
        )
        made.append(Pair(attributes, groups, words, unless_seen, why))
    return Pairs(made, file.label)
