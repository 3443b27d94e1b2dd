"""The lab's world: seeded scenes in which what people do depends on their group by a known amount.

A scene shows one or more people of one group, what they do, perhaps an occupation they dress for, a place, and
other things. What depends on what, and how strongly, is set by dials, so that a metric can be held against the
truth. The world's contents stand in `data/world.toml`.
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
DRAWN_PAIRS = 9  # the first pairs of activities have a picture
DRAWN_OCCUPATIONS = 5


@dataclass(frozen=True)
class Pair:
    """Two concepts that lean to opposite groups, share their places, and share one unclear picture."""

    of: Mapping[str, str]  # group -> the concept that leans to it
    strength: float
    places: tuple[str, ...] = ()

    def leaning_to(self, group: str, otherwise: str) -> str:
        """The concept that leans to this group, where the pair leans at all."""
        return self.of.get(group, otherwise) if self.strength else otherwise


def _read() -> dict[str, Any]:
    text = resources.files("portrayal.lab").joinpath("data/world.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


_CONTENTS = _read()
ATTRIBUTES: dict[str, dict[str, float]] = _CONTENTS["attributes"]
LEANING = next(iter(ATTRIBUTES))  # the attribute that the world is biased about
COLOURS: tuple[str, ...] = tuple(_CONTENTS["colours"]["names"])
ACTIVITY_PAIRS = tuple(Pair(p["of"], p["strength"], tuple(p["places"])) for p in _CONTENTS["pairs"])
OCCUPATION_PAIRS = tuple(Pair(p["of"], p["strength"]) for p in _CONTENTS["occupations"])
EXTRAS: dict[str, dict[str, float]] = _CONTENTS["extras"]
PLACES = tuple(sorted({place for pair in ACTIVITY_PAIRS for place in pair.places}))


def _concepts(pairs: Sequence[Pair]) -> dict[str, Pair]:
    return {concept: pair for pair in pairs for concept in pair.of.values()}


ACTIVITIES = _concepts(ACTIVITY_PAIRS)
OCCUPATIONS = _concepts(OCCUPATION_PAIRS)
DRAWN_ACTIVITIES = tuple(_concepts(ACTIVITY_PAIRS[:DRAWN_PAIRS]))


@dataclass(frozen=True)
class World:
    """The dials of the world."""

    data_bias: Annotated[
        float,
        Dial(
            "how strongly activity, occupation, other objects and place depend on gender",
            "they do not depend on it",
        ),
    ] = 0.5
    cue_strength: Annotated[
        float,
        Dial(
            "share of pictures that show the activity in full; of the rest, two in three look like either of two "
            "activities and one in three shows none (what is said does not depend on it)",
            "no picture tells the activity",
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
        float, Dial("chance of each of up to two other things being there", "nothing else is there")
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
    def activity_pairs(self) -> tuple[Pair, ...]:
        return ACTIVITY_PAIRS[:DRAWN_PAIRS] if self.activities == "drawn" else ACTIVITY_PAIRS

    @property
    def occupation_pairs(self) -> tuple[Pair, ...]:
        return OCCUPATION_PAIRS[:DRAWN_OCCUPATIONS] if self.activities == "drawn" else OCCUPATION_PAIRS

    @property
    def cue_shares(self) -> dict[Cue, float]:
        hidden = 1 - self.cue_strength
        return {"full": self.cue_strength, "ambiguous": hidden * 2 / 3, "absent": hidden / 3}

    def group_shares(self, attribute: str) -> dict[str, float]:
        usual = ATTRIBUTES[attribute]
        given = {group: self.shares[group] for group in usual if group in self.shares}
        left, weight = 1 - sum(given.values()), sum(usual[g] for g in usual if g not in given)
        if left < -1e-9 or (weight == 0 and abs(left) > 1e-9):
            raise PortrayalError(f"The shares of the groups of '{attribute}' must add up to 1. Got {given}.")
        return {g: given[g] if g in given else max(left, 0.0) * usual[g] / weight for g in usual}


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene: who is shown, what they do, where, and how it looks."""

    identifier: str
    person: Mapping[str, str]  # attribute -> group, of everyone shown
    people: int
    activity: str
    cue: Cue
    occupation: str | None
    occupation_cue: Cue
    place: str
    extras: tuple[str, ...]
    colour: str
    androgynous: bool
    look: int  # decides what has no meaning: where people stand, hair, shades

    def with_person(self, **groups: str) -> Scene:
        """The same scene with people of another group, and nothing else changed."""
        for attribute, group in groups.items():
            if attribute not in ATTRIBUTES:
                raise unknown_name("attribute", attribute, ATTRIBUTES)
            if group not in ATTRIBUTES[attribute]:
                raise unknown_name(f"group of '{attribute}'", group, ATTRIBUTES[attribute])
        return replace(self, person={**self.person, **groups})


def other_scene(scene: Scene) -> Scene:
    """The same scene with somebody of the next group, after the last the first."""
    groups = list(ATTRIBUTES[LEANING])
    return scene.with_person(**{LEANING: groups[(groups.index(scene.person[LEANING]) + 1) % len(groups)]})


def make_scenes(count: int, seed: int = 0, world: World | None = None) -> list[Scene]:
    """Scenes drawn independently. The first ones are the same however many are asked for, and a dial that is
    turned changes only what it is about.
    """
    world = world or World()
    rng = np.random.default_rng([seed, 1])
    u = rng.random((count, 20))
    people = {
        attribute: _pick(list(ATTRIBUTES[attribute]), u[:, place], world.group_shares(attribute))
        for place, attribute in enumerate(ATTRIBUTES)
    }
    at = len(ATTRIBUTES)
    groups = people[LEANING]
    activities = _pick_by_group(chances(world.activity_pairs, world.data_bias), groups, u[:, at])
    jobs = _pick_by_group(chances(world.occupation_pairs, world.data_bias), groups, u[:, at + 1])
    employed = u[:, at + 2] < world.occupations
    cues = _pick(list(CUES), u[:, at + 3], world.cue_shares)
    job_cues = _pick(list(CUES), u[:, at + 4], world.cue_shares)
    places = {
        group: place_chances(world.activity_pairs, world.data_bias, group) for group in ATTRIBUTES[LEANING]
    }
    extras = {group: _extra_chances(world.data_bias, group) for group in ATTRIBUTES[LEANING]}
    colours = _pick(list(COLOURS), u[:, at + 5])
    several = u[:, at + 6]
    looks = (u[:, at + 7] * 2**31).astype(np.int64).tolist()
    androgynous = u[:, at + 8] < world.androgynous
    rest = u[:, at + 9 :].tolist()
    scenes = []
    for number in range(count):
        group = groups[number]
        crowd = several[number] / world.several if world.several else 1.0
        scenes.append(
            Scene(
                identifier=scene_name(number),
                person={attribute: values[number] for attribute, values in people.items()},
                people=1 if crowd >= 1 else 2 if crowd < 0.7 else 3,
                activity=activities[number],
                cue=cues[number],
                occupation=jobs[number] if employed[number] else None,
                occupation_cue=job_cues[number],
                place=_draw(places[group][activities[number]], rest[number][0]),
                extras=_pick_extras(extras[group], world.clutter, rest[number][1:5]),
                colour=colours[number],
                androgynous=bool(androgynous[number]),
                look=looks[number],
            )
        )
    return scenes


def scene_name(number: int) -> str:
    return f"scene-{number:05}"


def chances(pairs: Sequence[Pair], data_bias: float) -> dict[str, dict[str, float]]:
    """P(concept | group): proportional to .5 + .45 * data bias * strength where it leans to the group, - elsewhere."""
    table = {}
    for group in ATTRIBUTES[LEANING]:
        weights = {
            concept: 0.5 + 0.45 * data_bias * pair.strength * (1 if leaning == group else -1)
            for pair in pairs
            for leaning, concept in pair.of.items()
        }
        total = sum(weights.values())
        table[group] = {concept: weight / total for concept, weight in weights.items()}
    return table


_PLACE_LEAN = 0.3


def place_chances(pairs: Sequence[Pair], data_bias: float, group: str) -> dict[str, dict[str, float]]:
    """P(place | activity, group). The first place of a pair leans to the first group."""
    sign = 1 if group == next(iter(ATTRIBUTES[LEANING])) else -1
    table = {}
    for pair in pairs:
        first = 0.5 + 0.45 * data_bias * _PLACE_LEAN * sign
        for concept in pair.of.values():
            table[concept] = dict(zip(pair.places, (first, 1 - first), strict=True))
    return table


def _extra_chances(data_bias: float, group: str) -> dict[str, float]:
    weights = {}
    for label, leans in EXTRAS.items():
        lean = sum(size if leaning == group else -size for leaning, size in leans.items())
        weights[label] = 0.5 + 0.45 * data_bias * lean
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def _pick_extras(shares: Mapping[str, float], clutter: float, u: Sequence[float]) -> tuple[str, ...]:
    found = [_draw(shares, u[2 * place + 1]) for place in range(2) if u[2 * place] < clutter]
    return tuple(dict.fromkeys(found))


def _draw(shares: Mapping[str, float], u: float) -> str:
    names = list(shares)
    for name in names:
        u -= shares[name]
        if u < 0:
            return name
    return names[-1]


def _pick(names: Sequence[Any], u: Array, shares: Mapping[Any, float] | None = None) -> list[Any]:
    weights = np.ones(len(names)) if shares is None else np.array([shares[name] for name in names])
    edges = np.cumsum(weights / weights.sum())
    places = np.minimum(np.searchsorted(edges, u, side="right"), len(names) - 1)
    return [names[place] for place in places]


def _pick_by_group(shares: Mapping[str, Mapping[str, float]], groups: Sequence[str], u: Array) -> list[str]:
    picked = {group: _pick(list(table), u, table) for group, table in shares.items()}
    return [picked[group][number] for number, group in enumerate(groups)]
