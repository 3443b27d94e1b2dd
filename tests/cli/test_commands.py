"""The commands as a newcomer types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources

import jsonschema
import polars as pl
import pytest

import portrayal
from portrayal.cli.main import COMMANDS
from portrayal.lab import make_study
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.metrics import METRICS
from portrayal.report import to_csv, to_markdown
from portrayal.report.findings.findings import conclusions
from portrayal.results import Results
from portrayal.study import write_study


@pytest.fixture(scope="module")
def printed_demo(tmp_path_factory):
    """The folder of the demo, made once by the command that a newcomer types, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    process = subprocess.run(
        [sys.executable, "-m", "portrayal", "demo"], cwd=folder, capture_output=True, text=True, check=True
    )
    return folder / "portrayal-demo", process.stdout


@pytest.fixture(scope="module")
def demo(printed_demo):
    return printed_demo[0]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A study for tests in which numbers do not matter."""
    folder = tmp_path_factory.mktemp("small") / "study"
    write_lab(LabRecipe(scenes=100, seed=2), folder)
    return folder


def test_demo_writes_everything_and_says_where_the_page_is(printed_demo):
    folder, printed = printed_demo
    assert "portrayal-demo/index.html" in printed
    names = {path.name for path in folder.iterdir()}
    files = {"index.html", "results.json", "evidence.parquet", "replicates.parquet", "thumbnails.parquet"}
    assert names == {*files, "study"}


def test_demo_shows_what_was_planted(demo):
    """The captioner that was made to misname women does so in the results, and more often than men."""
    wrong_shares = {
        (m.system, m.group): m.value
        for m in Results.load(demo).measurements
        if m.term == "wrong" and m.attribute == "gender"
    }
    assert wrong_shares["stereotyping", "female"] > 2 * wrong_shares["stereotyping", "male"]
    assert wrong_shares["faithful", "female"] < 0.04
    assert wrong_shares["human", None] < 0.04  # annotators err too, as planted


def test_audit_follows_the_schema(demo):
    schema = json.loads((resources.files("portrayal") / "results.schema.json").read_text())
    jsonschema.validate(json.loads((demo / "results.json").read_text()), schema)


def test_audit_can_be_limited_to_systems_and_metrics(command, demo, tmp_path):
    code, out, err = command(
        "audit", demo / "study", "--out", tmp_path / "a", "--systems", "faithful", "--metrics", "error"
    )
    assert code == 0
    assert "[6/6] error · " in err
    assert {m.system for m in Results.load(tmp_path / "a").measurements} == {"faithful", "human"}
    expected = conclusions(Results.load(tmp_path / "a"))
    text = " ".join(out.split())
    assert f"(Holm, 5 %, {expected.n_comparisons} comparisons)" in text
    assert all(finding.text in text for finding in expected.findings)
    assert ("No finding (" in text) == (not expected.findings)


@pytest.mark.parametrize(
    "metric", [name for name, metric in METRICS.items() if "model" not in metric.card.needs]
)
def test_score_prints_a_table_and_writes_a_file_of_every_metric(metric, command, small, tmp_path):
    code, out, _ = command("score", metric, small, "--attribute", "gender", "--json", tmp_path / "r.json")
    assert code == 0
    assert f"{metric} by gender" in out
    results = Results.load(tmp_path / "r.json")
    assert to_csv(results).startswith("metric,term,system,attribute,group,item,value")
    assert to_markdown(results).startswith(f"### {metric} · gender")


def test_score_in_every_format(command, small, tmp_path):
    base = ("score", "error", small, "--attribute", "gender")
    code, out, _ = command(*base, "--format", "json", "--json", tmp_path / "r.json")
    assert code == 0
    assert json.loads(out)["measurements"] == json.loads((tmp_path / "r.json").read_text())["measurements"]
    results = Results.load(tmp_path / "r.json")
    for style, text in (("csv", to_csv(results)), ("md", to_markdown(results))):
        code, out, _ = command(*base, "--format", style)
        assert code == 0
        assert out == text


def test_score_gives_the_evidence_when_the_results_are_a_file(command, small, tmp_path):
    command("score", "error", small, "--attribute", "gender", "--json", tmp_path / "r.json")
    saved = Results.load(tmp_path / "r.json")
    assert (
        saved.measurements
        == portrayal.metrics.error(portrayal.read_study(small), attribute="gender").measurements
    )


def test_score_without_an_attribute_measures_all_attributes(command, small):
    code, out, _ = command("score", "error", small, "--format", "json")
    assert code == 0
    assert {m["attribute"] for m in json.loads(out)["measurements"]} == {"gender", "age", "skin"}


def test_narrow_terminals_keep_every_number(command, demo, monkeypatch):
    monkeypatch.setenv("COLUMNS", "38")
    code, out, _ = command("score", "error", demo / "study", "--attribute", "gender", "--systems", "faithful")
    assert code == 0
    table = [line for line in out.splitlines() if not line.startswith("Caution")]  # terminals fold sentences
    assert max(map(len, table)) <= 38
    assert out.count("0.") > 20


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_table_folds_numbers_before_names_and_loses_nothing(capsys, monkeypatch, width):
    from portrayal.cli.console import print_table

    monkeypatch.setenv("COLUMNS", str(width))
    rows = [[name, *["36.3 [34.2, 38.6]"] * 6] for name in ("vanilla", "gender-swap")]
    print_table(["method", *[f"b@v, {n}" for n in range(6)]], rows)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("gender-swap" in line for line in lines) == 1
    assert "".join(lines).count("6") == 6 * 2 * 2


@pytest.mark.parametrize("cell", ["my\tmodel", "モデル" * 7, "x" * 30])
@pytest.mark.parametrize("header", ["system", "on scenes it has not seen"])
@pytest.mark.parametrize("width", [30, 60, 100])
def test_odd_first_cells_leave_the_table_complete(capsys, monkeypatch, cell, header, width):
    from portrayal.cli.console import print_table

    monkeypatch.setenv("COLUMNS", str(width))
    print_table([header, "share", "distance"], [[cell, "0.4725", "12.25"]])
    stdout = "".join(capsys.readouterr().out.split())
    for letter in "".join(cell.split()) + header.replace(" ", "") + "sharedistance0.472512.25":
        assert letter in stdout
        stdout = stdout.replace(letter, "", 1)


def test_report_writes_the_page_again(command, demo, tmp_path):
    code, out, _ = command("report", demo, "--out", tmp_path)
    assert code == 0
    assert "index.html" in out
    assert (tmp_path / "index.html").read_text() == (demo / "index.html").read_text()
    assert pl.read_parquet(tmp_path / "evidence.parquet").equals(pl.read_parquet(demo / "evidence.parquet"))
    assert (tmp_path / "results.csv").exists()


def test_check_study_lists_the_tables_and_the_metrics(command, demo):
    code, out, _ = command("check-study", demo / "study")
    assert code == 0
    assert "1,500 images" in out
    assert "Nothing is wrong with it." in out
    for metric in METRICS:
        assert metric in out


def test_check_study_lists_cautions(command, tmp_path):
    (tmp_path / "c.csv").write_text("image_id,caption\n1,a man\n2,a woman\n3,a dog\n")
    (tmp_path / "a.csv").write_text("image_id,gender\n1,male\n2,male\n")
    (tmp_path / "r.csv").write_text("image_id,caption\n1,a man\n")
    toml = 'captions = "c.csv"\nattributes = "a.csv"\nreferences = "r.csv"\n'
    (tmp_path / "study.toml").write_text(toml)
    code, out, _ = command("check-study", tmp_path)
    assert code == 0
    assert "1 of 3 captioned images (33%) have no label for gender" in out
    assert "gender has one group only" in out
    assert "The group 'male' of gender has 2 captioned images, too few to rank" in out
    assert "2 of 3 captioned images (67%) have no reference" in out


def test_check_study_gives_the_reason_for_a_skipped_metric(command, tmp_path):
    (tmp_path / "c.csv").write_text("image_id,caption\n1,a man\n")
    (tmp_path / "study.toml").write_text('captions = "c.csv"\n')
    _, out, _ = command("check-study", tmp_path)
    assert "the study has no labels of the people shown (attributes)" in " ".join(out.split())


@pytest.mark.parametrize("kind", ["metrics", "lexicons", "importers"])
def test_lists(kind, command):
    code, out, _ = command("list", kind)
    assert code == 0
    assert {"metrics": "error", "lexicons": "gender-broad", "importers": "lic"}[kind] in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, command):
    code, out, _ = command(name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: portrayal {name}")


def test_wrong_usage_is_code_2(command, tmp_path):
    for arguments in (
        ["nonsense"],
        ["score", "eror", "x"],
        ["audit", tmp_path / "nowhere", "--out", tmp_path / "o"],
        ["audit"],
        ["import", "zip", "x", "--out", "y"],
        ["report", tmp_path / "nothing.json", "--out", tmp_path / "o"],
        ["audit", tmp_path, "--out", tmp_path / "o", "--systems", ","],
        ["demo", "--out", __file__ + "/sub"],
    ):
        code, _, err = command(*arguments)
        assert code == 2, arguments
        assert err.strip()
        assert "Traceback" not in err


def test_a_worker_reports_the_same_error_message(command, tmp_path):
    write_study(make_study(scenes=30), tmp_path / "study")
    lexicon = tmp_path / "broken.toml"
    lexicon.write_text('name = "x"\n[groups]\na = []\n')
    sentence = f"error: {lexicon}: expected group 'a' as a list of words, found []."
    for workers in (1, 2):
        arguments = ("score", "lic", tmp_path / "study", "--lexicon", lexicon, "--workers", workers)
        code, out, err = command(*arguments)
        assert code == 2
        assert out == ""
        # Only with several workers is progress reported, in separate lines.
        assert [line for line in err.splitlines() if not line.startswith("[")] == [sentence]


def test_a_misspelt_command_brings_a_suggestion(command):
    _, _, err = command("audti")
    assert "Unknown command 'audti'. Did you mean 'audit'?" in err


def test_an_ascii_terminal(demo):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    arguments = [sys.executable, "-m", "portrayal", "score", "error", str(demo / "study")]
    process = subprocess.run(arguments, capture_output=True, env=environment)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr


def test_names_from_others_cannot_steer_the_terminal(command, tmp_path):
    (tmp_path / "c.csv").write_text("image_id,system,caption\n1,\x1b[31mred[bold]x[/bold],a man\n")
    (tmp_path / "study.toml").write_text('captions = "c.csv"\n')
    code, out, _ = command("check-study", tmp_path)
    assert code == 0
    assert "\x1b" not in out
    assert "[bold]x[/bold]" in out


def test_the_installed_command_and_the_module_are_the_same():
    process = subprocess.run(
        [sys.executable, "-m", "portrayal", "--version"], capture_output=True, text=True, check=True
    )
    assert process.stdout == f"portrayal, version {portrayal.__version__}\n"


def test_help_is_quick_to_load():
    """--help must not load the frames, and with them every metric."""
    code = "import sys; from portrayal.cli.main import run; run(['--help']); print({'polars'} & set(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip().endswith("set()")
