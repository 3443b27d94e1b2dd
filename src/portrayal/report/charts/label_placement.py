"""Names beside the points of a scatter: the farthest points first, and only where a name covers nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels

LETTER, LINE = 6.6, 12  # about how wide and high text of 11 pixels is
AWAY, UP = 7, 12  # from the middle of a point to its name beside it, and above or below
_LONGEST = 22  # letters


def placed(
    points: Mapping[str, tuple[float, float]], width: float, height: float, taken: Iterable[Box], most: int
) -> list[dict[str, Any]]:
    """The names that fit, each with its place in pixels and how it is aligned there.

    The order of `points` is the order in which they are given a place.
    """
    filled: list[Box] = list(taken)
    dots: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points.values()]
    made: list[dict[str, Any]] = []
    for name, (x, y) in points.items():
        if len(made) == most:
            break
        told = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        long = LETTER * len(told)
        places = (("left", x + AWAY, y), ("right", x - AWAY, y), ("center", x, y - UP), ("center", x, y + UP))
        for align, at, line in places:
            left = at - {"left": 0.0, "right": long, "center": long / 2}[align]
            box = (left, line - LINE / 2, left + long, line + LINE / 2)
            if box[0] < 0 or box[2] > width or box[1] < 0 or box[3] > height:
                continue
            if not _covers(box, filled) and not _covers(box, dots):
                filled.append(box)
                made.append({"name": told, "x": at, "y": line, "align": align})
                break
    return made


def _covers(box: Box, others: Sequence[Box]) -> bool:
    left, top, right, bottom = box
    return any(left < r and right > a and top < b and bottom > t for a, t, r, b in others)
