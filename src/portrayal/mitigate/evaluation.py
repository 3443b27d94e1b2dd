"""Evaluation sets for mitigated models, and the scores of a model on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.inference import LoadImage, query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import EXACT, ModelOutputs, Prompts
from portrayal.files import replacing
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.retrieval.recall import RankPositions
from portrayal.models.masked_vlm.retrieval.search import RetrievalPool, search
from portrayal.models.masked_vlm.training import ImageTextPairs
from portrayal.models.masked_vlm.training.losses import IGNORE_INDEX, mask_tokens, mlm_logits
from portrayal.models.threads import limit_threads

PGD = "pgd"
ZERO_SHOT, FINE_TUNED = "zero-shot", "fine-tuned"
FITTINGS = (ZERO_SHOT, FINE_TUNED)
# Texts of each image with masked words, at most.
MAX_TEXTS = 4
_MASK_PROBABILITY = 0.15
_ARRAYS = tuple(field.name for field in fields(ModelOutputs) if field.name != "images")
_BATCH_SIZE = 256

Array = NDArray[np.float64]
ReportProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class EvaluationSet:
    """Images of people for bias, captions and images for retrieval, and texts for masked words."""

    instances: tuple[Instance, ...]
    load: LoadImage
    prompts: Prompts | None
    pool: RetrievalPool | None
    images: tuple[str, ...]  # names of the images for retrieval
    text_sets: Mapping[str, ImageTextPairs]  # by name of the set
    text_images: Mapping[str, tuple[str, ...]]  # by name of the set: names of its images
    # Number of results, by similarity, that the matching head reranks.
    rerank: int = 16

    @property
    def has_exact(self) -> bool:
        return bool(self.instances) and all(
            instance.counterfactual is not None for instance in self.instances
        )


@dataclass(frozen=True)
class MaskedWordScores:
    """The number of masked words, of correct predictions, and the summed loss, for each image of a set."""

    n_masked: Array
    n_correct: Array
    loss: Array


@dataclass(frozen=True)
class EvaluationScores:
    """The scores of one model on an evaluation set."""

    outputs: Mapping[str, ModelOutputs]  # by kind of counterfactual image: pgd or exact
    retrieval: Mapping[
        str, tuple[RankPositions, RankPositions]
    ]  # ranks of captions by image, of images by caption
    masked_words: Mapping[str, MaskedWordScores]

    def save(self, file: Path) -> None:
        arrays: dict[str, Any] = {}
        for attack_kind, outputs in self.outputs.items():
            arrays |= {
                f"outputs/{attack_kind}/{name}": np.float32(getattr(outputs, name)) for name in _ARRAYS
            }
        for fitting, standings in self.retrieval.items():
            for kind, standing in zip(("captions", "images"), standings, strict=True):
                arrays |= {
                    f"retrieval/{fitting}/{kind}/{name}": value for name, value in vars(standing).items()
                }
        for text_set, word_scores in self.masked_words.items():
            arrays |= {f"masked_words/{text_set}/{name}": value for name, value in vars(word_scores).items()}
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as fresh, fresh.open("wb") as out:
            np.savez_compressed(out, **arrays)

    @classmethod
    def load(cls, file: Path) -> EvaluationScores:
        tree: dict[str, Any] = {"outputs": {}, "retrieval": {}, "masked_words": {}}
        with np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                *path, last = name.split("/")
                node = tree
                for part in path:
                    node = node.setdefault(part, {})
                node[last] = archive[name]
        return cls(
            {
                attack_kind: ModelOutputs(**_doubles(parts), images={})
                for attack_kind, parts in tree["outputs"].items()
            },
            {
                fitting: (RankPositions(**standings["captions"]), RankPositions(**standings["images"]))
                for fitting, standings in tree["retrieval"].items()
            },
            {text_set: MaskedWordScores(**parts) for text_set, parts in tree["masked_words"].items()},
        )


def evaluate(
    model: TorchMaskedVLM,
    fine_tuned: TorchMaskedVLM | None,
    evaluation_set: EvaluationSet,
    attack: Attack,
    *,
    seed: int = 0,
    cores: int = 1,
    report_progress: ReportProgress | None = None,
) -> EvaluationScores:
    """Return the scores of a model; `fine_tuned` is the same model fine-tuned for retrieval, or None."""
    with limit_threads(model.network):
        return _evaluate(model, fine_tuned, evaluation_set, attack, seed, cores, report_progress)


def _evaluate(
    model: TorchMaskedVLM,
    fine_tuned: TorchMaskedVLM | None,
    evaluation_set: EvaluationSet,
    attack: Attack,
    seed: int,
    cores: int,
    report_progress: ReportProgress | None,
) -> EvaluationScores:
    def reporter(step: str) -> Callable[[int, int], None] | None:
        return None if report_progress is None else lambda done, total: report_progress(step, done, total)

    outputs = {}
    if evaluation_set.prompts is not None:
        for attack_kind in (PGD, *((EXACT,) if evaluation_set.has_exact else ())):
            outputs[attack_kind] = query_model(
                model, evaluation_set.instances, evaluation_set.prompts, attack if attack_kind == PGD else None,
                evaluation_set.load, placebo=False, seed=seed, batch_size=model.batch_size,
                report_progress=reporter(attack_kind),
            )  # fmt: skip
    retrieval = {}
    if evaluation_set.pool is not None:
        for fitting, searched_model in ((ZERO_SHOT, model), (FINE_TUNED, fine_tuned)):
            if searched_model is not None:
                ranks = search(searched_model, evaluation_set.pool, evaluation_set.rerank, cores)
                retrieval[fitting] = (ranks.caption_positions, ranks.image_positions)
    masked_words = {
        name: score_masked_words(model, pairs) for name, pairs in evaluation_set.text_sets.items()
    }
    return EvaluationScores(outputs, retrieval, masked_words)


def score_masked_words(model: TorchMaskedVLM, pairs: ImageTextPairs) -> MaskedWordScores:
    """Return the scores on masked words. The same words are masked for every model."""
    rng = np.random.default_rng(len(pairs))
    n_images, network = len(pairs), model.network
    n_masked, n_correct, loss = np.zeros(n_images), np.zeros(n_images), np.zeros(n_images)
    device_pairs = pairs.to(model.device)
    with torch.inference_mode():
        for start in range(0, n_images, _BATCH_SIZE):
            batch = slice(start, start + _BATCH_SIZE)
            embeddings = network.encode_image(device_pairs.images[batch].permute(0, 3, 1, 2).float() / 255)
            for text_index in range(min(MAX_TEXTS, device_pairs.sentences.shape[1])):
                ids = device_pairs.sentences[batch, text_index].long()
                u = torch.from_numpy(rng.random(ids.shape, np.float32)).to(model.device)
                hidden, targets = mask_tokens(ids, u, _MASK_PROBABILITY, device_pairs)
                scores = mlm_logits(network, embeddings, hidden, device_pairs).float()
                is_masked = targets != IGNORE_INDEX
                token_loss = functional.cross_entropy(
                    scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORE_INDEX, reduction="none"
                ).view(targets.shape)
                n_masked[batch] += is_masked.sum(1).double().cpu().numpy()
                n_correct[batch] += ((scores.argmax(-1) == targets) & is_masked).sum(1).double().cpu().numpy()
                loss[batch] += token_loss.sum(1).double().cpu().numpy()
    return MaskedWordScores(n_masked, n_correct, loss)


def _doubles(parts: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(value, dtype=np.float64) for name, value in parts.items()}
