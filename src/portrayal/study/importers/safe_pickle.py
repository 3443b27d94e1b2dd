"""Read untrusted pickles safely.

A pickle is a program: it can call any function, build keys that take very long to compare, or nest values until the
interpreter crashes. The public LIC files contain plain lists and dicts. Therefore Python's unpickler is not used. This
module implements the few opcodes that build such data and refuses all others. Keys are short strings, whose hashes are
randomised; the rest is a loop over a limited number of opcodes.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown

MAX_BYTES = 256 * 2**20  # per file; the public ones have 2 MB
MAX_INSTRUCTIONS = 20_000_000  # the public files have 300,000
MAX_KEY_LENGTH = 1_000  # characters
_EXPECTED = "a pickle of lists, dicts, text and numbers only"
_IMPORT_OPCODES = {"GLOBAL", "INST", "STACK_GLOBAL"}


def load(path: Path, problems: Problems) -> Any:
    """Load the plain data of a pickle. A pickle that names a class or function is refused with that name."""
    if path.stat().st_size > MAX_BYTES:
        found = f"one of {path.stat().st_size:,} bytes"
        raise problems.stop(path, f"a pickle of at most {MAX_BYTES:,} bytes", found)
    data = path.read_bytes()
    machine = PickleMachine(len(data))
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            act = _INSTRUCTIONS.get(opcode.name)
            if act is None:
                raise _RefusedPickle(machine.refusal(opcode.name, argument))
            if number >= MAX_INSTRUCTIONS:
                raise _RefusedPickle(f"more than {MAX_INSTRUCTIONS:,} instructions")
            act(machine, argument)
        return machine.pop()
    except _RefusedPickle as refused:
        raise problems.stop(path, _EXPECTED, str(refused)) from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, AssertionError) as error:
        # pickletools raises these for invalid data, and the machine for a missing value.
        found = f"one that is cut short or is none ({shown(str(error))})"
        raise problems.stop(path, "a pickle", found) from None


class _RefusedPickle(Exception):
    pass


class PickleMachine:
    """State of the pickle machine: a stack with marks, and the memo."""

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
        """Pop all values since the last mark."""
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
        if number > self.size:  # a pickle of this size cannot have so many values
            raise _RefusedPickle(f"a memo number of {number}")
        self.memo[number] = self.stack[-1]

    def drop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.pop()

    def refusal(self, name: str, argument: Any) -> str:
        if name not in _IMPORT_OPCODES:
            return f"the instruction {name} (it was not run)"
        parts = (
            str(argument).split(" ") if argument is not None else [str(value) for value in self.stack[-2:]]
        )
        return f"one that names '{'.'.join(parts)[:MAX_KEY_LENGTH]}' (it was not run)"


def _key(value: Any) -> str:
    if type(value) is not str or len(value) > MAX_KEY_LENGTH:
        raise _RefusedPickle(
            f"a key that is no text of at most {MAX_KEY_LENGTH:,} characters: {shown(value)}"
        )
    return value


def _fill_dict(pairs: list[Any], target: dict[str, Any]) -> dict[str, Any]:
    if len(pairs) % 2:
        raise IndexError("a key without a value")
    for index in range(0, len(pairs), 2):
        target[_key(pairs[index])] = pairs[index + 1]
    return target


def _append(machine: PickleMachine, _: Any) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _appends(machine: PickleMachine, _: Any) -> None:
    values = machine.popped_mark()
    machine.top(list).extend(values)


def _set_item(machine: PickleMachine, _: Any) -> None:
    value, key = machine.pop(), machine.pop()
    machine.top(dict)[_key(key)] = value


def _set_items(machine: PickleMachine, _: Any) -> None:
    pairs = machine.popped_mark()
    _fill_dict(pairs, machine.top(dict))


def _add_items(machine: PickleMachine, _: Any) -> None:
    values = machine.popped_mark()
    machine.top(set).update(map(_key, values))


def _short_tuple(length: int) -> Callable[[PickleMachine, Any], None]:
    def build(machine: PickleMachine, _: Any) -> None:
        machine.push(tuple(reversed([machine.pop() for _ in range(length)])))

    return build


def _bytes_as_text(machine: PickleMachine, argument: str) -> None:
    """Push a Python 2 string, whose bytes pickletools decodes as Latin-1."""
    machine.push(argument.encode("latin-1").decode("utf-8"))


def _nothing(_: PickleMachine, __: Any) -> None:
    pass


_INSTRUCTIONS: dict[str, Callable[[PickleMachine, Any], object]] = {
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
    "DICT": lambda machine, _: machine.push(_fill_dict(machine.popped_mark(), {})),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "EMPTY_SET": lambda machine, _: machine.push(set()),
    "ADDITEMS": _add_items,
    "FROZENSET": lambda machine, _: machine.push(frozenset(map(_key, machine.popped_mark()))),
}
