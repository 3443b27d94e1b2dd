"""What the values of label columns mean: M is male. The study keeps the mapping beside the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from portrayal.errors import PortrayalError, shown

Names = Mapping[str, str]  # a value to its group


def _nothing(attribute: str, values: Iterable[str]) -> Names:  # noqa: ARG001
    return {}


@dataclass
class GroupNames:
    """Maps the values of a column to groups: by what the user gives, then by what is known of the attribute.

    `known` gives the groups of those values of an attribute that it knows. A column in which every known value is a
    group's own name, in one spelling, stays as it is: its author chose "Male". Else every known value becomes the
    group's name. `mapped` collects what was changed, for the study.
    """

    given: Mapping[str, Names] = field(default_factory=dict)
    known: Callable[[str, Iterable[str]], Names] = _nothing
    mapped: dict[str, dict[str, str]] = field(default_factory=dict)
    exact: Mapping[str, Names] = field(default_factory=dict)  # of each attribute, value for value

    @classmethod
    def recorded(cls, mapped: Mapping[str, Names]) -> GroupNames:
        """What a study recorded of itself: its table holds groups, and a table put in its place may hold values."""
        return cls(exact=mapped)

    def apply(self, attribute: str, values: Sequence[str | None]) -> list[str | None]:
        """The groups that the values mean, in their order."""
        if attribute in self.exact:
            names = self.exact[attribute]
            return [None if value is None else names.get(value, value) for value in values]
        distinct = [value for value in dict.fromkeys(values) if value is not None]
        by_hand = self._given(attribute, distinct)
        # What the user wrote stays, unless it is another spelling of a group's own name.
        wanted = {value: by_hand.get(value, value) for value in distinct}
        groups = {
            group: name
            for group, name in self.known(attribute, wanted.values()).items()
            if group not in by_hand.values() or name.casefold() == group.casefold()
        }
        spelt = {group.casefold() for group in groups}
        own = all(group.casefold() == name.casefold() for group, name in groups.items())
        if own and len(spelt) == len(groups):
            groups = {}
        meaning = {value: groups.get(group, group) for value, group in wanted.items()}
        changed = {value: group for value, group in meaning.items() if value != group}
        if changed:
            self.mapped.setdefault(attribute, {}).update(changed)
        return [None if value is None else meaning[value] for value in values]

    def _given(self, attribute: str, distinct: Sequence[str]) -> dict[str, str]:
        """The values that the user maps, as the column spells them."""
        names = self.given.get(attribute.casefold(), {})
        there = {value: names[value.casefold()] for value in distinct if value.casefold() in names}
        missing = [name for name in names if name not in {value.casefold() for value in there}]
        if missing:
            values = ", ".join(map(shown, distinct[:10])) or "none"
            raise PortrayalError(
                f"--map {attribute}: no image has the value {shown(missing[0])}; the values are {values}."
            )
        return there

    def check_used(self, attributes: Iterable[str]) -> None:
        """A mapping of a column that is not there is a mistake."""
        there = list(attributes)
        for name in self.given:
            if name not in {attribute.casefold() for attribute in there}:
                raise PortrayalError(
                    f"--map {name}: there is no such column of labels; the columns are {', '.join(there) or 'none'}."
                )


def parse_maps(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """`gender:M=male,F=female` as the user types it, by attribute and value, both case-folded.

    >>> parse_maps(["gender:M=male,F=female"])
    {'gender': {'m': 'male', 'f': 'female'}}
    """
    maps: dict[str, dict[str, str]] = {}
    for text in texts:
        attribute, colon, pairs = text.partition(":")
        names = maps.setdefault(attribute.strip().casefold(), {})
        for pair in pairs.split(","):
            value, equals, group = (part.strip() for part in pair.partition("="))
            if not colon or not attribute.strip() or not equals or not value or not group:
                raise PortrayalError(
                    f"Expected --map ATTRIBUTE:VALUE=GROUP,... such as gender:M=male,F=female, found {shown(text)}."
                )
            if names.setdefault(value.casefold(), group) != group:
                raise PortrayalError(f"--map {attribute}: the value {shown(value)} is mapped to two groups.")
    for attribute, names in maps.items():
        check_mapping(names, f"--map {attribute}")
    return maps


def check_mapping(names: Names, where: str) -> None:
    """A group that is itself mapped to another would change again whenever the study is read."""
    keys = {value.casefold(): group for value, group in names.items()}
    for value, group in names.items():
        again = keys.get(group.casefold())
        if again is not None and again != group:
            raise PortrayalError(
                f"{where}: {shown(value)} is mapped to {shown(group)}, which is mapped to {shown(again)}; "
                "choose groups that are no values."
            )
