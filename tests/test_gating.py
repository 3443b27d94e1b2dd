"""Gates: what passes, what fails, and the exit code of each."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from portrayal.errors import PortrayalError
from portrayal.gating import parse_rule
from portrayal.results import Measurement, Results

ROWS = Results(
    (
        Measurement("error", "error", system="a", attribute="gender", value=0.02, low=0.01, high=0.03, n=100),
        Measurement(
            "error", "error", system="a", attribute="gender", group="female", value=0.04, low=0.02, high=0.07
        ),
        Measurement(
            "error", "error", system="a", attribute="gender", group="male", value=0.01, low=0.0, high=0.02
        ),
        Measurement("error", "error", system="b", attribute="gender", value=0.09, low=0.08, high=0.1),
        Measurement("error", "ratio", system="a", attribute="gender", reason="no caption names only men"),
        Measurement("retrieval-recall", "tr@1", system="a", value=0.6),
        Measurement("counterbias", "b@v-l", system="a", item="cooking", value=12.0),
        Measurement("harms", "erasure.ignoring", system="a", value=0.3, settings={"stage": "3"}),
        Measurement("harms", "erasure.ignoring", system="a", value=0.9, settings={"stage": "4"}),
    )
)


@pytest.fixture
def gate(command, tmp_path):
    ROWS.save(tmp_path)
    return lambda *arguments: command("gate", tmp_path, *arguments)


CASES = [
    # passes
    (["error:error@system=a <= 0.05"], 0),
    (["error:error@system=a,group=all <= 0.02"], 0),
    (["error:error@system=a,group=male < 0.02", "error:error@system=b >= 0.05"], 0),
    (["error:error@system=a,group= == 0.02"], 0),
    (["retrieval-recall:tr@1 >= 0.5"], 0),
    (["retrieval-recall:tr@1@system=a > 0.5"], 0),
    (["counterbias:b@v-l@item=cooking <= 12"], 0),
    (["harms:erasure.ignoring@stage=3 <= 0.5"], 0),
    # fails: every matching row must pass
    (["error:error <= 0.05"], 1),
    (["error:error@system=a <= 0.03"], 1),
    (["error:error@group=female <= 0.03"], 1),
    (["error:error@system=a <= 0.05", "error:error@system=b <= 0.05"], 1),
    (["harms:erasure.ignoring <= 0.5"], 1),
    # undefined, and no match
    (["error:ratio >= 0"], 1),
    (["error:ratio >= 0", "--allow-undefined"], 0),
    (["error:nothing >= 0"], 1),
    (["error:error@system=nobody >= 0"], 1),
    (["error:nothing >= 0", "--allow-undefined"], 0),
    # bounds
    (["error:error@system=a,group=female <= 0.05", "--on", "value"], 0),
    (["error:error@system=a,group=female <= 0.05", "--on", "high"], 1),
    (["error:error@system=a,group=female >= 0.02", "--on", "low"], 0),
    (["error:error@system=a,group=female >= 0.03", "--on", "low"], 1),
    (["retrieval-recall:tr@1 >= 0.5", "--on", "low"], 1),
    (["retrieval-recall:tr@1 >= 0.5", "--on", "low", "--allow-undefined"], 0),
    # bad usage
    (["error:error"], 2),
    (["error <= 0.1"], 2),
    (["error:error <= abc"], 2),
    (["error:error <= nan"], 2),
    (["error:error@sistem=a <= 0.1"], 2),
    (["error:error@system=a,group <= 0.1"], 2),
    (["error:error <= 0.1", "--on", "middle"], 2),
    (["error:error@ <= 0.1", "--allow-undefined"], 2),
    (["error:error@system <= 0.1", "--allow-undefined"], 2),
    (['error:error@system="b",group=all >= 0.05'], 0),
    ([], 2),
]


@pytest.mark.parametrize(("arguments", "code"), CASES, ids=[" ".join(case[0]) or "nothing" for case in CASES])
def test_exit_codes(arguments, code, gate):
    assert gate(*arguments)[0] == code


def test_the_text_says_what_was_found(gate):
    _, out, _ = gate("error:error@system=a <= 0.03", "error:ratio >= 0")
    assert out.splitlines() == [
        "pass  error:error@system=a <= 0.03  [system a, attribute gender] it is 0.02",
        "FAIL  error:error@system=a <= 0.03  [system a, attribute gender, group female] it is 0.04",
        "pass  error:error@system=a <= 0.03  [system a, attribute gender, group male] it is 0.01",
        "FAIL  error:ratio >= 0  [system a, attribute gender] undefined: no caption names only men",
        "2 of 4 pass.",
    ]


def test_json(gate):
    code, out, _ = gate("error:error@group=female <= 0.03", "error:x <= 1", "--format", "json")
    assert code == 1
    first, second = json.loads(out)
    assert (first["passed"], first["group"], first["value"], first["high"]) == (False, "female", 0.04, 0.07)
    assert (second["passed"], second["sentence"], second["id"]) == (False, "no row matches", None)


def test_junit(gate):
    code, out, _ = gate("error:error@system=a <= 0.03", "--format", "junit")
    assert code == 1
    suite = ElementTree.fromstring(out.encode())
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["system a, attribute gender, group female"]


def test_a_missing_file_is_bad_input(command, tmp_path):
    code, _, err = command("gate", tmp_path / "none.json", "error:error <= 1")
    assert code == 2
    assert "There is no results file" in err


def test_where_a_selector_begins():
    assert parse_rule("counterbias:b@v-l <= 1").term == "b@v-l"
    assert parse_rule("counterbias:b@v-l@system=a <= 1").where == (("system", "a"),)
    assert parse_rule("a:b@group=x@y <= 1").where == (("group", "x@y"),)
    assert parse_rule(" a:b  <=  -1e-3 ").limit == -0.001
    assert parse_rule('a:b@system="x,group=y",group=z <= 1').where == (
        ("system", "x,group=y"),
        ("group", "z"),
    )
    with pytest.raises(PortrayalError, match="Expected a rule like"):
        parse_rule("nonsense")
