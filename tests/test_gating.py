"""Gates: what passes, what fails, and the exit code of each."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from portrayal.errors import PortrayalError
from portrayal.gating import evaluate, parse_rule, read_rules
from portrayal.metrics import error
from portrayal.results import Measurement, Results
from tests.conftest import small_study

ROOT = Path(__file__).parent.parent
PROVENANCE = {
    "cards": {
        "error": {"terms": [{"name": "error"}, {"name": "ratio"}, {"name": "neutral"}]},
        "leakage": {"terms": [{"name": "difference"}]},
    },
    "study": {
        "systems": ["a", "b", "idle"],
        "groups": {"gender": {"female": 9, "male": 9}, "age": {"old": 9}},
    },
    "skipped": [
        {"metric": "leakage", "attribute": None, "reason": "There are no objects."},
        {"metric": "error", "attribute": "age", "reason": "No lexicon names the groups of 'age'."},
    ],
}
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
        Measurement("error", "error", system="human", attribute="gender", value=0.5, low=0.4, high=0.6),
    ),
    provenance=PROVENANCE,
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
    # no row, though every name is right
    (["error:neutral >= 0"], 1),
    (["error:neutral >= 0", "--allow-undefined"], 0),
    (["leakage:difference <= 0"], 1),
    (["leakage:difference <= 0", "--allow-undefined"], 0),
    (["error:error@attribute=age <= 1"], 1),
    (["error:error@system=b,group=male <= 1"], 1),
    (["error:error@group=old <= 1"], 1),
    (["error:error@system=idle <= 1"], 1),
    (["lic:lic_m <= 30"], 1),  # a metric that this audit did not run
    (["retrieval-recall:tr@1@system=human >= 0"], 1),
    (["counterbias:b@v-l@item=skating <= 1", "--allow-undefined"], 0),  # a word that this study may lack
    # names that are not known
    (["eror:error <= 1"], 2),
    (["error:nothing >= 0"], 2),
    (["error:nothing >= 0", "--allow-undefined"], 2),
    (["leakage:diference <= 0"], 2),
    (["lic:lic_n <= 30"], 2),
    (["error:error@system=nobody >= 0"], 2),
    (["error:error@system=all >= 0"], 2),
    (["error:error@group=femal <= 1"], 2),
    (["error:error@attribute=gendr <= 1"], 2),
    (["error:error@unit=shares <= 1"], 2),
    (["counterbias:b@v-l@item=cokking <= 12"], 2),
    (["harms:erasure.ignoring@stage=5 <= 0.5"], 2),
    (["error:error@stage=3 <= 0.5"], 2),  # a setting of another metric
    (["error:error@group=male,group=female <= 0.5"], 2),
    # upper and lower case are the same
    (["Error:ERROR@System=b <= 0.1"], 2),  # but not of a selector's own name
    (["Error:ERROR@system=B,group=ALL,attribute=Gender <= 0.1"], 0),
    (["error:error@group=FEMALE <= 0.03"], 1),
    # human captions only where they are asked for
    (["error:error <= 0.1"], 0),
    (["error:error@system=human <= 0.1"], 1),
    (["error:error@system=Human >= 0.1"], 0),
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


def test_the_text_lists_the_values_and_the_verdicts(gate):
    _, out, _ = gate("error:error@system=a <= 0.03", "error:ratio >= 0")
    assert [line.rstrip() for line in out.splitlines()] == [
        "FAIL  error:error@system=a <= 0.03",
        "      system a, attribute gender",
        "      group   value       95 % CI    n",
        "pass  all      0.02  [0.01, 0.03]  100",
        "FAIL  female   0.04  [0.02, 0.07]",
        "pass  male     0.01     [0, 0.02]",
        "",
        "FAIL  error:ratio >= 0",
        "      system a, attribute gender",
        "          value  95 % CI  n",
        "FAIL  undefined",
        "      Undefined: no caption names only men",
        "",
        "Rules kept: 0 of 2. Rows that pass: 2 of 4.",
    ]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("eror:error <= 1", "\"eror:error <= 1\": Unknown metric 'eror'. Did you mean 'error'?"),
        ("error:erorr <= 1", "Unknown term of 'error' 'erorr'. Did you mean 'error'?"),
        ("error:error@system=C <= 1", "Unknown system 'C'. Available: a, b, human, idle."),
        ("error:error@group=Femal <= 1", "Unknown group 'Femal'. Did you mean 'female'? Available: female, male, old."),
        ("error:error@attribute=gendr <= 1", "Unknown attribute 'gendr'. Did you mean 'gender'?"),
        ("error:error@sistem=a <= 1", "Unknown selector of 'error' 'sistem'. Did you mean 'system'?"),
        ("counterbias:b@v-l@item=Coking <= 1", "Unknown item 'Coking'. Did you mean 'cooking'?"),
        ("error:error@Female <= 1", "name=value after '@'. Got 'Female' instead. Did you mean 'group=Female'?"),
        ("error:error@c <= 1", "Expected name=value after '@'. Got 'c' instead."),
        ("error:error <= 5%", "Shares are fractions: 0.05, not 5%."),
        ("error:error =< 0.05", "Expected one of <=, >=, <, >, ==. Got 'error:error =< 0.05' instead."),
        ("rules.toml", "Did you mean --rules rules.toml?"),
        ("harms:erasure.ignoring@stage=5 <= 1", "Unknown value of 'stage' '5'. Available: 3, 4."),
    ],
)  # fmt: skip
def test_a_mistyped_rule_brings_a_suggestion(rule, sentence, gate):
    code, out, err = gate(rule)
    assert (code, out) == (2, "")
    assert sentence in err


def test_a_rule_that_is_given_twice_is_checked_once(gate):
    _, out, _ = gate("error:error@system=b <= 1", "error:error@system=b <= 1")
    assert "Rules kept: 1 of 1. Rows that pass: 1 of 1." in out


def test_all_unknown_names_are_reported_at_once(gate):
    _, _, err = gate("error:erorr@system=c <= 1", "eror:error <= 1")
    assert err.count("Unknown") == 3


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("leakage:difference <= 0", "the audit skipped 'leakage'. There are no objects."),
        ("error:error@attribute=age <= 0", "the audit skipped 'error'. No lexicon names the groups of 'age'."),
        ("lic:lic_m <= 0", "'lic' has no row in these results, which hold error, retrieval-recall,"),
        ("error:neutral <= 0", "'error' has no row of 'neutral' in these results."),
        ("error:error@system=b,group=male <= 0", "there are rows without system=b or without group=male."),
    ],
)  # fmt: skip
def test_a_rule_without_a_row_says_why(rule, sentence, gate):
    code, out, _ = gate(rule)
    assert code == 1
    assert sentence in " ".join(out.split())


def test_only_human_rows_must_be_selected():
    rows = Results((Measurement("quality", "length", system="human", value=9.0),))
    (verdict,) = evaluate(rows, [parse_rule("quality:length <= 10")])
    assert not verdict.passed
    assert "@system=human" in verdict.sentence


def test_two_groups_that_differ_by_case_stay_apart():
    rows = Results(tuple(Measurement("m", "t", group=group, value=1.0) for group in ("Male", "male")))
    (verdict,) = evaluate(rows, [parse_rule("m:t@group=male <= 1")])
    assert verdict.row.group == "male"
    with pytest.raises(PortrayalError, match="Unknown group 'MALE'"):
        evaluate(rows, [parse_rule("m:t@group=MALE <= 1")])


def test_provenance_of_another_program_does_no_harm():
    odd = {"cards": [1], "study": {"groups": 3, "systems": "abc"}, "skipped": {"metric": 1}}
    rows = Results(ROWS.measurements, provenance=odd)
    assert evaluate(rows, [parse_rule("error:error@system=b <= 1")])[0].passed
    with pytest.raises(PortrayalError, match="Unknown metric 'leakage'"):
        evaluate(rows, [parse_rule("leakage:difference <= 1")])


def test_labels_name_what_distinguishes_rows(gate):
    _, out, _ = gate("harms:erasure.ignoring <= 0.5")
    assert [line.split() for line in out.splitlines()[2:5]] == [
        ["stage", "value", "95", "%", "CI", "n"],
        ["pass", "3", "0.3"],
        ["FAIL", "4", "0.9"],
    ]
    _, out, _ = gate("harms:erasure.ignoring <= 0.5", "--format", "junit")
    cases = ElementTree.fromstring(out.encode())
    assert [case.get("name") for case in cases] == ["system a, stage 3", "system a, stage 4"]


def test_a_label_leaves_out_settings_that_follow_from_another():
    settings = [
        {"split": "crossfit", "seeds": None, "folds": 10},
        {"split": "paper", "seeds": [0], "folds": None},
    ]
    rows = [
        Measurement("lic", "lic", system="s", value=1.0, settings=row_settings) for row_settings in settings
    ]
    units = [Measurement("lic", "lic", system="t", value=1.0, unit=unit) for unit in ("count", "share")]
    verdicts = evaluate(Results(tuple(rows)), [parse_rule("lic:lic <= 1")])
    assert [v.label for v in verdicts] == [
        {"system": "s", "split": "crossfit"},
        {"system": "s", "split": "paper"},
    ]
    verdicts = evaluate(Results(tuple(units)), [parse_rule("lic:lic <= 1")])
    assert [v.label["unit"] for v in verdicts] == ["count", "share"]


def test_a_terminal_of_80_columns_is_enough(command, tmp_path, monkeypatch):
    """Thirty rows, each with a caution: the worst come first, and no line is cut or wider than the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    sentence = "The captions are several times as long as the references."
    Results(
        tuple(
            Measurement(
                "lic", "lic", system="nic-equalizer", attribute="gender", group=group, value=number + 0.123456,
                low=number - 1.23456, high=number + 1.23456, n=1500, caution=sentence,
                settings={"split": f"paper-unseen-{number}"},
            )
            for group in (None, "female", "male")
            for number in range(10)
        )
    ).save(tmp_path)  # fmt: skip
    code, out, _ = command("gate", tmp_path, "lic:lic <= 8.5")
    lines = out.splitlines()
    assert code == 1
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[3:8]] == ["FAIL"] * 3 + ["pass"] * 2
    assert "Rows not shown: 10 pass." in out
    assert (
        f"Caution (group all, split paper-unseen-9; group female, split paper-unseen-9; and 18 more): {sentence}"
        in (" ".join(out.split()))
    )


def test_digits_never_contradict_the_verdict(command, tmp_path):
    Results((Measurement("error", "error", system="a", value=0.0500004),)).save(tmp_path)
    assert "FAIL  0.0500004" in command("gate", tmp_path, "error:error <= 0.05")[1]


def test_json(gate):
    code, out, _ = gate("error:error@group=female <= 0.03", "error:neutral <= 1", "--format", "json")
    assert code == 1
    first, second = json.loads(out)
    assert (first["passed"], first["group"], first["value"], first["high"]) == (False, "female", 0.04, 0.07)
    assert (first["label"], first["on"]) == ("system a, attribute gender, group female", "value")
    assert (second["passed"], second["id"], second["settings"]) == (False, None, None)
    assert second["sentence"].startswith("no row matches")


def test_junit(gate):
    code, out, _ = gate("error:error@system=a <= 0.03", "--format", "junit")
    assert code == 1
    suite = ElementTree.fromstring(out.encode())
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["system a, attribute gender, group female"]


def test_without_a_rule_the_terms_are_listed(gate):
    code, _, err = gate()
    assert code == 2
    assert "There is no rule to check" in err
    assert "\n  error: error, ratio\n" in err


def test_a_missing_file_is_bad_input(command, tmp_path):
    code, _, err = command("gate", tmp_path / "none.json", "error:error <= 1")
    assert code == 2
    assert "There is no results file" in err


def test_where_a_selector_begins():
    assert parse_rule("counterbias:b@v-l <= 1").term == "b@v-l"
    assert parse_rule("counterbias:b@v-l@system=a <= 1").where == (("system", "a"),)
    assert parse_rule("counterbias:b@v-l @ system = a <= 1").where == (("system", "a"),)
    assert parse_rule("a:b@group=x@y <= 1").where == (("group", "x@y"),)
    assert parse_rule(" a:b  <=  -1e-3 ").limit == -0.001
    assert parse_rule('a:b@system="x,group=y",group=z <= 1').where == (
        ("system", "x,group=y"),
        ("group", "z"),
    )
    with pytest.raises(PortrayalError, match="Expected a rule like"):
        parse_rule("nonsense")


RULES = """
[[rule]]
check = "error:error@system=a <= 0.05"
on = "HIGH"
reason = "Agreed with the product team."

[[rule]]
check = "error:ratio >= 0"
allow_undefined = true
"""


def test_rules_of_a_file_and_of_the_command_line(gate, tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(RULES)
    code, out, _ = gate("error:error@system=b <= 0.09", "--rules", file, "--format", "json")
    verdicts = json.loads(out)
    assert code == 1
    assert [(v["passed"], v["on"], v["group"], v["reason"] is None) for v in verdicts] == [
        (True, "value", None, True),
        (True, "high", None, False),
        (False, "high", "female", False),
        (True, "high", "male", False),
        (True, "value", None, True),
    ]
    _, out, _ = gate("--rules", file)
    assert "Agreed with the product team." in out
    assert "Rules kept: 1 of 2." in out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[rule]\n", "rules.toml: expected TOML, found"),
        (f"a = {'9' * 5_000}", "rules.toml: expected TOML, found Exceeds the limit"),
        (f"a = {'[' * 100_000}", "rules.toml: expected TOML, found lists or tables nested too deeply"),
        ("", "rules.toml: expected [[rule]] tables and nothing else"),
        ("on = 'high'\n[[rule]]\ncheck = 'a:b <= 1'", "found the key 'on'"),
        ("[rule]\ncheck = 'a:b <= 1'", "rules.toml: expected [[rule]] tables"),
        ("rule = [1]", "rules.toml, rule 1: expected a [[rule]] table, found 1."),
        ("[[rule]]\non = 'high'", "rules.toml, rule 1, check: expected a rule such as"),
        ("[[rule]]\ncheck = 3", "rules.toml, rule 1, check: expected a rule such as"),
        ("[[rule]]\ncheck = 'a:b'", "rules.toml, rule 1, check: Expected a rule like"),
        ("[[rule]]\ncheck = 'a:b <= 1'\non = 'higher'", "rule 1, on: Unknown bound 'higher'. Did you mean 'high'?"),
        ("[[rule]]\ncheck = 'a:b <= 1'\nchek = 1", "rule 1: Unknown key 'chek'. Did you mean 'check'?"),
        ("[[rule]]\ncheck = 'a:b <= 1'\nallow_undefined = 1", "rule 1, allow_undefined: expected true or false"),
        ("[[rule]]\ncheck = 'error:error <= 1'\n[[rule]]\ncheck = 'eror:error <= 1'", "rules.toml, rule 2: eror:error"),
    ],
)  # fmt: skip
def test_a_bad_file_of_rules_is_reported_with_its_location(text, sentence, gate, tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(text)
    code, out, err = gate("--rules", file)
    assert (code, out) == (2, "")
    assert sentence in err


def test_every_problem_of_a_file_of_rules_is_reported(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text("[[rule]]\ncheck = 'a:b'\n[[rule]]\ncheck = 'a:b <= 1'\non = 3\n")
    with pytest.raises(PortrayalError) as raised:
        read_rules(file)
    assert ["rule 1, check" in str(raised.value), "rule 2, on" in str(raised.value)] == [True, True]


def test_a_comparison_is_gated_by_its_differences(command, tmp_path):
    """From 0.04 to 0.06 of women: the change is 0.02, and the arrow of its systems can be typed."""
    for name, value in (("old", 0.04), ("new", 0.06)):
        row = Measurement(
            "error", "error", system=name, attribute="gender", group="female", value=value, se_data=0.001
        )
        Results((row,)).save(tmp_path / name)
    assert command("compare", tmp_path / "old", tmp_path / "new", "--out", tmp_path / "changes")[0] == 0
    for rule, code in (
        ("error:error@group=female <= 0.01", 1),
        ("error:error@group=Female,system=old -> new <= 0.03", 0),
        ("error:error@system=new <= 0.03", 2),
    ):
        assert command("gate", tmp_path / "changes", rule, "--on", "high")[0] == code, rule


@pytest.mark.parametrize("bound", ["low", "high"])
def test_a_comparison_in_which_nothing_differs_keeps_its_limits(command, tmp_path, bound):
    """Equal resamples give no bound: the value is checked, and the sentence says so."""
    row = Measurement("error", "error", system="s", group="female", value=0.0, se_data=0.0)
    Results((row,)).save(tmp_path / "audit")
    assert command("compare", tmp_path / "audit", tmp_path / "audit", "--out", tmp_path / "changes")[0] == 0
    code, out, _ = command("gate", tmp_path / "changes", "error:error@group=female <= 0.01", "--on", bound)
    assert code == 0
    assert "Note: nothing differs" in out


def test_the_gates_of_the_readme_run(command, tmp_path, monkeypatch):
    """The lines of the README in their order: oscar is good enough, but worse for women than before."""
    page = (ROOT / "README.md").read_text()
    lines = re.findall(r"^portrayal ((?:gate|compare) .*)$", page, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["compare", "gate", "compare", "gate"]
    for folder, wrong in (("audit", 0), ("audit-old", 0), ("audit-new", 40)):
        rows = [
            (str(number), "female", "a man with a dog" if number < wrong else "a woman with a dog")
            for number in range(200)
        ]
        rows += [(str(number), "male", "a man with a dog") for number in range(200, 220)]
        audits = [error(small_study(rows, system=system), bootstrap=50) for system in ("sat", "oscar")]
        joined = Results.join(audits, audits[0].provenance)
        joined.save(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    assert [command(*shlex.split(line))[0] for line in lines] == [0, 0, 0, 1]


def test_the_file_of_rules_in_the_docs_is_read(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "gate.md").read_text(), re.DOTALL)
    (tmp_path / "rules.toml").write_text(text)
    first, second, third = read_rules(tmp_path / "rules.toml")
    assert (first.on, second.on, third.allow_undefined) == ("high", None, True)
    assert (second.metric, second.term, second.where) == (
        "lic",
        "lic",
        (("split", "crossfit"), ("group", "all")),
    )
