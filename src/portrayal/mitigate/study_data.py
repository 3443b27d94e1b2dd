"""A study as a remedy needs it: pictures with people's captions to learn from, a part held out to be examined on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from portrayal.counterfactual.manifest import Instance, Manifest, read_manifest
from portrayal.counterfactual.prompts import Questions
from portrayal.errors import PortrayalError
from portrayal.files import content_digest
from portrayal.lexicon import load_lexicon
from portrayal.mitigate.compare import Comparison
from portrayal.mitigate.evaluation import Exam
from portrayal.mitigate.methods import METHODS, method_named
from portrayal.mitigate.settings import (
    Choice,
    start_of,
    without_given,
)
from portrayal.mitigate.study_images import OtherPictures, Others, levels, other_pictures
from portrayal.mitigate.training_data import Material, Whom
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.retrieval.search import Pool, as_read
from portrayal.models.masked_vlm.training import Pairs
from portrayal.models.vision.images import read_picture
from portrayal.study import Study, read_study

CAPTIONS = 5  # of each picture; those with fewer have theirs again
HELD_OUT = 10  # one picture of so many


def study_comparison(
    model: str,
    folder: Path,
    manifest: Path | None,
    choice: Choice | None = None,
    *,
    tokenizer: str | None = None,
    lexicon: str = "gender",
    groups: Sequence[str] | None = None,
    counterfactuals: Others | None = None,
) -> Comparison:
    """Methods on a study's pictures and references; bias is measured on the pictures of a manifest, if there is one.

    `others` gives the pictures once more with somebody of the other group, for the methods that ask for them.
    """
    study = read_study(folder)
    choice = choice or Choice()
    listed = load_lexicon(lexicon)
    whom = Whom.of(listed, groups)
    chosen = tuple(METHODS[name] for name in _methods(choice, counterfactuals))
    started, start = start_of(model, choice.where, 64, tokenizer)
    images = _pictured(study)
    held = [image for image in images if _by_lot(image) % HELD_OUT == 0]
    learnt = [image for image in images if _by_lot(image) % HELD_OUT]
    if len(learnt) < 2 or not held:
        raise PortrayalError(
            f"{folder}: expected pictures with references to learn from and to hold out, found {len(images):,} in all."
        )
    given = None
    if counterfactuals is not None:
        given = other_pictures(counterfactuals, study.pictures, learnt, started.network.side)
    files = [*(study.pictures[image] for image in learnt), *(given.files if given else ())]
    seen = {file.resolve() for file in files}
    asked = () if manifest is None else tuple(_of_groups(read_manifest(manifest).instances, whom, seen))
    told = (
        "no manifest"
        if manifest is None
        else f"{len(asked)} rows of manifest {content_digest(manifest)[:12]} that were not learnt from"
    )
    data = (
        f"{study.name} {study.digest}, {len(learnt)} pictures, {' or '.join(whom.groups)} by {listed.label}"
    )
    if given is not None:
        data += f", {given.told()}"
    return Comparison(
        model=started,
        start=start,
        data=data,
        methods=chosen,
        **choice.training(lab=False),
        examined=f"{len(held)} pictures of {study.name} held out, {told}",
        attribute=listed.attribute or listed.name,
        material=cache(lambda: _material(study, learnt, started, whom, given)),
        exam=cache(lambda: _exam(study, held, asked, started, whom)),
    )


def _methods(choice: Choice, others: Others | None) -> list[str]:
    """Those that are named; else all, or all that need no given pictures where there are none."""
    named = [method_named(name).name for name in dict.fromkeys(choice.names)]
    free = without_given(named)
    if others is not None and named == free:
        raise PortrayalError(
            f"Other pictures are given, and none of {', '.join(named)} asks for them: expected image-swap."
        )
    if others is not None or named == free:
        return named
    if choice.methods:
        raise PortrayalError(
            f"The method '{min(set(named) - set(free))}' needs every picture once more with somebody of the other "
            f"group: expected a folder of them (--counterfactuals DIR)."
        )
    return free


def _pictured(study: Study) -> list[str]:
    said = set(study.references["image_id"].to_list())
    return sorted(said & study.pictures.keys())


def _material(
    study: Study, images: Sequence[str], model: MaskedModel, whom: Whom, given: OtherPictures | None
) -> Material:
    captions = _captions(study, images, model)
    others = () if given is None else (given.levels, given.there)
    return Material.made_from(_levels(study, images, model), captions, captions, model.reader, whom, *others)


def _exam(
    study: Study, images: Sequence[str], asked: tuple[Instance, ...], model: MaskedModel, whom: Whom
) -> Exam:
    captions = _captions(study, images, model)
    pairs = Pairs.made_from(_levels(study, images, model), captions, captions, model.reader)
    questions = None
    if asked:
        words = dict(zip(whom.groups, whom.words, strict=True))
        questions = Questions(words, Manifest("", asked).concepts)
    files = [study.pictures[image] for image in images]
    return Exam(
        asked,
        read_picture,
        questions,
        Pool(
            len(images),
            lambda some: [read_picture(file) for file in files[some]],
            [caption for some in captions for caption in some],
            np.repeat(np.arange(len(images)), CAPTIONS),
        )
        if model.network.matching
        else None,
        tuple(images),
        {"held out": pairs},
        {"held out": tuple(images)},
    )


def _captions(study: Study, images: Sequence[str], model: MaskedModel) -> list[list[str]]:
    """As many of each. Strangers wrote them: what a tokenizer would take for a command is left out."""
    said: dict[str, list[str]] = {image: [] for image in images}
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        if image in said and len(said[image]) < CAPTIONS:
            said[image].append(as_read(caption, model.reader)[0])
    return [[some[n % len(some)] for n in range(CAPTIONS)] for some in said.values()]


def _levels(study: Study, images: Sequence[str], model: MaskedModel) -> NDArray[np.uint8]:
    return levels([study.pictures[image] for image in images], model.network.side)


def _of_groups(instances: Sequence[Instance], whom: Whom, learnt: Set[Path]) -> list[Instance]:
    """Of both groups, in pictures that were not learnt from."""
    found = [one for one in instances if one.group in whom.groups]
    fresh = [one for one in found if one.path.resolve() not in learnt]
    for some, where in ((found, ""), (fresh, " in a picture that is not learnt from")):
        shown = {one.group for one in some}
        lacking = [group for group in whom.groups if group not in shown]
        if lacking:
            raise PortrayalError(
                f"The manifest shows nobody of the group '{lacking[0]}'{where}: bias is measured between both."
            )
    return fresh


def _by_lot(image: str) -> int:
    return int.from_bytes(hashlib.blake2b(image.encode(), digest_size=8).digest(), "little")
