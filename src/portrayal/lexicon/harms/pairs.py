"""Pairs of a group and words that are harmless in general and demean this group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.errors import shown
from portrayal.lexicon.harms.loading import WordListReader, load_word_list

ANY = "*"  # any attribute, any group


@dataclass(frozen=True)
class HarmfulPair:
    """Words that demean a group in context; with `unless_seen`, only if the image does not show the thing itself."""

    attributes: frozenset[str]
    groups: frozenset[str]
    words: frozenset[str]
    unless_seen: bool
    why: str

    def applies_to(self, attributes: Mapping[str, str]) -> bool:
        """Whether a person of these groups (attribute -> group) belongs to the groups of the pair.

        >>> [pair.applies_to({"skin": "Dark"}) for pair in in_context() if "monkey" in pair.words]
        [True]
        """
        return any(
            not self.attributes.isdisjoint((attribute.strip().casefold(), ANY))
            and not self.groups.isdisjoint((group.strip().casefold(), ANY))
            for attribute, group in attributes.items()
        )


class HarmfulPairs(tuple[HarmfulPair, ...]):
    """The pairs of one file, with its label."""

    label: str

    def __new__(cls, pairs: Iterable[HarmfulPair] = (), label: str = "") -> HarmfulPairs:
        self = super().__new__(cls, pairs)
        self.label = label
        return self


def in_context(path: str | Path | None = None) -> HarmfulPairs:
    """Load the shipped pairs of a group and words that demean it in context, or those of a file."""
    return load_word_list("in_context", path, {"pairs"}, _read_pairs)


def _read_pairs(reader: WordListReader) -> HarmfulPairs:
    listed = reader.data.get("pairs")
    if not isinstance(listed, list) or not listed:
        reader.note("a list [[pairs]]", shown(listed))
        return HarmfulPairs()
    pairs = []
    for number, entry in enumerate(listed, 1):
        what = f"pair {number}"
        if not isinstance(entry, dict) or set(entry) - {"attribute", "groups", "words", "unless_seen", "why"}:
            reader.note(f"{what} with attribute, groups, words, unless_seen and why", shown(entry))
            continue
        unless_seen, why = entry.get("unless_seen", False), entry.get("why", "")
        if not isinstance(unless_seen, bool) or not isinstance(why, str):
            reader.note(f"{what} with unless_seen as true or false and why as text", shown(entry))
            continue
        attributes, groups, words = (
            frozenset(reader.words(f"{key} of {what}", entry.get(key)))
            for key in ("attribute", "groups", "words")
        )
        pairs.append(HarmfulPair(attributes, groups, words, unless_seen, why))
    return HarmfulPairs(pairs, reader.label)
