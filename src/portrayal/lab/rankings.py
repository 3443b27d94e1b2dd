"""What the lab's captioners give when they are searched: a list of scenes for every activity that can be drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from portrayal.lab.captioners import Captioner
from portrayal.lab.dials import rate_of
from portrayal.lab.language import query
from portrayal.lab.world import DRAWN_ACTIVITIES, LEANING, Scene
from portrayal.study import tables

LENGTH = 40  # scenes of a list, where there are as many: lists of one length compare between studies
_LEAN = 4.0  # standard deviations of the scores that a lean of 1 adds


def rank_scenes(captioners: Sequence[Captioner], scenes: Sequence[Scene], seed: int) -> pl.DataFrame:
    """The rankings of these captioners. Each has random numbers of its own, apart from those of its captions.

    A search finds the first scenes of which the captioner says that they show the activity, so that who is in a list at
    all follows `data_bias` and `amplification`. The order within it is noise but for `ranking_lean`: at 0 it says
    nothing of who is shown, however much the activity leans to a group.
    """
    rows: list[tuple[str, str, str, float]] = []
    for captioner in captioners:
        found: dict[str, list[Scene]] = {activity: [] for activity in DRAWN_ACTIVITIES}
        for scene, activity in zip(scenes, captioner.activities(scenes, seed), strict=True):
            if activity in found and len(found[activity]) < LENGTH:
                found[activity].append(scene)
        noise = np.random.default_rng([seed, 6, *captioner.name.encode()]).normal(size=(len(found), LENGTH))
        for number, (activity, listed) in enumerate(found.items()):
            scores = [
                float(by_chance) + _LEAN * rate_of(captioner.ranking_lean, scene.person[LEANING])
                for scene, by_chance in zip(listed, noise[number], strict=False)
            ]
            for place in sorted(range(len(listed)), key=lambda one: -scores[one]):
                item, score = listed[place].identifier, round(scores[place], 6)
                rows.append((query(activity), captioner.name, item, score))
    return pl.DataFrame(rows, schema=tables.RANKINGS, orient="row")
