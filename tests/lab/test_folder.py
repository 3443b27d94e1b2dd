"""A study of the lab on disk: the recipe reproduces it, and the manifest lists groups and concepts."""

from __future__ import annotations

import csv
import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import portrayal
from portrayal.errors import PortrayalError
from portrayal.lab import Captioner, World, make_study
from portrayal.lab.folder import LabRecipe, read_recipe, write_lab
from portrayal.lab.images import draw


def digest(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_make_writes_a_study_that_can_be_read_and_reproduced(command, tmp_path):
    out = tmp_path / "study"
    code, stdout, _ = command("lab", "make", "--out", out, "--scenes", 30, "--seed", 5, "--images")
    assert code == 0
    assert "faithful, stereotyping, cautious and five people" in " ".join(stdout.split())
    study = portrayal.read_study(out)
    assert all(image_id in study.image_files for image_id in study.image_ids)
    assert study.people.height >= 30
    assert {"x", "y", "width", "height", "gender"} <= set(study.people.columns)
    scenes = read_recipe(out).make_scenes()
    assert [scene.identifier for scene in scenes] == study.attributes["image_id"].to_list()
    assert [scene.person["gender"] for scene in scenes] == study.attributes["gender"].to_list()
    with Image.open(study.image_files["scene-00003"]) as image_file:
        assert image_file.size == (96, 96)


def test_the_manifest_is_what_counterbias_takes(tmp_path):
    write_lab(LabRecipe(scenes=60, image_size=48), tmp_path / "study")
    with (tmp_path / "study" / "manifest.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"image", "group", "concept", "kind"}
    assert {row["kind"] for row in rows} == {"activity", "occupation"}
    assert {row["group"] for row in rows} == {"female", "male"}
    assert all((tmp_path / "study" / row["image"]).is_file() for row in rows)
    scenes = {scene.identifier: scene for scene in LabRecipe(scenes=60).make_scenes()}
    eligible = [scene for scene in scenes.values() if scene.people == 1 and not scene.androgynous]
    assert [row["image"] for row in rows if row["kind"] == "activity"] == [
        f"images/{scene.identifier}.png" for scene in eligible
    ]


def test_counterfactual_images_differ_only_in_the_person(tmp_path):
    out = tmp_path / "study"
    write_lab(LabRecipe(scenes=20, image_size=48, counterfactuals=True), out)
    with (out / "manifest.csv").open() as file:
        rows = list(csv.DictReader(file))
    scenes = {scene.identifier: scene for scene in LabRecipe(scenes=20).make_scenes()}
    for row in rows:
        scene = scenes[Path(row["image"]).stem]
        counterfactual_scene = scene.with_person(gender="male" if row["group"] == "female" else "female")
        with Image.open(out / row["counterfactual"]) as image:
            assert image.tobytes() == draw(counterfactual_scene, 48).tobytes()
    image_paths = portrayal.read_study(out).image_files.values()
    assert {path.parent.name for path in image_paths} == {"images"}
    write_lab(LabRecipe(scenes=20, image_size=48), out)
    assert not (out / "counterfactuals").exists()
    with pytest.raises(PortrayalError, match="Counterfactual images require images"):
        write_lab(LabRecipe(scenes=20, counterfactuals=True), out)


def test_the_same_seed_writes_the_same_bytes_in_another_process(tmp_path):
    arguments = [
        "lab",
        "make",
        "--scenes",
        "25",
        "--images",
        "--wrong-group",
        "female=0.2",
        "--data-bias",
        "1",
    ]
    for name in ("one", "two"):
        subprocess.run(
            [sys.executable, "-m", "portrayal", *arguments, "--out", str(tmp_path / name)],
            check=True,
            capture_output=True,
        )
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    assert len(digest(tmp_path / "one")) == 25 + 10


def test_dials_on_the_command_line_reach_the_captioner(command, tmp_path):
    out = tmp_path / "study"
    dials = (
        "--amplification",
        0.5,
        "--erasure",
        "female=0.3, male=0.1",
        "--neutral",
        0,
        "--shares",
        "female=0.3",
    )
    assert command("lab", "make", "--out", out, "--scenes", 20, *dials)[0] == 0
    recipe = read_recipe(out)
    expected = Captioner("captioner", amplification=0.5, erasure={"female": 0.3, "male": 0.1}, neutral=0)
    assert recipe.captioners == (expected,)
    assert recipe.world == World(shares={"female": 0.3})
    assert portrayal.read_study(out).systems == ("captioner",)


@pytest.mark.parametrize(
    ("dial", "value", "message"),
    [
        ("--wrong-group", "femal=0.1", "Did you mean 'female'"),
        ("--wrong-group", "2", "goes from 0 to 1"),
        ("--wrong-group", "a lot", "expected N|GROUP=N"),
        ("--wrong-group", "female=0.1=3", "expected N|GROUP=N"),
        ("--wrong-group", "female=0.1,female=0.3", "expected N|GROUP=N"),
        ("--size", "64", "add --images"),
        ("--data-bias", "female=0.1", "expected N"),
        ("--shares", "0.5", "expected GROUP=N"),
        ("--scenes", "0", "x>=1"),
    ],
)
def test_a_bad_dial_gives_an_error_message(command, tmp_path, dial, value, message):
    code, _, stderr = command("lab", "make", "--out", tmp_path / "study", dial, value)
    assert code == 2
    assert message in " ".join(stderr.split())
    assert not (tmp_path / "study").exists()


def test_only_some_activities_have_images(command, tmp_path):
    out = tmp_path / "study"
    code, _, stderr = command("lab", "make", "--out", out, "--activities", "all", "--images")
    assert code == 2
    assert "Only some activities have images" in stderr
    assert command("lab", "make", "--out", out, "--activities", "all", "--scenes", 10)[0] == 0


def test_a_new_study_removes_the_images_of_the_old_study_and_nothing_else(tmp_path):
    out = tmp_path / "study"
    write_lab(LabRecipe(scenes=12, image_size=32), out)
    (out / "notes.txt").write_text("mine")
    (out / "images" / "scene-mine.png").write_text("mine")
    write_lab(LabRecipe(scenes=5, image_size=32), out)
    assert len(list((out / "images").iterdir())) == 6
    write_lab(LabRecipe(scenes=5), out)
    assert not (out / "manifest.csv").exists()
    assert not (out / "people.csv").exists()
    assert portrayal.read_study(out).image_files == {}
    assert (out / "notes.txt").read_text() == (out / "images" / "scene-mine.png").read_text() == "mine"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_nothing_that_the_lab_did_not_make_is_overwritten(tmp_path):
    out = tmp_path / "study"
    write_lab(LabRecipe(scenes=5), out)
    (out / "people.csv").write_text("mine")
    before = digest(out)
    with pytest.raises(PortrayalError, match=r"people\.csv was not written by the lab"):
        write_lab(LabRecipe(scenes=5, seed=1, image_size=32), out)
    assert digest(out) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(PortrayalError, match="holds files but no"):
        write_lab(LabRecipe(scenes=5), other)
    portrayal.study.write_study(make_study(scenes=3), tmp_path / "real")
    with pytest.raises(PortrayalError, match="a study that the lab did not make"):
        write_lab(LabRecipe(scenes=5), tmp_path / "real")


def test_an_interrupted_make_leaves_the_old_study_whole(tmp_path, monkeypatch):
    out = tmp_path / "study"
    write_lab(LabRecipe(scenes=8, image_size=32), out)
    before = digest(out)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("portrayal.lab.folder.manifest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_lab(LabRecipe(scenes=30, seed=1, image_size=32), out)
    assert digest(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_a_broken_recipe_is_named(tmp_path):
    with pytest.raises(PortrayalError, match="is not a study of the lab"):
        read_recipe(tmp_path)
    write_lab(LabRecipe(scenes=3), tmp_path / "s")
    path = tmp_path / "s" / "lab.json"
    good = json.loads(path.read_text())
    for bad in ("{", "[]", json.dumps(good | {"schema": "x"}), json.dumps(good | {"height": 3})):
        path.write_text(bad)
        with pytest.raises(PortrayalError, match=r"lab\.json"):
            read_recipe(tmp_path / "s")


def test_a_sheet_is_an_image(command, tmp_path):
    out = tmp_path / "some" / "sheet.png"
    assert command("lab", "sheet", "--out", out, "--size", 40)[0] == 0
    with Image.open(out) as image:
        assert image.format == "PNG"
    code, _, stderr = command("lab", "sheet", "--out", tmp_path / "sheet.jpg")
    assert code == 2
    assert "ending in .png" in stderr


def test_a_memory_error_gives_an_error_message(command, tmp_path, monkeypatch):
    def raise_memory_error(*_):
        raise MemoryError

    monkeypatch.setattr("portrayal.lab.folder.make_scenes", raise_memory_error)
    code, _, stderr = command("lab", "make", "--out", tmp_path / "study")
    assert code == 2
    assert "Out of memory" in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_background_process_can_be_terminated(tmp_path):
    """A shell's background jobs ignore SIGINT; SIGTERM must still end them."""
    arguments = ["lab", "curves", "--metrics", "error", "--out", str(tmp_path / "curves"), "--workers", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "portrayal", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        assert "[0/" in process.stderr.readline()
        process.terminate()
        assert process.wait(timeout=60) == 130
