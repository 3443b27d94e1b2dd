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
    out = tmp_path_factory.mktemp("remedies") / "study"
    assert run(["lab", "make", "--scenes", "120", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def mitigated(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("remedies") / "out"
    assert run(["mitigate", "captions", str(study), "--out", str(out), *map(str, QUICK)]) == 0
    return out


def test_the_one_command(study, tmp_path, command):
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


def test_what_is_written(mitigated, study, command, tmp_path):
    written = sorted(path.name for path in (mitigated / "captions").iterdir())
    assert "faithful (neutral everywhere).jsonl" in written
    rows = [json.loads(line) for line in (mitigated / "captions" / written[0]).read_text().splitlines()]
    assert len(rows) == 120
    assert rows[0].keys() == {"image_id", "system", "sample", "caption"}
    with (mitigated / "images" / "balanced.csv").open() as file:
        kept = list(csv.DictReader(file))
    groups = [row["group"] for row in kept]
    assert groups.count("female") == groups.count("male") > 40
    assert len({row["image_id"] for row in kept}) == len(kept)
    # another user can take the captions
    code, stdout, _ = command(
        "import", "table", mitigated / "captions" / written[0], "--out", tmp_path / "again"
    )
    assert code == 0
    assert "120 images" in stdout


def test_all_that_reads_results_reads_these(mitigated, command, tmp_path):
    after = "faithful (neutral everywhere)"
    code, stdout, _ = command("compare", f"{mitigated}@system=faithful", f"{mitigated}@system={after}")
    assert code == 0
    assert "quality · gender · faithful → faithful (neutral everywhere)" in stdout
    rule = f'error:neutral@system="{after}",group=all == 1'
    assert command("gate", mitigated, rule)[0] == 0
    cost = f"remedy:change@system={after},item=error: right,group=all >= -0.1"
    assert command("gate", mitigated, cost)[0] == 1
    assert command("report", mitigated, "--out", tmp_path)[0] == 0
    page = (mitigated / "index.html").read_text()
    assert "Effect of caption mitigation" in page
    assert after in page


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
    stdout = "<script>alert(1)</script> a man [bold]"
    rows = [{"image_id": str(n), "caption": stdout, "system": "<b>s</b>/.."} for n in range(40)]
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
    (path,) = (out / "captions").iterdir()
    assert (
        json.loads(path.read_text().splitlines()[0])["caption"] == "<script>alert(1)</script> a person [bold]"
    )
    assert "<script>alert(1)" not in (out / "index.html").read_text()
    assert Results.load(out).measurements


@pytest.mark.parametrize(
    ("wrong", "says"),
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
def test_bad_usage_is_a_sentence_and_2(study, tmp_path, command, wrong, says):
    code, _, err = command("mitigate", "captions", study, "--out", tmp_path / "out", *QUICK, *wrong)
    assert code == 2
    assert says in " ".join(err.split())
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
