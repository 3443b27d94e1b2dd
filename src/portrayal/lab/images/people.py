"""Rendering of a person: signs of gender, age and skin tone, the clothes, and the pose.

Signs of gender are simplified (hair, a dress), because an image of this size can hold no more. They represent
presentation, not identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from portrayal.lab.images.brush import Brush, Colour, Point

FEET = 93.0
_HEIGHT = {"old": 1.0, "young": 0.76}  # by age group
_SKIN = {"dark": ("#8d5a3b", "#6f4429"), "light": ("#f3cfae", "#e8b990")}
# The last colour is grey, for adults only.
_HAIR = ("#2b211c", "#4a3222", "#6f4a2b", "#8d8580")
_SHIRT = {
    "red": "#d64541", "blue": "#3f74c9", "green": "#3f9d5a", "yellow": "#f2c230", "purple": "#8a55b5",
    "white": "#f7f7f4",
}  # fmt: skip
_TROUSERS = "#3a4150"
_SHOES = "#2e2a28"
# Height of an adult with a hat.
_TOP = 78.0


@dataclass(frozen=True)
class Figure:
    """One person of an image, with its position."""

    # None: drawn without signs of gender.
    gender: str | None
    age: str
    skin: str
    colour: str
    variation: int
    x: float
    # Positions of the hands in the image, the same for everyone in this pose.
    hands: tuple[Point, Point]
    # An occupation, or the two occupations of an ambiguous outfit.
    outfit: str | None = None

    @property
    def scale(self) -> float:
        return _HEIGHT[self.age]

    def at(self, side: float, up: float) -> Point:
        """Return a point of the body, given its offset from the middle and from the feet of an adult."""
        return self.x + side * self.scale, FEET - up * self.scale

    @property
    def hair(self) -> Colour:
        return _HAIR[self.variation // 2 % (len(_HAIR) if self.age == "old" else len(_HAIR) - 1)]

    @property
    def beard(self) -> bool:
        return self.gender == "male" and self.age == "old" and bool(self.variation // 8 % 2)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return the bounding box of the person: left, top, right, bottom."""
        sides = [
            self.x - 17 * self.scale,
            self.x + 17 * self.scale,
            *(x + 3 * sign for x, _ in self.hands for sign in (-1, 1)),
        ]
        tops = [FEET - _TOP * self.scale, *(y - 3 for _, y in self.hands)]
        return min(sides), min(tops), max(sides), FEET + 3


def draw_person(brush: Brush, figure: Figure) -> None:
    skin = _SKIN[figure.skin][figure.variation % 2]
    hair = figure.hair
    outfit = _OUTFITS.get(figure.outfit or "")
    shirt = outfit.shirt if outfit and outfit.shirt else _SHIRT[figure.colour]
    trousers = outfit.trousers if outfit and outfit.trousers else _TROUSERS
    long_robe = outfit is not None and outfit.robe
    if figure.gender == "female":
        _long_hair(brush, figure, hair)
    _legs(brush, figure, skin, trousers)
    _body(brush, figure, shirt, trousers, long_robe)
    if outfit:
        outfit.front(brush, figure)
    for side, hand in zip((-1, 1), figure.hands, strict=True):
        _arm(brush, figure, side, hand, shirt, skin)
    _head(brush, figure, skin, hair)
    if outfit:
        outfit.hat(brush, figure)


def _legs(brush: Brush, figure: Figure, skin: Colour, trousers: Colour) -> None:
    bare = figure.gender == "female"
    for side in (-3.4, 3.4):
        top, foot = figure.at(side, 28), figure.at(side, 2)
        brush.line([top, foot], skin if bare else trousers, (3.2 if bare else 5.2) * figure.scale)
        brush.line([foot, figure.at(side + 1.6, 1.2)], _SHOES, 3.4 * figure.scale)


def _body(brush: Brush, figure: Figure, shirt: Colour, trousers: Colour, robe: bool) -> None:
    at = figure.at
    if robe:
        brush.shape([at(-7, 47), at(7, 47), at(11, 6), at(-11, 6)], shirt)
    elif figure.gender == "female":
        brush.shape([at(-6.6, 47), at(6.6, 47), at(5, 34), at(12, 14), at(-12, 14), at(-5, 34)], shirt)
    else:
        bottom = 22 if figure.gender is None else 25
        brush.shape([at(-7.4, 47), at(7.4, 47), at(6.6, bottom), at(-6.6, bottom)], shirt)
        if figure.gender is not None:
            brush.shape([at(-6.6, 27), at(6.6, 27), at(6.2, 22), at(-6.2, 22)], trousers)


def _arm(brush: Brush, figure: Figure, side: int, hand: Point, shirt: Colour, skin: Colour) -> None:
    shoulder = figure.at(6.6 * side, 44)
    middle = ((shoulder[0] + hand[0]) / 2 + 1.2 * side, (shoulder[1] + hand[1]) / 2 + 1.5)
    brush.line([middle, hand], skin, 3.2 * figure.scale)
    brush.line([shoulder, middle], shirt, 4.6 * figure.scale)
    brush.disc(*hand, 2.3, skin)


def _long_hair(brush: Brush, figure: Figure, hair: Colour) -> None:
    brush.shape([figure.at(-9.4, 58), figure.at(9.4, 58), figure.at(10.4, 40), figure.at(-10.4, 40)], hair)


def _head(brush: Brush, figure: Figure, skin: Colour, hair: Colour) -> None:
    x, y = figure.at(0, 57)
    # Children have relatively larger heads.
    size = figure.scale if figure.age == "old" else figure.scale * 1.12
    radius = 8 * size
    brush.line([figure.at(0, 45), (x, y)], skin, 4.4 * figure.scale)
    if figure.gender == "female":
        brush.disc(x, y - 0.8 * size, radius + 1.8 * size, hair)
    elif figure.gender is None:
        brush.disc(x, y - 1.2 * size, radius + 1.0 * size, hair)
    brush.disc(x, y, radius, skin)
    if figure.gender == "female":
        brush.pie(x, y - 1.2 * size, radius + 0.8 * size, 195, 345, hair)
    elif figure.gender is None:
        brush.pie(x, y - 1.2 * size, radius + 0.6 * size, 190, 350, hair)
    else:
        brush.pie(x, y - 1.5 * size, radius + 0.6 * size, 188, 352, hair)
        if figure.beard:
            brush.pie(x, y + 1.6 * size, radius * 0.86, 25, 155, hair)
    for side in (-1, 1):
        brush.disc(x + side * 2.8 * size, y + 0.3 * size, 0.95 * size, "#2a2320")
    brush.arc(x, y + 2.2 * size, 2.6 * size, 25, 155, "#f3d9cf" if figure.beard else "#7d3b32", 0.9 * size)


def figure_appearance(figure: Figure) -> dict[str, float]:
    """Return how a person is drawn: 1 or 0 for each sign, and the height relative to an adult's."""
    outfit = _OUTFITS.get(figure.outfit or "")
    signs = {
        "long_hair": figure.gender == "female",
        "dress": figure.gender == "female" and not (outfit and outfit.robe),
        "beard": figure.beard,
        "grey_hair": figure.hair == _HAIR[-1],
        "dark_hair": figure.hair == _HAIR[0],
        "hat": outfit is not None and outfit.hat is not _nothing,
        "red_shirt": figure.colour == "red" and not (outfit and outfit.shirt),
    }
    return {name: float(present) for name, present in signs.items()} | {"height": figure.scale}


@dataclass(frozen=True)
class Outfit:
    """The clothes of an occupation."""

    hat: Callable[[Brush, Figure], None]
    front: Callable[[Brush, Figure], None]
    shirt: Colour | None = None
    trousers: Colour | None = None
    robe: bool = False


def _nothing(brush: Brush, figure: Figure) -> None:
    pass


def _cap(
    crown: Colour, peak: Colour, badge: Colour | None = None, shape: str = "disc"
) -> Callable[[Brush, Figure], None]:
    def draw(brush: Brush, figure: Figure) -> None:
        brush.shape([figure.at(-9, 63), figure.at(9, 63), figure.at(11, 69), figure.at(-11, 69)], crown)
        brush.line([figure.at(-9, 62.5), figure.at(9, 62.5)], peak, 1.8 * figure.scale)
        if badge and shape == "disc":
            brush.disc(*figure.at(0, 66), 2.2 * figure.scale, badge)
        elif badge:
            brush.line([figure.at(-6, 66), figure.at(6, 66)], badge, 1.6 * figure.scale)

    return draw


def _dome(colour: Colour, brim: float) -> Callable[[Brush, Figure], None]:
    def draw(brush: Brush, figure: Figure) -> None:
        x, y = figure.at(0, 61)
        brush.pie(x, y, 9.6 * figure.scale, 180, 360, colour)
        brush.line([figure.at(-brim, 61), figure.at(brim, 61)], colour, 2 * figure.scale)

    return draw


def _toque(brush: Brush, figure: Figure) -> None:
    for side in (-5, 0, 5):
        brush.disc(*figure.at(side, 71), 5 * figure.scale, "#ffffff")
    brush.shape([figure.at(-7, 62), figure.at(7, 62), figure.at(7.5, 70), figure.at(-7.5, 70)], "#ffffff")
    brush.line([figure.at(-7, 62.5), figure.at(7, 62.5)], "#d9d9d9", 1 * figure.scale)


def _nurse_cap(brush: Brush, figure: Figure) -> None:
    brush.shape([figure.at(-7, 63), figure.at(7, 63), figure.at(9, 70), figure.at(-9, 70)], "#ffffff")
    _cross(brush, figure, 66.5)


def _cross(brush: Brush, figure: Figure, up: float) -> None:
    brush.line([figure.at(-2.4, up), figure.at(2.4, up)], "#d6332f", 1.7 * figure.scale)
    brush.line([figure.at(0, up - 2.4), figure.at(0, up + 2.4)], "#d6332f", 1.7 * figure.scale)


def _stethoscope(brush: Brush, figure: Figure) -> None:
    _buttons(brush, figure)
    brush.line(
        [figure.at(-4, 46), figure.at(-2, 38), figure.at(2, 38), figure.at(4, 46)],
        "#333f4a",
        1.3 * figure.scale,
    )
    brush.disc(*figure.at(0, 33.5), 2 * figure.scale, "#6c7a86")
    brush.line([figure.at(0, 38), figure.at(0, 34)], "#333f4a", 1.3 * figure.scale)


def _buttons(brush: Brush, figure: Figure) -> None:
    brush.line([figure.at(0, 46), figure.at(0, 26)], "#c9cfd2", 0.8 * figure.scale)


def _bib(colour: Colour, pocket: Colour | None) -> Callable[[Brush, Figure], None]:
    def draw(brush: Brush, figure: Figure) -> None:
        at = figure.at
        brush.shape([at(-5, 41), at(5, 41), at(6, 20), at(-6, 20)], colour)
        for side in (-1, 1):
            brush.line([at(4 * side, 47), at(4 * side, 40)], colour, 1.8 * figure.scale)
        if pocket:
            brush.rectangle(*at(-2.5, 37), 5 * figure.scale, 5 * figure.scale, pocket)

    return draw


def _vest(brush: Brush, figure: Figure) -> None:
    for side in (-1, 1):
        brush.line([figure.at(4.2 * side, 46), figure.at(4.2 * side, 27)], "#fff3a8", 1.8 * figure.scale)
    brush.line([figure.at(-6, 33), figure.at(6, 33)], "#fff3a8", 1.8 * figure.scale)


def _collar(brush: Brush, figure: Figure) -> None:
    brush.shape([figure.at(-3, 48), figure.at(3, 48), figure.at(2, 36), figure.at(-2, 36)], "#ffffff")


def _camouflage(brush: Brush, figure: Figure) -> None:
    for side, up, size in ((-3, 43, 2.2), (3, 38, 2.6), (-2, 33, 2.4), (3, 28, 2)):
        brush.disc(*figure.at(side, up), size * figure.scale, "#3f5a35")


def _epaulettes(brush: Brush, figure: Figure) -> None:
    for side in (-1, 1):
        brush.line([figure.at(4.5 * side, 46.5), figure.at(7.5 * side, 46.5)], "#e8c34a", 1.7 * figure.scale)
    brush.line([figure.at(0, 46), figure.at(0, 34)], "#11161f", 2 * figure.scale)


def _star(brush: Brush, figure: Figure) -> None:
    brush.disc(*figure.at(3.2, 41), 1.9 * figure.scale, "#f2cf4a")
    brush.line([figure.at(-6, 26), figure.at(6, 26)], "#11161f", 2 * figure.scale)


_OUTFITS = {
    "nurse": Outfit(_nurse_cap, lambda b, f: _cross(b, f, 39), "#bfe1ea", "#bfe1ea"),
    "doctor": Outfit(_nothing, _stethoscope, "#fbfbfb", "#5a6b78"),
    "chef": Outfit(_toque, _buttons, "#ffffff", "#4a4a4a"),
    "mechanic": Outfit(_cap("#2f5f9e", "#234a7d"), _bib("#2f5f9e", "#e8c34a"), None, "#2f5f9e"),
    "farmer": Outfit(_dome("#e3c16f", 15), _bib("#7a5a38", None), None, "#7a5a38"),
    "engineer": Outfit(_dome("#f5c518", 11), _vest, "#e8772e"),
    "police": Outfit(_cap("#1f2d4d", "#11161f", "#f2cf4a"), _star, "#2b4170", "#1f2d4d"),
    "pilot": Outfit(_cap("#1f2d4d", "#11161f", "#f4f4f4", "bar"), _epaulettes, "#f4f4f4", "#1f2d4d"),
    "judge": Outfit(_nothing, _collar, "#1d1b20", "#1d1b20", robe=True),
    "soldier": Outfit(_dome("#4f6b3f", 10.5), _camouflage, "#6b8655", "#4f6b3f"),
    # The ambiguous outfit that the two occupations of a pair share.
    "nurse|doctor": Outfit(_nothing, _buttons, "#eef4f6", "#8fa3ad"),
    "chef|mechanic": Outfit(_nothing, _bib("#b9b5ad", None)),
    "farmer|engineer": Outfit(_dome("#ecc545", 12), _nothing),
    "police|pilot": Outfit(_cap("#1f2d4d", "#11161f"), _nothing),
    "judge|soldier": Outfit(_nothing, _nothing, "#3b3d38", "#3b3d38"),
}
