"""Guessers that are neural networks: what the linear one does by solving, these do by training."""

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
from portrayal.metrics.shared.classifier.linear import Array, Dealt, Guesses, scores
from portrayal.metrics.shared.classifier.masking import UNKNOWN
from portrayal.metrics.shared.classifier.splits import Split
from portrayal.models.device import best_device
from portrayal.models.text_classifiers.schedules import Classifier, Encoder, key
from portrayal.models.text_classifiers.tasks import MASKED, Answer, Task, Texts
from portrayal.models.text_classifiers.training_queue import PLAN, Kept, write_plan

PIECES = ("<", "unk", ">")  # what the published LSTM code makes of an unknown word when it reads it again
LATER = "deferred"  # a device: trainings are written down for another machine


@dataclass(frozen=True)
class Trainer:
    """Has classifiers trained, none of them twice: what one measurement needs is kept for the next."""

    classifier: Classifier
    explain: int  # steps of integrated gradients; 0: none
    device: str  # of DEVICES, or LATER
    folder: Path | None  # where trainings are kept
    in_pieces: bool = False  # whether an unknown word is read as three
    _texts: dict[Corpus, Texts] = field(default_factory=dict, compare=False)
    _answers: dict[str, Answer] = field(default_factory=dict, compare=False)

    def task(
        self,
        corpus: Corpus,
        hidden: frozenset[str],
        group: NDArray[np.int64],
        groups: int,
        split: Split,
        weighted: bool,
        seed: int,
    ) -> Task:
        learnt = np.bincount(group[split.train], minlength=groups)
        if not learnt.all():
            raise Undefined("a part that is learnt has no caption of one of the groups")
        weight = learnt.sum() / (groups * learnt) if weighted else np.ones(groups)
        return Task(self._read(corpus, hidden), group, groups, split.train, split.test, weight, seed)

    def _read(self, corpus: Corpus, hidden: frozenset[str]) -> Texts:
        if corpus not in self._texts:
            captions: Sequence[Sequence[str]] = [self.read(words) for words in corpus.words]
            if isinstance(self.classifier, Encoder):
                captions = [[MASKED if word in hidden else word for word in words] for words in captions]
            self._texts[corpus] = Texts.of(captions, UNKNOWN)
        return self._texts[corpus]

    def read(self, words: Words) -> Words:
        """A caption as it is read; one without words is unknown."""
        words = words or (UNKNOWN,)
        if not self.in_pieces:
            return words
        return tuple(piece for word in words for piece in (PIECES if word == UNKNOWN else (word,)))

    def parts(self, words: Words, parts: Array) -> Array:
        """What each word adds, from what was read of it."""
        if not self.in_pieces:
            return parts[: len(words)]
        sizes = [len(PIECES) if word == UNKNOWN else 1 for word in words]
        return np.add.reduceat(parts, np.cumsum([0, *sizes[:-1]])) if sizes else parts[:0]

    def unexplained(self) -> Trainer:
        """The same for guesses that nobody asks the reasons of."""
        return replace(self, explain=0) if self.explain else self

    def answers(self, tasks: Sequence[Task]) -> list[Answer]:
        """Of every task; those that are not known yet are trained together."""
        kept = None if self.folder is None else Kept(self.folder)
        named = {key(task, self.classifier, self.explain): task for task in tasks}
        waiting: dict[str, Task] = {}
        for name, task in named.items():
            if name in self._answers:
                continue
            found = None if kept is None else kept.get(task, self.classifier, self.explain)
            if found is None:
                waiting[name] = task
            else:
                self._answers[name] = found
        if waiting:
            self._train(waiting, kept)
        return [self._answers[key(task, self.classifier, self.explain)] for task in tasks]

    def _train(self, waiting: dict[str, Task], kept: Kept | None) -> None:
        if self.device == LATER:
            raise self._put_off(list(waiting.values()))
        self.classifier.need_packages()  # here, and not in every worker once it has started
        device = best_device(self.device)
        named = list(waiting.items())
        tasks = list(waiting.values())
        found = (
            self._on_cores(tasks) if device == "cpu" else self.classifier.train(tasks, device, self.explain)
        )
        what = f"{self.classifier.kind} on {device}"
        report_progress(what, 0, len(tasks))
        for done, (place, answer) in enumerate(found, 1):
            name, task = named[place]
            self._answers[name] = answer
            if kept is not None:
                kept.put(task, self.classifier, self.explain, answer)
            report_progress(what, done, len(tasks))

    def _on_cores(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
        """A task on each core: one thread each is faster than several threads for one."""
        calls = [(train_one, {"task": task}) for task in tasks]
        return executor_for(min(available_cores(), len(tasks))).run(calls, (self.classifier, self.explain))

    def _put_off(self, tasks: Sequence[Task]) -> PortrayalError:
        if self.folder is None:
            return PortrayalError("To train later, say where trainings are kept (the option trainings).")
        write_plan(self.folder / PLAN, tasks, self.classifier, self.explain)
        return PortrayalError(
            f"{len(tasks):,} trainings wait in {self.folder / PLAN}. Where there is a GPU, run  "
            f"python -m portrayal.models {self.folder}  and then this command again."
        )


def train_one(shared: tuple[Classifier, int], task: Task) -> Answer:
    """In a process that has one core to itself."""
    import torch

    torch.set_num_threads(1)
    classifier, explain = shared
    (found,) = classifier.train([task], "cpu", explain)
    return found[1]


@dataclass(frozen=True)
class NeuralGuesser:
    """`hidden` are the tokens that stand for hidden words, which an encoder has a token of its own for."""

    groups: int
    weighted: bool
    hidden: frozenset[str]
    trainer: Trainer

    def tasks(self, corpus: Corpus, splits: Sequence[Split], seeds: Sequence[int]) -> list[Task]:
        return [self._task(corpus, corpus.group, *one) for one in zip(splits, seeds, strict=True)]

    def _task(self, corpus: Corpus, group: NDArray[np.int64], split: Split, seed: int) -> Task:
        return self.trainer.task(corpus, self.hidden, group, self.groups, split, self.weighted, seed)

    def guess(
        self,
        corpus: Corpus,
        splits: Sequence[Split],
        seeds: Sequence[int],
        rough: bool = False,  # noqa: ARG002
    ) -> Guesses:
        answers = self.trainer.answers(self.tasks(corpus, splits, seeds))
        test = np.concatenate([split.test for split in splits])
        fit = np.repeat(np.arange(len(splits)), [len(split.test) for split in splits])
        likely = np.concatenate([answer.likely for answer in answers])
        parts: tuple[Array, ...] | None = None
        if self.trainer.explain:
            said = [corpus.words[place] for place in test]
            lengths = [len(self.trainer.read(words)) for words in said]
            whole = np.concatenate([answer.parts for answer in answers if answer.parts is not None])
            split = np.split(whole, np.cumsum(lengths)[:-1])
            parts = tuple(self.trainer.parts(*pair) for pair in zip(said, split, strict=True))
        return Guesses(corpus, test, fit, likely, len(splits), parts=parts)

    def chance(self, corpus: Corpus, deal: Callable[[int], Dealt], dealings: int) -> Array:
        """Mean score of each group when labels are dealt at random: (dealings, groups), 0 to 1."""
        dealt = [deal(number) for number in range(dealings)]
        tasks: list[list[Task]] = []
        for group, splits in dealt:
            try:
                tasks.append([self._task(corpus, group, split, _seed_of(split, group)) for split in splits])
            except Undefined:  # a group so small that chance leaves a part without it
                tasks.append([])
        answers = iter(self.trainer.unexplained().answers([task for some in tasks for task in some]))
        made = np.full((dealings, self.groups), np.nan)
        for number, (group, splits) in enumerate(dealt):
            if not tasks[number]:
                continue
            true = np.concatenate([group[split.test] for split in splits])
            score = scores(np.concatenate([next(answers).likely for _ in splits]), true)
            count = np.bincount(true, minlength=self.groups)
            total = np.bincount(true, weights=score, minlength=self.groups)
            made[number, count > 0] = total[count > 0] / count[count > 0]
        return made


def _seed_of(split: Split, group: NDArray[np.int64]) -> int:
    """Every dealing begins with other networks, as every seed does."""
    whole = hashlib.blake2b(split.train.tobytes() + group.tobytes(), digest_size=4)
    return int.from_bytes(whole.digest(), "little") >> 1
