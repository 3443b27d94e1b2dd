"""Small training tasks: captions of synthetic words, with an optional word that reveals the group."""

from __future__ import annotations

import numpy as np

from portrayal.models.text_classifiers.tasks import ClassificationTask, Texts


def task(
    seed: int = 7,
    *,
    captions: int = 40,
    words: int = 20,
    groups: int = 2,
    tested: int = 10,
    informative: bool = False,
    longest: int = 5,
) -> ClassificationTask:
    """With `informative`, every caption has the word of its group."""
    rng = np.random.default_rng(seed)
    group = np.arange(captions) % groups
    captions_words = [
        [f"w{word}" for word in rng.integers(words, size=rng.integers(1, longest + 1))] for _ in group
    ]
    if informative:
        captions_words = [
            [*caption, f"g{index}"] for caption, index in zip(captions_words, group, strict=True)
        ]
    return ClassificationTask(
        Texts.encode(captions_words), group, groups, np.arange(captions - tested),
        np.arange(captions - tested, captions), np.ones(groups), seed,
    )  # fmt: skip
