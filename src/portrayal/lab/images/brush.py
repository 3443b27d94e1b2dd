"""A drawing interface with coordinates from 0 to 100, independent of the image's size in pixels."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

Colour = str
Point = tuple[float, float]
# Images are rendered at this multiple of their size and averaged down: smooth edges, and pixels stay independent.
SMOOTHING = 3


class Brush:
    def __init__(self, size: int):
        self.size = size
        self.image = Image.new("RGB", (size * SMOOTHING, size * SMOOTHING))
        self._draw = ImageDraw.Draw(self.image)
        self._unit = size * SMOOTHING / 100

    def finish(self, mirrored: bool) -> Image.Image:
        image = self.image.reduce(SMOOTHING)
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else image

    def rectangle(
        self, x: float, y: float, width: float, height: float, colour: Colour, corner: float = 0
    ) -> None:
        box = [self._at(x), self._at(y), self._at(x + width) - 1, self._at(y + height) - 1]
        if box[2] >= box[0] and box[3] >= box[1]:
            self._draw.rounded_rectangle(box, self._at(corner), fill=colour)

    def oval(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        self._draw.ellipse([self._at(v) for v in (x, y, x + width, y + height)], fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self.oval(x - radius, y - radius, 2 * radius, 2 * radius, colour)

    def ring(self, x: float, y: float, radius: float, colour: Colour, width: float = 1.4) -> None:
        box = [self._at(v) for v in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.ellipse(box, outline=colour, width=max(1, self._at(width)))

    def arc(
        self, x: float, y: float, radius: float, start: float, end: float, colour: Colour, width: float
    ) -> None:
        box = [self._at(v) for v in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.arc(box, start, end, fill=colour, width=max(1, self._at(width)))

    def pie(self, x: float, y: float, radius: float, start: float, end: float, colour: Colour) -> None:
        box = [self._at(v) for v in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.pieslice(box, start, end, fill=colour)

    def line(self, points: Sequence[Point], colour: Colour, width: float) -> None:
        """Draw a line with round ends and joints."""
        scaled = [(self._at(x), self._at(y)) for x, y in points]
        self._draw.line(scaled, fill=colour, width=max(1, self._at(width)), joint="curve")
        for x, y in points:
            self.disc(x, y, width / 2, colour)

    def shape(self, points: Sequence[Point], colour: Colour) -> None:
        self._draw.polygon([(self._at(x), self._at(y)) for x, y in points], fill=colour)

    def _at(self, value: float) -> int:
        return round(value * self._unit)
