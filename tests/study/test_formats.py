"""The same captions in every accepted shape and format are the same study."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.errors import InputError, Problems
from portrayal.study import Study, importers, read_study, write_study
from portrayal.study.image_ids import find_image_files, image_id

ROWS = [{"image_id": 42, "caption": 'a "man", smiling'}, {"image_id": 7, "caption": "a woman\nand a dog"}]
EXPECTED = [("42", "s", 0, 'a "man", smiling'), ("7", "s", 0, "a woman\nand a dog")]


def write_csv(path: Path, separator: str) -> None:
    pl.DataFrame(ROWS).write_csv(path, separator=separator)


WRITERS = {
    "csv": lambda path: write_csv(path, ","),
    "tsv": lambda path: write_csv(path, "\t"),
    "json": lambda path: path.write_text(json.dumps(ROWS)),
    "jsonl": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in ROWS)),
    "parquet": lambda path: pl.DataFrame(ROWS).write_parquet(path),
}


def imported(*sources: object, kind: str = "table", **request: object) -> Study:
    problems = Problems()
    result = importers.run_importer(
        kind, importers.ImportRequest([str(source) for source in sources], **request), problems
    )
    problems.settle()
    return result.study


@pytest.mark.parametrize("extension", WRITERS)
def test_every_format_gives_the_same_rows_in_order(extension, tmp_path):
    WRITERS[extension](tmp_path / f"s.{extension}")
    assert imported(tmp_path / f"s.{extension}").captions.rows() == EXPECTED


def test_bom_and_windows_line_ends(tmp_path):
    (tmp_path / "s.csv").write_bytes("\ufeffimage_id,caption\r\n1,a man\r\n".encode())
    assert imported(tmp_path / "s.csv").captions.rows() == [("1", "s", 0, "a man")]


@pytest.mark.parametrize("frame", [pl.DataFrame(ROWS), pd.DataFrame(ROWS)], ids=["polars", "pandas"])
def test_frames_in_memory(frame):
    study = Study.from_frames(
        captions=frame.assign(system="s")
        if isinstance(frame, pd.DataFrame)
        else frame.with_columns(system=pl.lit("s"))
    )
    assert study.captions.rows() == EXPECTED


def test_pandas_gaps_are_missing_labels():
    labels = pd.DataFrame(
        {"image_id": [1, 2, 3], "gender": ["male", None, float("nan")], "gender_certainty": [0.5, None, 1]}
    )
    study = Study.from_frames(attributes=labels)
    assert study.attributes["gender"].to_list() == ["male", None, None]
    assert study.attributes["gender_certainty"].to_list() == [0.5, None, 1.0]


def test_frames_are_checked_like_files():
    with pytest.raises(InputError, match=r"<captions>, row 2: expected a caption as text, found nothing\."):
        Study.from_frames(captions=pl.DataFrame({"image_id": [1, 2], "caption": ["a", None]}))


SHAPES = {
    "one row per caption": [{"img_id": 1, "pred": "a"}, {"img_id": 1, "pred": "b", "sample": 1}],
    "a list per image": [{"id": 1, "captions": ["a", "b"]}],
    "an object of lists": {"1": ["a", "b"]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_accepted_shapes(shape, tmp_path):
    document = SHAPES[shape]
    if shape == "one row per caption":
        document[0]["sample"] = 0
    (tmp_path / "s.json").write_text(json.dumps(document))
    assert imported(tmp_path / "s.json").captions.rows() == [("1", "s", 0, "a"), ("1", "s", 1, "b")]


def test_an_object_of_objects_gives_attributes(tmp_path):
    (tmp_path / "s.csv").write_text("image_id,caption\n1,a\n2,b\n")
    (tmp_path / "a.json").write_text('{"1": {"gender": "male"}, "2": {"gender": "male", "age": null}}')
    study = imported(tmp_path / "s.csv", attributes=tmp_path / "a.json")
    assert study.attributes.rows() == [("1", "male", None), ("2", "male", None)]


def test_coco_annotations_as_references_and_objects(tmp_path):
    (tmp_path / "s.json").write_text('[{"image_id": 9, "caption": "a dog"}]')
    captions = {
        "images": [],
        "annotations": [{"image_id": 9, "id": 1, "caption": "one"}, {"image_id": 9, "caption": "two"}],
    }
    instances = {
        "images": [{"id": 9, "width": 200, "height": 100}],
        "categories": [{"id": 18, "name": "dog"}],
        "annotations": [{"image_id": 9, "category_id": 18, "bbox": [20, 10, 100, 50]}],
    }
    (tmp_path / "r.json").write_text(json.dumps(captions))
    (tmp_path / "o.json").write_text(json.dumps(instances))
    study = imported(
        tmp_path / "s.json", kind="coco", references=tmp_path / "r.json", objects=tmp_path / "o.json"
    )
    assert study.references.rows() == [("9", "one"), ("9", "two")]
    assert study.objects.rows() == [("9", "dog", "object", "human", None, 0.1, 0.1, 0.5, 0.5)]


def test_a_human_label_has_no_confidence(tmp_path):
    (tmp_path / "s.csv").write_text("image_id,caption\n1,a\n")
    (tmp_path / "o.json").write_text('{"1": ["dog", "person"], "2": []}')
    study = imported(tmp_path / "s.csv", objects=tmp_path / "o.json")
    assert study.objects.select("label", "confidence").rows() == [("dog", None), ("person", None)]


def test_systems_are_named_by_file_by_folder_or_by_the_user(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("one", "two"):
        (tmp_path / "d" / f"{name}.csv").write_text("image_id,caption\n1,a\n")
    assert imported(tmp_path / "d").systems == ("one", "two")
    assert imported(f"mine={tmp_path / 'd' / 'one.csv'}").systems == ("mine",)


def test_labels_repeated_per_caption_are_merged(tmp_path):
    (tmp_path / "s.csv").write_text("image_id,system,caption,gender\n1,x,a,male\n1,y,b,male\n2,x,c,male\n")
    study = imported(tmp_path / "s.csv", attributes=tmp_path / "s.csv", attribute_names=["gender"])
    assert study.systems == ("x", "y")
    assert study.attributes.rows() == [("1", "male"), ("2", "male")]


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (42, "42"),
        ("42", "42"),
        ("000000000042", "42"),
        ("000000000042.jpg", "42"),
        ("COCO_val2014_000000000042.jpg", "42"),
        ("val2014/COCO_val2014_000000000042.jpg", "42"),
        (42.0, "42"),
        ("042", "042"),
        ("COCO_val2014_44.jpg", "44"),
        ("42.0", "42"),
        (10**400, None),
        ("\ud800", None),
        (" a b.png ", "a b.png"),
        (True, None),
        ("", None),
        (None, None),
        (1.5, None),
    ],
)
def test_image_ids(spelling, expected):
    assert image_id(spelling) == expected


@given(st.integers(min_value=0, max_value=10**12 - 1))
def test_every_coco_spelling_gives_the_same_image(number):
    spellings = [
        number,
        str(number),
        f"{number:012}",
        f"{number:012}.jpg",
        f"COCO_train2017_{number:012}.jpg",
    ]
    assert {image_id(spelling) for spelling in spellings} == {str(number)}


def test_image_files_have_their_name_and_their_number_as_ids(tmp_path):
    for name in ("000000000042.jpg", "scene.png", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    image_files = find_image_files(tmp_path)
    assert image_files["42"].name == "000000000042.jpg"
    assert image_files["scene"] == image_files["scene.png"]
    assert "notes" not in image_files


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, unique_by=lambda row: image_id(row[0])))
def test_any_text_survives_writing_and_reading(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("study")
    rows = [(image_id(image), caption) for image, caption in rows]
    frame = pl.DataFrame({"image_id": [r[0] for r in rows], "system": "s", "caption": [r[1] for r in rows]})
    study = Study.from_frames(captions=frame, references=frame.drop("system"), name=rows[0][1])
    write_study(study, folder)
    loaded = read_study(folder)
    assert loaded.digest == study.digest
    assert loaded.name == study.name
    assert loaded.captions.equals(study.captions)


def test_a_study_with_everything_survives_writing_and_reading(tmp_path):
    (tmp_path / "pics").mkdir()
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": ["1", "2"], "system": ["a", "b"], "caption": ["x", "y"]}),
        attributes=pl.DataFrame(
            {"image_id": ["1", "2"], "gender": ["male", None], "gender_certainty": [0.5, None]}
        ),
        people=pl.DataFrame({"image_id": ["1", "1"], "person": [0, 1], "gender": ["male", "female"]}),
        objects=pl.DataFrame({"image_id": ["1"], "label": ["dog"], "source": ["detr"], "confidence": [0.25]}),
        images=tmp_path / "pics",
    )
    from dataclasses import replace

    study = replace(study, vocabularies={'a "b"': ("one", "two")})
    write_study(study, tmp_path / "s")
    loaded = read_study(tmp_path / "s")
    for table in ("captions", "attributes", "people", "objects"):
        assert getattr(loaded, table).equals(getattr(study, table)), table
    assert loaded.vocabularies == study.vocabularies
    assert loaded.images.resolve() == study.images.resolve()


def test_study_toml_by_hand(tmp_path):
    (tmp_path / "a.json").write_text('[{"image_id": 1, "caption": "x"}]')
    (tmp_path / "b.csv").write_text("image_id,caption\n1,y\n")
    (tmp_path / "v.txt").write_text("man\nwoman\n")
    toml = '[captions]\nalpha = "a.json"\nbeta = "b.csv"\n[vocabularies]\nalpha = "v.txt"\n'
    (tmp_path / "study.toml").write_text(toml)
    study = read_study(tmp_path)
    assert study.captions.rows() == [("1", "alpha", 0, "x"), ("1", "beta", 0, "y")]
    assert study.vocabularies == {"alpha": ("man", "woman")}
    assert study.name == tmp_path.name


def test_several_tables_of_labels_are_joined(tmp_path):
    (tmp_path / "c.csv").write_text("image_id,caption\n1,a\n2,b\n3,c\n")
    (tmp_path / "a.csv").write_text("image_id,gender\n1,male\n2,male\n")
    (tmp_path / "b.csv").write_text("image_id,gender,age\n2,male,old\n3,male,old\n")
    (tmp_path / "study.toml").write_text('captions = "c.csv"\nattributes = ["a.csv", "b.csv"]\n')
    assert read_study(tmp_path).attributes.rows() == [
        ("1", "male", None),
        ("2", "male", "old"),
        ("3", "male", "old"),
    ]
    (tmp_path / "b.csv").write_text("image_id,gender\n2,female\n3,male\n")
    with pytest.raises(
        InputError, match=r"b\.csv: expected gender 'male' of image 2, as another file has it, found 'female'"
    ):
        read_study(tmp_path)


def test_a_model_that_labelled_objects_is_named_by_its_file(tmp_path):
    (tmp_path / "s.csv").write_text("image_id,caption\n1,a\n")
    (tmp_path / "detr.csv").write_text("image_id,label,confidence\n1,dog,0.5\n")
    study = imported(tmp_path / "s.csv", objects=tmp_path / "detr.csv")
    assert study.objects.select("source", "confidence").rows() == [("detr", 0.5)]


def test_what_pandas_may_hold():
    numpy = pytest.importorskip("numpy")
    frame = pd.DataFrame({"image_id": [1, 2], "captions": [numpy.array(["a", "b"]), ["c"]]})
    assert Study.from_frames(captions=frame).captions.height == 3
    mixed = pd.DataFrame({"image_id": pd.Series([numpy.int64(1), "x"], dtype=object), "group": [1.0, None]})
    assert Study.from_frames(attributes=mixed).attributes.rows() == [("1", "1"), ("x", None)]
    lazy = pl.LazyFrame({"image_id": [1], "caption": ["a"]})
    assert Study.from_frames(captions=lazy, vocabularies={"system": ["a"]}).vocabularies == {"system": ("a",)}


def test_select_systems():
    frame = pl.DataFrame({"image_id": [1, 1, 1], "system": ["a", "b", "c"], "caption": ["x", "y", "z"]})
    study = Study.from_frames(captions=frame)
    assert study.select_systems(["c", "a"]).systems == ("c", "a")
    assert study.select_systems(["C", "a", "c"]).systems == ("c", "a")
    with pytest.raises(Exception, match=r"Unknown system 'd'\. .*Available: a, b, c\."):
        study.select_systems(["d"])
