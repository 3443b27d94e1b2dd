"""Placement of the labels of a scatter's points, so that they cover neither points nor each other.

Positions are pixels from the top left of the plot. Labels are placed one after the other. Each takes the first offset
from its point where it covers nothing; where there is none, it is dropped or takes the offset where it covers least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

LETTER_WIDTH = 6.6  # about the width of a letter in a font of 11 pixels
_POINT_RADIUS = 5.0


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that two boxes share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


@dataclass(frozen=True)
class Offset:
    """The position of a label relative to its point, with Vega-Lite's names."""

    align: str
    dx: float
    dy: float


@dataclass(frozen=True)
class LabelStyle:
    """The size of a label's text and the offsets it may take, best first.

    With `mirrored`, points in the right half of the plot try each offset mirrored, since the left has more space.
    """

    letter_width: float
    ascent: float
    descent: float
    offsets: tuple[Offset, ...]
    max_width: float = math.inf
    mirrored: bool = False

    def candidates(self, in_right_half: bool) -> tuple[Offset, ...]:
        if not (self.mirrored and in_right_half):
            return self.offsets
        opposite = {"left": "right", "right": "left", "center": "center"}
        return tuple(Offset(opposite[offset.align], -offset.dx, offset.dy) for offset in self.offsets)

    def box(self, text: str, point: tuple[float, float], offset: Offset) -> Box:
        """The area that the text covers."""
        width = min(self.max_width, self.letter_width * cell_len(text))
        x, y = point[0] + offset.dx, point[1] + offset.dy
        left = x - {"left": 0.0, "right": width, "center": width / 2}[offset.align]
        return Box(left, y - self.ascent, left + width, y + self.descent)


def place_labels(
    texts: Sequence[str],
    points: Sequence[tuple[float, float]],
    size: tuple[float, float],
    style: LabelStyle,
    *,
    obstacles: Iterable[Box] = (),
    order: Iterable[int] | None = None,
    max_labels: int | None = None,
    allow_overlap: bool = False,
) -> list[Offset | None]:
    """The offset of each label, or None where it is dropped.

    Parameters
    ----------
    texts, points
        The label and the position of each point.
    size
        Width and height of the plot.
    obstacles
        What labels should not cover, besides points and other labels.
    order
        Indices in the order in which labels are placed; by default their own order.
    max_labels
        How many labels are placed at most.
    allow_overlap
        Whether a label that covers something everywhere is placed where it covers least, not dropped.

    Examples
    --------
    >>> style = LabelStyle(7.0, 10.0, 3.0, (Offset("left", 8.0, 0.0), Offset("right", -8.0, 0.0)))
    >>> place_labels(["a", "b"], [(10, 50), (98, 50)], (100, 100), style)
    [Offset(align='left', dx=8.0, dy=0.0), Offset(align='right', dx=-8.0, dy=0.0)]
    """
    width, height = size
    plot = Box(0, 0, width, height)
    r = _POINT_RADIUS
    boxes = [*obstacles, *(Box(x - r, y - r, x + r, y + r) for x, y in points)]
    placed: list[Offset | None] = [None] * len(texts)
    for index in range(len(texts)) if order is None else order:
        if max_labels is not None and sum(offset is not None for offset in placed) == max_labels:
            break
        best: tuple[float, Offset, Box] | None = None
        for offset in style.candidates(points[index][0] > width / 2):
            box = style.box(texts[index], points[index], offset)
            covered = sum(box.overlap(other) for other in boxes) + box.area - box.overlap(plot)
            if best is None or covered < best[0]:
                best = covered, offset, box
        if best is not None and (allow_overlap or best[0] == 0):
            placed[index] = best[1]
            boxes.append(best[2])
    return placed
