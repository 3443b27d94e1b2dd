"""Training data and evaluation sets from the lab's world, with exact counterfactual images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.counterfactual.prompts import Prompts
from portrayal.errors import PortrayalError
from portrayal.lab.annotators import Annotators
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.model_training import SENTENCES, SIDE, WORLDS, lab_vocabulary, render_images
from portrayal.lab.sentences import plain_sentences
from portrayal.lab.world import BIASED_ATTRIBUTE, Scene, World, counterfactual_scene, make_scenes
from portrayal.lexicon import lexicon_for
from portrayal.mitigate.compare import Comparison
from portrayal.mitigate.evaluation import EvaluationSet
from portrayal.mitigate.methods import find_method
from portrayal.mitigate.settings import (
    LAB,
    MODEL,
    ComparisonOptions,
    load_start_model,
)
from portrayal.mitigate.training_data import GroupPair, TrainingData
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.retrieval.search import RetrievalPool
from portrayal.models.masked_vlm.training import ImageTextPairs

BIASED, BALANCED = "biased", "balanced"
# Different from the seeds of the shipped models' scenes.
_TRAINING_SEED, _BIAS_SEED, _RETRIEVAL_SEED, _TEXT_SEED = 31, 77, 78, 79


def lab_comparison(
    model: str = MODEL,
    world: str = "full",
    options: ComparisonOptions | None = None,
) -> Comparison:
    """Return a comparison of methods on the lab's world: by default all methods, over the default number of seeds."""
    options = options or ComparisonOptions()
    size = options.size
    start_model, start = load_start_model(model, options.resolved_device, 256, None)
    require_lab_model(start_model)
    return Comparison(
        model=start_model,
        start=start,
        data=f"{LAB}{world}, {size.scenes} scenes",
        methods=tuple(find_method(name) for name in dict.fromkeys(options.method_names)),
        **options.training(lab=True),
        evaluated_on=f"{LAB}{world}, {size.evaluation_scenes} scenes for bias, {size.retrieval_images} for retrieval, "
        f"{size.rerank} reranked",
        attribute=BIASED_ATTRIBUTE,
        training_data=cache(lambda: lab_training_data(world, size.scenes)),
        evaluation_set=cache(
            lambda: lab_evaluation_set(world, size.evaluation_scenes, size.retrieval_images, size.rerank)
        ),
    )


def lab_group_pair() -> GroupPair:
    """Return the lab's two groups in the lexicon's order."""
    return GroupPair.of(lexicon_for(BIASED_ATTRIBUTE))


def require_lab_model(model: TorchMaskedVLM) -> None:
    """Raise an error unless the model has the vocabulary and the image size of the lab's models."""
    same_vocabulary = getattr(model.tokenizer, "words", None) == lab_vocabulary().words
    if not same_vocabulary or model.network.image_size != SIDE:
        raise PortrayalError(
            f"The model '{model.name}' does not have the lab's vocabulary and image size: expected a model of the lab, "
            f"or a study as training data (--data STUDY)."
        )


def lab_training_data(world: str, scenes: int) -> TrainingData:
    """Return training data from new scenes of a world, with the exact counterfactual of each image."""
    training_scenes = make_scenes(scenes, _TRAINING_SEED, WORLDS[world])
    return TrainingData.from_texts(
        render_images(training_scenes),
        Annotators().describe(training_scenes, _TRAINING_SEED),
        plain_sentences(training_scenes, SENTENCES, _TRAINING_SEED),
        lab_vocabulary(),
        lab_group_pair(),
        render_images([counterfactual_scene(scene) for scene in training_scenes]),
    )


def lab_evaluation_set(world: str, scenes: int, retrieval_images: int, rerank: int) -> EvaluationSet:
    """Return the evaluation set: bias on scenes without data bias, retrieval on the training world, texts of both."""
    unbiased_world = World(data_bias=0.0)
    bias_scenes = [scene for scene in held_out(scenes, unbiased_world, _BIAS_SEED) if not scene.androgynous]
    images: dict[Path, Any] = {}
    instances = []
    for scene in bias_scenes:
        own_path, counterfactual_path = (
            Path(f"{scene.identifier}.png"),
            Path(f"{scene.identifier}-counterfactual.png"),
        )
        images[own_path], images[counterfactual_path] = (
            draw(scene, SIDE),
            draw(counterfactual_scene(scene), SIDE),
        )
        concepts = [(scene.activity, "activity")]
        if scene.occupation is not None:
            concepts.append((scene.occupation, "occupation"))
        for concept, kind in concepts:
            instances.append(
                Instance(
                    scene.identifier,
                    scene.person[BIASED_ATTRIBUTE],
                    concept,
                    kind,
                    own_path,
                    counterfactual_path,
                )
            )
    group_pair = lab_group_pair()
    prompts = Prompts(
        dict(zip(group_pair.groups, group_pair.words, strict=True)), Manifest("", tuple(instances)).concepts
    )
    retrieval_scenes = make_scenes(retrieval_images, _RETRIEVAL_SEED, WORLDS[world])
    captions = Annotators(bare=0.0).describe(retrieval_scenes, _RETRIEVAL_SEED)
    text_scenes = {
        name: held_out(scenes, text_world, _TEXT_SEED)
        for name, text_world in ((BIASED, WORLDS[world]), (BALANCED, unbiased_world))
    }
    return EvaluationSet(
        tuple(instances),
        images.__getitem__,
        prompts,
        RetrievalPool(
            len(retrieval_scenes),
            lambda part: [draw(scene, SIDE) for scene in retrieval_scenes[part]],
            [caption for scene_captions in captions for caption in scene_captions],
            np.repeat(np.arange(len(retrieval_scenes)), [len(scene_captions) for scene_captions in captions]),
        ),
        tuple(scene.identifier for scene in retrieval_scenes),
        {name: _text_pairs(scenes) for name, scenes in text_scenes.items()},
        {name: tuple(scene.identifier for scene in scenes) for name, scenes in text_scenes.items()},
        rerank,
    )


def _text_pairs(scenes: Sequence[Scene]) -> ImageTextPairs:
    return ImageTextPairs.from_texts(
        render_images(scenes),
        Annotators().describe(scenes, _TEXT_SEED),
        plain_sentences(scenes, SENTENCES, _TEXT_SEED),
        lab_vocabulary(),
    )
