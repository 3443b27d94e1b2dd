"""Reading images that others made: all kinds come out the same, and no file is a crash."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from portrayal.errors import InputError
from portrayal.models.vision.images import read_image

RED = (200, 30, 10)


def same(path, expected=RED, tolerance=2) -> None:
    batches = read_image(path)
    assert batches.mode == "RGB"
    assert np.abs(np.asarray(batches, dtype=int) - np.array(expected)).max() <= tolerance


def test_gray_palette_and_colour_come_out_in_colour(tmp_path):
    for mode, colour, expected in (("L", 90, (90, 90, 90)), ("1", 1, (255, 255, 255)), ("RGB", RED, RED)):
        Image.new(mode, (8, 6), colour).save(tmp_path / f"{mode}.png")
        same(tmp_path / f"{mode}.png", expected)
    Image.new("RGB", (8, 6), RED).quantize(4).save(tmp_path / "palette.png")
    same(tmp_path / "palette.png")


def test_cmyk_of_print(tmp_path):
    Image.new("RGB", (16, 16), RED).convert("CMYK").save(tmp_path / "print.jpg", quality=100)
    with Image.open(tmp_path / "print.jpg") as written:
        assert written.mode == "CMYK"
    same(tmp_path / "print.jpg", tolerance=6)


def test_what_is_transparent_stands_on_white(tmp_path):
    # 40 % of red and 60 % of white; what colour hides under a clear pixel does not matter.
    Image.new("RGBA", (4, 4), (*RED, 102)).save(tmp_path / "glass.png")
    same(tmp_path / "glass.png", tuple(round(0.4 * part + 0.6 * 255) for part in RED))
    Image.new("RGBA", (4, 4), (*RED, 0)).save(tmp_path / "clear.png")
    same(tmp_path / "clear.png", (255, 255, 255))
    Image.new("LA", (4, 4), (0, 0)).save(tmp_path / "gray.png")
    same(tmp_path / "gray.png", (255, 255, 255))
    clear = Image.new("P", (4, 4), 3)
    clear.putpalette([0, 0, 0] * 4)
    clear.save(tmp_path / "palette.gif", transparency=3)
    same(tmp_path / "palette.gif", (255, 255, 255))


def test_sixteen_bits_are_not_cut_to_white(tmp_path):
    Image.fromarray(np.full((5, 5), 0x8000, dtype=np.uint16)).save(tmp_path / "deep.png")
    same(tmp_path / "deep.png", (128, 128, 128))
    Image.fromarray(np.full((5, 5), 0.5, dtype=np.float32)).save(tmp_path / "float.tiff")
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "float.tiff")


def test_images_are_turned_as_the_camera_was_held(tmp_path):
    lying = Image.new("RGB", (30, 20), "white")
    lying.paste(RED, (0, 0, 30, 4))  # the upper edge of what the sensor saw
    for orientation, edge in ((1, "top"), (3, "bottom"), (6, "right"), (8, "left")):
        notes = Image.Exif()
        notes[0x0112] = orientation
        lying.save(tmp_path / "held.png", exif=notes)
        batches = np.asarray(read_image(tmp_path / "held.png"), dtype=int)[..., 1] < 128
        assert batches.shape == ((20, 30) if orientation in (1, 3) else (30, 20))
        dark = {"top": batches[0], "bottom": batches[-1], "left": batches[:, 0], "right": batches[:, -1]}
        assert dark[edge].all()


def test_a_broken_note_on_orientation_leaves_the_image(tmp_path):
    Image.new("RGB", (8, 8), RED).save(
        tmp_path / "odd.jpg", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff", quality=100
    )
    same(tmp_path / "odd.jpg", tolerance=4)


def test_of_a_moving_image_the_first(tmp_path):
    first, second = Image.new("RGB", (6, 6), RED), Image.new("RGB", (6, 6), "blue")
    first.save(tmp_path / "film.gif", save_all=True, append_images=[second])
    same(tmp_path / "film.gif", tolerance=40)


def bomb(width: int, height: int) -> bytes:
    """A PNG of the size told in its head, which is all that is there of it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1 << 20))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "result"), [(20_000, "a larger one"), (9_000, "9,000 by 9,000")])
def test_bombs_are_refused_before_they_go_off(tmp_path, side, result):
    (tmp_path / "bomb.png").write_bytes(bomb(side, side))
    with pytest.raises(InputError, match="at most 50,000,000 pixels") as refused:
        read_image(tmp_path / "bomb.png")
    assert result in str(refused.value)


def test_what_is_no_image_is_named(tmp_path):
    full = tmp_path / "whole.jpg"
    Image.effect_noise((64, 64), 50).save(full)
    (tmp_path / "cut.jpg").write_bytes(full.read_bytes()[:400])
    (tmp_path / "text.png").write_text("no picture")
    for name in ("cut.jpg", "text.png"):
        with pytest.raises(InputError, match=f"{name}: expected an image, found something that cannot"):
            read_image(tmp_path / name)


def test_a_file_that_asks_for_a_program_is_not_obeyed(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("a program was started"))
    head = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "drawing.png").write_bytes(head)
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "drawing.png")


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(InputError, match="found no file"):
        read_image(tmp_path / "nothing.png")
    with pytest.raises(InputError, match="found a special file"):
        read_image(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    outputs = []

    def ask() -> None:
        try:
            read_image(tmp_path / "pipe.png")
        except InputError as error:
            outputs.append(str(error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(20)
    assert outputs
    assert "a special file" in outputs[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("kinds")
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 31, 3), dtype=np.uint8))
    kinds = ("png", "jpg", "gif", "bmp", "webp", "tiff", "ppm")
    for kind in kinds:
        noise.save(folder / f"noise.{kind}")
    return {kind: (folder / f"noise.{kind}").read_bytes() for kind in kinds}


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_a_image_or_an_error_and_never_a_crash(data, files, tmp_path):
    kind = data.draw(st.sampled_from(sorted(files)))
    body = bytearray(files[kind])
    for _ in range(data.draw(st.integers(0, 8))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body
    (tmp_path / f"damaged.{kind}").write_bytes(bytes(body))
    with contextlib.suppress(InputError):
        assert read_image(tmp_path / f"damaged.{kind}").mode == "RGB"
