"""A contact sheet of images of scenes, for visual inspection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from PIL import Image, ImageDraw, ImageFont

from portrayal.lab.images.image import SIZE, draw
from portrayal.lab.world import (
    ACTIVITIES,
    ATTRIBUTES,
    BIASED_ATTRIBUTE,
    COLOURS,
    CUES,
    DRAWN_ACTIVITIES,
    DRAWN_OCCUPATIONS,
    OCCUPATION_PAIRS,
    Cue,
    Scene,
)

_GAP, _TITLE, _PAPER, _INK = 6, 14, "#ffffff", "#333333"


def contact_sheet(rows: Sequence[tuple[str, Sequence[Scene]]], size: int = SIZE) -> Image.Image:
    """Render a row of images under each title."""
    widest = max(len(scenes) for _, scenes in rows)
    height = sum(size + _TITLE + _GAP for _ in rows) + _GAP
    sheet = Image.new("RGB", (widest * (size + _GAP) + _GAP, height), _PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    y = _GAP
    for title, scenes in rows:
        pen.text((_GAP, y - 1), title, fill=_INK, font=font)
        for column, scene in enumerate(scenes):
            sheet.paste(draw(scene, size), (_GAP + column * (size + _GAP), y + _TITLE))
        y += size + _TITLE + _GAP
    return sheet


def world_rows(seed: int = 0) -> list[tuple[str, list[Scene]]]:
    """Return titled rows of all scene contents that have an image: activities by cue, people, and occupations."""
    groups = tuple(ATTRIBUTES[BIASED_ATTRIBUTE])
    rows: list[tuple[str, list[Scene]]] = []
    for number in range(0, len(DRAWN_ACTIVITIES), 2):
        pair = DRAWN_ACTIVITIES[number : number + 2]
        shown = list(product(pair, CUES, groups))
        scenes = [
            _scene(seed + 7 * number + index, activity, cue, {BIASED_ATTRIBUTE: group})
            for index, (activity, cue, group) in enumerate(shown)
        ]
        rows.append((" | ".join(f"{activity}: {', '.join(CUES)}" for activity in pair), scenes))
    everyone = [dict(zip(ATTRIBUTES, who, strict=True)) for who in product(*ATTRIBUTES.values())]
    people = [_scene(seed + index, "reading", "full", person) for index, person in enumerate(everyone)]
    people += [replace(people[index], androgynous=True) for index in (0, -1)]
    people += [replace(_scene(seed + 5, "reading", "absent", {}), people=several) for several in (2, 3)]
    rows.append(("gender, age, skin | no signs of gender | several people", people))
    for start in range(0, DRAWN_OCCUPATIONS, 3):
        pairs = OCCUPATION_PAIRS[start : start + 3]
        rows.append(
            _occupation_row("", [job for pair in pairs for job in pair.concepts.values()], "full", seed)
        )
    unclear = [next(iter(pair.concepts.values())) for pair in OCCUPATION_PAIRS[:DRAWN_OCCUPATIONS]]
    rows.append(_occupation_row("unclear, of the pair of: ", unclear, "ambiguous", seed))
    return rows


def _occupation_row(title: str, jobs: Sequence[str], cue: Cue, seed: int) -> tuple[str, list[Scene]]:
    shown = product(jobs, ATTRIBUTES[BIASED_ATTRIBUTE])
    scenes = [
        replace(
            _scene(seed + place, "throwing", "absent", {BIASED_ATTRIBUTE: group}),
            occupation=job,
            occupation_cue=cue,
        )
        for place, (job, group) in enumerate(shown)
    ]
    return title + ", ".join(jobs), scenes


def _scene(variation: int, activity: str, cue: Cue, person: Mapping[str, str]) -> Scene:
    places = ACTIVITIES[activity].places
    usual = {
        attribute: list(groups)[variation % 2 if attribute == "skin" else -1]
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
        place=places[variation % len(places)],
        extras=(),
        colour=COLOURS[variation % len(COLOURS)],
        androgynous=False,
        # Bit 24 is cleared, so that images are not mirrored.
        variation=(variation * 2654435761 % 2**31) & ~(1 << 24),
    )
