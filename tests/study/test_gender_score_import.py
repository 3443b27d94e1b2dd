"""Import of the Gender Score authors' files with aligned lines."""

from __future__ import annotations

import json

import pytest

from portrayal.study import read_study

LINES = {
    "caption.txt": "a dog in a basket\na man on a bike\n",
    "visual-context_label.txt": "poodle cart\nbicycle\n",
    "visual-context.txt": "0.14\n0.3\n",
    "image_id.txt": "COCO_val2014_000000000042.jpg\t42\nCOCO_val2014_000000000359.jpg\t359\n",
    "LM.txt": "0.1\n0.2\n",
}


@pytest.fixture
def folder(tmp_path):
    system_folder = tmp_path / "captioner"
    system_folder.mkdir()
    for name, text in LINES.items():
        (system_folder / name).write_text(text)
    return system_folder


def test_lines_become_captions_and_objects(folder, tmp_path, command):
    code, _, err = command("import", "gender-score", folder, "--out", tmp_path / "out")
    assert code == 0, err
    study = read_study(tmp_path / "out")
    assert study.captions.rows() == [
        ("42", "captioner", 0, "a dog in a basket"),
        ("359", "captioner", 0, "a man on a bike"),
    ]
    assert study.objects.select("image_id", "label", "source", "confidence").rows() == [
        ("42", "poodle cart", "visual context", 0.14),
        ("359", "bicycle", "visual context", 0.3),
    ]


def test_other_systems_and_people_of_the_same_images(folder, tmp_path, command):
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{"image_id": 42, "caption": "a puppy"}]))
    human_captions = tmp_path / "people.jsonl"
    human_captions.write_text(
        '{"image_id": 42, "captions": ["one", "two"]}\n{"image_id": 7, "captions": ["three"]}\n'
    )
    code, stdout, err = command(
        "import",
        "gender-score",
        f"mine={folder}",
        f"theirs={other}",
        "--references",
        human_captions,
        "--out",
        tmp_path / "o",
    )
    assert code == 0, err
    study = read_study(tmp_path / "o")
    assert study.systems == ("mine", "theirs")
    assert study.references.height == 2
    assert "1 images have no caption" in stdout + err


def test_a_single_caption_with_several_objects(tmp_path, command):
    (tmp_path / "sentence.txt").write_text("blood makes you related")
    (tmp_path / "bias_context.txt").write_text("loyalty\nblood\n")
    (tmp_path / "bias_context_prob.txt").write_text("0.5\n0.6\n")
    assert command("import", "gender-score", tmp_path, "--out", tmp_path / "out")[0] == 0
    study = read_study(tmp_path / "out")
    assert study.captions.height == 1
    assert study.objects["label"].to_list() == ["loyalty", "blood"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "visual-context.txt",
            "0.1\n",
            "context.txt: expected 2 lines, as in visual-context_label.txt, found 1.",
        ),
        (
            "visual-context_label.txt",
            "a\nb\nc\n",
            "visual-context_label.txt: expected 2 lines, as in caption.txt",
        ),
        (
            "visual-context.txt",
            "0.1\n1.5\n",
            "context.txt, line 2: expected a confidence from 0 to 1, found '1.5'",
        ),
        ("visual-context.txt", "0.1\nnan\n", "line 2: expected a confidence from 0 to 1"),
        ("image_id.txt", "42\n\t\n", "image_id.txt: expected 2 lines"),
        ("image_id.txt", " \t1\n42\n", "image_id.txt, line 1: expected an image id"),
        ("caption.txt", None, "expected one file of captions (such as caption.txt), found none."),
    ],
)
def test_bad_files_are_named(folder, tmp_path, command, name, text, message):
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    code, _, err = command("import", "gender-score", folder, "--out", tmp_path / "out")
    assert code == 2
    assert message in err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_bad_lines_can_be_left_out(folder, tmp_path, command):
    (folder / "visual-context.txt").write_text("0.1\nx\n")
    assert command("import", "gender-score", folder, "--skip-bad", "--out", tmp_path / "out")[0] == 0
    assert read_study(tmp_path / "out").objects.height == 1


def test_a_folder_is_needed(folder, tmp_path, command):
    code, _, err = command("import", "gender-score", folder / "caption.txt", "--out", tmp_path / "out")
    assert code == 2
    assert "Name a folder" in err


def test_the_published_data(shared, tmp_path, command):
    source = shared / "gender_score" / "karpathy_test"
    assert command("import", "gender-score", source, "--out", tmp_path / "out")[0] == 0
    study = read_study(tmp_path / "out")
    assert (study.captions.height, study.objects.height) == (5000, 5000)
    assert (study.objects["confidence"] < 0.2).sum() == 1046  # brought objects are taken as they are
    first = study.objects.row(0, named=True)
    assert (first["image_id"], first["label"]) == ("42", "standard poodle shopping cart footwear")


def test_an_image_without_detected_objects(folder, tmp_path, command):
    (folder / "visual-context_label.txt").write_text("poodle\n\n")
    (folder / "visual-context.txt").write_text("0.14\n\n")
    assert command("import", "gender-score", folder, "--out", tmp_path / "out")[0] == 0
    study = read_study(tmp_path / "out")
    assert (study.captions.height, study.objects["image_id"].to_list()) == (2, ["42"])
