"""Small tasks for classifiers: captions of made-up words, one of which may tell the group."""

from __future__ import annotations

import numpy as np

from portrayal.models.text_classifiers.tasks import Task, Texts


def task(
    seed: int = 7,
    *,
    captions: int = 40,
    words: int = 20,
    groups: int = 2,
    tested: int = 10,
    telling: bool = False,
    longest: int = 5,
) -> Task:
    """With `telling`, every caption has the word of its group."""
    chance = np.random.default_rng(seed)
    group = np.arange(captions) % groups
    said = [
        [f"w{word}" for word in chance.integers(words, size=chance.integers(1, longest + 1))] for _ in group
    ]
    if telling:
        said = [[*caption, f"g{one}"] for caption, one in zip(said, group, strict=True)]
    return Task(
        Texts.of(said), group, groups, np.arange(captions - tested), np.arange(captions - tested, captions),
        np.ones(groups), seed,
    )  # fmt: skip
