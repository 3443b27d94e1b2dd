"""Truncation of long captions, and the number of truncated captions."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import polars as pl
import pytest

from portrayal.auditing import describe_study
from portrayal.study import Study, read_study
from portrayal.study.truncation import MAX_CHARACTERS, MAX_WORDS, truncate

LONG = "a man rides a horse " * 100_000  # two megabytes


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("", ""),
        ("a man  and\na dog ", "a man  and\na dog "),
        ("dog " * MAX_WORDS, "dog " * MAX_WORDS),
        ("dog " * (MAX_WORDS + 1), ("dog " * MAX_WORDS)[:-1]),
        ("x" * MAX_CHARACTERS, "x" * MAX_CHARACTERS),
        ("x" * (MAX_CHARACTERS + 1), "x" * MAX_CHARACTERS),
        ("a " + "x" * MAX_CHARACTERS, "a"),
        ("a man" + " " * MAX_CHARACTERS, "a man" + " " * (MAX_CHARACTERS - 5)),
    ],
)
def test_whole_words_are_kept(caption, expected):
    assert truncate(caption) == expected


def study_of_captions(*captions: str) -> Study:
    numbers = range(len(captions))
    frame = pl.DataFrame({"image_id": numbers, "system": ["s"] * len(captions), "caption": captions})
    return Study.from_frames(captions=frame, references=frame.select("image_id", "caption").tail(1))


def test_truncated_captions_are_counted_by_source():
    study = study_of_captions("a man", LONG, "a dog", LONG)
    assert study.truncated == {"s": 2, "human": 1}
    lengths = study.captions["caption"].str.len_chars()
    assert lengths.max() <= MAX_CHARACTERS
    assert study.captions["caption"].to_list()[::2] == ["a man", "a dog"]
    assert study.select_systems(["s"]).truncated == study.truncated
    assert describe_study(study)["truncated"] == {"s": 2, "human": 1}


def test_short_captions_are_not_truncated():
    study = study_of_captions("a man", "a dog" + " x" * 1_000)
    assert study.truncated == {}
    assert study.captions["caption"].to_list() == ["a man", "a dog" + " x" * 1_000]


@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_a_caption_of_a_table_may_have_any_length(extension, tmp_path, command):
    """Lines inside quotes too. The limit of Python's csv, which whoever imports us may use, stays as it was."""
    before = csv.field_size_limit()
    separator = {"csv": ",", "tsv": "\t"}[extension]
    rows = (("image_id", "caption"), ("1", LONG.replace("rides", "rides\n")), ("2", "a dog"), ("3", LONG))
    with (tmp_path / f"s.{extension}").open("w", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    code, _, err = command("import", "table", tmp_path / f"s.{extension}", "--out", tmp_path / "study")
    assert (code, err) == (0, "")
    assert csv.field_size_limit() == before
    study = read_study(tmp_path / "study")
    assert (study.captions.height, study.truncated) == (3, {"s": 2})
    assert (
        "2 captions of s are longer than 10,000 characters" in command("check-study", tmp_path / "study")[1]
    )


def test_every_command_reports_truncation(tmp_path, command):
    lines = [
        f"{n},{'man' if n % 2 else 'woman'} {LONG[:50_000] if n == 3 else 'here'},{'fm'[n % 2]}"
        for n in range(8)
    ]
    (tmp_path / "all.csv").write_text("\n".join(["image_id,caption,gender", *lines]) + "\n")
    (tmp_path / "study.toml").write_text('attributes = "all.csv"\n[captions]\ns = "all.csv"\n')
    sentence = "1 caption of s is longer than 10,000 characters or 2,000 words"
    assert sentence in command("check-study", tmp_path)[1]
    _, _, stderr = command("score", "cooccurrence", tmp_path, "--attribute", "gender")
    assert sentence in stderr
    assert read_study(tmp_path).truncated == {"s": 1}


def test_a_caption_of_two_megabytes_does_not_slow_a_metric_down(tmp_path):
    """Reading all of it would take many minutes; the limit is far from the seconds that it takes."""
    rows = [{"image_id": n, "caption": "a man rides a horse " * (100_000 if n == 3 else 1)} for n in range(8)]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "study.toml").write_text('references = "all.jsonl"\n[captions]\ns = "all.jsonl"\n')
    arguments = [sys.executable, "-m", "portrayal", "score", "quality", tmp_path, "--bootstrap", "20"]
    assert subprocess.run(arguments, check=False, capture_output=True, timeout=200).returncode == 0
