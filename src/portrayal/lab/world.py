"""The lab's world: seeded scenes in which activities depend on the group by a known amount.

A scene has one or more people of one group, an activity, perhaps an occupation that shows in the clothes, a place, and
other objects. Dials set the dependencies and their strength, so that a metric can be compared with the truth. The
contents of the world are listed in `data/world.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError, unknown_name
from portrayal.lab.dials import Dial, check_dials

Array = NDArray[np.float64]
Cue = Literal["full", "ambiguous", "absent"]
CUES: tuple[Cue, ...] = ("full", "ambiguous", "absent")
# The first pairs of activities and of occupations have an image.
DRAWN_PAIRS = 9
DRAWN_OCCUPATIONS = 5


@dataclass(frozen=True)
class ActivityPair:
    """Two concepts associated with opposite groups. They share their places and one ambiguous image.

    The concepts are activities or occupations.
    """

    # Group -> the concept associated with it.
    concepts: Mapping[str, str]
    strength: float
    places: tuple[str, ...] = ()

    def concept_for(self, group: str, otherwise: str) -> str:
        """Return the concept associated with this group, or `otherwise` where the pair has no association."""
        return self.concepts.get(group, otherwise) if self.strength else otherwise


def _read() -> dict[str, Any]:
    text = resources.files("portrayal.lab").joinpath("data/world.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


_CONFIG = _read()
ATTRIBUTES: dict[str, dict[str, float]] = _CONFIG["attributes"]
# The attribute that the world is biased about.
BIASED_ATTRIBUTE = next(iter(ATTRIBUTES))
COLOURS: tuple[str, ...] = tuple(_CONFIG["colours"]["names"])
ACTIVITY_PAIRS = tuple(ActivityPair(p["of"], p["strength"], tuple(p["places"])) for p in _CONFIG["pairs"])
OCCUPATION_PAIRS = tuple(ActivityPair(p["of"], p["strength"]) for p in _CONFIG["occupations"])
EXTRAS: dict[str, dict[str, float]] = _CONFIG["extras"]
PLACES = tuple(sorted({place for pair in ACTIVITY_PAIRS for place in pair.places}))


def _concepts(pairs: Sequence[ActivityPair]) -> dict[str, ActivityPair]:
    return {concept: pair for pair in pairs for concept in pair.concepts.values()}


ACTIVITIES = _concepts(ACTIVITY_PAIRS)
OCCUPATIONS = _concepts(OCCUPATION_PAIRS)
DRAWN_ACTIVITIES = tuple(_concepts(ACTIVITY_PAIRS[:DRAWN_PAIRS]))


@dataclass(frozen=True)
class World:
    """The dials of the world.

    `activities` is not a dial: "drawn" has only the activities with an image, "all" has all 52.

    Examples
    --------
    >>> World(data_bias=1.0).cue_shares["full"]
    0.4
    """

    data_bias: Annotated[
        float,
        Dial(
            "how strongly activity, occupation, other objects and place depend on gender",
            "they are independent of gender",
        ),
    ] = 0.5
    cue_strength: Annotated[
        float,
        Dial(
            "share of images that show the activity in full; of the rest, two in three look like either of two "
            "activities and one in three shows none (captions do not depend on it)",
            "no image shows the activity in full",
        ),
    ] = 0.4
    androgynous: Annotated[
        float, Dial("share of scenes whose people are drawn without signs of gender", "all have them")
    ] = 0.15
    occupations: Annotated[float, Dial("share of scenes whose people dress for an occupation", "none do")] = (
        0.25
    )
    several: Annotated[float, Dial("share of scenes with two or three people", "every scene has one")] = 0.15
    clutter: Annotated[
        float, Dial("probability of each of up to two other objects", "there are no other objects")
    ] = 0.4
    shares: Annotated[
        Mapping[str, float],
        Dial("share of scenes of this group; the other groups keep their proportions", "the group is absent"),
    ] = field(default_factory=dict)
    activities: Literal["drawn", "all"] = "drawn"

    def __post_init__(self) -> None:
        groups = {group: None for shares in ATTRIBUTES.values() for group in shares}
        check_dials(self, groups)
        if self.activities not in ("drawn", "all"):
            raise unknown_name("set of activities", self.activities, ("drawn", "all"))
        for attribute in ATTRIBUTES:
            self.group_shares(attribute)

    @property
    def activity_pairs(self) -> tuple[ActivityPair, ...]:
        return ACTIVITY_PAIRS[:DRAWN_PAIRS] if self.activities == "drawn" else ACTIVITY_PAIRS

    @property
    def occupation_pairs(self) -> tuple[ActivityPair, ...]:
        return OCCUPATION_PAIRS[:DRAWN_OCCUPATIONS] if self.activities == "drawn" else OCCUPATION_PAIRS

    @property
    def cue_shares(self) -> dict[Cue, float]:
        hidden = 1 - self.cue_strength
        return {"full": self.cue_strength, "ambiguous": hidden * 2 / 3, "absent": hidden / 3}

    def group_shares(self, attribute: str) -> dict[str, float]:
        default_shares = ATTRIBUTES[attribute]
        given_shares = {group: self.shares[group] for group in default_shares if group in self.shares}
        remaining, weight = (
            1 - sum(given_shares.values()),
            sum(default_shares[g] for g in default_shares if g not in given_shares),
        )
        if remaining < -1e-9 or (weight == 0 and abs(remaining) > 1e-9):
            raise PortrayalError(
                f"The shares of the groups of '{attribute}' must add up to 1. Got {given_shares}."
            )
        return {
            g: given_shares[g] if g in given_shares else max(remaining, 0.0) * default_shares[g] / weight
            for g in default_shares
        }


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene: the people, their activity, the place, and the appearance."""

    identifier: str
    # Attribute -> group, the same for everyone shown.
    person: Mapping[str, str]
    people: int
    activity: str
    cue: Cue
    occupation: str | None
    occupation_cue: Cue
    place: str
    extras: tuple[str, ...]
    colour: str
    androgynous: bool
    # Random bits for what has no meaning: where people stand, hair, shades.
    variation: int

    def with_person(self, **groups: str) -> Scene:
        """Return the same scene with people of another group and nothing else changed."""
        for attribute, group in groups.items():
            if attribute not in ATTRIBUTES:
                raise unknown_name("attribute", attribute, ATTRIBUTES)
            if group not in ATTRIBUTES[attribute]:
                raise unknown_name(f"group of '{attribute}'", group, ATTRIBUTES[attribute])
        return replace(self, person={**self.person, **groups})


def counterfactual_scene(scene: Scene) -> Scene:
    """Return the same scene with people of the next group; the first group follows the last."""
    groups = list(ATTRIBUTES[BIASED_ATTRIBUTE])
    return scene.with_person(
        **{BIASED_ATTRIBUTE: groups[(groups.index(scene.person[BIASED_ATTRIBUTE]) + 1) % len(groups)]}
    )


def make_scenes(count: int, seed: int = 0, world: World | None = None) -> list[Scene]:
    """Make independent random scenes.

    The first scenes do not depend on `count`, and a dial changes only what it is about.

    Examples
    --------
    >>> [scene.identifier for scene in make_scenes(2, seed=1)]
    ['scene-00000', 'scene-00001']
    """
    world = world or World()
    rng = np.random.default_rng([seed, 1])
    u = rng.random((count, 20))
    people = {
        attribute: _pick(list(ATTRIBUTES[attribute]), u[:, attribute_index], world.group_shares(attribute))
        for attribute_index, attribute in enumerate(ATTRIBUTES)
    }
    column = len(ATTRIBUTES)
    groups = people[BIASED_ATTRIBUTE]
    activities = _pick_by_group(
        concept_probabilities(world.activity_pairs, world.data_bias), groups, u[:, column]
    )
    jobs = _pick_by_group(
        concept_probabilities(world.occupation_pairs, world.data_bias), groups, u[:, column + 1]
    )
    employed = u[:, column + 2] < world.occupations
    cues = _pick(list(CUES), u[:, column + 3], world.cue_shares)
    job_cues = _pick(list(CUES), u[:, column + 4], world.cue_shares)
    places = {
        group: place_probabilities(world.activity_pairs, world.data_bias, group)
        for group in ATTRIBUTES[BIASED_ATTRIBUTE]
    }
    extras = {group: _extra_probabilities(world.data_bias, group) for group in ATTRIBUTES[BIASED_ATTRIBUTE]}
    colours = _pick(list(COLOURS), u[:, column + 5])
    several = u[:, column + 6]
    variations = (u[:, column + 7] * 2**31).astype(np.int64).tolist()
    androgynous = u[:, column + 8] < world.androgynous
    remaining = u[:, column + 9 :].tolist()
    scenes = []
    for index in range(count):
        group = groups[index]
        crowd = several[index] / world.several if world.several else 1.0
        scenes.append(
            Scene(
                identifier=scene_name(index),
                person={attribute: values[index] for attribute, values in people.items()},
                people=1 if crowd >= 1 else 2 if crowd < 0.7 else 3,
                activity=activities[index],
                cue=cues[index],
                occupation=jobs[index] if employed[index] else None,
                occupation_cue=job_cues[index],
                place=_sample(places[group][activities[index]], remaining[index][0]),
                extras=_pick_extras(extras[group], world.clutter, remaining[index][1:5]),
                colour=colours[index],
                androgynous=bool(androgynous[index]),
                variation=variations[index],
            )
        )
    return scenes


def scene_name(number: int) -> str:
    return f"scene-{number:05}"


def concept_probabilities(pairs: Sequence[ActivityPair], data_bias: float) -> dict[str, dict[str, float]]:
    """Return P(concept | group), proportional to .5 + .45 * data bias * strength * sign.

    The sign is 1 for the group that the concept is associated with, else -1.
    """
    table = {}
    for group in ATTRIBUTES[BIASED_ATTRIBUTE]:
        weights = {
            concept: 0.5 + 0.45 * data_bias * pair.strength * (1 if associated_group == group else -1)
            for pair in pairs
            for associated_group, concept in pair.concepts.items()
        }
        total = sum(weights.values())
        table[group] = {concept: weight / total for concept, weight in weights.items()}
    return table


_PLACE_STRENGTH = 0.3


def place_probabilities(
    pairs: Sequence[ActivityPair], data_bias: float, group: str
) -> dict[str, dict[str, float]]:
    """Return P(place | activity, group). The first place of a pair is associated with the first group."""
    sign = 1 if group == next(iter(ATTRIBUTES[BIASED_ATTRIBUTE])) else -1
    table = {}
    for pair in pairs:
        first = 0.5 + 0.45 * data_bias * _PLACE_STRENGTH * sign
        for concept in pair.concepts.values():
            table[concept] = dict(zip(pair.places, (first, 1 - first), strict=True))
    return table


def _extra_probabilities(data_bias: float, group: str) -> dict[str, float]:
    weights = {}
    for label, associations in EXTRAS.items():
        association = sum(size if other == group else -size for other, size in associations.items())
        weights[label] = 0.5 + 0.45 * data_bias * association
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def _pick_extras(shares: Mapping[str, float], clutter: float, u: Sequence[float]) -> tuple[str, ...]:
    picked = [_sample(shares, u[2 * slot + 1]) for slot in range(2) if u[2 * slot] < clutter]
    return tuple(dict.fromkeys(picked))


def _sample(shares: Mapping[str, float], u: float) -> str:
    names = list(shares)
    for name in names:
        u -= shares[name]
        if u < 0:
            return name
    return names[-1]


def _pick(names: Sequence[Any], u: Array, shares: Mapping[Any, float] | None = None) -> list[Any]:
    weights = np.ones(len(names)) if shares is None else np.array([shares[name] for name in names])
    edges = np.cumsum(weights / weights.sum())
    indices = np.minimum(np.searchsorted(edges, u, side="right"), len(names) - 1)
    return [names[index] for index in indices]


def _pick_by_group(shares: Mapping[str, Mapping[str, float]], groups: Sequence[str], u: Array) -> list[str]:
    picked = {group: _pick(list(table), u, table) for group, table in shares.items()}
    return [picked[group][index] for index, group in enumerate(groups)]
