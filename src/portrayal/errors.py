"""What can go wrong, said in one sentence a user can act on."""

from __future__ import annotations

import difflib
import importlib
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

SHOWN_PROBLEMS = 20
SHOWN_NAMES = 40  # of those that a mistyped name could have been; a scan has thousands of words


class PortrayalError(Exception):
    """Anything the user can mend: the command line prints it and exits with code 2."""


class MissingExtra(PortrayalError):
    """A part was asked for that needs packages which are not installed."""


class Undefined(PortrayalError):
    """A metric cannot be computed on this study at all; the sentence says why."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one place of one file."""

    file: str
    expected: str
    found: str
    place: str | None = None  # "line 7", "row 7"; None where the whole file is meant
    count: int = 1  # rows that have the same problem, told once

    def __str__(self) -> str:
        where = f"{self.file}, {self.place}" if self.place else self.file
        return f"{where}: expected {self.expected}, found {self.found}."


class InputError(PortrayalError):
    """Bad input: every problem that was found, the first ones spelt out."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        hidden = len(self.problems) - len(lines)
        if hidden > 0:
            lines.append(f"... and {hidden:,} more like these.")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        # A worker sends its error as it was made: an exception would send the message alone.
        return type(self), (self.problems,)


@dataclass
class Problems:
    """Collects what is wrong while a file is read to its end.

    A bad row can be left out (`skip_bad`), so it is noted and reading goes on; a file that cannot be
    understood as a whole cannot, so `stop` ends the reading at once.
    """

    skip_bad: bool = False
    rows: list[Problem] = field(default_factory=list)

    def note(self, file: object, expected: str, found: str, place: str | None = None, count: int = 1) -> None:
        self.rows.append(Problem(str(file), expected, found, place, count))

    @property
    def count(self) -> int:
        """How many rows are bad."""
        return sum(problem.count for problem in self.rows)

    def stop(self, file: object, expected: str, found: str, place: str | None = None) -> InputError:
        return InputError([*self.rows, Problem(str(file), expected, found, place)])

    def settle(self) -> None:
        """Call when everything has been read: raises unless bad rows are to be left out."""
        if self.rows and not self.skip_bad:
            raise InputError(self.rows)


def shown(value: object, limit: int = 60) -> str:
    """A value as an error sentence shows it: quoted, on one line, not too long, whatever it holds."""
    if isinstance(value, str):
        text = repr(value[: limit + 1])
    else:
        brief = reprlib.Repr()
        brief.maxstring = brief.maxother = limit
        try:
            text = brief.repr(value)
        except ValueError:  # a number with more digits than Python will write
            text = f"a very large {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(number: int, thing: str, verb: str = "") -> str:
    """A count with its noun, and the verb that follows.

    >>> counted(1, "system"), counted(1200, "image"), counted(1, "row", "was"), counted(2, "image", "has")
    ('1 system', '1,200 images', '1 row was', '2 images have')
    """
    several = {"has": "have", "was": "were", "is": "are"}
    said = f"{number:,} {thing}{'' if number == 1 else 's'}"
    return f"{said} {verb if number == 1 else several[verb]}" if verb else said


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PortrayalError:
    """The error for a name that is not among the known ones, with the nearest of them, whatever its case.

    >>> print(unknown_name("metric", "LIK", ["error", "lic"]))
    Unknown metric 'LIK'. Did you mean 'lic'? Available: error, lic.
    """
    names = sorted(known)
    spelled = {other.casefold(): other for other in names}
    near = difflib.get_close_matches(name, names, n=1) or [
        spelled[other] for other in difflib.get_close_matches(name.casefold(), spelled, n=1)
    ]
    hint = f" Did you mean '{near[0]}'?" if near else ""
    hidden = len(names) - SHOWN_NAMES
    more = f" and {hidden:,} more" if hidden > 0 else ""
    available = ", ".join(names[:SHOWN_NAMES]) or "none"
    return PortrayalError(f"Unknown {kind} '{name}'.{hint} Available: {available}{more}.")


def find_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The known name that was meant: spelled the same, or else the only one that differs in case alone.

    >>> find_name("system", "OSCAR", ["sat", "Oscar"])
    'Oscar'
    """
    names = list(known)
    if name in names:
        return name
    alike = [other for other in names if other.casefold() == name.casefold()]
    if len(alike) != 1:
        raise unknown_name(kind, name, names)
    return alike[0]


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a package that is not part of the core, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package '{module}', which is not installed: "
            f"install it with  pip install 'portrayal[{extra}]'."
        ) from error
