"""Rendering of activities: the object of an activity, the ambiguous object that a pair shares, and the pose.

The two activities of a pair have one pose, so that only the object distinguishes them. Objects are next to or in front
of the person, whose middle is at x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from portrayal.lab.images.brush import Brush, Point

Draw = Callable[[Brush, float], None]
_GREY, _DARK = "#8f9499", "#5b6066"


@dataclass(frozen=True)
class ActivityProps:
    """Rendering of a pair of activities: positions of the hands, relative to the person, and the three objects."""

    left: Point
    right: Point
    objects: dict[str, Draw]
    unclear: Draw

    def hands(self, x: float) -> tuple[Point, Point]:
        return (x + self.left[0], self.left[1]), (x + self.right[0], self.right[1])


def resting_hands(x: float) -> tuple[Point, Point]:
    """Return the positions of the hands of a person without a visible activity."""
    return (x - 11, 70), (x + 11, 70)


def props_of(activity: str) -> ActivityProps:
    return _PROPS[activity]


def _stick(brush: Brush, x: float) -> None:
    brush.line([(x + 9, 40), (x + 19, 88)], "#a5793f", 2)


def _broom(brush: Brush, x: float) -> None:
    _stick(brush, x)
    brush.shape([(x + 15, 83), (x + 22, 82), (x + 29, 95), (x + 15, 96)], "#e0b045")
    for side in (18, 21, 24):
        brush.line([(x + side, 87), (x + side + 1, 95)], "#b0812a", 0.7)
    brush.line([(x + 15, 84), (x + 22.5, 83)], "#b34a3c", 1.8)


def _rod(brush: Brush, x: float) -> None:
    brush.line([(x + 9, 66), (x + 34, 26)], "#6b4a26", 1.8)
    brush.line([(x + 34, 26), (x + 38, 62)], "#f2f2f2", 0.8)
    brush.oval(x + 33, 62, 11, 6.5, "#e8843c")
    brush.shape([(x + 43, 65), (x + 48, 61.5), (x + 48, 69)], "#e8843c")
    brush.disc(x + 35.5, 64.6, 0.8, "#1d1d1d")
    brush.disc(x + 13, 61, 2.4, "#3a3f45")


def _counter(brush: Brush, x: float) -> None:
    brush.rectangle(x + 12, 70, 34, 26, "#b9b3a8", 1)
    brush.rectangle(x + 10, 68, 38, 3.4, "#d9d4ca")


def _counter_with_can(brush: Brush, x: float) -> None:
    _counter(brush, x)
    brush.rectangle(x + 21, 58, 12, 10.2, _GREY, 1)


def _pot(brush: Brush, x: float) -> None:
    brush.rectangle(x + 12, 70, 34, 26, "#4d535b", 1)
    brush.rectangle(x + 16, 76, 26, 15, "#2b2f34", 1)
    brush.rectangle(x + 18, 78, 22, 8, "#f09a3a", 1)
    brush.rectangle(x + 10, 68, 38, 3.4, "#2b2f34")
    brush.rectangle(x + 19, 57, 18, 11, "#c0392b", 2)
    brush.line([(x + 16.5, 60), (x + 39.5, 60)], "#c0392b", 1.6)
    for side in (23, 28, 33):
        brush.line([(x + side, 53), (x + side + 1.6, 49), (x + side, 45)], "#ffffff", 1.3)


def _mug(brush: Brush, x: float) -> None:
    _counter(brush, x)
    brush.ring(x + 33, 61, 4, "#3f74c9", 2)
    brush.rectangle(x + 20, 55, 13, 13, "#3f74c9", 1.5)
    brush.oval(x + 20.5, 53.6, 12, 3.4, "#6b3f22")
    brush.rectangle(x + 38, 52, 5, 16, "#5fae74", 1.5)
    brush.rectangle(x + 39.4, 46, 2.2, 7, "#5fae74")


def _block(brush: Brush, x: float) -> None:
    brush.rectangle(x - 18, 72, 50, 23, _GREY, 9)
    brush.rectangle(x - 14, 75, 42, 4, "#a9adb1", 2)


def _tub(brush: Brush, x: float) -> None:
    brush.shape([(x - 18, 74), (x + 32, 74), (x + 27, 96), (x - 13, 96)], "#5f92b8")
    brush.rectangle(x - 20, 72, 54, 4, "#7fb0d3", 2)
    for index, (side, up) in enumerate(
        ((-14, 70), (-6, 68), (3, 70), (11, 67), (20, 69), (27, 71), (8, 71), (-10, 72))
    ):
        brush.disc(x + side, up, 4.4 if index % 2 else 3.4, "#ffffff")
    brush.disc(x + 16, 63, 2, "#ffffff")
    brush.disc(x + 22, 60, 1.4, "#ffffff")


def _car(brush: Brush, x: float) -> None:
    brush.rectangle(x - 24, 74, 66, 15, "#d13f36", 6)
    brush.shape([(x + 12, 75), (x + 18, 60), (x + 21, 60), (x + 20, 75)], "#9fc7de")
    brush.ring(x + 11, 69, 4.4, "#22262b", 1.6)
    for side in (-11, 29):
        brush.disc(x + side, 89, 7, "#22262b")
        brush.disc(x + side, 89, 3, "#c9cdd1")
    brush.rectangle(x + 38, 78, 4, 4, "#fbe08a", 1)


def _table(brush: Brush, x: float) -> None:
    brush.rectangle(x + 8, 70, 40, 3.4, "#a87444", 1)
    for side in (11, 42):
        brush.rectangle(x + side, 73, 3, 23, "#8c5e35")


def _dark_box(brush: Brush, x: float) -> None:
    _table(brush, x)
    brush.rectangle(x + 18, 57, 22, 13, _DARK, 2)


def _sewing_machine(brush: Brush, x: float) -> None:
    _table(brush, x)
    brush.rectangle(x + 16, 65, 28, 5, "#f3e9d2", 1)
    brush.rectangle(x + 35, 50, 8, 17, "#2f8f83", 2)
    brush.rectangle(x + 17, 50, 24, 6.5, "#2f8f83", 2)
    brush.rectangle(x + 18, 54, 5.5, 8, "#2f8f83", 1)
    brush.line([(x + 20.6, 62), (x + 20.6, 66)], "#d9dde0", 1)
    brush.disc(x + 44, 54, 3.4, "#d8b23c")
    brush.shape([(x + 10, 70), (x + 20, 66), (x + 22, 79), (x + 12, 82)], "#e06f9b")


def _laptop(brush: Brush, x: float) -> None:
    _table(brush, x)
    brush.shape([(x + 20, 68), (x + 44, 68), (x + 42, 48), (x + 22, 48)], "#3b4148")
    brush.shape([(x + 22, 66), (x + 42, 66), (x + 40.4, 50), (x + 23.6, 50)], "#8fd3ff")
    for y in (54, 58, 62):
        brush.line([(x + 26, y), (x + 36, y)], "#ffffff", 1)
    brush.rectangle(x + 14, 67.5, 30, 2.6, "#c3c8cc", 1)


def _wheels(brush: Brush, x: float) -> None:
    for side in (17, 42):
        brush.ring(x + side, 86, 8, "#2b2f34", 2)
        brush.disc(x + side, 86, 1.4, "#2b2f34")
    brush.line([(x + 13, 62), (x + 17, 86)], _DARK, 1.8)


def _cart(brush: Brush, x: float) -> None:
    brush.line([(x + 13, 62), (x + 19, 64), (x + 23, 82), (x + 42, 82)], "#c0392b", 1.8)
    brush.shape([(x + 18, 62), (x + 47, 62), (x + 43, 78), (x + 21, 78)], "#dfe5e8")
    for side in (24, 30, 36, 42):
        brush.line([(x + side, 62.5), (x + side - 0.6, 77.5)], "#8b959c", 0.8)
    for y in (67, 72):
        brush.line([(x + 19.5, y), (x + 45, y)], "#8b959c", 0.8)
    brush.disc(x + 27, 59, 4, "#e8843c")
    brush.rectangle(x + 32, 50, 6, 12, "#f2c230")
    brush.disc(x + 42, 59, 3.6, "#5fae54")
    for side in (25, 41):
        brush.disc(x + side, 90, 3.6, "#2b2f34")
        brush.line([(x + side, 82), (x + side, 88)], "#8b959c", 1.4)


def _bicycle(brush: Brush, x: float) -> None:
    for side in (17, 42):
        brush.ring(x + side, 85, 9.4, "#22262b", 1.8)
        brush.disc(x + side, 85, 1.3, "#22262b")
    brush.line([(x + 17, 85), (x + 22, 70), (x + 38, 70), (x + 29, 86), (x + 17, 85)], "#2e8b57", 1.9)
    brush.line([(x + 22, 70), (x + 29, 86)], "#2e8b57", 1.9)
    brush.line([(x + 42, 85), (x + 36, 64)], "#2e8b57", 1.9)
    brush.line([(x + 36, 64), (x + 40, 62)], "#22262b", 1.8)
    brush.line([(x + 13, 62), (x + 22, 66)], "#22262b", 1.8)
    brush.line([(x + 19, 67), (x + 26, 67)], "#22262b", 2.4)


def _bar(brush: Brush, x: float) -> None:
    brush.rectangle(x - 24, 60, 48, 3.6, _GREY, 1.6)


def _tray(brush: Brush, x: float) -> None:
    brush.rectangle(x - 24, 60.5, 48, 3.2, "#b9783f", 1.5)
    for side, colour in ((-20, "#f7f3ea"), (13, "#f7f3ea")):
        brush.rectangle(x + side, 52, 7, 8.6, colour, 1)
    brush.pie(x, 60, 8, 180, 360, "#e0b04f")
    brush.disc(x, 51.5, 1.4, "#c0392b")


def _barbell(brush: Brush, x: float) -> None:
    brush.rectangle(x - 30, 60.5, 60, 2.2, "#c3c8cc", 1)
    for side in (-30.0, 24.0):
        brush.rectangle(x + side, 49, 6, 25, "#22262b", 2)
    for side in (-23.0, 19.5):
        brush.rectangle(x + side, 53, 3.5, 17, "#c0392b", 1)


def _pole(brush: Brush, x: float) -> None:
    brush.rectangle(x + 17, 18, 18, 78, "#9b8a70", 3)


def _fruit_tree(brush: Brush, x: float) -> None:
    brush.rectangle(x + 23, 48, 6, 48, "#7a5534")
    for side, y, size in ((26, 24, 16), (15, 34, 10), (38, 34, 11)):
        brush.disc(x + side, y, size, "#4f9a45")
    for side, y in ((20, 20), (31, 17), (26, 29), (36, 31), (16, 35), (42, 38), (29, 40)):
        brush.disc(x + side, y, 2.4, "#d6332f")
    brush.shape([(x + 31, 86), (x + 47, 86), (x + 44, 96), (x + 34, 96)], "#c58f4b")
    for side in (34, 39, 44):
        brush.disc(x + side, 85, 2.4, "#d6332f")
    brush.arc(x + 39, 86, 7.5, 180, 360, "#8c5e35", 1.2)


def _ladder(brush: Brush, x: float) -> None:
    for side in (17, 33):
        brush.line([(x + side, 96), (x + side + 1, 14)], "#e0a33c", 2.2)
    for y in range(20, 96, 9):
        brush.line([(x + 17.6, y), (x + 33.6, y)], "#c98a2b", 1.8)


def _slab(brush: Brush, x: float) -> None:
    brush.rectangle(x + 9, 50, 7, 11, _GREY, 1)


def _book(brush: Brush, x: float) -> None:
    brush.shape([(x + 1, 52), (x + 12, 55), (x + 12, 69), (x + 1, 66)], "#8e3b46")
    brush.shape([(x + 23, 52), (x + 12, 55), (x + 12, 69), (x + 23, 66)], "#8e3b46")
    brush.shape([(x + 2.6, 51), (x + 12, 53.6), (x + 12, 66.6), (x + 2.6, 64)], "#fbf6e6")
    brush.shape([(x + 21.4, 51), (x + 12, 53.6), (x + 12, 66.6), (x + 21.4, 64)], "#fbf6e6")
    for y in (56, 59, 62):
        brush.line([(x + 14, y + 0.6), (x + 20, y - 1)], "#a39c8a", 0.7)


def _phone(brush: Brush, x: float) -> None:
    brush.rectangle(x + 9, 47, 8, 15, "#17191c", 1.6)
    brush.rectangle(x + 10.2, 49, 5.6, 10, "#7fe08a", 0.6)
    for radius in (4, 7, 10):
        brush.arc(x + 20, 48, radius, 300, 60, "#17191c", 1.2)


def _far_disc(brush: Brush, x: float) -> None:
    brush.disc(x + 30, 66, 5, _GREY)


def _frisbee(brush: Brush, x: float) -> None:
    brush.oval(x + 22, 46, 22, 7, "#e0552f")
    brush.oval(x + 26, 47, 14, 3.4, "#f08a5f")
    for y in (44, 49, 54):
        brush.line([(x + 15, y), (x + 20, y)], "#ffffff", 1)


def _ball(brush: Brush, x: float) -> None:
    brush.disc(x + 31, 87, 7.5, "#fdfdfd")
    brush.disc(x + 31, 87, 2.6, "#22262b")
    for side, y in ((-6, -2), (5.4, -3.4), (-3.4, 5.6), (4.4, 5)):
        brush.disc(x + 31 + side, 87 + y, 1.5, "#22262b")
    for y in (82, 87, 92):
        brush.line([(x + 16, y), (x + 21, y)], "#ffffff", 1)


def _pair(left: Point, right: Point, unclear: Draw, **objects: Draw) -> dict[str, ActivityProps]:
    props = ActivityProps(left, right, objects, unclear)
    return dict.fromkeys(objects, props)


_PROPS: dict[str, ActivityProps] = {
    **_pair((8, 66), (12, 56), _stick, sweeping=_broom, fishing=_rod),
    **_pair((-10, 68), (16, 66), _counter_with_can, cooking=_pot, drinking=_mug),
    **_pair((-9, 69), (11, 69), _block, washing=_tub, driving=_car),
    **_pair((10, 69), (16, 68), _dark_box, sewing=_sewing_machine, working=_laptop),
    **_pair((10, 64), (14, 62), _wheels, shopping=_cart, biking=_bicycle),
    **_pair((-14, 62), (14, 62), _bar, serving=_tray, lifting=_barbell),
    **_pair((-11, 70), (16, 40), _pole, picking=_fruit_tree, climbing=_ladder),
    **_pair((4, 64), (13, 57), _slab, reading=_book, calling=_phone),
    **_pair((-12, 64), (16, 56), _far_disc, throwing=_frisbee, kicking=_ball),
}
