"""Images in which only the person differs, paired by their file names."""

from __future__ import annotations

import pytest

from portrayal.counterfactual.manifest import read_manifest, write_manifest
from portrayal.errors import InputError, PortrayalError
from portrayal.vl_bias.pairs import read_pairs


def write_images(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return folder


def relative_to(folder, path):
    return path.relative_to(folder).as_posix()


SCENE = ("black_man", "black_woman", "white_man", "white_woman")


def test_only_the_gender_is_exchanged(tmp_path):
    write_images(tmp_path, *(f"status/brick_wall/{name}.png" for name in SCENE))
    instances = read_pairs(tmp_path)
    assert [
        (instance.image, instance.group, relative_to(tmp_path, instance.counterfactual))
        for instance in instances
    ] == [
        ("status/brick_wall/black_man.png", "male", "status/brick_wall/black_woman.png"),
        ("status/brick_wall/black_woman.png", "female", "status/brick_wall/black_man.png"),
        ("status/brick_wall/white_man.png", "male", "status/brick_wall/white_woman.png"),
        ("status/brick_wall/white_woman.png", "female", "status/brick_wall/white_man.png"),
    ]
    assert {(instance.kind, instance.concept) for instance in instances} == {("status", "brick wall")}


def test_another_exchange(tmp_path):
    write_images(tmp_path, *(f"status/bus/{name}.png" for name in SCENE))
    counterfactuals = {
        instance.image[11:-4]: (instance.group, relative_to(tmp_path, instance.counterfactual)[11:-4])
        for instance in read_pairs(tmp_path, {"black": "white"})
    }
    assert counterfactuals["black_man"] == ("black", "white_man")
    assert counterfactuals["white_woman"] == ("white", "black_woman")


def test_pairs_can_be_written_as_a_manifest(tmp_path):
    write_images(tmp_path, *(f"status/bus/{name}.png" for name in SCENE))
    instances = read_pairs(tmp_path)
    write_manifest(instances, tmp_path / "manifest.csv")
    loaded = read_manifest(tmp_path / "manifest.csv")
    assert [instance.image for instance in loaded.instances] == [instance.image for instance in instances]
    assert all(
        instance.counterfactual is not None and instance.counterfactual.is_file()
        for instance in loaded.instances
    )


def test_all_missing_partners_are_reported(tmp_path):
    write_images(
        tmp_path, "status/bus/black_man.png", "status/bus/white_woman.png", "status/bus/some_one.png"
    )
    with pytest.raises(InputError) as error:
        read_pairs(tmp_path)
    assert "black_man.png: expected one counterfactual black_woman, found none" in str(error.value)
    assert "expected one counterfactual white_man, found none" in str(error.value)
    assert "two parts joined by '_', one of them man or woman, found 'some_one'" in str(error.value)


def test_numbers_at_the_end_of_a_name_are_ignored(tmp_path):
    write_images(tmp_path, "status/bus/white_man1.png", "status/bus/white_woman.jpg")
    assert [
        (instance.group, relative_to(tmp_path, instance.counterfactual)[11:])
        for instance in read_pairs(tmp_path)
    ] == [
        ("male", "white_woman.jpg"),
        ("female", "white_man1.png"),
    ]
    write_images(tmp_path, "status/bus/white_man2.png")
    with pytest.raises(InputError, match=r"white_woman\.jpg: expected one counterfactual white_man, found 2"):
        read_pairs(tmp_path)


def test_nothing_to_read(tmp_path):
    with pytest.raises(PortrayalError, match="holds no images"):
        read_pairs(tmp_path)
    with pytest.raises(PortrayalError, match="There is no folder"):
        read_pairs(tmp_path / "none")
    with pytest.raises(PortrayalError, match="each word once"):
        read_pairs(tmp_path, {"man": "man"})


def test_the_real_set(shared):
    instances = read_pairs(shared / "images" / "pairs")
    assert len(instances) == 200
    assert len({(instance.kind, instance.concept) for instance in instances}) == 50
    assert sum(instance.group == "male" for instance in instances) == 100
