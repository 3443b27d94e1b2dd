"""Errors arrive from a worker as they were raised."""

from __future__ import annotations

import pickle

import pytest

from portrayal.errors import MAX_PROBLEMS_SHOWN, InputError, MissingExtra, PortrayalError, Problem, Undefined


@pytest.mark.parametrize("count", [1, 3, MAX_PROBLEMS_SHOWN + 5])
def test_bad_input_keeps_its_problems_and_its_sentences(count):
    found = [Problem("a.csv", "a number", f"'{row}'", f"row {row}") for row in range(count)]
    sent = InputError(found)
    arrived = pickle.loads(pickle.dumps(sent))
    assert type(arrived) is InputError
    assert arrived.problems == sent.problems == tuple(found)
    assert str(arrived) == str(sent)
    assert str(arrived).startswith("a.csv, row 0: expected a number, found '0'.")


@pytest.mark.parametrize("kind", [PortrayalError, MissingExtra, Undefined])
def test_a_sentence_stays_what_it_is(kind):
    arrived = pickle.loads(pickle.dumps(kind("One sentence.")))
    assert type(arrived) is kind
    assert str(arrived) == "One sentence."
