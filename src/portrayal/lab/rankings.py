"""Simulated image retrieval: each captioner ranks scenes for every activity that has an image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from portrayal.lab.captioners import Captioner
from portrayal.lab.dials import rate_of
from portrayal.lab.language import query
from portrayal.lab.world import BIASED_ATTRIBUTE, DRAWN_ACTIVITIES, Scene
from portrayal.study import tables

# Scenes per list, where there are enough: lists of equal length are comparable between studies.
LIST_LENGTH = 40
# Standard deviations of the scores that a `ranking_lean` of 1 adds.
_LEAN_SCALE = 4.0


def rank_scenes(captioners: Sequence[Captioner], scenes: Sequence[Scene], seed: int) -> pl.DataFrame:
    """Return the rankings of these captioners. Each has its own random numbers, separate from those of its captions.

    A list has the first scenes whose caption names the activity, so the groups in it follow `data_bias` and
    `amplification`. The order within a list is noise plus `ranking_lean`: at 0 it does not depend on the group shown,
    however strongly the activity is associated with a group.
    """
    rows: list[tuple[str, str, str, float]] = []
    for captioner in captioners:
        lists: dict[str, list[Scene]] = {activity: [] for activity in DRAWN_ACTIVITIES}
        for scene, activity in zip(scenes, captioner.activities(scenes, seed), strict=True):
            if activity in lists and len(lists[activity]) < LIST_LENGTH:
                lists[activity].append(scene)
        noise = np.random.default_rng([seed, 6, *captioner.name.encode()]).normal(
            size=(len(lists), LIST_LENGTH)
        )
        for list_index, (activity, listed_scenes) in enumerate(lists.items()):
            scores = [
                float(noise_score)
                + _LEAN_SCALE * rate_of(captioner.ranking_lean, scene.person[BIASED_ATTRIBUTE])
                for scene, noise_score in zip(listed_scenes, noise[list_index], strict=False)
            ]
            for index in sorted(range(len(listed_scenes)), key=lambda scene_index: -scores[scene_index]):
                item, score = listed_scenes[index].identifier, round(scores[index], 6)
                rows.append((query(activity), captioner.name, item, score))
    return pl.DataFrame(rows, schema=tables.RANKINGS, orient="row")
