"""Ctrl-C reports how far a command got; no command replaces another study's files without --force."""

from __future__ import annotations

import errno
import itertools
import json
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

import portrayal
from portrayal.cli import caption as caption_command
from portrayal.cli.folders import OWNER_FILE, claim_folder
from portrayal.errors import PortrayalError
from portrayal.metrics import METRICS
from portrayal.study import Study, read_study, write_study

N = 12
IMAGES = [str(number) for number in range(N)]


def study(caption: str = "a man rides a bike", **tables) -> Study:
    captions = pl.DataFrame({"image_id": IMAGES, "system": ["s"] * N, "caption": [caption] * N})
    gender = pl.DataFrame({"image_id": IMAGES, "gender": ["male", "female"] * (N // 2)})
    return Study.from_frames(captions=captions, attributes=gender, **tables)


AUDIT = ("--quick", "--workers", 1, "--metrics", "error,cooccurrence")


@pytest.fixture
def studies(tmp_path):
    for name, caption in (("one", "a man rides a bike"), ("two", "a woman reads")):
        write_study(study(caption), tmp_path / name)
    return tmp_path


def file_contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interrupt(monkeypatch, name: str) -> None:
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(METRICS[name], "compute", stop)
    monkeypatch.setattr(METRICS[name], "unmet", lambda *_, **__: None)


def test_an_interrupted_audit_says_how_far_it_got_and_resumes(studies, command, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, "cooccurrence")
        code, _, err = command("audit", studies / "one", *AUDIT, "--out", studies / "out")
    assert code == 130
    assert err.strip().endswith(
        "Stopped. Progress is checkpointed (1 of 2 tasks done); run the same command again to resume."
    )
    code, _, err = command("audit", studies / "one", *AUDIT, "--out", studies / "out")
    assert code == 0
    assert "[1/2]" in err  # it resumes from the checkpoint
    with monkeypatch.context() as patch:
        interrupt(patch, "error")
        code, _, err = command("score", "error", studies / "one")
    assert (code, err.strip()) == (130, "error: Stopped.")


def test_interrupted_captioning_says_how_far_it_got(tmp_path, command, monkeypatch):
    (tmp_path / "images").mkdir()
    for number in range(10):
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / f"{number}.png")
    batch_sizes = []

    class Captioner:
        def caption_images(self, images):
            batch_sizes.append(len(images))
            if len(batch_sizes) > 1:
                raise KeyboardInterrupt
            return ["a man"] * len(images)

    monkeypatch.setattr(caption_command.ImageCaptioner, "load", lambda *_, **__: Captioner())
    call = ("caption", "--model", "any", "--images", tmp_path / "images", "--out", tmp_path / "c.csv")
    code, _, err = command(*call)
    assert code == 130
    assert "(8 of 10 images done); run the same command again to resume." in err


def test_an_audit_does_not_replace_the_audit_of_another_study(studies, command):
    out = studies / "out"
    assert command("audit", studies / "one", *AUDIT, "--out", out)[0] == 0
    assert command("report", out, "--out", out, "--export", "tables")[0] == 0
    (out / "notes.txt").write_text("mine")
    before = file_contents(out)
    code, _, err = command("audit", studies / "two", *AUDIT, "--out", out)
    assert code == 2
    assert "of another study" in err
    assert "--force" in err
    assert file_contents(out) == before
    assert command("audit", studies / "one", *AUDIT, "--out", out)[0] == 0  # the same study again
    assert command("audit", studies / "two", *AUDIT, "--out", out, "--force")[0] == 0
    after = file_contents(out)
    assert set(after) == {"index.html", "results.json", "evidence.parquet", "replicates.parquet", "notes.txt"}
    assert portrayal.Results.load(out).provenance["study"]["name"] == "study"
    assert after["results.json"] != before["results.json"]


def test_an_unfinished_audit_of_another_study_is_not_dropped(studies, command, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, "cooccurrence")
        command("audit", studies / "one", *AUDIT, "--out", studies / "out")
    before = file_contents(studies / "out")
    assert command("audit", studies / "two", *AUDIT, "--out", studies / "out")[0] == 2
    assert file_contents(studies / "out") == before
    assert command("audit", studies / "two", *AUDIT, "--out", studies / "out", "--force")[0] == 0
    assert not (studies / "out" / ".checkpoint").exists()


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000, "3", "{}", '{"kind": ""}'])
def test_a_checkpoint_whose_owner_cannot_be_read(text, tmp_path):
    (tmp_path / "checkpoint" / "entry").mkdir(parents=True)
    (tmp_path / "checkpoint" / OWNER_FILE).write_text(text)
    if text.startswith("{"):
        with pytest.raises(PortrayalError, match="holds results of another study"):
            claim_folder(tmp_path, {"kind": "audit"}, False, checkpoint=tmp_path / "checkpoint")
    else:
        assert claim_folder(tmp_path, {"kind": "audit"}, False, checkpoint=tmp_path / "checkpoint") == []


def test_an_audit_does_not_write_into_a_study_folder(studies, command):
    before = file_contents(studies / "one")
    code, _, err = command("audit", studies / "two", *AUDIT, "--out", studies / "one", "--force")
    assert code == 2
    assert "choose a new folder" in err
    assert file_contents(studies / "one") == before


def test_a_failed_audit_leaves_no_folder(studies, command):
    code, _, _ = command("audit", studies / "one", "--attribute", "age", "--out", studies / "out")
    assert code == 2
    assert not (studies / "out").exists()


def test_reports_and_comparisons_do_not_replace_an_audit(studies, command):
    for name in ("one", "two"):
        assert command("audit", studies / name, *AUDIT, "--out", studies / f"{name}-audit")[0] == 0
    first, second = studies / "one-audit", studies / "two-audit"
    before = file_contents(first)
    for call in (["report", second], ["compare", first, second]):
        code, _, err = command(*call, "--out", first)
        assert code == 2
        assert "--force" in err
        assert file_contents(first) == before
    assert command("compare", first, second, "--out", studies / "difference")[0] == 0
    assert command("compare", first, second, "--out", studies / "difference")[0] == 0
    assert command("compare", second, first, "--out", studies / "difference")[0] == 2
    assert command("report", second, "--out", first, "--force")[0] == 0
    assert json.loads((first / "results.json").read_text()) == json.loads(
        (second / "results.json").read_text()
    )


def test_import_and_lab_do_not_replace_a_study(tmp_path, command):
    rows = [{"image_id": image, "caption": "a man"} for image in IMAGES]
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    old = study(
        references=pl.DataFrame({"image_id": IMAGES, "caption": ["a man"] * N}), vocabularies={"s": ["a"]}
    )
    write_study(old, tmp_path / "study")
    (tmp_path / "study" / "notes.txt").write_text("mine")
    before = file_contents(tmp_path / "study")
    calls = (["import", "table", tmp_path / "new.jsonl"], ["lab", "make", "--scenes", 4])
    for call in calls:
        code, _, err = command(*call, "--out", tmp_path / "study")
        assert code == 2
        assert "holds a study" in err
        assert file_contents(tmp_path / "study") == before
    code, out, _ = command(*calls[0], "--out", tmp_path / "study", "--force")
    assert code == 0
    assert "1 system, 12 images, 12 captions" in out
    assert set(file_contents(tmp_path / "study")) == {"study.toml", "captions.parquet", "notes.txt"}
    assert not (tmp_path / "study" / "vocabularies").exists()
    assert command("lab", "make", "--scenes", 4, "--out", tmp_path / "lab")[0] == 0
    assert command("lab", "make", "--scenes", 4, "--out", tmp_path / "lab")[0] == 0  # the same one
    assert command("lab", "make", "--scenes", 5, "--out", tmp_path / "lab")[0] == 2
    assert command("lab", "make", "--scenes", 5, "--out", tmp_path / "lab", "--force")[0] == 0


@pytest.mark.parametrize("exists", [True, False])
def test_an_import_that_fails_while_it_writes_changes_nothing(exists, tmp_path, command, monkeypatch):
    """Whichever file cannot be moved, the old study stays complete and no new folder is left."""
    (tmp_path / "new.csv").write_text(
        "image_id,caption,gender\n" + "".join(f"{n},a man,male\n" for n in IMAGES)
    )
    out = tmp_path / "deep" / "study"
    if exists:
        image_folder = out / "pictures"
        write_study(study(vocabularies={"s": ["a"]}, images=image_folder), out)
        (out / "captions.csv").write_text("mine")
        image_folder.mkdir()
    before, paths = file_contents(tmp_path), sorted(tmp_path.rglob("*"))
    call = (
        "import",
        "table",
        tmp_path / "new.csv",
        "--attributes",
        tmp_path / "new.csv",
        "--attribute",
        "gender",
    )
    call = (*call, "--out", out, *(["--force", "--images", out / "pictures"] if exists else []))
    rename = Path.replace
    for failing in itertools.count():
        calls = itertools.count()

        def replace(path, target, calls=calls, failing=failing):
            if next(calls) == failing:
                raise OSError(errno.ENOSPC, "No space left on device", str(target))
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", replace)
        code, _, err = command(*call)
        if code == 0:
            break
        assert "No space left on device" in err
        assert (file_contents(tmp_path), sorted(tmp_path.rglob("*"))) == (before, paths)
    assert failing >= 6  # three files are written and moved
    own_files = {"captions.csv"} if exists else set()
    assert set(file_contents(out)) == {"study.toml", "captions.parquet", "attributes.csv", *own_files}
    assert read_study(out).images == (out / "pictures" if exists else None)
    assert ('images = "pictures"' in (out / "study.toml").read_text()) == exists


def test_a_conflicting_folder_of_the_user_stays(tmp_path, command):
    """Files that were already moved are moved back."""
    (tmp_path / "new.csv").write_text("image_id,caption\n" + "".join(f"{n},a man\n" for n in IMAGES))
    write_study(study(), tmp_path / "study")
    (tmp_path / "study" / "references.parquet").mkdir()
    (tmp_path / "study" / "references.parquet" / "notes.txt").write_text("mine")
    before = file_contents(tmp_path)
    call = ("import", "table", tmp_path / "new.csv", "--references", tmp_path / "new.csv")
    assert command(*call, "--out", tmp_path / "study", "--force")[0] == 2
    assert file_contents(tmp_path) == before


def test_a_full_disk_is_reported_with_the_file(tmp_path, command, monkeypatch):
    def raise_disk_full(*_):
        raise pl.exceptions.ComputeError("No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", raise_disk_full)
    (tmp_path / "c.csv").write_text("image_id,caption\n1,a man\n")
    code, _, err = command("import", "table", tmp_path / "c.csv", "--out", tmp_path / "study")
    assert code == 2
    assert f"{tmp_path / 'study' / 'captions.parquet'} cannot be written: No space" in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["c.csv"]


def test_a_resumed_audit_does_not_mix_two_word_lists(studies, command, monkeypatch, tmp_path):
    """The same path may hold another word list."""
    words = tmp_path / "words.toml"
    words.write_text('name = "mine"\nattribute = "gender"\n[groups]\nmale = ["man"]\nfemale = ["woman"]\n')
    call = ("audit", studies / "one", *AUDIT, "--lexicon", words)
    with monkeypatch.context() as patch:
        interrupt(patch, "cooccurrence")
        assert command(*call, "--out", studies / "out")[0] == 130
    words.write_text('name = "mine"\nattribute = "gender"\n[groups]\nmale = ["woman"]\nfemale = ["man"]\n')
    assert command(*call, "--out", studies / "out")[0] == 0
    assert command(*call, "--out", studies / "new")[0] == 0
    resumed, uninterrupted = (portrayal.Results.load(studies / name).measurements for name in ("out", "new"))
    assert resumed == uninterrupted


def test_a_file_of_the_user_is_not_replaced_with_a_study(studies, command):
    """`objects.parquet` is a name of ours; this one is not of the study, which has no objects."""
    (studies / "one" / "objects.parquet").write_bytes(b"mine")
    with pytest.raises(PortrayalError, match=r"objects\.parquet is no file of the study in this folder"):
        write_study(study(objects=pl.DataFrame({"image_id": IMAGES, "label": ["cup"] * N})), studies / "one")
    write_study(study("a woman reads"), studies / "one")
    assert (studies / "one" / "objects.parquet").read_bytes() == b"mine"
    assert read_study(studies / "one").captions["caption"][0] == "a woman reads"
