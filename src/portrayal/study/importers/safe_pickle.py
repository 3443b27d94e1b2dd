"""Reading a pickle that may come from anyone.

A pickle is a program: it can name any function and call it, build keys that take without end to compare, or nest them
until the interpreter crashes. The public LIC files hold plain lists and dicts. So Python's unpickler is not used at
all: here are the few instructions that build such data, and every other one is refused. Keys are short texts, whose
hashes nobody can foresee; all else is a loop over the instructions, whose number is limited.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown

MOST_BYTES = 256 * 2**20  # of a file; the public ones have 2 MB
MOST_INSTRUCTIONS = 20_000_000  # the public files have 300,000
LONGEST_KEY = 1_000  # characters
_EXPECTED = "a pickle of lists, dicts, text and numbers only"
_NAMING = {"GLOBAL", "INST", "STACK_GLOBAL"}


def load(path: Path, problems: Problems) -> Any:
    """The plain data in a pickle; one that names a class or function is refused with its name."""
    if path.stat().st_size > MOST_BYTES:
        found = f"one of {path.stat().st_size:,} bytes"
        raise problems.stop(path, f"a pickle of at most {MOST_BYTES:,} bytes", found)
    data = path.read_bytes()
    machine = _Machine(len(data))
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            act = _INSTRUCTIONS.get(opcode.name)
            if act is None:
                raise _Refused(machine.refusal(opcode.name, argument))
            if number >= MOST_INSTRUCTIONS:
                raise _Refused(f"more than {MOST_INSTRUCTIONS:,} instructions")
            act(machine, argument)
        return machine.pop()
    except _Refused as refused:
        raise problems.stop(path, _EXPECTED, str(refused)) from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, AssertionError) as error:
        # pickletools says with these what is no pickle, and so does a machine that runs out of values.
        found = f"one that is cut short or is none ({shown(str(error))})"
        raise problems.stop(path, "a pickle", found) from None


class _Refused(Exception):
    pass


class _Machine:
    """Values that are being built: a stack with marks, and those that can be fetched again by number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise IndexError("a value is missing")
        return self.stack.pop()

    def popped_mark(self) -> list[Any]:
        """All that was pushed since the last mark."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def top(self, kind: type) -> Any:
        value = self.stack[-1]
        if type(value) is not kind:
            raise TypeError(f"a {kind.__name__} is missing")
        return value

    def put(self, number: int) -> None:
        if number > self.size:  # no program of this size has so many values
            raise _Refused(f"a memo number of {number}")
        self.memo[number] = self.stack[-1]

    def drop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.pop()

    def refusal(self, name: str, argument: Any) -> str:
        if name not in _NAMING:
            return f"the instruction {name} (it was not run)"
        parts = str(argument).split(" ") if argument is not None else [str(one) for one in self.stack[-2:]]
        return f"one that names '{'.'.join(parts)[:LONGEST_KEY]}' (it was not run)"


def _key(value: Any) -> str:
    if type(value) is not str or len(value) > LONGEST_KEY:
        raise _Refused(f"a key that is no text of at most {LONGEST_KEY:,} characters: {shown(value)}")
    return value


def _filled(pairs: list[Any], into: dict[str, Any]) -> dict[str, Any]:
    if len(pairs) % 2:
        raise IndexError("a key without a value")
    for place in range(0, len(pairs), 2):
        into[_key(pairs[place])] = pairs[place + 1]
    return into


def _append(machine: _Machine, _: Any) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _appends(machine: _Machine, _: Any) -> None:
    values = machine.popped_mark()
    machine.top(list).extend(values)


def _set_item(machine: _Machine, _: Any) -> None:
    value, key = machine.pop(), machine.pop()
    machine.top(dict)[_key(key)] = value


def _set_items(machine: _Machine, _: Any) -> None:
    pairs = machine.popped_mark()
    _filled(pairs, machine.top(dict))


def _add_items(machine: _Machine, _: Any) -> None:
    values = machine.popped_mark()
    machine.top(set).update(map(_key, values))


def _short_tuple(length: int) -> Callable[[_Machine, Any], None]:
    def build(machine: _Machine, _: Any) -> None:
        machine.push(tuple(reversed([machine.pop() for _ in range(length)])))

    return build


def _bytes_as_text(machine: _Machine, argument: str) -> None:
    """Text of Python 2, whose bytes pickletools gives as Latin-1."""
    machine.push(argument.encode("latin-1").decode("utf-8"))


def _nothing(_: _Machine, __: Any) -> None:
    pass


_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], object]] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _nothing),
    **dict.fromkeys(
        (
            *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
            *("STRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        ),
        lambda machine, argument: machine.push(argument),
    ),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), _bytes_as_text),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda machine, number: machine.put(int(number))),
    **dict.fromkeys(
        ("GET", "BINGET", "LONG_BINGET"), lambda machine, number: machine.push(machine.memo[int(number)])
    ),
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": lambda machine, _: machine.drop(),
    "POP_MARK": lambda machine, _: machine.popped_mark(),
    "DUP": lambda machine, _: machine.push(machine.stack[-1]),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "LIST": lambda machine, _: machine.push(machine.popped_mark()),
    "APPEND": _append,
    "APPENDS": _appends,
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.popped_mark())),
    "TUPLE1": _short_tuple(1),
    "TUPLE2": _short_tuple(2),
    "TUPLE3": _short_tuple(3),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "DICT": lambda machine, _: machine.push(_filled(machine.popped_mark(), {})),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "EMPTY_SET": lambda machine, _: machine.push(set()),
    "ADDITEMS": _add_items,
    "FROZENSET": lambda machine, _: machine.push(frozenset(map(_key, machine.popped_mark()))),
}
