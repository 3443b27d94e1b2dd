"""Aliases of attributes and groups in lexicon files: sex is gender, M is male."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from portrayal.errors import Problem, shown

_SEPARATORS = re.compile(r"[\s_\-]+")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)


def name_key(name: str) -> str:
    """Normalised key of a name, equal for spellings that differ in case or separators.

    >>> name_key("Skin_Tone") == name_key(" skin tone")
    True
    """
    return _SEPARATORS.sub(" ", name.strip()).strip().casefold()


def group_keys(groups: Iterable[str], aliases: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Mapping of each group name and alias (as `name_key`) to its group.

    >>> group_keys(["male"], {"male": ["M", "man"]})
    {'male': 'male', 'm': 'male', 'man': 'male'}
    """
    names = {name_key(group): group for group in groups}
    for group in groups:
        for alias in aliases.get(group, ()):
            names.setdefault(name_key(alias), group)
    return names


def alias_problems(data: Mapping[str, Any], groups: Mapping[str, Any], file: str) -> Iterator[Problem]:
    """Problems with the keys `language`, `aliases` and `group_aliases` of a lexicon file."""
    language = data.get("language", "en")
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        yield Problem(file, "language as a code such as 'en'", shown(language))
    yield from _list_problems(data.get("aliases", []), "aliases", file)
    table = data.get("group_aliases", {})
    if not isinstance(table, dict):
        yield Problem(file, "a table [group_aliases] of group = list of names", shown(table))
        return
    owner = {name_key(group): group for group in groups}
    for group, names in table.items():
        if group not in groups:
            yield Problem(file, f"[group_aliases] for {', '.join(groups)}", repr(group))
        yield from _list_problems(names, f"the aliases of '{group}'", file)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and owner.setdefault(name_key(name), group) != group:
                found = f"{name!r} for '{owner[name_key(name)]}' and '{group}'"
                yield Problem(file, "each alias for one group", found)


def _list_problems(names: Any, what: str, file: str) -> Iterator[Problem]:
    if not isinstance(names, list):
        yield Problem(file, f"{what} as a list of names", shown(names))
        return
    for name in names:
        if not isinstance(name, str) or not name_key(name):
            yield Problem(file, f"names in {what}", shown(name))
