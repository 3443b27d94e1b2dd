"""Names that are typed: a mistyped one is exit 2 with a suggestion, and upper and lower case are the same."""

from __future__ import annotations

import pytest

from portrayal.errors import PortrayalError, find_name, unknown_name
from portrayal.results import Results
from portrayal.study import write_study
from tests.conftest import small_study


@pytest.fixture
def study(tmp_path):
    rows = [(str(number), ("female", "male")[number % 2], "a woman with a dog") for number in range(8)]
    write_study(small_study(rows, system="Oscar"), tmp_path / "study")
    return tmp_path / "study"


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["audit", "STUDY", "--out", "OUT", "--metrics", "EROR"], "error"),
        (["audit", "STUDY", "--out", "OUT", "--metrics", "error", "--systems", "OSCR"], "Oscar"),
        (["score", "EROR", "STUDY"], "error"),
        (["score", "error", "STUDY", "--systems", "oskar"], "Oscar"),
        (["mitigate", "captions", "STUDY", "--out", "OUT", "--systems", "OSCR"], "Oscar"),
    ],
)
def test_a_mistyped_name_brings_a_suggestion(arguments, suggestion, study, tmp_path, command):
    paths = {"STUDY": str(study), "OUT": str(tmp_path / "out")}
    code, _, err = command(*(paths.get(argument, argument) for argument in arguments))
    assert code == 2
    assert f"Did you mean '{suggestion}'?" in err
    assert not (tmp_path / "out").exists()


def test_upper_and_lower_case_are_the_same(study, tmp_path, command):
    """A metric or system that is named twice is measured once."""
    out = tmp_path / "audit"
    arguments = ("--metrics", "Error,error", "--systems", "OSCAR,oscar", "--workers", 1, "--quick")
    assert command("audit", study, "--out", out, *arguments)[0] == 0
    assert {(m.metric, m.system) for m in Results.load(out).measurements} == {("error", "Oscar")}
    assert command("score", "ERROR", study, "--systems", "oscar")[0] == 0
    targets = (f"{out}@system=oscar", f"{out}@system=OSCAR")
    assert command("compare", *targets)[0] == 0


def test_compare_selects_only_by_system(tmp_path, command):
    code, _, err = command("compare", f"{tmp_path}@group=female", tmp_path)
    assert code == 2
    assert "'group'. Available: system." in err


def test_names_that_differ_by_case_alone_are_not_mixed_up():
    assert find_name("system", "a", ["A", "a"]) == "a"
    with pytest.raises(PortrayalError, match="Unknown system 'AB'"):
        find_name("system", "AB", ["Ab", "aB"])


def test_a_long_list_of_names_is_cut():
    sentence = str(unknown_name("item", "word 7x", [f"word {number}" for number in range(1000)]))
    assert "Did you mean 'word 7" in sentence
    assert sentence.endswith(" and 960 more.")
