"""Values of labels that mean a group: M is male, by the lexicon's aliases or by hand, and the study says so."""

from __future__ import annotations

import polars as pl
import pytest

from portrayal.cli.main import run
from portrayal.errors import InputError
from portrayal.study import Study, read_study

CAPTIONS = "image_id,caption\n" + "".join(f"{n},a man\n" for n in range(6))


def imported(folder, column, values, *options):
    (folder / "c.csv").write_text(CAPTIONS)
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    (folder / "a.csv").write_text(f"image_id,{column}\n{rows}")
    made = folder / "study"
    code = run(
        [
            "import",
            "table",
            str(folder / "c.csv"),
            "--attributes",
            str(folder / "a.csv"),
            "--out",
            str(made),
            *options,
        ]
    )
    assert code == 0
    return read_study(made)


@pytest.mark.parametrize(
    ("column", "values", "groups", "mapped"),
    [
        ("Sex", "M M M F F F", "male male male female female female", {"M": "male", "F": "female"}),
        ("gender", "man Man m woman F female", "male male male female female female",
         {"man": "male", "Man": "male", "m": "male", "woman": "female", "F": "female"}),
        ("gender", "Male male Male female female female", "male male male female female female", {"Male": "male"}),
        ("gender", "Male Male Male Female Female Female", "Male Male Male Female Female Female", None),
        ("gender", "0 0 0 1 1 1", "0 0 0 1 1 1", None),
        ("skin_tone", "lighter Light-skinned lighter dark dark dark", "light light light dark dark dark",
         {"lighter": "light", "Light-skinned": "light"}),
        ("gender", "M M unknown unknown F F", "male male unknown unknown female female",
         {"M": "male", "F": "female"}),
        ("camera", "M M M F F F", "M M M F F F", None),
    ],
)  # fmt: skip
def test_aliases_of_the_lexicon_name_groups(tmp_path, capsys, column, values, groups, mapped):
    study = imported(tmp_path, column, values.split())
    assert study.attributes[column].to_list() == groups.split()
    assert study.mapped == ({column: mapped} if mapped else {})
    assert (f"Labels of {column} were mapped" in capsys.readouterr().out) == bool(mapped)


def test_a_mapping_by_hand_goes_first_and_matches_any_case(tmp_path, capsys):
    study = imported(tmp_path, "Gender", "0 0 1 1 m m".split(), "--map", "gender:0=Female,1=x,M=m")
    assert study.attributes["Gender"].to_list() == ["Female", "Female", "x", "x", "m", "m"]
    assert "Labels of Gender were mapped: 0 -> Female; 1 -> x." in capsys.readouterr().out


def test_a_table_put_in_place_of_the_imported_one_is_mapped_when_it_is_read(tmp_path):
    imported(tmp_path, "gender", "M M M F F F".split())
    (tmp_path / "study" / "attributes.csv").write_text("image_id,gender\n0,M\n1,male\n2,F\n")
    assert read_study(tmp_path / "study").groups("gender") == ("female", "male")


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("mapped = 3", r"expected tables \[mapped.ATTRIBUTE\] of value = group, found 3"),
        ("[mapped]\ngender = 3", r"expected a table \[mapped.gender\] of value = group, found 3"),
    ],
)
def test_a_mapping_that_is_none(tmp_path, lines, wrong):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "study.toml").write_text(f'captions = "c.csv"\n{lines}\n')
    with pytest.raises(InputError, match=wrong):
        read_study(tmp_path)


def test_two_spellings_are_one_problem_with_a_count():
    labels = {"image_id": range(9), "gender": ["male", *["Male"] * 8]}
    with pytest.raises(InputError) as error:
        Study.from_frames(attributes=pl.DataFrame(labels))
    assert len(error.value.problems) == 1
    assert "8 such labels in all" in str(error.value)
    assert Study.from_frames(attributes=pl.DataFrame(labels), skip_bad=True).left_out == 8


def test_a_free_text_column_can_be_left_out_by_naming_the_others(tmp_path):
    study = imported(tmp_path, "note,gender", [f"n{n},male" for n in range(6)], "--attribute", "gender")
    assert study.attribute_names == ("gender",)
    left = imported(tmp_path, "note,gender", [f"n{n},male" for n in range(6)], "--skip-bad", "--force")
    assert (left.attribute_names, left.left_out) == (("gender",), 1)


def test_columns_of_two_tables_never_collide(tmp_path):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "a.csv").write_text("image_id,gender,gender_again\n0,male,x\n1,male,x\n")
    (tmp_path / "study.toml").write_text('captions = "c.csv"\nattributes = ["a.csv", "a.csv"]\n')
    assert read_study(tmp_path).attributes.rows() == [("0", "male", "x"), ("1", "male", "x")]
