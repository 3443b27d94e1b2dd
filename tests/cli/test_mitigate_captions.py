"""`portrayal mitigate captions`, as somebody would run it who has captions and nothing else."""

from __future__ import annotations

import csv
import json

import pytest

from portrayal.cli.main import run
from portrayal.results import Results

QUICK = ("--bootstrap", 30, "--permutations", 0, "--workers", 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigation") / "study"
    assert run(["lab", "make", "--scenes", "120", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def mitigated(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigation") / "out"
    assert run(["mitigate", "captions", str(study), "--out", str(out), *map(str, QUICK)]) == 0
    return out


def test_the_command_prints_and_writes_the_comparison(study, tmp_path, command):
    out = tmp_path / "out"
    code, stdout, _ = command(
        "mitigate", "captions", study, "--systems", "stereotyping", "--out", out, *QUICK
    )
    assert code == 0
    assert "Evidence of a group: 0.5 or more of an image's references that name people name it." in stdout
    assert "captions changed" in stdout
    assert "objects apart" in stdout
    assert "stereotyping, before and after" in stdout
    for number in ("lic_m", "right", "wrong", "neutral", "both", "not mentioned", "cider"):
        assert f"\n{number} " in stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "captions", "evidence.parquet", "images", "index.html", "replicates.parquet", "results.json",
    ]  # fmt: skip


def test_the_mitigated_captions_are_written(mitigated, study, command, tmp_path):
    names = sorted(path.name for path in (mitigated / "captions").iterdir())
    assert "faithful (neutral everywhere).jsonl" in names
    rows = [json.loads(line) for line in (mitigated / "captions" / names[0]).read_text().splitlines()]
    assert len(rows) == 120
    assert rows[0].keys() == {"image_id", "system", "sample", "caption"}
    with (mitigated / "images" / "balanced.csv").open() as file:
        balanced_rows = list(csv.DictReader(file))
    groups = [row["group"] for row in balanced_rows]
    assert groups.count("female") == groups.count("male") > 40
    assert len({row["image_id"] for row in balanced_rows}) == len(balanced_rows)
    # another user can take the captions
    code, stdout, _ = command(
        "import", "table", mitigated / "captions" / names[0], "--out", tmp_path / "again"
    )
    assert code == 0
    assert "120 images" in stdout


def test_compare_gate_and_report_read_the_results(mitigated, command, tmp_path):
    mitigated_name = "faithful (neutral everywhere)"
    code, stdout, _ = command(
        "compare", f"{mitigated}@system=faithful", f"{mitigated}@system={mitigated_name}"
    )
    assert code == 0
    assert "quality · gender · faithful → faithful (neutral everywhere)" in stdout
    rule = f'error:neutral@system="{mitigated_name}",group=all == 1'
    assert command("gate", mitigated, rule)[0] == 0
    cost_rule = f"caption-mitigation:change@system={mitigated_name},item=error: right,group=all >= -0.1"
    assert command("gate", mitigated, cost_rule)[0] == 1
    assert command("report", mitigated, "--out", tmp_path)[0] == 0
    page = (mitigated / "index.html").read_text()
    assert "Effect of caption mitigation" in page
    assert mitigated_name in page


def test_without_a_folder_it_only_prints(study, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = (
        "--method",
        "neutral",
        "--where",
        "everywhere",
        "--metrics",
        "error",
        "--systems",
        "cautious",
    )
    code, stdout, _ = command("mitigate", "captions", study, *arguments, *QUICK)
    assert code == 0
    assert "Written" not in stdout
    assert not list(tmp_path.iterdir())


def test_markup_in_captions_stays_text(tmp_path, command):
    caption = "<script>alert(1)</script> a man [bold]"
    rows = [{"image_id": str(n), "caption": caption, "system": "<b>s</b>/.."} for n in range(40)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.csv").write_text(
        "image_id,gender\n" + "".join(f"{n},{'fe' * (n % 2)}male\n" for n in range(40))
    )
    arguments = (
        "import",
        "table",
        tmp_path / "c.jsonl",
        "--attributes",
        tmp_path / "a.csv",
        "--out",
        tmp_path / "study",
    )
    assert command(*arguments)[0] == 0
    out = tmp_path / "out"
    code, stdout, _ = command(
        "mitigate",
        "captions",
        tmp_path / "study",
        "--where",
        "everywhere",
        "--metrics",
        "error",
        "--out",
        out,
        *QUICK,
    )
    assert code == 0
    assert "<b>s</b>/.." in stdout
    (caption_file,) = (out / "captions").iterdir()
    assert (
        json.loads(caption_file.read_text().splitlines()[0])["caption"]
        == "<script>alert(1)</script> a person [bold]"
    )
    assert "<script>alert(1)" not in (out / "index.html").read_text()
    assert Results.load(out).measurements


@pytest.mark.parametrize(
    ("bad_arguments", "message"),
    [
        (["--min-share", "0"], "'min_share' must be above 0 and at most 1"),
        (["--method", "prayer"], "prayer"),
        (["--metrics", "magic"], "Unknown metric 'magic'"),
        (["--systems", "nobody"], "Unknown system 'nobody'"),
        (["--lexicon", "person"], "names no group"),
        (["--lexicon", "nothing"], "Unknown lexicon 'nothing'"),
        (["--attribute", "hair"], "No shipped lexicon names the groups of 'hair'"),
        (["--split", "paper", "--seeds", "x"], "expected whole numbers"),
    ],
)
def test_bad_usage_gives_an_error_message_and_exit_code_2(study, tmp_path, command, bad_arguments, message):
    code, _, err = command("mitigate", "captions", study, "--out", tmp_path / "out", *QUICK, *bad_arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_and_an_unknown_method(study, tmp_path, command):
    (tmp_path / "thesis.txt").write_text("mine")
    code, _, err = command("mitigate", "captions", study, "--out", tmp_path, *QUICK)
    assert code == 2
    assert "choose a new folder" in err
    code, _, err = command("mitigate", "caption", study)
    assert code == 2
    assert "Did you mean 'captions'?" in err
    code, _, err = command("mitigate", "captions", tmp_path / "none")
    assert code == 2
    assert "There is no study" in err
