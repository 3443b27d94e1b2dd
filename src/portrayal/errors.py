"""Exceptions, and error messages of one sentence that say how to fix the problem."""

from __future__ import annotations

import difflib
import importlib
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

MAX_PROBLEMS_SHOWN = 20
MAX_NAMES_SHOWN = 40  # number of known names in a message about an unknown name


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
    location: str | None = None  # "line 7", "row 7"; None for the whole file
    count: int = 1  # number of rows with this problem

    def __str__(self) -> str:
        file_and_location = f"{self.file}, {self.location}" if self.location else self.file
        return f"{file_and_location}: expected {self.expected}, found {self.found}."


class InputError(PortrayalError):
    """Invalid input. `problems` has all problems; the message lists the first `MAX_PROBLEMS_SHOWN`."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MAX_PROBLEMS_SHOWN]]
        hidden = len(self.problems) - len(lines)
        if hidden > 0:
            lines.append(f"... and {hidden:,} more like these.")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        # Pickle the problems too; by default only the message would reach the parent process.
        return type(self), (self.problems,)


@dataclass
class Problems:
    """A collector of the problems that are found while files are read.

    A bad row is noted and reading continues, since rows can be skipped (`skip_bad`). For a file that cannot be parsed,
    `stop` returns the error to raise.
    """

    skip_bad: bool = False
    rows: list[Problem] = field(default_factory=list)

    def note(
        self, file: object, expected: str, found: str, location: str | None = None, count: int = 1
    ) -> None:
        self.rows.append(Problem(str(file), expected, found, location, count))

    @property
    def count(self) -> int:
        """Return the number of bad rows."""
        return sum(problem.count for problem in self.rows)

    def stop(self, file: object, expected: str, found: str, location: str | None = None) -> InputError:
        return InputError([*self.rows, Problem(str(file), expected, found, location)])

    def settle(self) -> None:
        """Raise InputError if there are problems, unless bad rows are skipped. Call when everything has been read."""
        if self.rows and not self.skip_bad:
            raise InputError(self.rows)


def shown(value: object, limit: int = 60) -> str:
    """Return the repr of a value for an error message: on one line, truncated to `limit` characters."""
    if isinstance(value, str):
        text = repr(value[: limit + 1])
    else:
        short_repr = reprlib.Repr()
        short_repr.maxstring = short_repr.maxother = limit
        try:
            text = short_repr.repr(value)
        except ValueError:  # more digits than Python converts to text
            text = f"a very large {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(count: int, thing: str, verb: str = "") -> str:
    """Return a count with its noun and, optionally, its verb.

    >>> counted(1, "system"), counted(1200, "image"), counted(1, "row", "was"), counted(2, "image", "has")
    ('1 system', '1,200 images', '1 row was', '2 images have')
    """
    plural_verbs = {"has": "have", "was": "were", "is": "are"}
    text = f"{count:,} {thing}{'' if count == 1 else 's'}"
    return f"{text} {verb if count == 1 else plural_verbs[verb]}" if verb else text


def listed(names: Iterable[str], limit: int = 6) -> str:
    """The first names of a list on one line, and how many more there are.

    >>> listed(["a", "b\\n"]), listed("abcdefgh", 6)
    ('a, b\ufffd', 'a, b, c, d, e, f and 2 more')
    """
    known = list(names)
    more = f" and {len(known) - limit:,} more" if len(known) > limit else ""
    return ", ".join(map(on_one_line, known[:limit])) + more


def on_one_line(text: str) -> str:
    """The text with line ends and control characters replaced, since a terminal obeys them."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PortrayalError:
    """Return the error for an unknown name, with the closest known name, ignoring case.

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
    """Return the known name equal to `name`, or else the only one that differs in case.

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
    """Return an optional package, imported; raise MissingExtra, with the extra that installs it, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package '{module}', which is not installed: "
            f"install it with  pip install 'portrayal[{extra}]'."
        ) from error
