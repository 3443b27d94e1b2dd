"""portrayal vl-bias, as a newcomer types it."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from portrayal.study import Study, write_study

CAPTIONS = [
    ("1", "a man is cooking"),
    ("2", "a woman cooks eggs"),
    ("3", "a woman with a cooking pot"),
    ("4", "a dog"),
]


@pytest.fixture
def study(tmp_path):
    references = pl.DataFrame(CAPTIONS, schema=["image_id", "caption"], orient="row")
    write_study(Study.from_frames(references=references), tmp_path / "study")
    return tmp_path / "study"


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_concepts_are_listed(command):
    code, out, _ = command("vl-bias", "concepts")
    assert code == 0
    assert "an engineer" in out
    assert "The {group} is [MASK]" in out


def test_mine_writes_the_candidates_of_the_captions(command, study, tmp_path):
    out = tmp_path / "found.csv"
    code, stdout, _ = command("vl-bias", "mine", study, "--out", out)
    assert code == 0
    assert "2 candidates, 2 images" in stdout
    assert rows(out) == [
        {
            "image": image, "group": group, "concept": "cooking", "kind": "activity", "saying": "1", "captions": "1",
            "caption": caption,
        }
        for image, group, caption in (("1", "male", "a man is cooking"), ("2", "female", "a woman cooks eggs"))
    ]  # fmt: skip


def test_mined_images_are_named_by_their_files(command, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for name in ("COCO_val2014_000000000001.jpg", "2.png"):
        (images / name).write_bytes(b"")
    references = pl.DataFrame([*CAPTIONS, ("5", "a man reads")], schema=["image_id", "caption"], orient="row")
    write_study(Study.from_frames(references=references, images=images), tmp_path / "study")
    code, _, err = command("vl-bias", "mine", tmp_path / "study", "--out", tmp_path / "found.csv")
    assert code == 0
    assert "1 images have no file" in err
    assert [row["image"] for row in rows(tmp_path / "found.csv")] == [
        "COCO_val2014_000000000001.jpg",
        "2.png",
        "5",
    ]
    code, out, err = command("vl-bias", "check", tmp_path / "found.csv", "--images", images, "--skip-bad")
    assert code == 0
    assert "2 rows." in out
    assert "1 bad row was left out" in err


def test_mine_refuses(command, study, tmp_path):
    code, _, err = command("vl-bias", "mine", study, "--out", tmp_path / "found.txt")
    assert (code, ".csv" in err) == (2, True)
    code, _, err = command("vl-bias", "mine", study, "--out", tmp_path / "found.csv", "--lexicon", "gander")
    assert (code, "Did you mean 'gender'?" in err) == (2, True)
    code, _, err = command("vl-bias", "mine", study, "--out", tmp_path / "found.csv", "--min-captions", 5)
    assert (code, "nothing is written" in err) == (2, True)
    assert not (tmp_path / "found.csv").exists()


def test_check_reports_invalid_rows_with_their_line(command, tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(
        "image,group,concept,kind\na.png,male,cooking,activity\nb.png,female,cooking,activity\n"
    )
    code, _, err = command("vl-bias", "check", manifest)
    assert code == 2
    assert "manifest.csv, line 3: expected an image for 'image', found no file 'b.png'." in err.replace(
        "\n", " "
    )
    code, out, err = command("vl-bias", "check", manifest, "--skip-bad")
    assert code == 0
    assert "no group to compare" in out
    assert "1 bad row was" in err


def test_pairs_make_a_manifest_that_passes(command, tmp_path):
    for name in ("black_man", "black_woman"):
        path = tmp_path / "status" / "bus" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    code, out, _ = command("vl-bias", "pairs", tmp_path, "--out", tmp_path / "pairs.csv")
    assert code == 0
    assert "2 images, each with its counterfactual" in out
    assert rows(tmp_path / "pairs.csv")[0] == {
        "image": "status/bus/black_man.png",
        "group": "male",
        "concept": "bus",
        "kind": "status",
        "counterfactual": "status/bus/black_woman.png",
    }
    code, out, _ = command("vl-bias", "check", tmp_path / "pairs.csv")
    assert code == 0
    assert "2 rows, 2 with their counterfactual." in out
    (tmp_path / "status" / "bus" / "black_woman.png").unlink()
    code, _, err = command("vl-bias", "pairs", tmp_path, "--out", tmp_path / "again.csv")
    assert (code, "expected one counterfactual black_woman, found none" in err) == (2, True)


@pytest.mark.parametrize("swap", ["man", "man=", "=man", "man=man", "a=b=c"])
def test_pairs_refuse_a_malformed_swap(command, tmp_path, swap):
    code, _, err = command("vl-bias", "pairs", tmp_path, "--out", tmp_path / "p.csv", "--swap", swap)
    assert code == 2
    assert "man=woman" in err
