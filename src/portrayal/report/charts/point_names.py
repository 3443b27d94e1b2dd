"""Where the names of a chart's points stand, so that they cover neither each other nor other points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

SIZE = 12  # of the letters
WIDEST = 150.0  # a longer name is cut
_LETTER = 0.58 * SIZE  # a letter is about so wide
_DOT = 5.0  # from the middle of a point to its edge
_BESIDE = 8.0
_ABOVE = (-8.0, 14.0, -20.0, 26.0, 4.0)  # from the point down to the line that letters stand on, best first


@dataclass(frozen=True)
class Spot:
    """As Vega-Lite has it: from a point across and down."""

    align: str
    dx: float
    dy: float


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """Their common area."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


def spots(
    names: Sequence[str],
    places: Sequence[tuple[float, float]],
    drawn: Sequence[Box],
    width: float,
    height: float,
) -> list[Spot]:
    """For points at places in pixels, from the top left.

    Names are put from top to bottom, each where it covers least of points, other names and whatever else is drawn.

    >>> spots(["a", "b"], [(10, 50), (90, 50)], [], 100, 100)
    [Spot(align='left', dx=8.0, dy=-8.0), Spot(align='right', dx=-8.0, dy=-8.0)]
    """
    view = Box(0, 0, width, height)
    taken = {n: Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for n, (x, y) in enumerate(places)}
    made: dict[int, Spot] = {}
    for number in sorted(range(len(names)), key=lambda n: (places[n][1], places[n][0])):
        others = [*drawn, *(box for place, box in taken.items() if place != number)]
        best: tuple[float, Spot, Box] | None = None
        for spot in _candidates(places[number][0] > width / 2):
            box = _box(names[number], places[number], spot)
            covers = sum(box.shared(other) for other in others) + box.area - box.shared(view)
            if best is None or covers < best[0]:
                best = covers, spot, box
        assert best is not None
        made[number] = best[1]
        taken[len(places) + number] = best[2]
    return [made[number] for number in range(len(names))]


def _candidates(right: bool) -> list[Spot]:
    """On the side with more room first."""
    left, other = Spot("left", _BESIDE, 0), Spot("right", -_BESIDE, 0)
    sides = (other, left) if right else (left, other)
    return [Spot(side.align, side.dx, dy) for dy in _ABOVE for side in sides]


def _box(name: str, place: tuple[float, float], spot: Spot) -> Box:
    wide = min(WIDEST, _LETTER * cell_len(name))
    x, y = place[0] + spot.dx, place[1] + spot.dy
    left = x if spot.align == "left" else x - wide
    return Box(left, y - 0.8 * SIZE, left + wide, y + 0.25 * SIZE)
