"""A study as a vision-language model searches it.

PyTorch is imported when a model is asked, not before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from portrayal.engine import available_cores, report_progress
from portrayal.errors import InputError, Problem, Undefined, need
from portrayal.models.masked_vlm.retrieval import Model
from portrayal.models.masked_vlm.retrieval.recall import Whole
from portrayal.models.vision.images import read_picture
from portrayal.study import Study

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.retrieval.search import Found


@dataclass(frozen=True)
class Pool:
    """What is searched: pictures, and the captions that people gave them."""

    images: tuple[str, ...]  # sorted
    files: tuple[Path, ...]
    captions: tuple[str, ...]  # image by image
    owner: Whole  # of each caption: the place of its image
    unreadable: int = 0
    without_file: int = 0

    @classmethod
    def of(cls, study: Study, captions: int, pictures: int, skip_bad: bool) -> Pool:
        """Of `captions` and `pictures` 0 means all. Which pictures is told by their names, not by their order."""
        check_pool(study)
        said: dict[str, list[str]] = {}
        for image, caption in study.references.select("image_id", "caption").iter_rows():
            said.setdefault(image, []).append(caption)
        there = sorted(said.keys() & study.pictures.keys())
        if pictures:
            there = sorted(sorted(there, key=_by_lot)[:pictures])
        bad = _unreadable([study.pictures[image] for image in there])
        if bad and not skip_bad:
            raise InputError(bad.values())
        images = [image for image in there if study.pictures[image] not in bad]
        if not images:
            raise Undefined("None of the study's pictures can be read.")
        chosen = [said[image][: captions or None] for image in images]
        return cls(
            tuple(images),
            tuple(study.pictures[image] for image in images),
            tuple(caption for some in chosen for caption in some),
            np.repeat(np.arange(len(images)), [len(some) for some in chosen]),
            len(there) - len(images),
            len(said.keys() - study.pictures.keys()),
        )


@dataclass(frozen=True)
class Searched:
    """What a model found in a study."""

    pool: Pool
    model: str
    found: Found


def check_pool(study: Study) -> None:
    """Complain where there is nothing to search."""
    if not set(study.references["image_id"]) & study.pictures.keys():
        raise Undefined("No picture of the study has a caption of people to be searched by.")


@lru_cache(maxsize=2)
def search(
    study: Study, model: str | Model, captions: int, pictures: int, rerank: int, device: str, skip_bad: bool
) -> Searched:
    """Kept, since a model finds the same whichever attribute splits the pictures."""
    pool = Pool.of(study, captions, pictures, skip_bad)
    asked = _loaded(model, device) if isinstance(model, str) else model
    searching = need("portrayal.models.masked_vlm.retrieval.search", "neural", "A search")

    def load(some: slice) -> list[Any]:
        return [read_picture(file) for file in pool.files[some]]

    sought = searching.Pool(len(pool.images), load, pool.captions, pool.owner)
    return Searched(
        pool, asked.name, searching.search(asked, sought, rerank, available_cores(), report_progress)
    )


def _loaded(name: str, device: str) -> Model:
    need("torch", "neural", "A search")
    from portrayal.models.masked_vlm import load_masked

    return load_masked(name, device)


def _unreadable(files: Sequence[Path]) -> dict[Path, Problem]:
    """All of them: a user should not mend one after the other."""
    bad = {}
    for file in files:
        try:
            read_picture(file)
        except InputError as error:
            bad[file] = error.problems[0]
    return bad


def _by_lot(image: str) -> bytes:
    return hashlib.blake2b(image.encode(), digest_size=8).digest()
