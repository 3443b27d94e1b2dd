"""TOML files of rules, for version control beside a project's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from portrayal.documents import read_toml
from portrayal.errors import InputError, PortrayalError, Problem, find_name, shown, unknown_name
from portrayal.gating.rules import BOUNDS, EXAMPLE, Rule, parse_rule

Source = TypeVar("Source")
_KEYS: dict[str, tuple[type, str]] = {
    "check": (str, f"a rule such as '{EXAMPLE}'"),
    "on": (str, f"one of {', '.join(BOUNDS)}"),
    "reason": (str, "text"),
    "allow_undefined": (bool, "true or false"),
}


def read_rules(path: Path | str) -> list[Rule]:
    """Return the rules of a file: tables `[[rule]]` with `check`, and optionally `on`, `reason`, `allow_undefined`.

    All problems of the file are reported at once.
    """
    path = Path(path)
    rules: list[Rule] = []
    errors: list[str] = []
    for number, table in enumerate(_tables(path), start=1):
        problems = list(_problems(table, path, f"rule {number}"))
        if problems:
            errors += problems
            continue
        rules.append(
            replace(
                parse_rule(table["check"]),
                on=find_name("bound", table["on"], BOUNDS) if "on" in table else None,
                reason=table.get("reason"),
                allow_undefined=table.get("allow_undefined"),
                origin=f"{path}, rule {number}",
            )
        )
    if errors:
        raise PortrayalError("\n".join(errors))
    return rules


def read_each(sources: Iterable[Source], read: Callable[[Source], Sequence[Rule]]) -> list[Rule]:
    """Return the rules of all sources; those that cannot be read are reported at once."""
    rules: list[Rule] = []
    errors: list[str] = []
    for source in sources:
        try:
            rules += read(source)
        except PortrayalError as error:
            errors.append(str(error))
    if errors:
        raise PortrayalError("\n".join(errors))
    return rules


def _tables(path: Path) -> list[Any]:
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise PortrayalError(f"There is no file of rules at {path}.") from None
    tables = data.get("rule")
    if set(data) != {"rule"} or not isinstance(tables, list) or not tables:
        other_keys = sorted(set(data) - {"rule"})
        content = f"the key {shown(other_keys[0])}" if other_keys else "none" if not tables else shown(tables)
        expected = f'[[rule]] tables and nothing else, each with a line  check = "{EXAMPLE}"'
        raise InputError([Problem(str(path), expected, content)])
    return tables


def _problems(table: Any, path: Path, location: str) -> Iterator[str]:
    """Yield a sentence for each problem of one table."""
    if not isinstance(table, dict):
        yield str(Problem(str(path), "a [[rule]] table", shown(table), location))
        return
    for key, value in table.items():
        if key not in _KEYS:
            yield f"{path}, {location}: {unknown_name('key', key, _KEYS)}"
        elif not isinstance(value, _KEYS[key][0]):
            yield str(Problem(str(path), _KEYS[key][1], shown(value), f"{location}, {key}"))
    if "check" not in table:
        yield str(Problem(str(path), _KEYS["check"][1], "none", f"{location}, check"))
    for key, parse in (("check", parse_rule), ("on", lambda typed: find_name("bound", typed, BOUNDS))):
        if isinstance(table.get(key), str):
            try:
                parse(table[key])
            except PortrayalError as error:
                yield f"{path}, {location}, {key}: {error}"
