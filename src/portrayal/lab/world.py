"""The lab's world: seeded scenes in which activity depends on the group by a known amount.

A scene has one person, an activity, an object that goes with it, and a place. How strongly the activity
depends on the person's gender is a dial (`data_bias`), so that a metric can be held against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Groups and how common they are. They are data: another attribute or a third group is another entry.
ATTRIBUTES: dict[str, dict[str, float]] = {
    "gender": {"female": 0.5, "male": 0.5},
    "age": {"young": 0.25, "old": 0.75},
    "skin": {"dark": 0.4, "light": 0.6},
}


@dataclass(frozen=True)
class Activity:
    """Something people do. `lean` is the stereotype: +1 leans to the first group of gender, -1 to the last."""

    verbs: tuple[str, ...]
    things: tuple[str, ...]  # words for the object that goes with it
    label: str  # the object's label
    places: tuple[str, ...]
    lean: float


ACTIVITIES: tuple[Activity, ...] = (
    Activity(("cooking", "preparing"), ("a meal", "some food", "dinner"), "oven", ("kitchen",), 1.0),
    Activity(("repairing", "fixing"), ("a car", "an engine"), "car", ("garage", "street"), -1.0),
    Activity(("hanging up", "folding"), ("laundry", "some washing"), "clothesline", ("garden", "room"), 1.0),
    Activity(
        ("riding", "doing a trick on"), ("a skateboard", "a board"), "skateboard", ("ramp", "street"), -1.0
    ),
    Activity(("arranging", "picking"), ("flowers", "a bouquet"), "potted plant", ("garden", "shop"), 0.6),
    Activity(
        ("riding", "sitting on"), ("a motorcycle", "a motorbike"), "motorcycle", ("street", "garage"), -0.6
    ),
    Activity(("shopping for", "looking at"), ("clothes", "a dress"), "handbag", ("shop", "street"), 0.6),
    Activity(("swinging", "holding"), ("a baseball bat", "a bat"), "baseball bat", ("field",), -0.6),
    Activity(("talking on", "using"), ("a phone", "a cell phone"), "cell phone", ("street", "room"), 0.3),
    Activity(("working on", "typing on"), ("a laptop", "a computer"), "laptop", ("office", "room"), -0.3),
    Activity(("reading", "looking through"), ("a book", "a magazine"), "book", ("room", "park"), 0.0),
    Activity(("walking", "standing with"), ("a dog", "a small dog"), "dog", ("park", "street"), 0.0),
    Activity(("eating", "cutting"), ("a pizza", "a slice of pizza"), "pizza", ("kitchen", "restaurant"), 0.0),
    Activity(("flying", "holding"), ("a kite", "a colorful kite"), "kite", ("beach", "field"), 0.0),
)


@dataclass(frozen=True)
class Scene:
    """One scene: who is shown, what they do and where. Numbers index into `ACTIVITIES` and its places."""

    identifier: str
    person: dict[str, str]
    activity: int
    place: str


def make_scenes(count: int, rng: np.random.Generator, data_bias: float = 0.5) -> list[Scene]:
    """Scenes drawn independently. `data_bias` 0: activity and gender are independent; 1: as far apart as it goes.

    P(activity | gender) is proportional to .5 + .45 * data_bias * lean, with the sign of the group.
    """
    people = {
        name: rng.choice(list(groups), size=count, p=list(groups.values()))
        for name, groups in ATTRIBUTES.items()
    }
    chances = {group: activity_chances(group, data_bias) for group in ATTRIBUTES["gender"]}
    draws = rng.random(count)
    scenes = []
    for number in range(count):
        person = {name: str(values[number]) for name, values in people.items()}
        activity = int(np.searchsorted(np.cumsum(chances[person["gender"]]), draws[number]))
        place = str(rng.choice(ACTIVITIES[activity].places))
        scenes.append(Scene(f"scene-{number:05}", person, activity, place))
    return scenes


def activity_chances(group: str, data_bias: float) -> np.ndarray:
    """P(activity | gender) at this dial."""
    first = next(iter(ATTRIBUTES["gender"]))
    sign = 1.0 if group == first else -1.0
    weights = np.array([0.5 + 0.45 * data_bias * activity.lean * sign for activity in ACTIVITIES])
    chances: np.ndarray = weights / weights.sum()
    return chances
