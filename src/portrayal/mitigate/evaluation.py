"""What a model is examined on, before and after a remedy, and what it says there."""

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
from portrayal.counterfactual.inference import Load, ask
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import EXACT, Answers, Questions
from portrayal.files import replacing
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.retrieval.recall import Standing
from portrayal.models.masked_vlm.retrieval.search import Pool, search
from portrayal.models.masked_vlm.training import Pairs
from portrayal.models.masked_vlm.training.losses import IGNORED, fill, hide
from portrayal.models.threads import fitting_threads

PGD = "pgd"
ZERO_SHOT, FINE_TUNED = "zero-shot", "fine-tuned"
SEARCHES = (ZERO_SHOT, FINE_TUNED)
TEXTS = 4  # of each picture, in which words are hidden
_HIDDEN = 0.15  # share of their words
_ARRAYS = tuple(field.name for field in fields(Answers) if field.name != "seen")
_TOGETHER = 256

Array = NDArray[np.float64]
ReportProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Exam:
    """Pictures of people to ask about, captions and pictures to search, and texts with words to be filled in."""

    instances: tuple[Instance, ...]
    load: Load
    questions: Questions | None
    pool: Pool | None
    images: tuple[str, ...]  # the names of the pictures that are searched
    words: Mapping[str, Pairs]  # by the name of the set
    names: Mapping[str, tuple[str, ...]]  # of each set: of its pictures
    rerank: int = 16  # of what is found by likeness, so many are put in order by the matching head

    @property
    def exact(self) -> bool:
        return bool(self.instances) and all(one.exact is not None for one in self.instances)


@dataclass(frozen=True)
class Filled:
    """Of each picture of a set: how many words were hidden, how many were found, and what was lost on them."""

    asked: Array
    right: Array
    lost: Array


@dataclass(frozen=True)
class Marks:
    """What one model said."""

    answers: Mapping[str, Answers]  # by how the other pictures were made
    searches: Mapping[str, tuple[Standing, Standing]]  # captions of each picture, pictures of each caption
    words: Mapping[str, Filled]

    def save(self, file: Path) -> None:
        parts: dict[str, Any] = {}
        for way, answers in self.answers.items():
            parts |= {f"answers/{way}/{name}": np.float32(getattr(answers, name)) for name in _ARRAYS}
        for when, both in self.searches.items():
            for of, standing in zip(("captions", "pictures"), both, strict=True):
                parts |= {f"searches/{when}/{of}/{name}": value for name, value in vars(standing).items()}
        for of, filled in self.words.items():
            parts |= {f"words/{of}/{name}": value for name, value in vars(filled).items()}
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as fresh, fresh.open("wb") as out:
            np.savez_compressed(out, **parts)

    @classmethod
    def load(cls, file: Path) -> Marks:
        tree: dict[str, Any] = {"answers": {}, "searches": {}, "words": {}}
        with np.load(file, allow_pickle=False) as kept:
            for name in kept.files:
                *path, last = name.split("/")
                at = tree
                for part in path:
                    at = at.setdefault(part, {})
                at[last] = kept[name]
        return cls(
            {way: Answers(**_doubles(parts), seen={}) for way, parts in tree["answers"].items()},
            {
                when: (Standing(**both["captions"]), Standing(**both["pictures"]))
                for when, both in tree["searches"].items()
            },
            {of: Filled(**parts) for of, parts in tree["words"].items()},
        )


def examine(
    model: MaskedModel,
    fitted: MaskedModel | None,
    exam: Exam,
    attack: Attack,
    *,
    seed: int = 0,
    cores: int = 1,
    report_progress: ReportProgress | None = None,
) -> Marks:
    """`fitted` is the same model fine-tuned to searching."""
    with fitting_threads(model.network):
        return _examined(model, fitted, exam, attack, seed, cores, report_progress)


def _examined(
    model: MaskedModel,
    fitted: MaskedModel | None,
    exam: Exam,
    attack: Attack,
    seed: int,
    cores: int,
    report_progress: ReportProgress | None,
) -> Marks:
    def telling(what: str) -> Callable[[int, int], None] | None:
        return None if report_progress is None else lambda done, of: report_progress(what, done, of)

    answers = {}
    if exam.questions is not None:
        for way in (PGD, *((EXACT,) if exam.exact else ())):
            answers[way] = ask(
                model, exam.instances, exam.questions, attack if way == PGD else None, exam.load,
                placebo=False, seed=seed, batch=model.batch, report_progress=telling(way),
            )  # fmt: skip
    searches = {}
    if exam.pool is not None:
        for when, one in ((ZERO_SHOT, model), (FINE_TUNED, fitted)):
            if one is not None:
                found = search(one, exam.pool, exam.rerank, cores)
                searches[when] = (found.captions, found.pictures)
    words = {name: filled(model, pairs) for name, pairs in exam.words.items()}
    return Marks(answers, searches, words)


def filled(model: MaskedModel, pairs: Pairs) -> Filled:
    """The same words are hidden from every model."""
    random = np.random.default_rng(len(pairs))
    many, network = len(pairs), model.network
    asked, right, lost = np.zeros(many), np.zeros(many), np.zeros(many)
    here = pairs.on(model.device)
    with torch.inference_mode():
        for start in range(0, many, _TOGETHER):
            some = slice(start, start + _TOGETHER)
            looked = network.look(here.pictures[some].permute(0, 3, 1, 2).float() / 255)
            for text in range(min(TEXTS, here.sentences.shape[1])):
                ids = here.sentences[some, text].long()
                chance = torch.from_numpy(random.random(ids.shape, np.float32)).to(model.device)
                hidden, words = hide(ids, chance, _HIDDEN, here)
                scores = fill(network, looked, hidden, here).float()
                known = words != IGNORED
                cost = functional.cross_entropy(
                    scores.flatten(0, 1), words.flatten(), ignore_index=IGNORED, reduction="none"
                ).view(words.shape)
                asked[some] += known.sum(1).double().cpu().numpy()
                right[some] += ((scores.argmax(-1) == words) & known).sum(1).double().cpu().numpy()
                lost[some] += cost.sum(1).double().cpu().numpy()
    return Filled(asked, right, lost)


def _doubles(parts: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(value, dtype=np.float64) for name, value in parts.items()}
