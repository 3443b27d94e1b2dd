"""Exceptions, and error messages of one sentence that say what to do."""

from __future__ import annotations

import difflib
import importlib
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

MAX_PROBLEMS_SHOWN = 20
MAX_NAMES_SHOWN = 40  # in a message about an unknown name; a scan has thousands of words


class PortrayalError(Exception):
    """An error that the user can fix: the command line prints it and exits with code 2."""


class MissingExtra(PortrayalError):
    """A feature needs packages that are not installed."""


class Undefined(PortrayalError):
    """A metric cannot be computed on this study; the message says why."""


@dataclass(frozen=True)
class Problem:
    """One problem at one location of one file."""

    file: str
    expected: str
    found: str
    place: str | None = None  # "line 7", "row 7"; None for the whole file
    count: int = 1  # rows with the same problem, reported once

    def __str__(self) -> str:
        where = f"{self.file}, {self.place}" if self.place else self.file
        return f"{where}: expected {self.expected}, found {self.found}."


class InputError(PortrayalError):
    """Bad input: all problems found; the message lists the first ones."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MAX_PROBLEMS_SHOWN]]
        hidden = len(self.problems) - len(lines)
        if hidden > 0:
            lines.append(f"... and {hidden:,} more like these.")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        # Pickled with its problems: by default only the message would reach the parent process.
        return type(self), (self.problems,)


@dataclass
class Problems:
    """Collects problems while a file is read to its end.

    A bad row can be skipped (`skip_bad`), so it is noted and reading continues. A file that cannot be parsed as a whole
    cannot be skipped, so `stop` ends the reading at once.
    """

    skip_bad: bool = False
    rows: list[Problem] = field(default_factory=list)

    def note(self, file: object, expected: str, found: str, place: str | None = None, count: int = 1) -> None:
        self.rows.append(Problem(str(file), expected, found, place, count))

    @property
    def count(self) -> int:
        """The number of bad rows."""
        return sum(problem.count for problem in self.rows)

    def stop(self, file: object, expected: str, found: str, place: str | None = None) -> InputError:
        return InputError([*self.rows, Problem(str(file), expected, found, place)])

    def settle(self) -> None:
        """Raise InputError if there are problems, unless bad rows are skipped. Call when everything has been read."""
        if self.rows and not self.skip_bad:
            raise InputError(self.rows)


def shown(value: object, limit: int = 60) -> str:
    """The repr of a value for an error message: quoted, on one line, truncated."""
    if isinstance(value, str):
        text = repr(value[: limit + 1])
    else:
        brief = reprlib.Repr()
        brief.maxstring = brief.maxother = limit
        try:
            text = brief.repr(value)
        except ValueError:  # more digits than Python converts to text
            text = f"a very large {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(number: int, thing: str, verb: str = "") -> str:
    """A count with its noun and, optionally, its verb.

    >>> counted(1, "system"), counted(1200, "image"), counted(1, "row", "was"), counted(2, "image", "has")
    ('1 system', '1,200 images', '1 row was', '2 images have')
    """
    plural_verbs = {"has": "have", "was": "were", "is": "are"}
    text = f"{number:,} {thing}{'' if number == 1 else 's'}"
    return f"{text} {verb if number == 1 else plural_verbs[verb]}" if verb else text


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PortrayalError:
    """The error for an unknown name, with the closest known name, ignoring case.

    >>> print(unknown_name("metric", "LIK", ["error", "lic"]))
    Unknown metric 'LIK'. Did you mean 'lic'? Available: error, lic.
    """
    names = sorted(known)
    by_casefold = {other.casefold(): other for other in names}
    close_matches = difflib.get_close_matches(name, names, n=1) or [
        by_casefold[other] for other in difflib.get_close_matches(name.casefold(), by_casefold, n=1)
    ]
    hint = f" Did you mean '{close_matches[0]}'?" if close_matches else ""
    hidden = len(names) - MAX_NAMES_SHOWN
    more = f" and {hidden:,} more" if hidden > 0 else ""
    available = ", ".join(names[:MAX_NAMES_SHOWN]) or "none"
    return PortrayalError(f"Unknown {kind} '{name}'.{hint} Available: {available}{more}.")


def find_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The known name equal to `name`, or else the only one that differs in case.

    >>> find_name("system", "OSCAR", ["sat", "Oscar"])
    'Oscar'
    """
    names = list(known)
    if name in names:
        return name
    matches = [other for other in names if other.casefold() == name.casefold()]
    if len(matches) != 1:
        raise unknown_name(kind, name, names)
    return matches[0]


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a package that is not part of the core, or raise MissingExtra with the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package '{module}', which is not installed: "
            f"install it with  pip install 'portrayal[{extra}]'."
        ) from error
