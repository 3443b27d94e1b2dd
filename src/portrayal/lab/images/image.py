"""Render the image of a scene, and its counterfactual in which only the person differs."""

from __future__ import annotations

from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.lab.images.brush import Brush
from portrayal.lab.images.extras import SPOTS, draw_extra
from portrayal.lab.images.people import Figure, draw_person, figure_appearance
from portrayal.lab.images.places import draw_place
from portrayal.lab.images.props import props_of, resting_hands
from portrayal.lab.world import DRAWN_ACTIVITIES, OCCUPATIONS, Scene

SIZE = 96
_SMALLEST = 16
# Left, top, width and height as fractions of the image.
RelativeBox = tuple[float, float, float, float]


def draw(scene: Scene, size: int = SIZE) -> Image.Image:
    """Render a square image of a scene. The same scene gives the same pixels in every process.

    Parameters
    ----------
    scene
        A scene whose activity has an image (`DRAWN_ACTIVITIES`).
    size
        Side of the image in pixels, 16 or more.
    """
    if size < _SMALLEST:
        raise PortrayalError(f"An image has a side of {_SMALLEST} pixels or more. Got {size} instead.")
    if scene.activity not in DRAWN_ACTIVITIES:
        raise PortrayalError(
            f"The activity '{scene.activity}' has words but no image; render images of a world whose "
            "activities are 'drawn'."
        )
    brush = Brush(size)
    draw_place(brush, scene.place, _bits(scene, 0) % 4)
    x = _middle(scene)
    # The first person stands in front.
    for figure in reversed(_figures(scene)):
        draw_person(brush, figure)
    for label, spot in zip(scene.extras, SPOTS, strict=False):
        draw_extra(brush, label, spot)
    props = props_of(scene.activity)
    if scene.cue == "full":
        props.objects[scene.activity](brush, x)
    elif scene.cue == "ambiguous":
        props.unclear(brush, x)
    return brush.finish(_mirrored(scene))


def counterfactual(scene: Scene, size: int = SIZE, **groups: str) -> Image.Image:
    """Render the same scene with people of another group (`gender="male"`) and nothing else changed."""
    return draw(scene.with_person(**groups), size)


def person_boxes(scene: Scene) -> list[RelativeBox]:
    """Return the bounding box of each person, the person in front first."""
    boxes = []
    for figure in _figures(scene):
        left, top, right, bottom = (min(max(edge / 100, 0.0), 1.0) for edge in figure.box)
        if _mirrored(scene):
            left, right = 1 - right, 1 - left
        boxes.append((round(left, 6), round(top, 6), round(right - left, 6), round(bottom - top, 6)))
    return boxes


def appearance(scene: Scene) -> dict[str, float]:
    """Return how the people of an image are drawn, as numbers: the mean over its people."""
    people = [figure_appearance(figure) for figure in _figures(scene)]
    return {name: round(sum(person[name] for person in people) / len(people), 4) for name in people[0]}


def _figures(scene: Scene) -> list[Figure]:
    x = _middle(scene)
    figures = []
    for index in range(scene.people):
        middle = x - 17 * index
        hands = resting_hands(middle)
        if index == 0 and scene.cue != "absent":
            hands = props_of(scene.activity).hands(middle)
        figures.append(
            Figure(
                gender=None if scene.androgynous else scene.person["gender"],
                age=scene.person["age"],
                skin=scene.person["skin"],
                colour=scene.colour,
                variation=_bits(scene, 4 + 4 * index),
                x=middle,
                hands=hands,
                outfit=_outfit(scene),
            )
        )
    return figures


def _outfit(scene: Scene) -> str | None:
    if scene.occupation is None or scene.occupation_cue == "absent":
        return None
    if scene.occupation_cue == "full":
        return scene.occupation
    return "|".join(OCCUPATIONS[scene.occupation].concepts.values())


def _middle(scene: Scene) -> float:
    """Return the horizontal position of the first person: further right in scenes with three people."""
    return (38.0 if scene.people < 3 else 46.0) + (_bits(scene, 20) % 7 - 3)


def _mirrored(scene: Scene) -> bool:
    return bool(_bits(scene, 24) % 2)


def _bits(scene: Scene, shift: int) -> int:
    return scene.variation >> shift & 15
