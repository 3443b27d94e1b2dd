"""Thumbnails: small, upright, and unreadable images are left out."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from portrayal.results import THUMBNAILS_SCHEMA
from portrayal.study import thumbnails as module
from portrayal.study.thumbnails import thumbnails


def test_images_of_every_kind_become_thumbnails(tmp_path):
    Image.new("RGB", (400, 200), "red").save(tmp_path / "wide.jpg")
    Image.new("L", (20, 30), 128).save(tmp_path / "grey.png")
    Image.new("RGBA", (300, 300), (0, 0, 255, 100)).save(tmp_path / "clear.png")
    Image.new("CMYK", (90, 90)).save(tmp_path / "print.jpg")
    rotated = Image.new("RGB", (100, 50), "red")
    exif = rotated.getexif()
    exif[0x0112] = 6  # the camera was held upright
    rotated.save(tmp_path / "turned.jpg", exif=exif)
    files = {path.stem: path for path in sorted(tmp_path.iterdir())}
    table = thumbnails(files, ["wide", "grey", "clear", "print", "turned", "missing"])
    assert dict(table.schema) == THUMBNAILS_SCHEMA
    sizes = {image: Image.open(io.BytesIO(content)).size for image, content in table.iter_rows()}
    assert sizes == {
        "wide": (72, 36),
        "grey": (20, 30),
        "clear": (72, 72),
        "print": (72, 72),
        "turned": (36, 72),
    }


def test_unreadable_images_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "text.png").write_text("not a picture")
    complete = io.BytesIO()
    Image.new("RGB", (200, 200), "blue").save(complete, "PNG")
    (tmp_path / "half.png").write_bytes(complete.getvalue()[:60])
    (tmp_path / "empty.jpg").write_bytes(b"")
    Image.new("1", (300, 300)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(module, "_MAX_PIXELS", 300 * 300 - 1)
    files = {path.stem: path for path in tmp_path.iterdir()}
    assert thumbnails(files, ["text", "half", "empty", "bomb"]).height == 0


@pytest.mark.parametrize("names", [[], ["nowhere"]])
def test_no_images_give_an_empty_table(names):
    table = thumbnails({}, names)
    assert table.height == 0
    assert dict(table.schema) == THUMBNAILS_SCHEMA
