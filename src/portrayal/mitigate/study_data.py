"""Training data and evaluation sets from a study with images and human captions, of which a part is held out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from portrayal.counterfactual.manifest import Instance, Manifest, read_manifest
from portrayal.counterfactual.prompts import Prompts
from portrayal.errors import PortrayalError
from portrayal.files import content_digest
from portrayal.lexicon import load_lexicon
from portrayal.mitigate.compare import Comparison
from portrayal.mitigate.evaluation import EvaluationSet
from portrayal.mitigate.methods import METHODS, find_method
from portrayal.mitigate.settings import (
    ComparisonOptions,
    load_start_model,
    without_given_images,
)
from portrayal.mitigate.study_images import (
    CounterfactualImages,
    CounterfactualSource,
    load_counterfactuals,
    load_pixels,
)
from portrayal.mitigate.training_data import GroupPair, TrainingData
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.retrieval.search import RetrievalPool, truncate_caption
from portrayal.models.masked_vlm.training import ImageTextPairs
from portrayal.models.vision.images import read_image
from portrayal.study import Study, read_study

# Captions per image; an image with fewer has its captions repeated.
CAPTIONS = 5
# One image in so many is held out.
HELD_OUT = 10


def study_comparison(
    model: str,
    folder: Path,
    manifest: Path | None,
    options: ComparisonOptions | None = None,
    *,
    tokenizer: str | None = None,
    lexicon: str = "gender",
    groups: Sequence[str] | None = None,
    counterfactuals: CounterfactualSource | None = None,
) -> Comparison:
    """Return a comparison of methods on a study.

    Parameters
    ----------
    model
        Name or path of the model where training starts.
    folder
        The study, with images and references.
    manifest
        Images of people for CounterBias; without it, bias is not measured.
    options
        Methods, seeds, size and training settings.
    tokenizer
        Tokenizer of a checkpoint of ALBEF or TCL.
    lexicon
        Lexicon of the groups.
    groups
        Two groups of the lexicon; by default its first two.
    counterfactuals
        Counterfactual images for the method `image-swap`: a folder, or a function from image to image.
    """
    study = read_study(folder)
    options = options or ComparisonOptions()
    loaded_lexicon = load_lexicon(lexicon)
    group_pair = GroupPair.of(loaded_lexicon, groups)
    methods = tuple(METHODS[name] for name in _method_names(options, counterfactuals))
    start_model, start = load_start_model(model, options.resolved_device, 64, tokenizer)
    images = _images_with_captions(study)
    held_out = [image for image in images if _hash(image) % HELD_OUT == 0]
    training_images = [image for image in images if _hash(image) % HELD_OUT]
    if len(training_images) < 2 or not held_out:
        raise PortrayalError(
            f"{folder}: expected images with references for training and to hold out, found {len(images):,} in all."
        )
    counterfactual_images = None
    if counterfactuals is not None:
        counterfactual_images = load_counterfactuals(
            counterfactuals, study.image_files, training_images, start_model.network.image_size
        )
    training_files = [
        *(study.image_files[image] for image in training_images),
        *(counterfactual_images.files if counterfactual_images else ()),
    ]
    resolved_files = {file.resolve() for file in training_files}
    instances = (
        ()
        if manifest is None
        else tuple(_usable_instances(read_manifest(manifest).instances, group_pair, resolved_files))
    )
    manifest_text = (
        "no manifest"
        if manifest is None
        else f"{len(instances)} rows of manifest {content_digest(manifest)[:12]} that are not training images"
    )
    data = (
        f"{study.name} {study.digest}, {len(training_images)} images, "
        f"{' or '.join(group_pair.groups)} by {loaded_lexicon.label}"
    )
    if counterfactual_images is not None:
        data += f", {counterfactual_images.describe()}"
    return Comparison(
        model=start_model,
        start=start,
        data=data,
        methods=methods,
        **options.training(lab=False),
        evaluated_on=f"{len(held_out)} images of {study.name} held out, {manifest_text}",
        attribute=loaded_lexicon.attribute or loaded_lexicon.name,
        training_data=cache(
            lambda: _training_data(study, training_images, start_model, group_pair, counterfactual_images)
        ),
        evaluation_set=cache(lambda: _evaluation_set(study, held_out, instances, start_model, group_pair)),
    )


def _method_names(options: ComparisonOptions, counterfactuals: CounterfactualSource | None) -> list[str]:
    """Return the named methods; by default all, or without given images all that need none."""
    names = [find_method(name).name for name in dict.fromkeys(options.method_names)]
    names_without_given = without_given_images(names)
    if counterfactuals is not None and names == names_without_given:
        raise PortrayalError(
            f"Counterfactual images are given, and none of {', '.join(names)} uses them: expected image-swap."
        )
    if counterfactuals is not None or names == names_without_given:
        return names
    if options.methods:
        raise PortrayalError(
            f"The method '{min(set(names) - set(names_without_given))}' needs the counterfactual of "
            f"every image: expected a folder (--counterfactuals DIR)."
        )
    return names_without_given


def _images_with_captions(study: Study) -> list[str]:
    captioned = set(study.references["image_id"].to_list())
    return sorted(captioned & study.image_files.keys())


def _training_data(
    study: Study,
    images: Sequence[str],
    model: TorchMaskedVLM,
    group_pair: GroupPair,
    counterfactual_images: CounterfactualImages | None,
) -> TrainingData:
    captions = _captions(study, images, model)
    counterfactuals = (
        ()
        if counterfactual_images is None
        else (counterfactual_images.pixels, counterfactual_images.available)
    )
    return TrainingData.from_texts(
        _image_pixels(study, images, model), captions, captions, model.tokenizer, group_pair, *counterfactuals
    )


def _evaluation_set(
    study: Study,
    images: Sequence[str],
    instances: tuple[Instance, ...],
    model: TorchMaskedVLM,
    group_pair: GroupPair,
) -> EvaluationSet:
    captions = _captions(study, images, model)
    pairs = ImageTextPairs.from_texts(
        _image_pixels(study, images, model), captions, captions, model.tokenizer
    )
    prompts = None
    if instances:
        words = dict(zip(group_pair.groups, group_pair.words, strict=True))
        prompts = Prompts(words, Manifest("", instances).concepts)
    files = [study.image_files[image] for image in images]
    return EvaluationSet(
        instances,
        read_image,
        prompts,
        RetrievalPool(
            len(images),
            lambda part: [read_image(file) for file in files[part]],
            [caption for image_captions in captions for caption in image_captions],
            np.repeat(np.arange(len(images)), CAPTIONS),
        )
        if model.network.has_match_head
        else None,
        tuple(images),
        {"held out": pairs},
        {"held out": tuple(images)},
    )


def _captions(study: Study, images: Sequence[str], model: TorchMaskedVLM) -> list[list[str]]:
    """Return `CAPTIONS` captions of each image. Captions are untrusted input: special tokens are removed."""
    captions_of: dict[str, list[str]] = {image: [] for image in images}
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        if image in captions_of and len(captions_of[image]) < CAPTIONS:
            captions_of[image].append(truncate_caption(caption, model.tokenizer)[0])
    return [
        [image_captions[n % len(image_captions)] for n in range(CAPTIONS)]
        for image_captions in captions_of.values()
    ]


def _image_pixels(study: Study, images: Sequence[str], model: TorchMaskedVLM) -> NDArray[np.uint8]:
    return load_pixels([study.image_files[image] for image in images], model.network.image_size)


def _usable_instances(
    instances: Sequence[Instance], group_pair: GroupPair, training_files: Set[Path]
) -> list[Instance]:
    """Return the instances of both groups in images that are not training images."""
    of_groups = [instance for instance in instances if instance.group in group_pair.groups]
    held_out = [instance for instance in of_groups if instance.path.resolve() not in training_files]
    for subset, where in ((of_groups, ""), (held_out, " in an image that is not a training image")):
        shown = {instance.group for instance in subset}
        missing = [group for group in group_pair.groups if group not in shown]
        if missing:
            raise PortrayalError(
                f"The manifest shows nobody of the group '{missing[0]}'{where}: bias is measured between both."
            )
    return held_out


def _hash(image: str) -> int:
    return int.from_bytes(hashlib.blake2b(image.encode(), digest_size=8).digest(), "little")
