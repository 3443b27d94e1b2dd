"""A picture of a scene, and the same picture with only the person changed."""

from __future__ import annotations

from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.lab.images.brush import Brush
from portrayal.lab.images.extras import SPOTS, draw_extra
from portrayal.lab.images.people import Figure, appearance, draw_person
from portrayal.lab.images.places import draw_place
from portrayal.lab.images.props import look_of, resting_hands
from portrayal.lab.world import DRAWN_ACTIVITIES, OCCUPATIONS, Scene

SIZE = 96
_SMALLEST = 16
Box = tuple[float, float, float, float]  # left, top, width, height as fractions of the picture


def draw(scene: Scene, size: int = SIZE) -> Image.Image:
    """A square picture of a scene. The same scene gives the same pixels in every process."""
    if size < _SMALLEST:
        raise PortrayalError(f"A picture has {_SMALLEST} pixels a side or more. Got {size} instead.")
    if scene.activity not in DRAWN_ACTIVITIES:
        raise PortrayalError(
            f"The activity '{scene.activity}' has words but no picture; make pictures of a world whose "
            "activities are 'drawn'."
        )
    brush = Brush(size)
    draw_place(brush, scene.place, _bits(scene, 0) % 4)
    x = _middle(scene)
    for figure in reversed(_figures(scene)):  # the first person stands in front
        draw_person(brush, figure)
    for label, spot in zip(scene.extras, SPOTS, strict=False):
        draw_extra(brush, label, spot)
    look = look_of(scene.activity)
    if scene.cue == "full":
        look.objects[scene.activity](brush, x)
    elif scene.cue == "ambiguous":
        look.unclear(brush, x)
    return brush.finish(_mirrored(scene))


def counterfactual(scene: Scene, size: int = SIZE, **groups: str) -> Image.Image:
    """The picture of the same scene with people of another group (`gender="male"`), and nothing else changed."""
    return draw(scene.with_person(**groups), size)


def person_boxes(scene: Scene) -> list[Box]:
    """What each person may cover, the one in front first."""
    boxes = []
    for figure in _figures(scene):
        left, top, right, bottom = (min(max(edge / 100, 0.0), 1.0) for edge in figure.box)
        if _mirrored(scene):
            left, right = 1 - right, 1 - left
        boxes.append((round(left, 6), round(top, 6), round(right - left, 6), round(bottom - top, 6)))
    return boxes


def looks(scene: Scene) -> dict[str, float]:
    """How the people of a picture are drawn, in numbers: the mean over those who are in it."""
    drawn = [appearance(figure) for figure in _figures(scene)]
    return {name: round(sum(one[name] for one in drawn) / len(drawn), 4) for name in drawn[0]}


def _figures(scene: Scene) -> list[Figure]:
    x = _middle(scene)
    found = []
    for number in range(scene.people):
        middle = x - 17 * number
        hands = resting_hands(middle)
        if number == 0 and scene.cue != "absent":
            hands = look_of(scene.activity).hands(middle)
        found.append(
            Figure(
                gender=None if scene.androgynous else scene.person["gender"],
                age=scene.person["age"],
                skin=scene.person["skin"],
                colour=scene.colour,
                look=_bits(scene, 4 + 4 * number),
                x=middle,
                hands=hands,
                outfit=_outfit(scene),
            )
        )
    return found


def _outfit(scene: Scene) -> str | None:
    if scene.occupation is None or scene.occupation_cue == "absent":
        return None
    if scene.occupation_cue == "full":
        return scene.occupation
    return "|".join(OCCUPATIONS[scene.occupation].of.values())


def _middle(scene: Scene) -> float:
    """Where the first person stands: further to the right where others stand beside."""
    return (38.0 if scene.people < 3 else 46.0) + (_bits(scene, 20) % 7 - 3)


def _mirrored(scene: Scene) -> bool:
    return bool(_bits(scene, 24) % 2)


def _bits(scene: Scene, shift: int) -> int:
    return scene.look >> shift & 15
