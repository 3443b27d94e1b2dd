"""Searching a study with a vision-language model.

PyTorch is imported only when a model runs.
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
from portrayal.models.masked_vlm.retrieval import RetrievalModel
from portrayal.models.masked_vlm.retrieval.recall import IntArray
from portrayal.models.vision.images import read_image
from portrayal.study import Study

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.retrieval.search import RetrievalResult


@dataclass(frozen=True)
class SearchedStudy:
    """The images and human captions that are searched."""

    images: tuple[str, ...]  # sorted
    files: tuple[Path, ...]
    captions: tuple[str, ...]  # image by image
    owner: IntArray  # the image index of each caption
    unreadable: int = 0
    without_file: int = 0

    @classmethod
    def of(cls, study: Study, captions_per_image: int, n_images: int, skip_bad: bool) -> SearchedStudy:
        """The images and captions of a study; 0 means all. Images are sampled by a hash of their names."""
        check_searchable(study)
        references: dict[str, list[str]] = {}
        for image, caption in study.references.select("image_id", "caption").iter_rows():
            references.setdefault(image, []).append(caption)
        candidates = sorted(references.keys() & study.image_files.keys())
        if n_images:
            candidates = sorted(sorted(candidates, key=_hashed)[:n_images])
        bad = _unreadable_files([study.image_files[image] for image in candidates])
        if bad and not skip_bad:
            raise InputError(bad.values())
        images = [image for image in candidates if study.image_files[image] not in bad]
        if not images:
            raise Undefined("None of the study's images can be read.")
        chosen = [references[image][: captions_per_image or None] for image in images]
        return cls(
            tuple(images),
            tuple(study.image_files[image] for image in images),
            tuple(caption for captions in chosen for caption in captions),
            np.repeat(np.arange(len(images)), [len(captions) for captions in chosen]),
            len(candidates) - len(images),
            len(references.keys() - study.image_files.keys()),
        )


@dataclass(frozen=True)
class SearchResult:
    """The retrieval result of one model on one study."""

    pool: SearchedStudy
    model: str
    retrieved: RetrievalResult


def check_searchable(study: Study) -> None:
    """Raise Undefined where no image has a human caption."""
    if not set(study.references["image_id"]) & study.image_files.keys():
        raise Undefined("No image of the study has both a file and a human caption to search with.")


@lru_cache(maxsize=2)
def search(
    study: Study,
    model: str | RetrievalModel,
    captions_per_image: int,
    n_images: int,
    rerank: int,
    device: str,
    skip_bad: bool,
) -> SearchResult:
    """Run retrieval. Cached, since the result does not depend on the attribute that groups the images."""
    pool = SearchedStudy.of(study, captions_per_image, n_images, skip_bad)
    retrieval_model = _load_model(model, device) if isinstance(model, str) else model
    retrieval = need("portrayal.models.masked_vlm.retrieval.search", "neural", "A search")

    def load(indices: slice) -> list[Any]:
        return [read_image(file) for file in pool.files[indices]]

    model_pool = retrieval.RetrievalPool(len(pool.images), load, pool.captions, pool.owner)
    return SearchResult(
        pool,
        retrieval_model.name,
        retrieval.search(retrieval_model, model_pool, rerank, available_cores(), report_progress),
    )


def _load_model(name: str, device: str) -> RetrievalModel:
    need("torch", "neural", "A search")
    from portrayal.models.masked_vlm import load_masked

    return load_masked(name, device)


def _unreadable_files(files: Sequence[Path]) -> dict[Path, Problem]:
    """The problem of each unreadable file: all of them, so that a user fixes them in one go."""
    bad = {}
    for file in files:
        try:
            read_image(file)
        except InputError as error:
            bad[file] = error.problems[0]
    return bad


def _hashed(image: str) -> bytes:
    return hashlib.blake2b(image.encode(), digest_size=8).digest()
