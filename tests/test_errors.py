"""Errors arrive from a worker as they were raised."""

from __future__ import annotations

import pickle

import pytest

from portrayal.errors import MAX_PROBLEMS_SHOWN, InputError, MissingExtra, PortrayalError, Problem, Undefined


@pytest.mark.parametrize("count", [1, 3, MAX_PROBLEMS_SHOWN + 5])
def test_bad_input_keeps_its_problems_and_its_sentences(count):
    problems = [Problem("a.csv", "a number", f"'{row}'", f"row {row}") for row in range(count)]
    error = InputError(problems)
    unpickled = pickle.loads(pickle.dumps(error))
    assert type(unpickled) is InputError
    assert unpickled.problems == error.problems == tuple(problems)
    assert str(unpickled) == str(error)
    assert str(unpickled).startswith("a.csv, row 0: expected a number, found '0'.")


@pytest.mark.parametrize("kind", [PortrayalError, MissingExtra, Undefined])
def test_an_error_keeps_its_type_and_its_sentence(kind):
    unpickled = pickle.loads(pickle.dumps(kind("One sentence.")))
    assert type(unpickled) is kind
    assert str(unpickled) == "One sentence."
