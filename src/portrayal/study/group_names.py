"""Mapping of label columns and values to attributes and groups: Sex is gender, M is male. The study records it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from portrayal.errors import PortrayalError, shown

ValueMap = Mapping[str, str]  # value -> group


def _no_known_groups(attribute: str, values: Iterable[str]) -> ValueMap:  # noqa: ARG001
    return {}


def _same_name(attribute: str, columns: Iterable[str]) -> str:  # noqa: ARG001
    return attribute


@dataclass
class GroupNames:
    """Maps the values of a column to groups, first by the user's maps, then by known group names.

    A column stays as it is if every known value is a group's own name in one spelling: its author chose "Male".
    Otherwise every known value becomes the group's name.

    Parameters
    ----------
    user_maps : mapping of str to ValueMap
        The user's maps, by the attribute as the user names it.
    known_groups : callable
        Returns the groups of those values of an attribute that it knows.
    resolve_attribute : callable
        Returns the column that a user's name refers to.
    mapped : dict
        Collects the changed values by attribute, for the study.
    recorded_maps : mapping of str to ValueMap
        Maps that a study recorded, applied as they are.
    """

    user_maps: Mapping[str, ValueMap] = field(default_factory=dict)
    known_groups: Callable[[str, Iterable[str]], ValueMap] = _no_known_groups
    resolve_attribute: Callable[[str, Iterable[str]], str] = _same_name
    mapped: dict[str, dict[str, str]] = field(default_factory=dict)
    recorded_maps: Mapping[str, ValueMap] = field(default_factory=dict)
    # Observed values of the column of each name in `user_maps`.
    _values_by_name: dict[str, dict[str, None]] = field(default_factory=dict)

    @classmethod
    def from_recorded(cls, mapped: Mapping[str, ValueMap]) -> GroupNames:
        """From the maps that a study recorded. Its table has groups, but a table that replaces it may have values."""
        return cls(recorded_maps=mapped)

    def find_column(self, name: str, columns: Collection[str]) -> str:
        """The column that a user's name refers to; the name itself if there is none (the caller reports it)."""
        found = self.resolve_attribute(name, columns)
        return found if found in columns else name

    def apply(
        self, attribute: str, values: Sequence[str | None], columns: Collection[str]
    ) -> list[str | None]:
        """Map the values of a column to groups. `columns` are all label columns of the table."""
        if attribute in self.recorded_maps:
            names = self.recorded_maps[attribute]
            return [None if value is None else names.get(value, value) for value in values]
        distinct = [value for value in dict.fromkeys(values) if value is not None]
        user_groups = self._user_groups(attribute, distinct, columns)
        # The user's groups stay, unless they are another spelling of a group's own name.
        requested = {value: user_groups.get(value, value) for value in distinct}
        groups = {
            group: name
            for group, name in self.known_groups(attribute, requested.values()).items()
            if group not in user_groups.values() or name.casefold() == group.casefold()
        }
        spellings = {group.casefold() for group in groups}
        own_names = all(group.casefold() == name.casefold() for group, name in groups.items())
        if own_names and len(spellings) == len(groups):
            groups = {}
        group_of_value = {value: groups.get(group, group) for value, group in requested.items()}
        changed = {value: group for value, group in group_of_value.items() if value != group}
        if changed:
            self.mapped.setdefault(attribute, {}).update(changed)
        return [None if value is None else group_of_value[value] for value in values]

    def _user_groups(
        self, attribute: str, distinct: Iterable[str], columns: Collection[str]
    ) -> dict[str, str]:
        """The user's map, with the values as the column spells them."""
        names: dict[str, str] = {}
        for name, value_map in self.user_maps.items():
            if self.find_column(name, columns) == attribute:
                self._values_by_name.setdefault(name, {}).update(dict.fromkeys(distinct))
                for value, group in value_map.items():
                    _add_value(names, value, group, f"--map {attribute}")
        check_mapping(names, f"--map {attribute}")
        return {value: names[value.casefold()] for value in distinct if value.casefold() in names}

    def check_used(self, attributes: Iterable[str]) -> None:
        """Raise an error if a map is of a column or value that no table has.

        Call it after all tables were read, because one table may have the values and another the groups.
        """
        for name, value_map in self.user_maps.items():
            if name not in self._values_by_name:
                columns = ", ".join(attributes) or "none"
                raise PortrayalError(
                    f"--map {name}: there is no such column of labels; the columns are {columns}."
                )
            observed = {value.casefold() for value in self._values_by_name[name]}
            missing = [value for value in value_map if value not in observed]
            if missing:
                values = ", ".join(map(shown, list(self._values_by_name[name])[:10])) or "none"
                raise PortrayalError(
                    f"--map {name}: no image has the value {shown(missing[0])}; the values are {values}."
                )


def parse_maps(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Parse maps such as `gender:M=male,F=female` into groups by attribute and case-folded value.

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
            _add_value(names, value.casefold(), group, f"--map {attribute}")
    for attribute, names in maps.items():
        check_mapping(names, f"--map {attribute}")
    return maps


def _add_value(names: dict[str, str], value: str, group: str, where: str) -> None:
    if names.setdefault(value, group) != group:
        raise PortrayalError(f"{where}: the value {shown(value)} is mapped to two groups.")


def check_mapping(names: ValueMap, where: str) -> None:
    """Raise an error if a group is itself mapped to another, because it would change whenever the study is read."""
    keys = {value.casefold(): group for value, group in names.items()}
    for value, group in names.items():
        next_group = keys.get(group.casefold())
        if next_group is not None and next_group != group:
            raise PortrayalError(
                f"{where}: {shown(value)} is mapped to {shown(group)}, which is mapped to {shown(next_group)}; "
                "choose groups that are no values."
            )
