"""Import of the public LIC data: names, counts, order, and labels by file name."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from portrayal.errors import InputError, Problems
from portrayal.study import importers, read_study
from portrayal.study.importers import safe_pickle
from portrayal.study.importers.lic import merge_orders, system_name

NAMES = {
    "st10": "nic",
    "st10_th10": "nic-th10",
    "st10_th5": "nic-th5",
    "sat": "sat",
    "fc": "fc",
    "att2in": "att2in",
    "updn": "updn",
    "transformer": "transformer",
    "cider_oscar": "oscar",
    "oscar": "oscar-xe",
    "baselineft": "nic-plus",
    "snowboard": "nic-equalizer",
    "snowboard_masked_person": "nic-equalizer-masked-person",
    "st10_th10_masked_background": "nic-th10-masked-background",
    "gpt": None,
}


@pytest.mark.parametrize("key", NAMES)
def test_system_names(key):
    assert system_name(key) == NAMES[key]


def entry(image, caption, gender="Male", skin="Light"):
    return {"img_id": image, "pred": caption, "bb_gender": gender, "bb_skin": skin}


def write(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(entries))


def run(folder, *attributes, **options):
    problems = Problems()
    result = importers.run_importer(
        "lic", importers.ImportRequest([str(folder)], attribute_names=attributes, **options), problems
    )
    problems.settle()
    return result


def test_the_file_name_decides_not_its_folder(tmp_path):
    write(tmp_path / "Oscar" / "gender_val_sat_cap_mw_entries.pkl", [entry(1, "a man")])
    write(tmp_path / "Show-Tell" / "gender_val_oscar_cap_entries.pkl", [entry(1, "a guy")])
    write(tmp_path / "Show-Tell" / "gender_val_mystery_cap_entries.pkl", [entry(1, "a dude")])
    write(tmp_path / "race_val_sat_cap_entries.pkl", [entry(1, "a man")])
    result = run(tmp_path, "gender")
    assert result.study.systems == ("sat", "oscar-xe")
    assert result.notes == ["Not LIC data, left alone: gender_val_mystery_cap_entries.pkl."]


def test_attributes_have_any_of_their_names_and_groups_those_that_are_given(tmp_path, command):
    write(tmp_path / "d" / "race_val_sat_cap_entries.pkl", [entry(1, "a"), entry(2, "b", skin="Dark")])
    arguments = ("import", "lic", tmp_path / "d", "--attribute", "Skin", "--map", "race:dark=darker")
    assert command(*arguments, "--out", tmp_path / "study")[0] == 0
    study = read_study(tmp_path / "study")
    assert (study.groups("race"), study.mapped) == (("darker", "light"), {"race": {"dark": "darker"}})


def test_unsure_and_empty_labels_are_dropped_and_counted(tmp_path):
    rows = [
        entry(1, "a", skin="Light"),
        entry(2, "b", skin="Unsure"),
        entry(3, "c", skin=""),
        entry(4, "d", skin="Dark"),
    ]
    write(tmp_path / "race_val_sat_cap_entries.pkl", rows)
    result = run(tmp_path, "race")
    assert result.study.attributes.rows() == [("1", "light"), ("4", "dark")]
    assert result.study.captions["image_id"].to_list() == ["1", "4"]
    assert result.notes == ["race_val_sat_cap_entries.pkl: 2 entries without a usable label were left out."]


def test_vocabularies_go_to_every_variant(tmp_path):
    for key in ("st10", "st10_th10", "cider_oscar", "oscar", "baselineft", "sat_masked_person"):
        write(tmp_path / f"gender_val_{key}_cap_mw_entries.pkl", [entry(1, "a man")])
    for name in ("nic", "oscar", "nic_plus", "sat"):
        write(tmp_path / "model_vocab" / f"{name}_vocab.pkl", [name])
    assert run(tmp_path, "gender").study.vocabularies == {
        "nic": ("nic",),
        "nic-th10": ("nic",),
        "oscar": ("oscar",),
        "oscar-xe": ("oscar",),
        "nic-plus": ("nic_plus",),
        "sat-masked-person": ("sat",),
    }


def test_files_that_contradict_each_other(tmp_path):
    write(tmp_path / "gender_val_sat_cap_mw_entries.pkl", [entry(1, "a man", "Male")])
    write(tmp_path / "gender_val_fc_cap_mw_entries.pkl", [entry(1, "a man", "Female")])
    with pytest.raises(Exception, match="expected image 1 as 'female', as another file has it, found 'male'"):
        run(tmp_path, "gender")


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("abd", "bcde", "abcde"),
        ("ab", "cd", "abcd"),
        ("abc", "", "abc"),
        ("abc", "abc", "abc"),
        ("ba", "abc", "bac"),
        ("c", "abcd", "abcd"),
    ],
)
def test_merged_order(first, second, merged):
    assert "".join(merge_orders(first, second)) == merged


@pytest.mark.parametrize("value", [b"bytes", bytearray(b"x"), complex(1, 2), range(3), print, {"a": object}])
def test_only_plain_data_is_unpickled(value, tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(Exception, match="expected a pickle of lists, dicts, text and numbers only"):
        safe_pickle.load(path, Problems())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_unpickled_in_every_protocol(protocol, tmp_path):
    value = [{"a": (1, -2.5, "é", None, True), "b": [2**40, []]}]
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    assert safe_pickle.load(path, Problems()) == value


def test_a_huge_memo_number_is_refused(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x04]r\xff\xff\xff\x7f.")
    with pytest.raises(Exception, match="a memo number of 2147483647"):
        safe_pickle.load(path, Problems())


HOSTILE = {
    "keys nested without end": (b"})" + b"\x85" * 200_000 + b"Ns.", "a key that is no text"),
    "keys whose hashes collide": (
        b"}("
        + b"".join(pickle.dumps(number * (2**61 - 1), 2)[2:-1] + b"N" for number in range(1, 4))
        + b"u.",
        "a key that is no text",
    ),
    "members of a set that collide": (b"\x8f(K\x01K\x02\x90.", "a key that is no text"),
    "a key as long as a book": (
        b"}X" + (2_000).to_bytes(4, "little") + b"a" * 2_000 + b"Ns.",
        "a key that is no text",
    ),
    "a text longer than there can be": (b"\x8d" + b"\xff" * 8 + b"a.", "cut short or is none"),
    "a value that is missing": (b"]a.", "cut short or is none"),
    "a mark that is missing": (b"]e.", "cut short or is none"),
    "a list that is none": (b"NNa.", "cut short or is none"),
    "a number that was never kept": (b"h\x07.", "cut short or is none"),
    "no end": (b"]", "cut short or is none"),
    "nothing": (b"", "cut short or is none"),
    "a number of thousands of digits": (b"L" + b"9" * 5_000 + b"L\n.", "cut short or is none"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused_before_they_do_harm(name, tmp_path):
    opcodes, sentence = HOSTILE[name]
    (tmp_path / "x.pkl").write_bytes(b"\x80\x04" + opcodes)
    with pytest.raises(InputError, match=sentence):
        safe_pickle.load(tmp_path / "x.pkl", Problems())


def test_a_frame_longer_than_the_largest_number_is_only_a_frame(tmp_path):
    """It says how much to read at once; here all is read, so that it decides nothing."""
    (tmp_path / "x.pkl").write_bytes(b"\x80\x04\x95" + b"\xff" * 8 + b"].")
    assert safe_pickle.load(tmp_path / "x.pkl", Problems()) == []


def test_instructions_and_bytes_of_a_pickle_are_limited(tmp_path, monkeypatch):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(["a man"] * 20))
    monkeypatch.setattr(safe_pickle, "MAX_INSTRUCTIONS", 10)
    with pytest.raises(InputError, match="more than 10 instructions"):
        safe_pickle.load(tmp_path / "x.pkl", Problems())
    monkeypatch.setattr(safe_pickle, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="at most 10 bytes"):
        safe_pickle.load(tmp_path / "x.pkl", Problems())


SHARED = ["a", "b"]
PLAIN = [
    [],
    (),
    {},
    {"a"},
    frozenset({"a", "b"}),
    [1, (2,), (3, 4), (5, 6, 7), (8, 9, 10, 11)],
    [2**70, -(2**70), 1.5, True, False, None, "é", "\U0001f600", "x" * 300],
    [SHARED, SHARED, {"a": SHARED}],
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_read_as_the_unpickler_reads_it(protocol, tmp_path):
    for number, value in enumerate(PLAIN):
        if protocol < 4 and isinstance(value, set | frozenset):
            continue  # older protocols name the class
        (tmp_path / f"{number}.pkl").write_bytes(pickle.dumps(value, protocol=protocol))
        assert safe_pickle.load(tmp_path / f"{number}.pkl", Problems()) == value


def test_the_real_gender_study(lic_gender):
    study = read_study(lic_gender)
    assert study.systems == ("nic", "nic-th10", "sat", "oscar", "nic-plus", "nic-equalizer")
    per_system = study.captions.group_by("system").agg(pl.col("image_id").n_unique())
    assert set(per_system["image_id"]) == {10_780}
    assert dict(study.attributes.group_by("gender").len().iter_rows()) == {"male": 7_466, "female": 3_314}
    counts = study.references.group_by("image_id").len()["len"]
    assert counts.len() == 10_608
    assert (counts >= 5).sum() == 8_461
    assert {name: len(words) for name, words in study.vocabularies.items()} == {
        "nic": 777, "nic-th10": 777, "sat": 641, "oscar": 491, "nic-plus": 511, "nic-equalizer": 504,
    }  # fmt: skip


def test_the_order_of_the_real_files_is_kept(shared, lic_gender):
    study = read_study(lic_gender)
    path = shared / "lic" / "bias_data" / "Show-Attend-Tell" / "gender_val_sat_cap_mw_entries.pkl"
    published = pickle.loads(path.read_bytes())
    assert study.captions_of("sat")["image_id"].to_list() == [str(entry["img_id"]) for entry in published]
    assert study.captions_of("sat")["caption"].to_list() == [entry["pred"] for entry in published]


def test_all_three_attributes_of_the_real_data(shared):
    result = run(shared / "lic", "gender", "race", "age")
    labels = result.study.attributes
    counts = {
        name: dict(labels.drop_nulls(name).group_by(name).len().iter_rows())
        for name in ("gender", "race", "age")
    }
    assert counts == {
        "gender": {"male": 7_466, "female": 3_314},
        "race": {"light": 9_873, "dark": 1_096},
        "age": {"old": 4_603, "young": 2_435},
    }
    assert "oscar-xe" in result.study.systems
    # Both published orders survive in the joint study, so both published splits can be drawn from it.
    for attribute, file in (
        ("gender", "gender_val_sat_cap_mw_entries.pkl"),
        ("race", "race_val_sat_cap_entries.pkl"),
    ):
        published = pickle.loads((shared / "lic" / "bias_data" / "Show-Attend-Tell" / file).read_bytes())
        labelled = set(labels.drop_nulls(attribute)["image_id"])
        order = [image for image in result.study.captions_of("sat")["image_id"] if image in labelled]
        assert order == [str(entry["img_id"]) for entry in published if str(entry["img_id"]) in labelled]
