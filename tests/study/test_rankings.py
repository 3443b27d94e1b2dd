"""Rankings: from any file into a study and back, and messages about invalid rows."""

from __future__ import annotations

import json

import polars as pl
import pytest

import portrayal
from portrayal.errors import InputError
from portrayal.lab import make_study
from portrayal.study import Study, read_study, write_study

HEADER = "query,item,score,gender\n"
ROWS = "a nurse,i1,0.9,female\na nurse,i2,0.7,male\na nurse,i3,0.2,\na pilot,i1,-1,female\n"
CAPTIONS = "image_id,caption\ni1,a woman\ni9,a man\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clip.csv").write_text(HEADER + ROWS)
    (tmp_path / "c.csv").write_text(CAPTIONS)
    return tmp_path


def test_rankings_alone_are_a_study(command, files):
    code, out, _ = command("import", "table", "--rankings", "clip.csv", "--out", "study")
    assert code == 0
    assert "rankings: 2 lists of 3 items for 2 queries by clip, with groups of gender." in " ".join(
        out.split()
    )
    study = read_study("study")
    assert study.rankings.rows() == [
        ("a nurse", "clip", "i1", 0.9, "female"),
        ("a nurse", "clip", "i2", 0.7, "male"),
        ("a nurse", "clip", "i3", 0.2, None),
        ("a pilot", "clip", "i1", -1.0, "female"),
    ]
    assert (study.systems, study.rankers, study.ranked_attributes) == ((), ("clip",), ("gender",))
    code, out, _ = command("check-study", "study")
    stdout = " ".join(out.split())
    assert code == 0
    assert "rankings: 2 lists of 3 items" in stdout
    assert "retrieval-skew yes" in stdout
    assert "1 ranked item has no label for gender; such items keep their places and count nowhere." in stdout
    code, out, _ = command(
        "score", "retrieval-skew", "study", "--k", "1,2", "--reference", "female=0.5,male=0.5"
    )
    assert code == 0
    assert "clip" in out
    code, out, _ = command(
        "score", "retrieval-skew", "study", "--k", "1", "--reference", "equal", "--format", "json"
    )
    rows = json.loads(out)["measurements"]
    assert {
        m["value"] for m in rows if (m["term"], m["group"], m["item"]) == ("bias@k", "female", "a nurse")
    } == {1.0}


def test_rankings_beside_captions_with_labels_of_both(command, files):
    (files / "labels.csv").write_text("image_id,age\ni1,old\ni2,young\ni3,young\ni9,old\nother,old\n")
    arguments = ("--rankings", "search=clip.csv", "--attributes", "labels.csv")
    code, _, _ = command("import", "table", "c.csv", *arguments, "--out", "study")
    assert code == 0
    study = read_study("study")
    assert (study.systems, study.rankers) == (("c",), ("search",))
    assert study.attributes["image_id"].to_list() == ["i1", "i2", "i3", "i9"]
    assert study.ranked_attributes == ("gender", "age")
    assert study.ranked_items("age")["age"].to_list() == ["old", "young", "young", "old"]


def test_several_files_and_a_table_of_systems(command, files):
    (files / "other.jsonl").write_text('{"query": "a nurse", "image_id": 7, "score": 1}\n')
    code, _, _ = command(
        "import", "table", "--rankings", "clip.csv", "--rankings", "other.jsonl", "--out", "study"
    )
    assert code == 0
    assert read_study("study").rankers == ("clip", "other")
    (files / "by-hand").mkdir()
    (files / "by-hand" / "study.toml").write_text('[rankings]\none = "../clip.csv"\ntwo = "../other.jsonl"\n')
    assert read_study("by-hand").rankers == ("one", "two")
    (files / "by-hand" / "study.toml").write_text('rankings = ["../clip.csv", "../clip.csv"]\n')
    with pytest.raises(InputError, match=r"each \(query, system, image_id\) once"):
        read_study("by-hand")


BAD = {
    "score that is none": (
        "a nurse,i9,high,male\n",
        "line 6: expected a score as a finite number, found 'high'.",
    ),
    "score without end": (
        "a nurse,i9,inf,male\n",
        "line 6: expected a score as a finite number, found 'inf'.",
    ),
    "no score": ("a nurse,i9,,male\n", "line 6: expected a score as a finite number, found nothing."),
    "no query": (",i9,1,male\n", "line 6: expected a query as text, found nothing."),
    "no item": ("a nurse,,1,male\n", "line 6: expected an item or image id, found nothing."),
    "twice": (
        "a nurse,i1,1,male\n",
        "line 6: expected each (query, system, image_id) once, "
        "found query a nurse, system clip, image_id i1 again (first at line 2).",
    ),
    "two spellings": (
        "a nurse,i9,1,x\na nurse,i8,1,X\n",
        "line 7: expected the group 'x' of 'gender' spelt one way",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_reported_and_can_be_left_out(name, command, files):
    row, message = BAD[name]
    (files / "clip.csv").write_text(HEADER + ROWS + row)
    arguments = ("import", "table", "--rankings", "clip.csv", "--out", "study")
    code, _, stderr = command(*arguments)
    assert code == 2
    assert f"clip.csv, {message}" in stderr
    assert not (files / "study").exists()
    assert command(*arguments, "--skip-bad")[0] == 0
    study = read_study("study")
    assert study.rankings.height in (4, 5, 6)  # a group that is misspelt leaves a row without a label
    assert study.left_out == 1


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("item,score\n1,2\n", "expected a column 'query', found the columns item, score."),
        ("query,score\nq,2\n", "expected a column 'image_id' or 'item' or"),
        ("query,item\nq,2\n", "expected a column 'score', found the columns query, item."),
        ("query,item,score,system\nq,2,1,human\n", "another name: 'human' is reserved for human captions"),
    ],
)
def test_missing_columns(header, message, command, files):
    (files / "clip.csv").write_text(header)
    code, _, stderr = command("import", "table", "--rankings", "clip.csv", "--out", "study")
    assert code == 2
    assert message in stderr


def test_a_source_is_needed_where_there_is_no_ranking(command, files):
    for arguments in (["table"], ["lic", "--rankings", "clip.csv", "--attribute", "gender"]):
        code, _, stderr = command("import", *arguments, "--out", "study")
        assert code == 2
        assert "Missing argument 'SOURCE...'" in stderr


def test_other_columns_that_are_no_groups():
    rankings = pl.DataFrame(
        {"query": ["q"], "id": [7], "item": ["x"], "score": [1], "rank": [1], "caption": ["a man"],
         "gender": ["male"], "gender_certainty": [0.5]}
    )  # fmt: skip
    study = Study.from_frames(rankings=rankings)
    assert study.rankings.columns == ["query", "system", "image_id", "score", "gender", "gender_certainty"]
    assert study.rankings["image_id"].to_list() == ["x"]
    assert study.ranked_attributes == ("gender",)


def test_a_study_with_rankings_is_written_and_read_as_it_was(tmp_path):
    study = make_study(scenes=60)
    assert study.rankings.height
    write_study(study, tmp_path / "study")
    loaded = read_study(tmp_path / "study")
    assert loaded.rankings.equals(study.rankings)
    assert loaded.digest == study.digest


def test_the_digest_of_a_study_without_rankings_is_unchanged():
    """The value was computed before studies had rankings."""
    captions = pl.DataFrame({"image_id": [1, 2], "system": ["a", "a"], "caption": ["a man", "a cat"]})
    labels = pl.DataFrame({"image_id": [1, 2], "gender": ["male", "female"]})
    study = Study.from_frames(captions=captions, attributes=labels)
    assert study.digest == "83a34f9574177f8f"
    rankings = pl.DataFrame({"query": ["q"], "item": [1], "score": [1.0]})
    assert Study.from_frames(captions=captions, attributes=labels, rankings=rankings).digest != study.digest


def test_a_study_without_rankings_gives_the_reason(command, files):
    command("import", "table", "c.csv", "--out", "study")
    _, out, _ = command("check-study", "study")
    assert "the study has no rankings of items by a system" in " ".join(out.split())
    with pytest.raises(portrayal.errors.Undefined, match="no rankings"):
        portrayal.metrics.retrieval_skew(read_study("study"))


def test_contradictory_labels_of_an_item_are_refused(command, files):
    """Else an audit would count an image as one group in a search and as another in its captions."""
    (files / "a.csv").write_text("image_id,gender\ni1,male\ni9,male\n")
    arguments = (
        "import",
        "table",
        "c.csv",
        "--rankings",
        "clip.csv",
        "--attributes",
        "a.csv",
        "--out",
        "study",
    )
    code, _, err = command(*arguments)
    assert code == 2
    assert (
        "expected gender 'male' of item i1 wherever it is labelled, found 'female' (1 such item in all)"
        in err
    )
    (files / "clip.csv").write_text(HEADER + ROWS.replace("a pilot,i1,-1,female", "a pilot,i1,-1,male"))
    code, _, err = command("import", "table", "--rankings", "clip.csv", "--out", "study")
    assert code == 2
    assert "wherever it is labelled" in err
    assert command("import", "table", "--rankings", "clip.csv", "--out", "study", "--skip-bad")[0] == 0
    assert read_study("study").rankings.filter(pl.col("image_id") == "i1")["gender"].to_list() == [None, None]
