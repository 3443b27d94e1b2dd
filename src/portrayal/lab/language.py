"""The grammar with which the lab's annotators and captioners describe a scene, in a style of their own.

A caption is built from decisions, and each decision has a random number of its own. So changing a dial changes only
the captions that the dial is about. The words are listed in `data/wording.toml`.
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


_WORDING = _read()
_NOUNS: dict[str, dict[str, list[str]]] = _WORDING["nouns"]
_PLURALS: dict[str, str] = _WORDING["plurals"]
_PEOPLE: dict[str, list[str]] = _WORDING["people"]
_SENTENCES: dict[str, list[str]] = _WORDING["sentences"]
_PLACES: dict[str, list[str]] = _WORDING["places"]
_EXTRAS: dict[str, list[str]] = _WORDING["extras"]
_ACTIVITIES: dict[str, dict[str, Any]] = _WORDING["activities"]
_INDOORS = {"kitchen", "restaurant", "garage", "room", "office", "hall"}
_NEUTRAL = "neutral"
_JOBS = {
    name: _WORDING["jobs"].get(name) or f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    for name in OCCUPATIONS
}

# The decisions of a caption. Each has a column of random numbers, so their order must not change.
DECISIONS = (
    "group", "noun", "mood", "which mood", "age", "which age", "skin", "which skin", "clothes", "which clothes",
    "job", "which job", "opening", "which opening", "to be", "verb", "thing", "extra", "which extra", "beside",
    "place", "which place", "place first", "time", "which time", "pronoun", "which pronoun", "count", "bare",
    "which bare", "error", "which error", "activity", "object", "which object", "erased", "which erased", "demeaning",
    "which demeaning", "stock", "inferred group", "detail", "which detail",
    "sight",
)  # fmt: skip
_COLUMN = {name: place for place, name in enumerate(DECISIONS)}
(
    _GROUP, _NOUN, _MOOD, _MOODS, _AGE, _AGES, _SKIN, _SKINS, _CLOTHES, _CLOTHING, _JOB, _JOBBING, _OPEN, _OPENING,
    _BE, _VERB, _THING, _EXTRA, _EXTRAS_WHICH, _BESIDE, _PLACE, _PLACING, _FIRST, _TIME, _TIMES, _PRONOUN, _PRONOUNS,
    _COUNT, _BARE, _BARES,
) = range(30)  # fmt: skip
_DETAIL, _DETAILS, _SIGHT = _COLUMN["detail"], _COLUMN["which detail"], _COLUMN["sight"]


def decision_column(name: str) -> int:
    """Return the column of random numbers of a decision."""
    return _COLUMN[name]


def object_label(activity: str) -> str | None:
    """Return the object label of an activity, or None."""
    label: str | None = _ACTIVITIES[activity].get("label")
    return label


def query(activity: str) -> str:
    """Return a retrieval query for an activity that names no group."""
    words = _ACTIVITIES[activity]
    return f"a person {words['verbs'][0]} {words['things'][0]}"


def group_noun(group: str | None, age: str) -> str:
    """Return the most common noun for a group and age; for a group of None, a noun that names no group."""
    return _NOUNS[group or _NEUTRAL][age][0]


def plural(noun: str) -> str:
    return _PLURALS[noun]


def job_phrase(name: str, plural_subject: bool) -> str:
    """Return an occupation as a noun phrase: "a nurse", "police officers"."""
    return _job_plural(name) if plural_subject else _JOBS[name]


@dataclass(frozen=True)
class CaptionStyle:
    """The caption style of one source: probabilities of naming something, from 0 (never) to 1 (always)."""

    # Share of the synonyms for a concept that are used; 0: one word each.
    vocabulary: float = 1.0
    # Index of the preferred word of a list.
    first_choice: int = 0
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
    # An unlabelled object in passing: the long tail of words.
    sight: float = 0.1
    pronoun: float = 0.15
    bare: float = 0.0
    # With a capital and a full stop.
    punctuated: bool = False

    def pick(self, words: Sequence[str], u: float) -> str:
        n_words = max(1, round(self.vocabulary * len(words)))
        return words[(self.first_choice + int(u * n_words)) % len(words)]


@dataclass(frozen=True, slots=True)
class CaptionContent:
    """The content of a caption, which may differ from the scene."""

    # None: no group is named.
    group: str | None
    activity: str
    # Other objects that the caption may mention.
    extras: tuple[str, ...]
    # An object that the caption mentions in any case.
    added_object: str | None = None
    insult: str | None = None


def write_caption(scene: Scene, content: CaptionContent, style: CaptionStyle, u: Sequence[float]) -> str:
    """Return one caption of a scene; `u` has a uniform random number for each decision."""
    pick = style.pick
    subject, plural_subject = _person_phrase(scene, content, style, u)
    be = "are" if plural_subject else "is"
    if u[_BARE] < style.bare:
        return _punctuated(f"{subject} {pick(_SENTENCES['bare'], u[_BARES]).replace('is ', be + ' ')}", style)
    if u[_CLOTHES] < style.colour:
        subject += " " + pick(_PEOPLE["clothes"], u[_CLOTHING]).replace("{colour}", scene.colour)
    activity = _ACTIVITIES[content.activity]
    verb_phrase = f"{pick(activity['verbs'], u[_VERB])} {pick(activity['things'], u[_THING])}"
    extra = content.added_object
    if extra is None and content.extras and u[_EXTRA] < style.extra:
        extra = content.extras[int(u[_EXTRAS_WHICH] * len(content.extras))]
    extra_phrase = "" if extra is None else _extra_phrase(extra, style, u)
    place = pick(_PLACES[scene.place], u[_PLACING]) if u[_PLACE] < style.place else ""
    time = ""
    if u[_TIME] < style.time:
        time = pick(_SENTENCES["indoors" if scene.place in _INDOORS else "outdoors"], u[_TIMES])
    aside = ""
    if content.group is not None and not plural_subject and u[_PRONOUN] < style.pronoun:
        aside = pick(_SENTENCES["alone"], u[_PRONOUNS])
        aside = aside.replace("{possessive}", _WORDING["possessive"][content.group])
        aside = aside.replace("{subject}", _WORDING["subject"][content.group])
    detail = ""
    if u[_DETAIL] < style.detail:
        detail = pick(_SENTENCES["details"], u[_DETAILS])
    elif u[_SIGHT] < style.sight:
        detail = _near_phrase(pick(_SENTENCES["sights"], u[_DETAILS]))
    opening = pick(_SENTENCES["openings"], u[_OPENING]) if u[_OPEN] < style.opening else ""
    if opening == "there is" and plural_subject:
        opening = "there are"
    verb = "" if opening or style.pick("01", u[_BE]) == "0" else be
    if place and u[_FIRST] < style.place_first:
        parts = (place, opening, subject, verb, verb_phrase, extra_phrase, aside, time, detail)
    else:
        parts = (opening, subject, verb, verb_phrase, extra_phrase, place, aside, time, detail)
    return _punctuated(" ".join(part for part in parts if part), style)


def write_caption_without_people(
    scene: Scene, content: CaptionContent, style: CaptionStyle, u: Sequence[float]
) -> str:
    """Return a caption that mentions nobody."""
    thing = style.pick(_ACTIVITIES[content.activity]["things"], u[_THING])
    if object_label(content.activity) is None:
        thing = style.pick(_EXTRAS[scene.extras[0]], u[_THING]) if scene.extras else "an empty space"
    place = style.pick(_PLACES[scene.place], u[_PLACING])
    text = style.pick(_SENTENCES["erased"], u[_COLUMN["which erased"]])
    text = text.replace("{thing}", thing).replace("{place}", place)
    extra_phrase = "" if content.added_object is None else " " + _extra_phrase(content.added_object, style, u)
    return _punctuated(text + extra_phrase, style)


def _near_phrase(noun: str) -> str:
    return f"near {'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _extra_phrase(extra: str, style: CaptionStyle, u: Sequence[float]) -> str:
    words = style.pick(_EXTRAS[extra], u[_EXTRAS_WHICH])
    return style.pick(_SENTENCES["beside"], u[_BESIDE]).replace("{thing}", words)


def _person_phrase(
    scene: Scene, content: CaptionContent, style: CaptionStyle, u: Sequence[float]
) -> tuple[str, bool]:
    """Return the people of a scene as a phrase, and whether it is plural."""
    pick = style.pick
    person = scene.person
    noun = pick(_NOUNS[content.group or _NEUTRAL][person["age"]], u[_NOUN])
    plural_subject = scene.people > 1
    if plural_subject:
        noun = _PLURALS[noun]
    adjectives = []
    if content.insult is not None:
        adjectives.append(content.insult)
    if u[_MOOD] < style.mood:
        adjectives.append(pick(_PEOPLE["moods"], u[_MOODS]))
    if u[_AGE] < style.names_age and " " not in noun:
        adjectives.append(pick(_PEOPLE[person["age"]], u[_AGES]))
    if u[_SKIN] < style.names_skin:
        adjectives.append(pick(_PEOPLE[person["skin"]], u[_SKINS]))
    phrase = " ".join([*adjectives, noun])
    if plural_subject:
        phrase = f"{pick(_PEOPLE['two' if scene.people == 2 else 'three'], u[_COUNT])} {phrase}"
    else:
        phrase = f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
    if scene.occupation is not None and u[_JOB] < style.job:
        job = _JOBS[scene.occupation]
        if plural_subject:
            phrase += f" dressed as {_job_plural(scene.occupation)}"
        else:
            phrase += " " + pick(_PEOPLE["jobs"], u[_JOBBING]).replace("{job}", job)
    return phrase, plural_subject


def _job_plural(name: str) -> str:
    return "police officers" if name == "police" else f"{name}s"


def _punctuated(text: str, style: CaptionStyle) -> str:
    return f"{text[0].upper()}{text[1:]}." if style.punctuated else text


def demeaning_words() -> Sequence[str]:
    """Return the words of the dial `demeaning`: mild insults that any lexicon of demeaning words lists."""
    return _PEOPLE["demeaning"]
