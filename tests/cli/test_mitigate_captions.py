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
def done(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("remedies") / "out"
    assert run(["mitigate", "captions", str(study), "--out", str(out), *map(str, QUICK)]) == 0
    return out


def test_the_one_command(study, tmp_path, command):
    out = tmp_path / "out"
    code, said, _ = command("mitigate", "captions", study, "--systems", "stereotyping", "--out", out, *QUICK)
    assert code == 0
    assert "Evidence of a group: 0.5 or more of an image's references that name people name it." in said
    assert "captions changed" in said
    assert "objects apart" in said
    assert "stereotyping, before and after" in said
    for number in ("lic_m", "right", "wrong", "neutral", "both", "not mentioned", "cider"):
        assert f"\n{number} " in said
    assert sorted(path.name for path in out.iterdir()) == [
        "captions", "evidence.parquet", "images", "index.html", "replicates.parquet", "results.json",
    ]  # fmt: skip


def test_what_is_written(done, study, command, tmp_path):
    written = sorted(path.name for path in (done / "captions").iterdir())
    assert "faithful (neutral everywhere).jsonl" in written
    rows = [json.loads(line) for line in (done / "captions" / written[0]).read_text().splitlines()]
    assert len(rows) == 120
    assert rows[0].keys() == {"image_id", "system", "sample", "caption"}
    with (done / "images" / "balanced.csv").open() as file:
        kept = list(csv.DictReader(file))
    groups = [row["group"] for row in kept]
    assert groups.count("female") == groups.count("male") > 40
    assert len({row["image_id"] for row in kept}) == len(kept)
    # another user can take the captions
    code, said, _ = command("import", "table", done / "captions" / written[0], "--out", tmp_path / "again")
    assert code == 0
    assert "120 images" in said


def test_all_that_reads_results_reads_these(done, command, tmp_path):
    after = "faithful (neutral everywhere)"
    code, said, _ = command("compare", f"{done}@system=faithful", f"{done}@system={after}")
    assert code == 0
    assert "quality · gender · faithful → faithful (neutral everywhere)" in said
    rule = f'error:neutral@system="{after}",group=all == 1'
    assert command("gate", done, rule)[0] == 0
    cost = f"remedy:change@system={after},item=error: right,group=all >= -0.1"
    assert command("gate", done, cost)[0] == 1
    assert command("report", done, "--out", tmp_path)[0] == 0
    page = (done / "index.html").read_text()
    assert "What a remedy does to captions" in page
    assert after in page


def test_without_a_folder_it_only_prints(study, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("--method", "neutral", "--where", "everywhere", "--metrics", "error", "--systems", "cautious")
    code, said, _ = command("mitigate", "captions", study, *asked, *QUICK)
    assert code == 0
    assert "Written" not in said
    assert not list(tmp_path.iterdir())


def test_markup_in_captions_stays_text(tmp_path, command):
    said = "<script>alert(1)</script> a man [bold]"
    rows = [{"image_id": str(n), "caption": said, "system": "<b>s</b>/.."} for n in range(40)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.csv").write_text(
        "image_id,gender\n" + "".join(f"{n},{'fe' * (n % 2)}male\n" for n in range(40))
    )
    asked = (
        "import",
        "table",
        tmp_path / "c.jsonl",
        "--attributes",
        tmp_path / "a.csv",
        "--out",
        tmp_path / "study",
    )
    assert command(*asked)[0] == 0
    out = tmp_path / "out"
    code, said, _ = command(
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
    assert "<b>s</b>/.." in said
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


def test_a_folder_of_others_and_an_unknown_remedy(study, tmp_path, command):
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
