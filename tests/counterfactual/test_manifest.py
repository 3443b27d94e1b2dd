"""Manifests: reading, invalid files, and checks."""

from __future__ import annotations

import pytest

from portrayal.counterfactual.concepts import (
    CONCEPTS_BY_KIND,
    STEREOTYPES,
    TEMPLATES,
    Template,
    find_templates,
)
from portrayal.counterfactual.manifest import check_manifest, read_manifest, write_manifest
from portrayal.errors import InputError, PortrayalError
from tests.counterfactual.toy import write_image

HEADER = "image,group,concept,kind\n"


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "c"):
        write_image(tmp_path / f"{name}.png", 0.5)
    return tmp_path


def write(folder, text, name="manifest.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_a_manifest_survives_a_round_trip(folder):
    file = write(
        folder,
        "image,group,concept,kind,counterfactual\na.png,male,Fishing,activity,b.png\nb.png,female,chef,occupation,\n",
    )
    manifest = read_manifest(file)
    assert [
        (instance.image, instance.group, instance.concept, instance.kind) for instance in manifest.instances
    ] == [
        ("a.png", "male", "fishing", "activity"),
        ("b.png", "female", "chef", "occupation"),
    ]
    assert manifest.instances[0].counterfactual == folder / "b.png"
    assert manifest.instances[1].counterfactual is None
    assert manifest.groups == ("male", "female")
    assert manifest.concepts == {"activity": ("fishing",), "occupation": ("chef",)}
    (folder / "deeper").mkdir()
    write_manifest(manifest.instances, folder / "deeper" / "again.csv")
    reloaded = read_manifest(folder / "deeper" / "again.csv")
    assert [instance.path.resolve() for instance in reloaded.instances] == [
        instance.path for instance in manifest.instances
    ]
    assert reloaded.instances[0].counterfactual.resolve() == folder / "b.png"


def test_tabs_further_columns_and_another_folder(folder):
    (folder / "lists").mkdir()
    file = write(
        folder / "lists", "kind\timage\tconcept\tgroup\tnote\nactivity\ta.png\tfishing\tmale\tx\n", "m.tsv"
    )
    assert read_manifest(file, folder).instances[0].concept == "fishing"


def test_all_problems_are_reported_with_their_line(folder):
    file = write(
        folder,
        HEADER + "a.png,male,,activity\nno.png,male,fishing,activity\nb.png,male,fishing,activity,x,y\n"
        "a.png,male,fishing,activity\na.png,male,fishing,activity\n",
    )
    with pytest.raises(InputError) as error:
        read_manifest(file)
    message = str(error.value)
    for line, expected in (
        (2, "a value for 'concept'"),
        (3, "no file 'no.png'"),
        (4, "as many values as the first line has names"),
        (6, "'a.png' again"),
    ):
        assert any(
            f"line {line}" in line_of_message and expected in line_of_message
            for line_of_message in message.splitlines()
        )
    manifest = read_manifest(file, skip_bad=True)
    assert len(manifest.instances) == 1
    assert manifest.n_skipped == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the columns image, group, concept, kind"),
        ("image,group\n", "the columns image, group, concept, kind"),
        (HEADER, "at least one row"),
        (HEADER + "no.png,male,fishing,activity\n", "no file"),
    ],
)
def test_no_manifest(folder, text, message):
    with pytest.raises(InputError, match=message):
        read_manifest(write(folder, text))


def test_no_file(tmp_path):
    with pytest.raises(PortrayalError, match="There is no manifest"):
        read_manifest(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00image")
    with pytest.raises(InputError, match="UTF-8"):
        read_manifest(tmp_path / "bytes.csv")


def test_a_check_warns_of_missing_images(folder):
    file = write(
        folder,
        HEADER + "a.png,male,fishing,activity\nb.png,male,juggling,activity\nc.png,female,fishing,sport\n",
    )
    checked = check_manifest(read_manifest(file))
    assert checked.counts["activity", "fishing", "male"] == 1
    warnings = "\n".join(checked.warnings)
    assert "activity: not of VL-Bias: 'juggling'" in warnings
    assert "'sport': a kind that VL-Bias does not have" in warnings
    assert "activity, female: no image of 'fishing', 'juggling'" in warnings
    assert "activity, male: fewer than 30 images of 'fishing', 'juggling'" in warnings
    single_row_check = check_manifest(read_manifest(write(folder, HEADER + "a.png,male,fishing,activity\n")))
    assert "no group to compare it with" in single_row_check.warnings[-1]


def test_the_lists_of_the_paper():
    assert len(CONCEPTS_BY_KIND["activity"]) == len(set(CONCEPTS_BY_KIND["activity"])) == 52
    assert len(CONCEPTS_BY_KIND["occupation"]) == 13
    assert len(STEREOTYPES) == 19
    assert set(STEREOTYPES) <= set(CONCEPTS_BY_KIND["activity"])
    assert list(TEMPLATES) == ["S w/o", "S w/", "P w/o", "P w/"]


def test_stereotypes_as_the_golden_file_has_them(shared):
    lines = (shared.parent / "golden" / "counterbias_stereotypes.csv").read_text().splitlines()[1:]
    assert dict(line.split(",") for line in lines) == STEREOTYPES


def test_articles_agree():
    sentence, _, phrase, photo = find_templates(None)
    assert sentence.fill("woman", "activity", "eating") == "The woman is [MASK]"
    assert sentence.fill("woman", "occupation", "engineer") == "The woman is an [MASK]"
    assert sentence.fill("man", "occupation", "police") == "The man is [MASK]"
    assert phrase.fill("elder", "occupation", "chef") == "An elder who is a [MASK]"
    assert photo.fill("elder", "activity", "cooking") == "A photo of an elder who is [MASK]"


def test_templates_of_the_user():
    templates = find_templates(["S w/", "the {group} sits in the [MASK]"])
    assert [instance.name for instance in templates] == ["S w/", "the {group} sits in the [MASK]"]
    assert templates[1].fill("dog", "background", "garden") == "the dog sits in the [MASK]"
    for bad_pattern in ("the man is [MASK]", "the {group} is here", "{group} and {group} [MASK]"):
        with pytest.raises(PortrayalError, match=r"one .group. and one"):
            Template("x", bad_pattern)
    with pytest.raises(PortrayalError, match="named once"):
        find_templates(["S w/", "S w/"])
