"""The neural classifier: the same interface as the linear one, with networks that are trained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from portrayal.engine import available_cores, executor_for, report_progress
from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.shared.classifier.corpus import Corpus, Words
from portrayal.metrics.shared.classifier.linear_classifier import (
    Array,
    PermutedLabels,
    Predictions,
    lic_scores,
)
from portrayal.metrics.shared.classifier.masking import UNKNOWN
from portrayal.metrics.shared.classifier.splits import Split
from portrayal.models.device import resolve_device
from portrayal.models.text_classifiers.configs import ClassifierConfig, EncoderConfig, cache_key
from portrayal.models.text_classifiers.tasks import MASKED, ClassificationTask, TaskPredictions, Texts
from portrayal.models.text_classifiers.training_queue import PLAN, TrainingCache, write_plan

UNKNOWN_PIECES = ("<", "unk", ">")  # how the published LSTM code tokenizes an unknown word
DEFERRED = "deferred"  # device: training tasks are written to a plan for another machine


@dataclass(frozen=True)
class Trainer:
    """Trains neural classifiers and caches their predictions, so that no task is trained twice.

    Parameters
    ----------
    config
        Architecture and schedule of the network.
    explain
        Steps of integrated gradients; 0: no attributions.
    device
        One of DEVICES, or DEFERRED.
    cache_dir
        Folder of cached predictions.
    split_unknown
        Tokenize an unknown word as three tokens, as the published LSTM code does.
    """

    config: ClassifierConfig
    explain: int
    device: str
    cache_dir: Path | None
    split_unknown: bool = False
    _texts: dict[Corpus, Texts] = field(default_factory=dict, compare=False)
    _predictions: dict[str, TaskPredictions] = field(default_factory=dict, compare=False)

    def task(
        self,
        corpus: Corpus,
        mask_tokens: frozenset[str],
        group: NDArray[np.int64],
        groups: int,
        split: Split,
        balanced: bool,
        seed: int,
    ) -> ClassificationTask:
        train_counts = np.bincount(group[split.train], minlength=groups)
        if not train_counts.all():
            raise Undefined("a training set has no caption of one of the groups")
        weight = train_counts.sum() / (groups * train_counts) if balanced else np.ones(groups)
        return ClassificationTask(
            self._encode(corpus, mask_tokens), group, groups, split.train, split.test, weight, seed
        )

    def _encode(self, corpus: Corpus, mask_tokens: frozenset[str]) -> Texts:
        if corpus not in self._texts:
            captions: Sequence[Sequence[str]] = [self.tokens(words) for words in corpus.words]
            if isinstance(self.config, EncoderConfig):
                captions = [[MASKED if word in mask_tokens else word for word in words] for words in captions]
            self._texts[corpus] = Texts.encode(captions, UNKNOWN)
        return self._texts[corpus]

    def tokens(self, words: Words) -> Words:
        """Tokens of a caption; a caption without words is one unknown word."""
        words = words or (UNKNOWN,)
        if not self.split_unknown:
            return words
        return tuple(piece for word in words for piece in (UNKNOWN_PIECES if word == UNKNOWN else (word,)))

    def merge_pieces(self, words: Words, attributions: Array) -> Array:
        """Sum the attributions of tokens to those of words."""
        if not self.split_unknown:
            return attributions[: len(words)]
        sizes = [len(UNKNOWN_PIECES) if word == UNKNOWN else 1 for word in words]
        return np.add.reduceat(attributions, np.cumsum([0, *sizes[:-1]])) if sizes else attributions[:0]

    def without_explanation(self) -> Trainer:
        """The same trainer without attributions."""
        return replace(self, explain=0) if self.explain else self

    def predictions(self, tasks: Sequence[ClassificationTask]) -> list[TaskPredictions]:
        """Return the predictions of each task; tasks that are not cached are trained together."""
        cache = None if self.cache_dir is None else TrainingCache(self.cache_dir)
        task_of_key = {cache_key(task, self.config, self.explain): task for task in tasks}
        pending: dict[str, ClassificationTask] = {}
        for key, task in task_of_key.items():
            if key in self._predictions:
                continue
            cached = None if cache is None else cache.get(task, self.config, self.explain)
            if cached is None:
                pending[key] = task
            else:
                self._predictions[key] = cached
        if pending:
            self._train(pending, cache)
        return [self._predictions[cache_key(task, self.config, self.explain)] for task in tasks]

    def _train(self, pending: dict[str, ClassificationTask], cache: TrainingCache | None) -> None:
        if self.device == DEFERRED:
            raise self._defer(list(pending.values()))
        self.config.need_packages()  # once here, not in every worker after it has started
        device = resolve_device(self.device)
        keyed = list(pending.items())
        tasks = list(pending.values())
        results = (
            self._train_on_cpu(tasks) if device == "cpu" else self.config.train(tasks, device, self.explain)
        )
        what = f"{self.config.kind} on {device}"
        report_progress(what, 0, len(tasks))
        for done, (index, result) in enumerate(results, 1):
            key, task = keyed[index]
            self._predictions[key] = result
            if cache is not None:
                cache.put(task, self.config, self.explain, result)
            report_progress(what, done, len(tasks))

    def _train_on_cpu(self, tasks: Sequence[ClassificationTask]) -> Iterator[tuple[int, TaskPredictions]]:
        """Train one task per core: one thread each is faster than several threads for one."""
        calls = [(train_on_one_core, {"task": task}) for task in tasks]
        return executor_for(min(available_cores(), len(tasks))).run(calls, (self.config, self.explain))

    def _defer(self, tasks: Sequence[ClassificationTask]) -> PortrayalError:
        if self.cache_dir is None:
            return PortrayalError("To defer training, name a folder for the plan (the option cache_dir).")
        write_plan(self.cache_dir / PLAN, tasks, self.config, self.explain)
        return PortrayalError(
            f"{len(tasks):,} training tasks are pending in {self.cache_dir / PLAN}. On a machine with a GPU, run  "
            f"python -m portrayal.models {self.cache_dir}  and then this command again."
        )


def train_on_one_core(shared: tuple[ClassifierConfig, int], task: ClassificationTask) -> TaskPredictions:
    """Train a task in a worker process that has one core."""
    import torch

    torch.set_num_threads(1)
    config, explain = shared
    (result,) = config.train([task], "cpu", explain)
    return result[1]


@dataclass(frozen=True)
class NeuralClassifier:
    """A neural network with the interface of LinearClassifier.

    `mask_tokens` are the tokens that replace hidden words; an encoder reads them as its own mask token.
    """

    groups: int
    balanced: bool
    mask_tokens: frozenset[str]
    trainer: Trainer

    def tasks(
        self, corpus: Corpus, splits: Sequence[Split], seeds: Sequence[int]
    ) -> list[ClassificationTask]:
        return [
            self._task(corpus, corpus.group, *split_and_seed)
            for split_and_seed in zip(splits, seeds, strict=True)
        ]

    def _task(self, corpus: Corpus, group: NDArray[np.int64], split: Split, seed: int) -> ClassificationTask:
        return self.trainer.task(corpus, self.mask_tokens, group, self.groups, split, self.balanced, seed)

    def cross_val_predict(
        self,
        corpus: Corpus,
        splits: Sequence[Split],
        seeds: Sequence[int],
        rough: bool = False,  # noqa: ARG002
    ) -> Predictions:
        task_predictions = self.trainer.predictions(self.tasks(corpus, splits, seeds))
        test = np.concatenate([split.test for split in splits])
        fit_index = np.repeat(np.arange(len(splits)), [len(split.test) for split in splits])
        proba = np.concatenate([result.proba for result in task_predictions])
        attributions: tuple[Array, ...] | None = None
        if self.trainer.explain:
            captions = [corpus.words[index] for index in test]
            lengths = [len(self.trainer.tokens(words)) for words in captions]
            token_attributions = np.concatenate(
                [result.attributions for result in task_predictions if result.attributions is not None]
            )
            per_caption = np.split(token_attributions, np.cumsum(lengths)[:-1])
            attributions = tuple(
                self.trainer.merge_pieces(*pair) for pair in zip(captions, per_caption, strict=True)
            )
        return Predictions(corpus, test, fit_index, proba, len(splits), attributions=attributions)

    def permutation_scores(
        self, corpus: Corpus, permute: Callable[[int], PermutedLabels], n_permutations: int
    ) -> Array:
        """Mean score of each group under permuted labels: (permutations, groups), from 0 to 1."""
        permuted = [permute(number) for number in range(n_permutations)]
        tasks: list[list[ClassificationTask]] = []
        for group, splits in permuted:
            try:
                tasks.append(
                    [self._task(corpus, group, split, _permutation_seed(split, group)) for split in splits]
                )
            except Undefined:  # a group so small that a random training set lacks it
                tasks.append([])
        results = iter(
            self.trainer.without_explanation().predictions([task for batch in tasks for task in batch])
        )
        means = np.full((n_permutations, self.groups), np.nan)
        for number, (group, splits) in enumerate(permuted):
            if not tasks[number]:
                continue
            true = np.concatenate([group[split.test] for split in splits])
            score = lic_scores(np.concatenate([next(results).proba for _ in splits]), true)
            count = np.bincount(true, minlength=self.groups)
            total = np.bincount(true, weights=score, minlength=self.groups)
            means[number, count > 0] = total[count > 0] / count[count > 0]
        return means


def _permutation_seed(split: Split, group: NDArray[np.int64]) -> int:
    """Seed of a permutation's networks: each permutation starts from other weights, as each seed does."""
    digest = hashlib.blake2b(split.train.tobytes() + group.tobytes(), digest_size=4)
    return int.from_bytes(digest.digest(), "little") >> 1
