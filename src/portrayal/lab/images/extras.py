"""Rendering of other objects at the edges of a scene."""

from __future__ import annotations

from collections.abc import Callable

from portrayal.lab.images.brush import Brush

# Horizontal centres of the objects, which stand on the floor at 96.
SPOTS = (9.0, 91.0)


def draw_extra(brush: Brush, label: str, x: float) -> None:
    _EXTRAS[label](brush, x)


def _handbag(brush: Brush, x: float) -> None:
    brush.arc(x, 86, 4.5, 180, 360, "#8e3b63", 1.3)
    brush.shape([(x - 5, 86), (x + 5, 86), (x + 6.5, 96), (x - 6.5, 96)], "#c2547f")
    brush.disc(x, 89, 1, "#f2cf4a")


def _toolbox(brush: Brush, x: float) -> None:
    brush.arc(x, 87, 3.5, 180, 360, "#3a3f45", 1.4)
    brush.rectangle(x - 8, 87, 16, 9, "#c7402f", 1)
    brush.rectangle(x - 8, 90, 16, 1.4, "#f0d9d4")


def _umbrella(brush: Brush, x: float) -> None:
    brush.line([(x, 74), (x, 94)], "#5b3b22", 1.1)
    brush.pie(x, 82, 8, 180, 360, "#3f74c9")
    brush.arc(x + 1.6, 94, 1.6, 0, 180, "#5b3b22", 1.1)


def _backpack(brush: Brush, x: float) -> None:
    brush.rectangle(x - 6, 81, 12, 15, "#3d7d5a", 3.5)
    brush.rectangle(x - 4, 88, 8, 6, "#2d6146", 1.5)
    brush.arc(x, 81.5, 2, 180, 360, "#2d6146", 1)


def _dog(brush: Brush, x: float) -> None:
    brush.oval(x - 7, 86, 12, 6, "#9a6a3c")
    brush.disc(x + 5, 84.5, 3.4, "#9a6a3c")
    brush.oval(x + 5.5, 82, 2.6, 4.6, "#6b4526")
    for side in (-5, -2, 1.5, 4):
        brush.rectangle(x + side, 90, 1.5, 6, "#9a6a3c")
    brush.line([(x - 7, 88), (x - 9, 83.5)], "#9a6a3c", 1.3)
    brush.disc(x + 5.4, 83.8, 0.6, "#1d1d1d")


def _cat(brush: Brush, x: float) -> None:
    brush.oval(x - 4.5, 85, 9, 11, "#4a4a52")
    brush.disc(x, 84, 3.8, "#4a4a52")
    for side in (-1, 1):
        brush.shape([(x + side * 3.6, 83), (x + side * 3.4, 78.4), (x + side * 0.8, 81.4)], "#4a4a52")
        brush.disc(x + side * 1.5, 83.6, 0.7, "#f2cf4a")
    brush.line([(x + 4, 94), (x + 7.5, 92), (x + 7, 87)], "#4a4a52", 1.3)


def _bench(brush: Brush, x: float) -> None:
    for y in (80, 84):
        brush.rectangle(x - 9, y, 18, 2.2, "#b07c46")
    brush.rectangle(x - 9, 88.5, 18, 2.4, "#94653a")
    for side in (-8, 6):
        brush.rectangle(x + side, 80, 1.8, 16, "#4d4d4d")


def _clock(brush: Brush, x: float) -> None:
    brush.rectangle(x - 1, 78, 2, 18, "#4d4d4d")
    brush.disc(x, 76, 6.5, "#4d4d4d")
    brush.disc(x, 76, 5.2, "#fbf6e6")
    brush.line([(x, 76), (x, 72.6)], "#1d1d1d", 0.9)
    brush.line([(x, 76), (x + 2.6, 77)], "#1d1d1d", 0.9)


def _potted_plant(brush: Brush, x: float) -> None:
    for side, y in ((-3.6, 83), (3.6, 83), (0, 80)):
        brush.oval(x + side - 2, y - 2, 4, 10, "#4b9a55")
    brush.shape([(x - 5, 88), (x + 5, 88), (x + 3.6, 96), (x - 3.6, 96)], "#c96f45")


def _suitcase(brush: Brush, x: float) -> None:
    brush.arc(x, 82.5, 2.4, 180, 360, "#4d3a2a", 1.1)
    brush.rectangle(x - 7, 82.5, 14, 13.5, "#a97c4e", 1.5)
    for side in (-4.4, 3):
        brush.rectangle(x + side, 82.5, 1.5, 13.5, "#7c5732")


_EXTRAS: dict[str, Callable[[Brush, float], None]] = {
    "handbag": _handbag,
    "toolbox": _toolbox,
    "umbrella": _umbrella,
    "backpack": _backpack,
    "dog": _dog,
    "cat": _cat,
    "bench": _bench,
    "clock": _clock,
    "potted plant": _potted_plant,
    "suitcase": _suitcase,
}
