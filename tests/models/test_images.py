"""Reading images of others: all kinds give the same pixels, and no file causes a crash."""

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


def assert_colour(path, expected=RED, tolerance=2) -> None:
    image = read_image(path)
    assert image.mode == "RGB"
    assert np.abs(np.asarray(image, dtype=int) - np.array(expected)).max() <= tolerance


def test_gray_palette_and_colour_come_out_in_colour(tmp_path):
    for mode, colour, expected in (("L", 90, (90, 90, 90)), ("1", 1, (255, 255, 255)), ("RGB", RED, RED)):
        Image.new(mode, (8, 6), colour).save(tmp_path / f"{mode}.png")
        assert_colour(tmp_path / f"{mode}.png", expected)
    Image.new("RGB", (8, 6), RED).quantize(4).save(tmp_path / "palette.png")
    assert_colour(tmp_path / "palette.png")


def test_cmyk_of_print(tmp_path):
    Image.new("RGB", (16, 16), RED).convert("CMYK").save(tmp_path / "print.jpg", quality=100)
    with Image.open(tmp_path / "print.jpg") as image:
        assert image.mode == "CMYK"
    assert_colour(tmp_path / "print.jpg", tolerance=6)


def test_transparent_pixels_become_white(tmp_path):
    # 40 % of red and 60 % of white; what colour hides under a clear pixel does not matter.
    Image.new("RGBA", (4, 4), (*RED, 102)).save(tmp_path / "glass.png")
    assert_colour(tmp_path / "glass.png", tuple(round(0.4 * channel + 0.6 * 255) for channel in RED))
    Image.new("RGBA", (4, 4), (*RED, 0)).save(tmp_path / "clear.png")
    assert_colour(tmp_path / "clear.png", (255, 255, 255))
    Image.new("LA", (4, 4), (0, 0)).save(tmp_path / "gray.png")
    assert_colour(tmp_path / "gray.png", (255, 255, 255))
    transparent = Image.new("P", (4, 4), 3)
    transparent.putpalette([0, 0, 0] * 4)
    transparent.save(tmp_path / "palette.gif", transparency=3)
    assert_colour(tmp_path / "palette.gif", (255, 255, 255))


def test_sixteen_bits_are_not_cut_to_white(tmp_path):
    Image.fromarray(np.full((5, 5), 0x8000, dtype=np.uint16)).save(tmp_path / "deep.png")
    assert_colour(tmp_path / "deep.png", (128, 128, 128))
    Image.fromarray(np.full((5, 5), 0.5, dtype=np.float32)).save(tmp_path / "float.tiff")
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "float.tiff")


def test_images_are_rotated_by_their_orientation(tmp_path):
    image = Image.new("RGB", (30, 20), "white")
    image.paste(RED, (0, 0, 30, 4))  # the upper edge of the sensor
    for orientation, edge in ((1, "top"), (3, "bottom"), (6, "right"), (8, "left")):
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(tmp_path / "held.png", exif=exif)
        dark_pixels = np.asarray(read_image(tmp_path / "held.png"), dtype=int)[..., 1] < 128
        assert dark_pixels.shape == ((20, 30) if orientation in (1, 3) else (30, 20))
        edges = {
            "top": dark_pixels[0],
            "bottom": dark_pixels[-1],
            "left": dark_pixels[:, 0],
            "right": dark_pixels[:, -1],
        }
        assert edges[edge].all()


def test_a_broken_note_on_orientation_leaves_the_image(tmp_path):
    Image.new("RGB", (8, 8), RED).save(
        tmp_path / "odd.jpg", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff", quality=100
    )
    assert_colour(tmp_path / "odd.jpg", tolerance=4)


def test_the_first_frame_of_an_animation_is_read(tmp_path):
    first, second = Image.new("RGB", (6, 6), RED), Image.new("RGB", (6, 6), "blue")
    first.save(tmp_path / "film.gif", save_all=True, append_images=[second])
    assert_colour(tmp_path / "film.gif", tolerance=40)


def decompression_bomb(width: int, height: int) -> bytes:
    """A PNG whose header gives this size, with almost no content."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1 << 20))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "message"), [(20_000, "a larger one"), (9_000, "9,000 by 9,000")])
def test_decompression_bombs_are_refused(tmp_path, side, message):
    (tmp_path / "bomb.png").write_bytes(decompression_bomb(side, side))
    with pytest.raises(InputError, match="at most 50,000,000 pixels") as raised:
        read_image(tmp_path / "bomb.png")
    assert message in str(raised.value)


def test_what_is_no_image_is_named(tmp_path):
    whole_file = tmp_path / "whole.jpg"
    Image.effect_noise((64, 64), 50).save(whole_file)
    (tmp_path / "cut.jpg").write_bytes(whole_file.read_bytes()[:400])
    (tmp_path / "text.png").write_text("no picture")
    for name in ("cut.jpg", "text.png"):
        with pytest.raises(InputError, match=f"{name}: expected an image, found something that cannot"):
            read_image(tmp_path / name)


def test_a_postscript_file_starts_no_program(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("a program was started"))
    content = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "drawing.png").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "drawing.png")


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(InputError, match="found no file"):
        read_image(tmp_path / "nothing.png")
    with pytest.raises(InputError, match="found a special file"):
        read_image(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    messages = []

    def read_pipe() -> None:
        try:
            read_image(tmp_path / "pipe.png")
        except InputError as error:
            messages.append(str(error))

    thread = threading.Thread(target=read_pipe, daemon=True)
    thread.start()
    thread.join(20)
    assert messages
    assert "a special file" in messages[0]


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
def test_a_damaged_file_is_an_image_or_an_error_and_never_a_crash(data, files, tmp_path):
    kind = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[kind])
    for _ in range(data.draw(st.integers(0, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    (tmp_path / f"damaged.{kind}").write_bytes(bytes(content))
    with contextlib.suppress(InputError):
        assert read_image(tmp_path / f"damaged.{kind}").mode == "RGB"
