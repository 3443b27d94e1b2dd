"""What label columns and their values mean: Sex is gender, M is male. The study keeps the mapping beside the labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from portrayal.errors import PortrayalError, shown

Names = Mapping[str, str]  # a value to its group


def _nothing(attribute: str, values: Iterable[str]) -> Names:  # noqa: ARG001
    return {}


def _itself(attribute: str, columns: Iterable[str]) -> str:  # noqa: ARG001
    return attribute


@dataclass
class GroupNames:
    """Maps the values of a column to groups: by what the user gives, then by what is known of the attribute.

    `given` is by the attribute as the user names it, and `resolve` finds the column that is meant. `known` gives the
    groups of those values of an attribute that it knows. A column in which every known value is a
    group's own name, in one spelling, stays as it is: its author chose "Male". Else every known value becomes the
    group's name. `mapped` collects what was changed, for the study.
    """

    given: Mapping[str, Names] = field(default_factory=dict)
    known: Callable[[str, Iterable[str]], Names] = _nothing
    resolve: Callable[[str, Iterable[str]], str] = _itself
    mapped: dict[str, dict[str, str]] = field(default_factory=dict)
    exact: Mapping[str, Names] = field(default_factory=dict)  # of each attribute, value for value
    _met: dict[str, dict[str, None]] = field(
        default_factory=dict
    )  # for each name in `given`, its columns' values

    @classmethod
    def recorded(cls, mapped: Mapping[str, Names]) -> GroupNames:
        """What a study recorded of itself: its table holds groups, and a table put in its place may hold values."""
        return cls(exact=mapped)

    def column(self, name: str, columns: Collection[str]) -> str:
        """The column that a user means by a name; the name where there is none, for whoever has to say so."""
        found = self.resolve(name, columns)
        return found if found in columns else name

    def apply(
        self, attribute: str, values: Sequence[str | None], columns: Collection[str]
    ) -> list[str | None]:
        """The groups that the values of a column mean, in their order; `columns` are all label columns of its table."""
        if attribute in self.exact:
            names = self.exact[attribute]
            return [None if value is None else names.get(value, value) for value in values]
        distinct = [value for value in dict.fromkeys(values) if value is not None]
        by_hand = self._given(attribute, distinct, columns)
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

    def _given(self, attribute: str, distinct: Iterable[str], columns: Collection[str]) -> dict[str, str]:
        """The values that the user maps, as the column spells them."""
        names: dict[str, str] = {}
        for name, given in self.given.items():
            if self.column(name, columns) == attribute:
                self._met.setdefault(name, {}).update(dict.fromkeys(distinct))
                for value, group in given.items():
                    _add(names, value, group, f"--map {attribute}")
        check_mapping(names, f"--map {attribute}")
        return {value: names[value.casefold()] for value in distinct if value.casefold() in names}

    def check_used(self, attributes: Iterable[str]) -> None:
        """A mapping of a column or a value that no table has is a mistake. To be called when all have been read: one
        table may hold the values, and another the groups.
        """
        for name, given in self.given.items():
            if name not in self._met:
                columns = ", ".join(attributes) or "none"
                raise PortrayalError(
                    f"--map {name}: there is no such column of labels; the columns are {columns}."
                )
            there = {value.casefold() for value in self._met[name]}
            missing = [value for value in given if value not in there]
            if missing:
                values = ", ".join(map(shown, list(self._met[name])[:10])) or "none"
                raise PortrayalError(
                    f"--map {name}: no image has the value {shown(missing[0])}; the values are {values}."
                )


def parse_maps(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """`gender:M=male,F=female` as the user types it, by attribute and case-folded value.

    >>> parse_maps(["gender:M=male,F=female"])
    {'gender': {'m': 'male', 'f': 'female'}}
    """
    maps: dict[str, dict[str, str]] = {}
    for text in texts:
        attribute, colon, pairs = text.partition(":")
        names = maps.setdefault(attribute.strip(), {})
        for pair in pairs.split(","):
            value, equals, group = (part.strip() for part in pair.partition("="))
            if not colon or not attribute.strip() or not equals or not value or not group:
                raise PortrayalError(
                    f"Expected --map ATTRIBUTE:VALUE=GROUP,... such as gender:M=male,F=female, found {shown(text)}."
                )
            _add(names, value.casefold(), group, f"--map {attribute}")
    for attribute, names in maps.items():
        check_mapping(names, f"--map {attribute}")
    return maps


def _add(names: dict[str, str], value: str, group: str, where: str) -> None:
    if names.setdefault(value, group) != group:
        raise PortrayalError(f"{where}: the value {shown(value)} is mapped to two groups.")


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
