"""Reading a pickle that may come from anyone.

A pickle is a program: it can name any function and call it. The public LIC files hold plain lists and
dicts, so only the instructions that build such data are let through, and the program is checked to its
end before the first instruction runs.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from portrayal.errors import Problems

_PLAIN = frozenset(
    """
    PROTO FRAME STOP MARK POP POP_MARK DUP
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET
    MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET
    """.split()
)
_NAMING = {"GLOBAL", "INST", "STACK_GLOBAL"}
_EXPECTED = "a pickle of lists, dicts, text and numbers only"


def load(path: Path, problems: Problems) -> Any:
    """The plain data in a pickle; one that names a class or function is refused with its name."""
    data = path.read_bytes()
    _inspect(path, data, problems)
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
    except _NamesSomething as named:
        raise problems.stop(path, _EXPECTED, f"one that names '{named}' (it was not run)") from None
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise problems.stop(path, "a pickle of plain data", f"one that cannot be read ({error})") from None


class _NamesSomething(Exception):
    pass


class _PlainUnpickler(pickle.Unpickler):
    """Reaches no class or function: the first one that a pickle names ends the reading, with its name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _NamesSomething(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError(f"persistent object {pid!r}")


def _inspect(path: Path, data: bytes, problems: Problems) -> None:
    """Check every instruction before the first one runs, up to the first that names something."""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _NAMING:
                return
            if opcode.name not in _PLAIN:
                raise problems.stop(path, _EXPECTED, f"the instruction {opcode.name} (it was not run)")
            if "PUT" in opcode.name and int(str(argument)) > len(data):  # would make the memo that large
                raise problems.stop(path, _EXPECTED, f"a memo number of {argument}")
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise problems.stop(path, "a pickle", f"one that is cut short or is none ({error})") from None
