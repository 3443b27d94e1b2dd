"""Bad input: each kind has its own message with file and line, exit code 2, and nothing is written."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

GOOD = "image_id,caption\n1,a man\n2,a woman\n3,a dog\n"
MANY = "image_id,caption\n" + "".join(f"{n},a man\n" for n in range(9))


class Hostile:
    """Unpickled, this would write a file."""

    def __init__(self, target: str):
        self.target = target

    def __reduce__(self) -> Any:
        return Path.write_text, (Path(self.target), "hacked")


def parquet(columns: dict[str, Any]) -> bytes:
    import io

    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


# name: (files, arguments of `portrayal import`, the sentence)
CASES: dict[str, tuple[dict[str, str | bytes], list[str], str]] = {
    "caption of the wrong type": (
        {"c.json": '[{"image_id": 1, "caption": 7}]'},
        ["coco", "c.json"],
        "c.json, row 1: expected a caption as text, found 7.",
    ),
    "no caption": (
        {"c.json": '[{"image_id": 1, "caption": "a man"}, {"image_id": 2, "caption": null}]'},
        ["coco", "c.json"],
        "c.json, row 2: expected a caption as text, found nothing.",
    ),
    "a reference that says nothing": (
        {"c.csv": GOOD, "r.csv": "image_id,caption\n1,a man\n2, \n"},
        ["table", "c.csv", "--references", "r.csv"],
        "r.csv, line 3: expected a caption as text, found ' '.",
    ),
    "half a letter": (
        {"c.json": '[{"image_id": 1, "caption": "a \\ud800 man"}]'},
        ["coco", "c.json"],
        "c.json, row 1: expected a caption as text, found 'a \\ud800 man'.",
    ),
    "a number without end": (
        {"c.json": '[{"image_id": ' + "9" * 5000 + ', "caption": "a"}]'},
        ["coco", "c.json"],
        "c.json: expected JSON, found Exceeds the limit",
    ),
    "a line without end": (
        {"c.jsonl": '{"image_id": 1, "caption": "a"}\n' + "[" * 100_000 + "\n"},
        ["table", "c.jsonl"],
        "c.jsonl, line 2: expected a JSON object, found",
    ),
    "a group spelt two ways": (
        {"c.csv": GOOD, "a.csv": "image_id,camera\n1,sony\n2,Sony\n3,SONY\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv, line 3: expected the group 'sony' of 'camera' spelt one way, found 'Sony' (2 such labels in all; "
        "portrayal import --map camera:Sony=sony makes them one).",
    ),
    "a table separated by semicolons": (
        {"c.csv": GOOD, "a.csv": "image_id;gender\n1;male\n2;male\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv, line 1: expected columns separated by commas, found a header that seems to be separated by semicolons: "
        "'image_id;gender' (save it with commas, or with tabs as .tsv).",
    ),
    "a table of tabs called .csv": (
        {"c.csv": GOOD.replace(",", "\t")},
        ["table", "c.csv"],
        "separated by tabs: 'image_id\\tcaption' (name it .tsv).",
    ),
    "a column of free text": (
        {"c.csv": MANY, "a.csv": "image_id,gender,note\n" + "".join(f"{n},male,n{n}\n" for n in range(9))},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv: expected groups in the column 'note', found 9 different values, 9 of them of one image each (name the "
        "columns that are labels with --attribute NAME, which can be repeated).",
    ),
    "a mapping of no value": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\n1,x\n2,x\n"},
        ["table", "c.csv", "--attributes", "a.csv", "--map", "gender:M=male"],
        "--map gender: no image has the value 'm'; the values are 'x'.",
    ),
    "a mapping of no column": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\n1,x\n2,x\n"},
        ["table", "c.csv", "--attributes", "a.csv", "--map", "gendr:x=male"],
        "--map gendr: there is no such column of labels; the columns are gender.",
    ),
    "a mapping without a group": (
        {"c.csv": GOOD},
        ["table", "c.csv", "--map", "gender:M"],
        "Expected --map ATTRIBUTE:VALUE=GROUP,... such as gender:M=male,F=female, found 'gender:M'.",
    ),
    "a mapping that goes on": (
        {"c.csv": GOOD},
        ["table", "c.csv", "--map", "gender:a=b,b=a"],
        "--map gender: 'a' is mapped to 'b', which is mapped to 'a'; choose groups that are no values.",
    ),
    "a certain human": (
        {"c.csv": GOOD, "o.csv": "image_id,label,source,confidence\n1,dog,human,1\n"},
        ["table", "c.csv", "--objects", "o.csv"],
        "o.csv, line 2: expected no confidence for a human label, found 1.0.",
    ),
    "a box that is none": (
        {
            "c.json": '[{"image_id": 1, "caption": "a"}]',
            "o.json": '{"categories": [{"id": 1, "name": "dog"}],'
            ' "annotations": [{"image_id": 1, "category_id": 1, "bbox": ["a", 1, 2, 3]}]}',
        },
        ["coco", "c.json", "--objects", "o.json"],
        "o.json, annotation 1: expected bbox as four numbers, found ['a', 1, 2, 3].",
    ),
    "an importer that is none": ({}, ["tabel", "c.csv"], "Unknown importer 'tabel'. Did you mean 'table'?"),
    "missing column": (
        {"c.csv": "image_id,words\n1,a man\n"},
        ["table", "c.csv"],
        "c.csv: expected a column 'caption' or 'pred' or 'text', found the columns image_id, words.",
    ),
    "no id column": (
        {"c.csv": "picture,caption\n1,a man\n"},
        ["table", "c.csv"],
        "c.csv: expected a column 'image_id' or 'img_id' or 'id' or 'filename', found the columns picture, caption.",
    ),
    "missing id": (
        {"c.json": '[{"image_id": 1, "caption": "a"}, {"caption": "b"}]'},
        ["coco", "c.json"],
        "c.json, row 2: expected an image id, found nothing.",
    ),
    "id of the wrong type": (
        {"c.json": '[{"image_id": [1], "caption": "a"}]'},
        ["coco", "c.json"],
        "c.json, row 1: expected an image id, found [1].",
    ),
    "duplicate (image, system, sample)": (
        {"c.csv": "image_id,caption\n1,a man\n000000000001.jpg,a boy\n"},
        ["table", "c.csv"],
        "c.csv, line 3: expected each (image_id, system, sample) once, "
        "found image_id 1, system c, sample 0 again (first at line 2).",
    ),
    "the same system in two files": (
        {"a/c.csv": GOOD, "b/c.csv": GOOD},
        ["table", "a/c.csv", "b/c.csv"],
        "a/c.csv, b/c.csv: expected each (image_id, system, sample) once, "
        "found image 1 of system 'c' in more than one file (name the systems apart).",
    ),
    "bad sample": (
        {"c.csv": "image_id,sample,caption\n1,-1,a man\n"},
        ["table", "c.csv"],
        "c.csv, line 2: expected a sample number, 0 or more, found '-1'.",
    ),
    "a system called human": (
        {"c.csv": "image_id,system,caption\n1,human,a man\n"},
        ["table", "c.csv"],
        "c.csv, line 2: expected another name: 'human' is reserved for human captions, found 'human'.",
    ),
    "a system called human in capitals": (
        {"c.csv": "image_id,system,caption\n1,Human,a man\n"},
        ["table", "c.csv"],
        "c.csv, line 2: expected another name: 'human' is reserved for human captions, found 'Human'.",
    ),
    "unknown encoding": (
        {"c.csv": b"image_id,caption\n1,a caf\xe9\n"},
        ["table", "c.csv"],
        "c.csv, line 2: expected UTF-8 text, found byte 0xe9 (save the file as UTF-8).",
    ),
    "UTF-16": (
        {"c.csv": GOOD.encode("utf-16")},
        ["table", "c.csv"],
        "c.csv, line 1: expected UTF-8 text, found UTF-16 text (save the file as UTF-8).",
    ),
    "truncated JSON": (
        {"c.json": '[{"image_id": 1, "caption": "a man"},\n{"image_id": 2, "capt'},
        ["coco", "c.json"],
        "c.json, line 2: expected JSON, found Unterminated string starting at.",
    ),
    "JSON cut between rows": (
        {"c.json": '[{"image_id": 1, "caption": "a man"}'},
        ["coco", "c.json"],
        "c.json, line 1: expected JSON, found Expecting ',' delimiter (is the file cut short?).",
    ),
    "JSON that is no table": (
        {"c.json": '"captions"'},
        ["coco", "c.json"],
        "c.json: expected an array of objects or an object, found 'captions'.",
    ),
    "JSON nested too deeply": (
        {"c.json": "[" * 200_000},
        ["coco", "c.json"],
        "c.json: expected JSON, found lists or objects nested too deeply.",
    ),
    "JSON row that is no object": (
        {"c.json": '[{"image_id": 1, "caption": "a"}, 5]'},
        ["coco", "c.json"],
        "c.json, row 2: expected a JSON object, found 5.",
    ),
    "a key twice": (
        {"c.json": '{"1": ["a man"], "1": ["a dog"]}'},
        ["table", "c.json"],
        "c.json: expected each key once in an object, found the key '1' again.",
    ),
    "bad line of JSON Lines": (
        {"c.jsonl": '{"image_id": 1, "caption": "a"}\n{"image_id": 2,\n'},
        ["table", "c.jsonl"],
        "c.jsonl, line 2: expected a JSON object, found Expecting property name enclosed in double quotes at",
    ),
    "captions that are no list": (
        {"c.jsonl": '{"id": 1, "captions": 3}\n'},
        ["table", "c.jsonl"],
        "c.jsonl, line 1: expected a list of captions, found 3.",
    ),
    "empty file": ({"c.csv": ""}, ["table", "c.csv"], "c.csv: expected a table, found an empty file."),
    "header only": (
        {"c.csv": "image_id,caption\n"},
        ["table", "c.csv"],
        "c.csv: expected at least one row, found none.",
    ),
    "empty JSON array": (
        {"c.json": "[]"},
        ["coco", "c.json"],
        "c.json: expected at least one row, found none.",
    ),
    "a field too many": (
        {"c.csv": "image_id,caption\n1,a man, a plan\n2,a woman\n"},
        ["table", "c.csv"],
        "c.csv, line 2: expected 2 fields, found 3: '1,a man, a plan'.",
    ),
    "an open quote": (
        {"c.csv": 'image_id,caption\n1,"a man\n2,a woman\n'},
        ["table", "c.csv"],
        "c.csv, line 2: expected well-formed delimited text, found unexpected end of data.",
    ),
    "a column twice": (
        {"c.csv": "image_id,caption,caption\n1,a,b\n"},
        ["table", "c.csv"],
        "c.csv, line 1: expected each column once, found the column 'caption' twice.",
    ),
    "a Parquet file that is none": (
        {"c.parquet": b"PAR1 but not really PAR1"},
        ["table", "c.parquet"],
        "c.parquet: expected a Parquet file, found",
    ),
    "a Parquet column of the wrong type": (
        {"c.parquet": parquet({"image_id": [1, 2], "caption": [1.5, 2.5]})},
        ["table", "c.parquet"],
        "c.parquet, row 1: expected a caption as text, found 1.5.",
    ),
    "an unknown ending": (
        {"c.xlsx": "x"},
        ["table", "c.xlsx"],
        "c.xlsx: expected a file ending in .csv, .tsv, .json, .jsonl, .ndjson, .parquet.",
    ),
    "no such file": ({}, ["table", "c.csv"], "There is no file c.csv."),
    "ids that match no attribute": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\none.jpg,male\ntwo.jpg,male\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv: expected attributes of the captioned images, such as '1', found other ids only, such as 'one.jpg'.",
    ),
    "ids that match no reference": (
        {"c.csv": GOOD, "r.csv": "image_id,caption\none.jpg,a man\n"},
        ["table", "c.csv", "--references", "r.csv"],
        "r.csv: expected references of the captioned images, such as '1', found other ids only, such as 'one.jpg'.",
    ),
    "a group of one": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\n1,male\n2,mael\n3,male\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv, line 3: expected groups of 'gender' with at least two images, found the group 'mael' with one.",
    ),
    "labels that contradict each other": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\n1,male\n1,female\n2,male\n3,female\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv, line 3: expected gender 'male' of image 1 as at line 2, found 'female'.",
    ),
    "an attribute that is not there": (
        {"c.csv": GOOD, "a.csv": "image_id,gender\n1,male\n2,male\n"},
        ["table", "c.csv", "--attributes", "a.csv", "--attribute", "age"],
        "a.csv: expected a column 'age', found the columns gender.",
    ),
    "ids and no attribute": (
        {"c.csv": GOOD, "a.csv": "image_id\n1\n2\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv: expected a column for at least one attribute, found image ids only.",
    ),
    "a certainty above 1": (
        {"c.csv": GOOD, "a.csv": "image_id,gender,gender_certainty\n1,male,0.9\n2,male,90\n"},
        ["table", "c.csv", "--attributes", "a.csv"],
        "a.csv, line 3: expected gender_certainty from 0 to 1, found '90'.",
    ),
    "a confidence above 1": (
        {"c.csv": GOOD, "o.csv": "image_id,label,confidence\n1,dog,1.2\n"},
        ["table", "c.csv", "--objects", "o.csv"],
        "o.csv, line 2: expected a confidence from 0 to 1, found '1.2'.",
    ),
    "an unknown kind of object": (
        {"c.csv": GOOD, "o.csv": "image_id,label,kind\n1,dog,animal\n"},
        ["table", "c.csv", "--objects", "o.csv"],
        "o.csv, line 2: expected one of object, attribute, relation, none, found 'animal'.",
    ),
    "half a box": (
        {"c.csv": GOOD, "o.csv": "image_id,label,x,y\n1,dog,0.1,0.2\n"},
        ["table", "c.csv", "--objects", "o.csv"],
        "o.csv, line 2: expected x, y, width and height of a box, or none of them, found (0.1, 0.2, None, None).",
    ),
    "a COCO category that is not listed": (
        {
            "c.json": '[{"image_id": 1, "caption": "a"}]',
            "o.json": '{"categories": [{"id": 1, "name": "dog"}], "annotations": [{"image_id": 1, "category_id": 9}]}',
        },
        ["coco", "c.json", "--objects", "o.json"],
        "o.json, annotation 1: expected a category_id listed under 'categories', found 9.",
    ),
    "a pickle that is none": (
        {"d/gender_val_sat_cap_mw_entries.pkl": b"not a pickle"},
        ["lic", "d", "--attribute", "gender"],
        "gender_val_sat_cap_mw_entries.pkl: expected a pickle, found one that is cut short or is none",
    ),
    "a pickle with a wrong entry": (
        {
            "d/gender_val_sat_cap_mw_entries.pkl": pickle.dumps(
                [{"img_id": 1, "pred": 5, "bb_gender": "Male"}]
            )
        },
        ["lic", "d", "--attribute", "gender"],
        "gender_val_sat_cap_mw_entries.pkl, entry 1: expected a caption under 'pred', found 5.",
    ),
    "half a letter in a vocabulary": (
        {
            "d/gender_val_sat_cap_mw_entries.pkl": pickle.dumps(
                [{"img_id": 1, "pred": "a man", "bb_gender": "Male"}]
            ),
            "d/sat_vocab.pkl": pickle.dumps(["man", "\ud800"]),
        },
        ["lic", "d", "--attribute", "gender"],
        "sat_vocab.pkl: expected words in Unicode, found half of a character in '\\ud800'.",
    ),
    "half a letter in the age table": (
        {"d/age.csv": "img_id,caption_list,bb_age,pred_sat\n1,\"['a \\ud800 man']\",Old,a man\n"},
        ["lic", "d", "--attribute", "age"],
        "age.csv, line 2: expected a list of captions under 'caption_list', found",
    ),
    "no LIC labels": (
        {"d/readme.txt": "hello"},
        ["lic", "d", "--attribute", "race"],
        "d: no file with labels for 'race' was found; expected race_val_<captioner>_cap*_entries.pkl.",
    ),
    "an attribute LIC does not have": (
        {"d/readme.txt": "hello"},
        ["lic", "d", "--attribute", "gendr"],
        "Unknown attribute of the LIC data 'gendr'. Did you mean 'gender'? Available: age, gender, race.",
    ),
}


def write_files(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("name", CASES)
def test_bad_input_has_its_message(name, tmp_path, monkeypatch, command):
    files, arguments, sentence = CASES[name]
    write_files(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    code, out, err = command("import", *arguments, "--out", "study")
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
    assert out == ""
    assert not (tmp_path / "study").exists()


def test_a_hostile_pickle_is_refused_by_name_and_not_run(tmp_path, command):
    target = tmp_path / "hacked"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        folder = tmp_path / f"p{protocol}"
        folder.mkdir()
        content = pickle.dumps([Hostile(str(target))], protocol=protocol)
        (folder / "gender_val_sat_cap_mw_entries.pkl").write_bytes(content)
        code, _, err = command("import", "lic", folder, "--attribute", "gender", "--out", tmp_path / "study")
        assert code == 2
        assert "expected a pickle of lists, dicts, text and numbers only, found one that names" in err
        assert "it was not run" in err
        assert not target.exists()


def test_a_pickle_bomb_is_refused_at_once(tmp_path, command):
    bomb: list = []
    for _ in range(40):  # each level holds the one below ten times
        bomb = [bomb] * 10
    nested = b"\x80\x04" + b"]" * 50_000 + b"a" * 49_999 + b"."  # a list in a list in a list ...
    hostile = [pickle.dumps(bomb), nested, pickle.dumps([10**6000])]
    for number, content in enumerate(hostile):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "sat_vocab.pkl").write_bytes(content)
        code, _, err = command("import", "lic", folder, "--attribute", "gender", "--out", tmp_path / "study")
        assert code == 2
        assert "Traceback" not in err


def test_a_caption_may_be_empty(tmp_path, command):
    (tmp_path / "c.json").write_text('[{"image_id": 1, "caption": ""}, {"image_id": 2, "caption": "a man"}]')
    code, out, _ = command("import", "coco", tmp_path / "c.json", "--out", tmp_path / "study")
    assert code == 0
    assert "2 images, 2 captions" in out
    _, out, _ = command("check-study", tmp_path / "study")
    assert "1 empty caption of 'c', which names nobody" in out


def test_the_refusal_names_the_class(tmp_path, command):
    (tmp_path / "gender_val_sat_cap_mw_entries.pkl").write_bytes(pickle.dumps([pl.String()]))
    _, _, err = command("import", "lic", tmp_path, "--attribute", "gender", "--out", tmp_path / "study")
    assert "polars.datatypes.classes.String" in err


def test_the_file_is_read_to_its_end_before_the_first_error(tmp_path, command):
    rows = ["image_id,caption", "1,a man", "2,a b,c", "3,a dog", "1,a cat", ",a cat"]
    (tmp_path / "c.csv").write_text("\n".join(rows))
    code, _, err = command("import", "table", tmp_path / "c.csv", "--out", tmp_path / "study")
    assert code == 2
    assert [f"line {n}:" in err for n in (2, 3, 4, 5, 6)] == [False, True, False, True, True]


def test_many_errors_are_counted_not_listed(tmp_path, command):
    (tmp_path / "c.csv").write_text("image_id,caption\n" + "1,a\n" * 101)
    _, _, err = command("import", "table", tmp_path / "c.csv", "--out", tmp_path / "study")
    assert err.count("expected each (image_id, system, sample) once") == 20
    assert "... and 80 more like these." in err


def test_skip_bad_counts_bad_rows_and_continues(tmp_path, command):
    (tmp_path / "c.csv").write_bytes(b'image_id,caption\n1,a man\n2,caf\xe9\n3,a dog\n3,a cat\n4,"a "b"\n')
    code, out, err = command("import", "table", tmp_path / "c.csv", "--skip-bad", "--out", tmp_path / "study")
    assert code == 0
    assert "3 bad rows were left out. The first: " in err
    assert "2 images, 2 captions" in out
    _, out, _ = command("check-study", tmp_path / "study")
    assert "3 bad rows were left out when it was read" in out


def test_skip_bad_cannot_skip_a_whole_file(tmp_path, command):
    (tmp_path / "c.json").write_text('[{"image_id": 1, "capt')
    code, _, _ = command("import", "coco", tmp_path / "c.json", "--skip-bad", "--out", tmp_path / "study")
    assert code == 2


def test_skip_bad_leaves_a_group_of_a_single_image_unlabelled(tmp_path, command):
    write_files(tmp_path, {"c.csv": GOOD, "a.csv": "image_id,gender\n1,male\n2,mael\n3,male\n"})
    code, _, err = command(
        *("import", "table", tmp_path / "c.csv", "--attributes", tmp_path / "a.csv", "--skip-bad"),
        *("--out", tmp_path / "study"),
    )
    assert code == 0
    assert "1 bad row was" in err
    assert (tmp_path / "study" / "attributes.csv").read_text() == "image_id,gender\n1,male\n2,\n3,male\n"


def test_captions_with_markup_and_control_characters_pass_through_unharmed(tmp_path, command):
    caption = "<script>alert(1)</script>\u001b[31m [bold]man[/bold] \u2028 end"
    (tmp_path / "c.jsonl").write_text(json.dumps({"image_id": 1, "caption": caption}) + "\n")
    code, _, _ = command("import", "table", tmp_path / "c.jsonl", "--out", tmp_path / "study")
    assert code == 0
    assert pl.read_parquet(tmp_path / "study" / "captions.parquet")["caption"].to_list() == [caption]


def test_a_folder_with_other_files_is_not_overwritten(tmp_path, command):
    (tmp_path / "c.csv").write_text(GOOD)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    code, _, err = command("import", "table", tmp_path / "c.csv", "--out", tmp_path / "out")
    assert code == 2
    assert "holds files but no study.toml" in err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


STUDIES = {
    "no study.toml": (None, "a study is a folder with a study.toml"),
    "not TOML": ("captions =", "study.toml: expected TOML, found"),
    "unknown key": ('caption = "c.csv"', "found 'caption'"),
    "missing file": ('captions = "x.csv"', "There is no file"),
    "captions as a number": (
        "captions = 3",
        "study.toml: expected captions as the name of a file, or a list of names",
    ),
    "another schema": ('schema = "other/9"', "expected schema 'portrayal.study/1', found 'other/9'"),
    "images that are no folder": ('captions = "c.csv"\nimages = "pics"', "expected images to name a folder"),
    "a group of one": (
        'captions = "c.csv"\nattributes = "a.csv"',
        "a.csv, line 4: expected groups of 'gender' with at least two images, found the group 'x' with one.",
    ),
    "one system in two files": ('captions = ["c.csv", "d/c.csv"]', "in more than one file"),
    "a vocabulary that is no list": (
        'captions = "c.csv"\n[vocabularies]\nc = "v.json"',
        "v.json: expected a list of words, found {'a': 1}.",
    ),
}


@pytest.mark.parametrize("name", STUDIES)
def test_check_study_reports_what_is_wrong(name, tmp_path, command):
    toml, sentence = STUDIES[name]
    write_files(tmp_path, {"c.csv": GOOD, "d/c.csv": GOOD, "v.json": '{"a": 1}'})
    write_files(tmp_path, {"a.csv": "image_id,gender\n1,male\n2,male\n3,x\n"})
    if toml is not None:
        (tmp_path / "study.toml").write_text(toml)
    code, _, err = command("check-study", tmp_path)
    assert code == 2
    assert sentence in err
