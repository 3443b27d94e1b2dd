"""Mapping of label values to groups: M is male, by aliases or by the user, and the study records it."""

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
    study_folder = folder / "study"
    code = run(
        [
            "import",
            "table",
            str(folder / "c.csv"),
            "--attributes",
            str(folder / "a.csv"),
            "--out",
            str(study_folder),
            *options,
        ]
    )
    assert code == 0
    return read_study(study_folder)


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


def test_tables_may_have_values_or_groups(tmp_path, command):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "a.csv").write_text("image_id,gender\n" + "".join(f"{n},{n % 2}\n" for n in range(6)))
    (tmp_path / "r.csv").write_text("query,item,score,Sex\n" + "".join(f"q,{n},1,female\n" for n in range(6)))
    arguments = ("import", "table", tmp_path / "c.csv", "--attributes", tmp_path / "a.csv")
    arguments = (*arguments, "--rankings", tmp_path / "r.csv", "--out", tmp_path / "study", "--map")
    code, _, err = command(*arguments, "gender:0=female,1=male,2=x")
    assert code == 2
    assert "--map gender: no image has the value '2'; the values are 'female', '0', '1'." in err
    code, out, err = command(*arguments, "gender:0=female,1=male")
    assert (code, err) == (0, "")
    assert "Labels of gender were mapped: 0 -> female; 1 -> male." in out
    study = read_study(tmp_path / "study")
    assert (study.groups("gender"), set(study.rankings["Sex"])) == (("female", "male"), {"female"})


@pytest.mark.parametrize("name", ["sex", "gender", "GENDER", "Sex"])
def test_columns_match_by_any_name_of_the_attribute(name, tmp_path):
    """By any case and by any name that the lexicon has for them; `Sex_certainty` goes with `Sex`."""
    rows = [f"n{n},{n % 2},1" for n in range(6)]
    options = ("--attribute", name, "--map", f"{name}:0=female", "--map", "gender:1=male")
    study = imported(tmp_path, "note,Sex,Sex_certainty", rows, *options)
    assert (study.attributes.columns, study.attribute_names) == (
        ["image_id", "Sex", "Sex_certainty"],
        ("Sex",),
    )
    assert study.mapped == {"Sex": {"0": "female", "1": "male"}}


@pytest.mark.parametrize(
    ("header", "options", "sentence"),
    [
        ("Sex,sex", ("--attribute", "GENDER"), "The attribute 'GENDER' can be 'Sex' or 'sex' of this study"),
        ("Sex,x", ("--attribute", "age"), "expected a column 'age', found the columns Sex, x."),
        ("Sex,x", ("--map", "age:a=b"), "--map age: there is no such column of labels; the columns are Sex, x."),
        ("Sex,x", ("--map", "sex:a=x", "--map", "gender:A=y"), "--map Sex: the value 'a' is mapped to two groups"),
        ("Sex,x", ("--map", "sex:a=b", "--map", "gender:b=a"), "Sex: 'a' is mapped to 'b', which is mapped to 'a'"),
    ],
)  # fmt: skip
def test_names_that_mean_no_column_or_two(header, options, sentence, tmp_path, command):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "a.csv").write_text(f"image_id,{header}\n" + "".join(f"{n},a,a\n" for n in range(6)))
    arguments = ("import", "table", tmp_path / "c.csv", "--attributes", tmp_path / "a.csv", *options)
    code, _, err = command(*arguments, "--out", tmp_path / "study")
    assert (code, sentence in err) == (2, True)


def test_an_exact_spelling_selects_only_that_column(tmp_path):
    values = ["0,0", "1,1"] * 3
    study = imported(tmp_path, "gender,Gender", values, "--map", "Gender:0=female,1=male")
    assert (study.groups("gender"), study.groups("Gender")) == (("0", "1"), ("female", "male"))


def test_a_table_that_replaces_the_imported_table_is_mapped(tmp_path):
    imported(tmp_path, "gender", "M M M F F F".split())
    (tmp_path / "study" / "attributes.csv").write_text("image_id,gender\n0,M\n1,male\n2,F\n")
    assert read_study(tmp_path / "study").groups("gender") == ("female", "male")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("mapped = 3", r"expected tables \[mapped.ATTRIBUTE\] of value = group, found 3"),
        ("[mapped]\ngender = 3", r"expected a table \[mapped.gender\] of value = group, found 3"),
    ],
)
def test_a_malformed_mapping_is_refused(tmp_path, lines, message):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "study.toml").write_text(f'captions = "c.csv"\n{lines}\n')
    with pytest.raises(InputError, match=message):
        read_study(tmp_path)


def test_several_spellings_give_a_single_problem_with_a_count():
    labels = {"image_id": range(9), "gender": ["male", *["Male"] * 8]}
    with pytest.raises(InputError) as error:
        Study.from_frames(attributes=pl.DataFrame(labels))
    assert len(error.value.problems) == 1
    assert "8 such labels in all" in str(error.value)
    assert Study.from_frames(attributes=pl.DataFrame(labels), skip_bad=True).left_out == 8


def test_a_group_spelt_differently_in_two_files_gives_a_single_problem(tmp_path, command):
    """Also where both files label the same images, and for ranked items; the suggestion in the problem solves it."""
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "a.csv").write_text("image_id,gender,age\n" + "".join(f"{n},Male,old\n" for n in range(4)))
    (tmp_path / "b.csv").write_text("image_id,gender\n" + "".join(f"{n},male\n" for n in range(2, 6)))
    for name, group in (("r", "Male"), ("s", "male")):
        (tmp_path / f"{name}.csv").write_text(f"query,item,score,gender\nq,1,1,{group}\nq,2,1,{group}\n")
    tables = 'attributes = ["a.csv", "b.csv"]\n[rankings]\nr = "r.csv"\ns = "s.csv"\n'
    (tmp_path / "study.toml").write_text(f'captions = "c.csv"\n{tables}')
    with pytest.raises(InputError) as error:
        read_study(tmp_path)
    assert [(problem.file, problem.count) for problem in error.value.problems] == [
        (str(tmp_path / "b.csv"), 4),
        (str(tmp_path / "s.csv"), 2),
    ]
    mapping = '[mapped."gender"]', '"male" = "Male"'
    assert "the group 'Male' of 'gender' spelt as in another file, found 'male' (4 such labels" in str(
        error.value
    )
    assert f"in study.toml, {mapping[0]} with the line {mapping[1]} makes them one" in str(error.value)
    without_bad_rows = read_study(tmp_path, skip_bad=True)
    assert (
        without_bad_rows.left_out,
        without_bad_rows.groups("gender"),
        without_bad_rows.rankings["gender"].null_count(),
    ) == (6, ("Male",), 2)
    assert without_bad_rows.labels("gender").height == 4
    (tmp_path / "study.toml").write_text(f'captions = "c.csv"\n{tables}{mapping[0]}\n{mapping[1]}\n')
    study = read_study(tmp_path)
    assert (study.groups("gender"), study.labels("gender").height) == (("Male",), 6)
    arguments = ("import", "table", "--rankings", tmp_path / "r.csv", "--rankings", tmp_path / "s.csv")
    code, _, err = command(*arguments, "--out", tmp_path / "new")
    assert (code, "portrayal import --map gender:male=Male makes them one" in err) == (2, True)
    assert command(*arguments, "--map", "gender:male=Male", "--out", tmp_path / "new")[0] == 0
    assert set(read_study(tmp_path / "new").rankings["gender"]) == {"Male"}


def test_a_free_text_column_can_be_left_out_by_naming_the_others(tmp_path):
    study = imported(tmp_path, "note,gender", [f"n{n},male" for n in range(6)], "--attribute", "gender")
    assert study.attribute_names == ("gender",)
    without_free_text = imported(
        tmp_path, "note,gender", [f"n{n},male" for n in range(6)], "--skip-bad", "--force"
    )
    assert (without_free_text.attribute_names, without_free_text.left_out) == (("gender",), 1)


def test_columns_of_two_tables_never_collide(tmp_path):
    (tmp_path / "c.csv").write_text(CAPTIONS)
    (tmp_path / "a.csv").write_text("image_id,gender,gender_again\n0,male,x\n1,male,x\n")
    (tmp_path / "study.toml").write_text('captions = "c.csv"\nattributes = ["a.csv", "a.csv"]\n')
    assert read_study(tmp_path).attributes.rows() == [("0", "male", "x"), ("1", "male", "x")]


def test_names_that_look_the_same_are_the_same_group(tmp_path):
    """A character without width, or another way to write a letter, makes no group of its own."""
    rows = [
        "image_id,gender",
        *(f"{n},{name}" for n, name in enumerate(("male", "male\u200b", " male", "\ufeffmale"))),
    ]
    rows += [f"{n},ma\u0308nnlich" for n in (4, 5)] + [f"{n},m\u00e4nnlich" for n in (6, 7)]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "c.csv").write_text("image_id,caption\n" + "\n".join(f"{n},a man" for n in range(8)))
    (tmp_path / "study.toml").write_text('attributes = "a.csv"\n[captions]\ns = "c.csv"\n')
    assert read_study(tmp_path).group_counts("gender") == {"male": 4, "m\u00e4nnlich": 4}


def test_possible_missing_values_are_reported(tmp_path, command):
    rows = "\n".join(f"{n},{'nan' if n < 3 else 'a man'}" for n in range(8))
    (tmp_path / "c.csv").write_text(f"image_id,caption\n{rows}\n")
    (tmp_path / "a.csv").write_text(
        "image_id,gender\n" + "\n".join(f"{n},{'None' if n % 2 else 'male'}" for n in range(8))
    )
    (tmp_path / "study.toml").write_text('attributes = "a.csv"\n[captions]\ns = "c.csv"\n')
    stdout = " ".join(command("check-study", tmp_path)[1].split())
    assert (
        "3 captions of 's' are one of nan, null, none, n/a, na, which may stand for a missing caption"
        in stdout
    )
    assert (
        "gender has a group called 'None'; where that stands for a missing label, leave the cell empty."
        in stdout
    )
