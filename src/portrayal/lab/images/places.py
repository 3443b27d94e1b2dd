"""Rendering of the place of a scene: a background that does not show the activity."""

from __future__ import annotations

from collections.abc import Callable

from portrayal.lab.images.brush import Brush

# Top edge of the floor.
GROUND = 72.0


def draw_place(brush: Brush, place: str, shade: int) -> None:
    """Draw a place; `shade` (0 to 3) varies the light, which has no meaning."""
    _PLACES[place](brush, shade)


def _outside(brush: Brush, sky: str, ground: str) -> None:
    brush.rectangle(0, 0, 100, GROUND, sky)
    brush.rectangle(0, GROUND, 100, 100 - GROUND, ground)


def _park(brush: Brush, shade: int) -> None:
    _outside(brush, ("#bfe3f5", "#cfe8ee", "#b6daf0", "#d5e9f2")[shade], "#8cc26b")
    for x, top in ((14, 30), (88, 24)):
        brush.rectangle(x - 2, top + 18, 4, 26, "#8a6440")
        brush.disc(x, top + 12, 13, "#6fae54")
        brush.disc(x - 6, top + 18, 9, "#63a04a")
    brush.oval(-10, 69, 120, 8, "#9bcf7a")


def _garden(brush: Brush, shade: int) -> None:
    _outside(brush, ("#cdeaf6", "#d8eef5", "#c3e3f2", "#e0f0f0")[shade], "#a5cf7f")
    for x in range(0, 100, 9):
        brush.rectangle(x + 1, 50, 6, 22, "#e9dcc3", 1)
    brush.rectangle(0, 56, 100, 2.5, "#d9c8a7")
    for x, colour in ((6, "#e06f8b"), (26, "#f0b53f"), (70, "#b07ad6"), (93, "#e06f8b")):
        brush.rectangle(x - 0.5, 70, 1, 7, "#5a8f45")
        brush.disc(x, 69, 2.4, colour)


def _street(brush: Brush, shade: int) -> None:
    _outside(brush, ("#d5e4ec", "#c9dbe6", "#dfe8ec", "#cfdce0")[shade], "#9a9ea3")
    for x, width, top, colour in (
        (0, 22, 22, "#c98f74"),
        (22, 26, 34, "#b5a58f"),
        (48, 24, 26, "#a9b7c4"),
        (72, 28, 18, "#c4a07d"),
    ):
        brush.rectangle(x, top, width, GROUND - top, colour)
        for across in range(3):
            for down in range(3):
                brush.rectangle(x + 3 + across * width / 3.4, top + 5 + down * 13, 4, 6, "#eef3f5")
    brush.rectangle(0, GROUND, 100, 4, "#c3c5c7")
    for x in (4, 38, 72):
        brush.rectangle(x, 95, 20, 1.6, "#f0efe6")


def _market(brush: Brush, shade: int) -> None:
    _outside(brush, ("#e3edf1", "#ecefe9", "#dce9ee", "#f0eee4")[shade], "#cdbb9d")
    brush.rectangle(4, 30, 92, 42, "#e8d8b9")
    for index in range(9):
        brush.rectangle(2 + index * 10.7, 18, 10.7, 15, "#d9675b" if index % 2 else "#f7f2e8")
        brush.disc(7.3 + index * 10.7, 33, 5.3, "#d9675b" if index % 2 else "#f7f2e8")
    brush.rectangle(4, 58, 92, 14, "#b98d5c")


def _beach(brush: Brush, shade: int) -> None:
    _outside(brush, ("#bfe6f7", "#cdeaf5", "#b3dcf2", "#d8eef2")[shade], "#f0deac")
    brush.disc(82, 16, 8, "#fbe08a")
    brush.rectangle(0, 50, 100, 22, "#6fb6d6")
    for x, y in ((8, 55), (40, 60), (72, 56), (20, 66), (60, 67)):
        brush.rectangle(x, y, 14, 1, "#b9e0ef", 0.5)


def _dock(brush: Brush, shade: int) -> None:
    _outside(brush, ("#c9e2f0", "#d4e5ec", "#bedaec", "#dde9ec")[shade], "#b58a5a")
    brush.shape([(0, 46), (22, 32), (44, 46), (70, 28), (100, 46)], "#8fae9b")
    brush.rectangle(0, 46, 100, 26, "#5fa3c4")
    for x, y in ((6, 52), (34, 57), (66, 53), (84, 63), (18, 65)):
        brush.rectangle(x, y, 12, 1, "#9ccbdf", 0.5)
    for y in (79, 86, 93):
        brush.rectangle(0, y, 100, 0.9, "#8f6a42")


def _inside(brush: Brush, wall: str, floor: str) -> None:
    brush.rectangle(0, 0, 100, GROUND, wall)
    brush.rectangle(0, GROUND, 100, 100 - GROUND, floor)
    brush.rectangle(0, GROUND, 100, 1.6, "#f5f1ea")


def _kitchen(brush: Brush, shade: int) -> None:
    _inside(brush, ("#f3ead6", "#eee8dd", "#f5e6cf", "#ebe9dc")[shade], "#d3c1a5")
    for x in (2, 26, 74):
        brush.rectangle(x, 6, 22, 20, "#9db8a7", 1)
        brush.disc(x + 18, 22, 1, "#f3ead6")
    for x in range(0, 100, 10):
        brush.rectangle(x, 40, 9, 6, "#e1d5bd")
        brush.rectangle(x - 5, 47, 9, 6, "#e1d5bd")


def _restaurant(brush: Brush, shade: int) -> None:
    _inside(brush, ("#7f4a46", "#6f4b53", "#874f3f", "#74504a")[shade], "#b08a63")
    for x in (18, 50, 82):
        brush.rectangle(x - 0.4, 0, 0.8, 12, "#3d2a26")
        brush.pie(x, 20, 8, 180, 360, "#f3c969")
    brush.rectangle(0, 50, 100, 2, "#9c6b5d")
    brush.rectangle(0, 52, 100, 20, "#623a35")


def _garage(brush: Brush, shade: int) -> None:
    _inside(brush, ("#b9bec2", "#c2c1bb", "#aeb8bf", "#c6c3bc")[shade], "#8a8883")
    brush.rectangle(10, 12, 80, 60, "#d6d9da")
    for y in range(18, 72, 8):
        brush.rectangle(10, y, 80, 1, "#a8adb0")


def _office(brush: Brush, shade: int) -> None:
    _inside(brush, ("#dfe6ea", "#e6e6e0", "#d7e1e8", "#eae8e3")[shade], "#9aa4ab")
    brush.rectangle(8, 10, 50, 34, "#ffffff")
    brush.rectangle(10, 12, 46, 30, "#a8d0ea")
    for x, top in ((12, 28), (22, 22), (33, 30), (44, 25)):
        brush.rectangle(x, top, 8, 42 - top, "#7f97a8")
    for y in (16, 30):
        brush.rectangle(68, y + 10, 28, 2, "#b08b60")
        for index, colour in enumerate(("#c0584f", "#4f7fc0", "#d9a441", "#5f9f6a")):
            brush.rectangle(70 + index * 6, y, 4.5, 10, colour)


def _room(brush: Brush, shade: int) -> None:
    _inside(brush, ("#e8d5c4", "#dfd9c9", "#e6cfc0", "#d9d8cf")[shade], "#b98e66")
    brush.rectangle(10, 12, 26, 20, "#8a6440")
    brush.rectangle(12, 14, 22, 16, "#cfe3dc")
    brush.shape([(13, 29), (20, 19), (26, 25), (30, 21), (33, 29)], "#7fa58f")
    brush.rectangle(68, 8, 24, 36, "#ffffff")
    brush.rectangle(70, 10, 9.5, 32, "#b9dcef")
    brush.rectangle(80.5, 10, 9.5, 32, "#b9dcef")
    brush.oval(6, 80, 88, 18, "#a3564f")
    brush.oval(12, 82, 76, 14, "#c27a6a")


def _hall(brush: Brush, shade: int) -> None:
    _inside(brush, ("#ded3e2", "#d3d6e4", "#e2d6d6", "#d8dbd8")[shade], "#c2b49f")
    for x in (4, 34, 58, 88):
        brush.rectangle(x, 6, 8, 66, "#f4eff3")
        brush.rectangle(x - 2, 4, 12, 4, "#f9f6f8")
        brush.rectangle(x - 2, 68, 12, 4, "#f9f6f8")
    for x in range(0, 100, 20):
        brush.shape([(x, 86), (x + 10, 78), (x + 20, 86), (x + 10, 94)], "#b3a48e")


_PLACES: dict[str, Callable[[Brush, int], None]] = {
    "park": _park,
    "garden": _garden,
    "street": _street,
    "market": _market,
    "beach": _beach,
    "dock": _dock,
    "kitchen": _kitchen,
    "restaurant": _restaurant,
    "garage": _garage,
    "office": _office,
    "room": _room,
    "hall": _hall,
}
