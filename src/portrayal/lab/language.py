"""How the lab's annotators and captioners put a scene into words: a grammar, and habits that differ by speaker.

A sentence is built from decisions, and each decision takes a random number of its own. So turning a dial changes
the captions it is about and leaves the others as they were. The words stand in `data/wording.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from portrayal.lab.world import OCCUPATIONS, Scene


def _read() -> dict[str, Any]:
    text = resources.files("portrayal.lab").joinpath("data/wording.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


_WORDS = _read()
_NOUNS: dict[str, dict[str, list[str]]] = _WORDS["nouns"]
_PLURALS: dict[str, str] = _WORDS["plurals"]
_PEOPLE: dict[str, list[str]] = _WORDS["people"]
_SENTENCES: dict[str, list[str]] = _WORDS["sentences"]
_PLACES: dict[str, list[str]] = _WORDS["places"]
_EXTRAS: dict[str, list[str]] = _WORDS["extras"]
_ACTIVITIES: dict[str, dict[str, Any]] = _WORDS["activities"]
_INDOORS = {"kitchen", "restaurant", "garage", "room", "office", "hall"}
_NEUTRAL = "neutral"
_JOBS = {
    name: _WORDS["jobs"].get(name) or f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in OCCUPATIONS
}

# The decisions of a sentence. Each has a column of random numbers.
DECISIONS = (
    "group", "noun", "mood", "which mood", "age", "which age", "skin", "which skin", "clothes", "which clothes",
    "job", "which job", "opening", "which opening", "to be", "verb", "thing", "extra", "which extra", "beside",
    "place", "which place", "place first", "time", "which time", "pronoun", "which pronoun", "count", "bare",
    "which bare", "error", "which error", "activity", "object", "which object", "erased", "which erased", "demeaning",
    "which demeaning", "stock", "guess", "detail", "which detail",
    "sight",
)  # fmt: skip
_AT = {name: place for place, name in enumerate(DECISIONS)}
(
    _GROUP, _NOUN, _MOOD, _MOODS, _AGE, _AGES, _SKIN, _SKINS, _CLOTHES, _CLOTHING, _JOB, _JOBBING, _OPEN, _OPENING,
    _BE, _VERB, _THING, _EXTRA, _EXTRAS_WHICH, _BESIDE, _PLACE, _PLACING, _FIRST, _TIME, _TIMES, _PRONOUN, _PRONOUNS,
    _COUNT, _BARE, _BARES,
) = range(30)  # fmt: skip
_DETAIL, _DETAILS, _SIGHT = _AT["detail"], _AT["which detail"], _AT["sight"]


def column(decision: str) -> int:
    """Where a row of random numbers holds the one of this decision."""
    return _AT[decision]


def object_label(activity: str) -> str | None:
    """The object that goes with an activity, where one does."""
    label: str | None = _ACTIVITIES[activity].get("label")
    return label


def query(activity: str) -> str:
    """How somebody who searches for an activity asks for it, naming no group."""
    words = _ACTIVITIES[activity]
    return f"a person {words['verbs'][0]} {words['things'][0]}"


def named(group: str | None, age: str) -> str:
    """The first word for somebody of a group and age; for a group of None, one that names no group."""
    return _NOUNS[group or _NEUTRAL][age][0]


def plural(noun: str) -> str:
    return _PLURALS[noun]


def job_phrase(name: str, many: bool) -> str:
    """An occupation as it is told of somebody: "a nurse", "police officers"."""
    return _job_plural(name) if many else _JOBS[name]


@dataclass(frozen=True)
class Habits:
    """How one speaker writes: chances of saying something, from 0 (never) to 1 (always)."""

    vocabulary: float = 1.0  # share of the words for a thing that the speaker uses; 0: one word each
    first_choice: int = 0  # which word of a list the speaker likes best
    names_age: float = 0.1
    names_skin: float = 0.02
    colour: float = 0.5
    mood: float = 0.2
    job: float = 0.6
    opening: float = 0.2
    extra: float = 0.5
    place: float = 0.7
    place_first: float = 0.1
    time: float = 0.15
    detail: float = 0.15
    sight: float = 0.1  # a thing in passing that nobody labels: the long tail of words
    pronoun: float = 0.15
    bare: float = 0.0
    written: bool = False  # with a capital and a full stop

    def pick(self, words: Sequence[str], u: float) -> str:
        known = max(1, round(self.vocabulary * len(words)))
        return words[(self.first_choice + int(u * known)) % len(words)]


@dataclass(frozen=True, slots=True)
class Said:
    """What a speaker says of a scene, which may not be what is there."""

    group: str | None  # None: no group is named
    activity: str
    extras: tuple[str, ...]  # other things the speaker may mention
    added: str | None = None  # a thing the speaker mentions in any case
    insult: str | None = None


def sentence(scene: Scene, said: Said, habits: Habits, u: Sequence[float]) -> str:
    """One caption of a scene; `u` has a number for each of the decisions."""
    pick = habits.pick
    who, many = _who(scene, said, habits, u)
    be = "are" if many else "is"
    if u[_BARE] < habits.bare:
        return _written(f"{who} {pick(_SENTENCES['bare'], u[_BARES]).replace('is ', be + ' ')}", habits)
    if u[_CLOTHES] < habits.colour:
        who += " " + pick(_PEOPLE["clothes"], u[_CLOTHING]).replace("{colour}", scene.colour)
    activity = _ACTIVITIES[said.activity]
    does = f"{pick(activity['verbs'], u[_VERB])} {pick(activity['things'], u[_THING])}"
    thing = said.added
    if thing is None and said.extras and u[_EXTRA] < habits.extra:
        thing = said.extras[int(u[_EXTRAS_WHICH] * len(said.extras))]
    beside = "" if thing is None else _beside(thing, habits, u)
    place = pick(_PLACES[scene.place], u[_PLACING]) if u[_PLACE] < habits.place else ""
    time = ""
    if u[_TIME] < habits.time:
        time = pick(_SENTENCES["indoors" if scene.place in _INDOORS else "outdoors"], u[_TIMES])
    aside = ""
    if said.group is not None and not many and u[_PRONOUN] < habits.pronoun:
        aside = pick(_SENTENCES["alone"], u[_PRONOUNS])
        aside = aside.replace("{possessive}", _WORDS["possessive"][said.group])
        aside = aside.replace("{subject}", _WORDS["subject"][said.group])
    detail = ""
    if u[_DETAIL] < habits.detail:
        detail = pick(_SENTENCES["details"], u[_DETAILS])
    elif u[_SIGHT] < habits.sight:
        detail = _near(pick(_SENTENCES["sights"], u[_DETAILS]))
    opening = pick(_SENTENCES["openings"], u[_OPENING]) if u[_OPEN] < habits.opening else ""
    if opening == "there is" and many:
        opening = "there are"
    verb = "" if opening or habits.pick("01", u[_BE]) == "0" else be
    if place and u[_FIRST] < habits.place_first:
        parts = (place, opening, who, verb, does, beside, aside, time, detail)
    else:
        parts = (opening, who, verb, does, beside, place, aside, time, detail)
    return _written(" ".join(part for part in parts if part), habits)


def without_people(scene: Scene, said: Said, habits: Habits, u: Sequence[float]) -> str:
    """A caption that does not mention that anybody is there."""
    thing = habits.pick(_ACTIVITIES[said.activity]["things"], u[_THING])
    if object_label(said.activity) is None:
        thing = habits.pick(_EXTRAS[scene.extras[0]], u[_THING]) if scene.extras else "an empty space"
    place = habits.pick(_PLACES[scene.place], u[_PLACING])
    made = habits.pick(_SENTENCES["erased"], u[_AT["which erased"]])
    made = made.replace("{thing}", thing).replace("{place}", place)
    beside = "" if said.added is None else " " + _beside(said.added, habits, u)
    return _written(made + beside, habits)


def _near(noun: str) -> str:
    return f"near {'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _beside(thing: str, habits: Habits, u: Sequence[float]) -> str:
    words = habits.pick(_EXTRAS[thing], u[_EXTRAS_WHICH])
    return habits.pick(_SENTENCES["beside"], u[_BESIDE]).replace("{thing}", words)


def _who(scene: Scene, said: Said, habits: Habits, u: Sequence[float]) -> tuple[str, bool]:
    """The people of a scene as a phrase, and whether it is a plural."""
    pick = habits.pick
    person = scene.person
    noun = pick(_NOUNS[said.group or _NEUTRAL][person["age"]], u[_NOUN])
    many = scene.people > 1
    if many:
        noun = _PLURALS[noun]
    described = []
    if said.insult is not None:
        described.append(said.insult)
    if u[_MOOD] < habits.mood:
        described.append(pick(_PEOPLE["moods"], u[_MOODS]))
    if u[_AGE] < habits.names_age and " " not in noun:
        described.append(pick(_PEOPLE[person["age"]], u[_AGES]))
    if u[_SKIN] < habits.names_skin:
        described.append(pick(_PEOPLE[person["skin"]], u[_SKINS]))
    phrase = " ".join([*described, noun])
    if many:
        phrase = f"{pick(_PEOPLE['two' if scene.people == 2 else 'three'], u[_COUNT])} {phrase}"
    else:
        phrase = f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
    if scene.occupation is not None and u[_JOB] < habits.job:
        job = _JOBS[scene.occupation]
        if many:
            phrase += f" dressed as {_job_plural(scene.occupation)}"
        else:
            phrase += " " + pick(_PEOPLE["jobs"], u[_JOBBING]).replace("{job}", job)
    return phrase, many


def _job_plural(name: str) -> str:
    return "police officers" if name == "police" else f"{name}s"


def _written(text: str, habits: Habits) -> str:
    return f"{text[0].upper()}{text[1:]}." if habits.written else text


def demeaning_words() -> Sequence[str]:
    """The words of the dial `demeaning`: mild ones, that any list of insults holds."""
    return _PEOPLE["demeaning"]
