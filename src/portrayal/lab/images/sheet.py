"""A contact sheet: many pictures on one, to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from PIL import Image, ImageDraw, ImageFont

from portrayal.lab.images.image import SIZE, draw
from portrayal.lab.world import (
    ACTIVITIES,
    ATTRIBUTES,
    COLOURS,
    CUES,
    DRAWN_ACTIVITIES,
    DRAWN_OCCUPATIONS,
    LEANING,
    OCCUPATION_PAIRS,
    Cue,
    Scene,
)

_GAP, _TITLE, _PAPER, _INK = 6, 14, "#ffffff", "#333333"


def contact_sheet(rows: Sequence[tuple[str, Sequence[Scene]]], size: int = SIZE) -> Image.Image:
    """A row of pictures under each title."""
    widest = max(len(scenes) for _, scenes in rows)
    height = sum(size + _TITLE + _GAP for _ in rows) + _GAP
    sheet = Image.new("RGB", (widest * (size + _GAP) + _GAP, height), _PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    y = _GAP
    for title, scenes in rows:
        pen.text((_GAP, y - 1), title, fill=_INK, font=font)
        for place, scene in enumerate(scenes):
            sheet.paste(draw(scene, size), (_GAP + place * (size + _GAP), y + _TITLE))
        y += size + _TITLE + _GAP
    return sheet


def world_rows(seed: int = 0) -> list[tuple[str, list[Scene]]]:
    """Everything that has a picture: activities with their three cues, who can be shown, and occupations."""
    groups = tuple(ATTRIBUTES[LEANING])
    rows: list[tuple[str, list[Scene]]] = []
    for number in range(0, len(DRAWN_ACTIVITIES), 2):
        pair = DRAWN_ACTIVITIES[number : number + 2]
        shown = list(product(pair, CUES, groups))
        scenes = [
            _scene(seed + 7 * number + place, activity, cue, {LEANING: group})
            for place, (activity, cue, group) in enumerate(shown)
        ]
        rows.append((" | ".join(f"{activity}: {', '.join(CUES)}" for activity in pair), scenes))
    everyone = [dict(zip(ATTRIBUTES, who, strict=True)) for who in product(*ATTRIBUTES.values())]
    people = [_scene(seed + place, "reading", "full", person) for place, person in enumerate(everyone)]
    people += [replace(people[place], androgynous=True) for place in (0, -1)]
    people += [replace(_scene(seed + 5, "reading", "absent", {}), people=several) for several in (2, 3)]
    rows.append(("gender, age, skin | no signs of gender | several people", people))
    for start in range(0, DRAWN_OCCUPATIONS, 3):
        pairs = OCCUPATION_PAIRS[start : start + 3]
        rows.append(_occupation_row("", [job for pair in pairs for job in pair.of.values()], "full", seed))
    unclear = [next(iter(pair.of.values())) for pair in OCCUPATION_PAIRS[:DRAWN_OCCUPATIONS]]
    rows.append(_occupation_row("unclear, of the pair of: ", unclear, "ambiguous", seed))
    return rows


def _occupation_row(title: str, jobs: Sequence[str], cue: Cue, seed: int) -> tuple[str, list[Scene]]:
    shown = product(jobs, ATTRIBUTES[LEANING])
    scenes = [
        replace(
            _scene(seed + place, "throwing", "absent", {LEANING: group}), occupation=job, occupation_cue=cue
        )
        for place, (job, group) in enumerate(shown)
    ]
    return title + ", ".join(jobs), scenes


def _scene(look: int, activity: str, cue: Cue, person: Mapping[str, str]) -> Scene:
    places = ACTIVITIES[activity].places
    usual = {
        attribute: list(groups)[look % 2 if attribute == "skin" else -1]
        for attribute, groups in ATTRIBUTES.items()
    }
    return Scene(
        identifier="sheet",
        person=usual | dict(person),
        people=1,
        activity=activity,
        cue=cue,
        occupation=None,
        occupation_cue="absent",
        place=places[look % len(places)],
        extras=(),
        colour=COLOURS[look % len(COLOURS)],
        androgynous=False,
        look=(look * 2654435761 % 2**31) & ~(1 << 24),  # not mirrored
    )
