"""Placement of the labels of a scatter, so that they cover neither points nor each other.

Positions are pixels from the top left of the plot. Labels are placed one after the other. Each label takes the first
offset from its point at which it covers nothing. If there is none, it is dropped or placed where it covers least.
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
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area of the intersection of two boxes."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


@dataclass(frozen=True)
class Offset:
    """The position of a label relative to its point, with the names of Vega-Lite."""

    align: str
    dx: float
    dy: float


@dataclass(frozen=True)
class LabelStyle:
    """The size of a label's text, and the offsets it may take, with the best first.

    With `mirrored`, labels of points in the right half of the plot are mirrored, since there is more space on the left.
    """

    letter_width: float
    ascent: float
    descent: float
    offsets: tuple[Offset, ...]
    max_width: float = math.inf
    mirrored: bool = False

    def candidates(self, in_right_half: bool) -> tuple[Offset, ...]:
        """The offsets to try for a point in the right or left half of the plot."""
        if not (self.mirrored and in_right_half):
            return self.offsets
        mirrored_align = {"left": "right", "right": "left", "center": "center"}
        return tuple(Offset(mirrored_align[offset.align], -offset.dx, offset.dy) for offset in self.offsets)

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
        Areas that labels should not cover, besides points and other labels.
    order
        Indices of labels in the order in which they are placed; by default 0, 1, 2, ...
    max_labels
        The maximum number of labels that are placed.
    allow_overlap
        Whether a label without a free offset is placed where it covers least, instead of being dropped.

    Examples
    --------
    >>> style = LabelStyle(7.0, 10.0, 3.0, (Offset("left", 8.0, 0.0), Offset("right", -8.0, 0.0)))
    >>> place_labels(["a", "b"], [(10, 50), (98, 50)], (100, 100), style)
    [Offset(align='left', dx=8.0, dy=0.0), Offset(align='right', dx=-8.0, dy=0.0)]
    """
    width, height = size
    plot = Box(0, 0, width, height)
    radius = _POINT_RADIUS
    occupied_boxes = [*obstacles, *(Box(x - radius, y - radius, x + radius, y + radius) for x, y in points)]
    label_offsets: list[Offset | None] = [None] * len(texts)
    for index in range(len(texts)) if order is None else order:
        if max_labels is not None and sum(offset is not None for offset in label_offsets) == max_labels:
            break
        best: tuple[float, Offset, Box] | None = None
        for offset in style.candidates(points[index][0] > width / 2):
            box = style.box(texts[index], points[index], offset)
            covered_area = sum(box.overlap(other) for other in occupied_boxes) + box.area - box.overlap(plot)
            if best is None or covered_area < best[0]:
                best = covered_area, offset, box
        if best is not None and (allow_overlap or best[0] == 0):
            label_offsets[index] = best[1]
            occupied_boxes.append(best[2])
    return label_offsets
