"""What a model says of pictures as they are, of their counterfactuals and of a placebo, in both groups' words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from portrayal.counterfactual.attack import Aim, Attack, perturb
from portrayal.counterfactual.formulas import FACTUAL, Array
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Answers, Questions
from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.model import FillsMasks, Over
from portrayal.models.masked_vlm.network import Looked
from portrayal.models.threads import fitting_threads

ReportProgress = Callable[[int, int], None]  # pictures done, pictures in all
Load = Callable[[Path], Any]
_TOGETHER = 8  # texts of a picture: the four templates in both groups' words


def ask(
    model: FillsMasks,
    instances: Sequence[Instance],
    questions: Questions,
    attack: Attack | None,
    load: Load,
    *,
    placebo: bool = True,
    seed: int = 0,
    batch: int = 64,
    show: Sequence[int] = (),
    report_progress: ReportProgress | None = None,
) -> Answers:
    """Ask about every instance. Without an attack, counterfactual pictures are those that instances name.

    Pictures are taken a batch at a time, so that memory does not grow with their number; instances of one picture share
    its counterfactual.
    """
    if attack is None:
        lacking = sum(one.exact is None for one in instances)
        if lacking:
            raise PortrayalError(
                f"{lacking:,} of {len(instances):,} rows name no counterfactual picture: expected one in the column "
                f"'counterfactual' of each, or an attack."
            )
    placebo = placebo and attack is not None
    members = list(by_picture(instances).values())
    pictures = [instances[rows[0]] for rows in members]
    kinds = 3 if placebo else 2
    made = _empty(len(instances), len(questions.templates), kinds, len(questions.control_words))
    seen: dict[int, NDArray[np.uint8]] = {}
    wanted = set(show)
    asker = _Asker(model, questions, attack, placebo, seed)
    done = 0
    with fitting_threads(getattr(model, "network", None)):
        for some, loaded in _loaded(model, pictures, attack is None, load, batch):
            rows = [row for number in some for row in members[number]]
            at = torch.tensor([number - some[0] for number in some for _ in members[number]])
            parts = asker.ask(
                [instances[row] for row in rows], at, [pictures[number] for number in some], loaded
            )
            for name, values in parts.numbers.items():
                getattr(made, name)[rows] = values
            for spot, row in enumerate(rows):
                if row in wanted:
                    seen[row] = parts.picture(int(at[spot]))
            done += len(some)
            if report_progress is not None:
                report_progress(done, len(pictures))
    return Answers(made.target, made.present, made.share, made.controls, made.moved, seen)


def by_picture(instances: Sequence[Instance]) -> dict[tuple[str, str], list[int]]:
    """The instances of each picture of somebody, which share a counterfactual."""
    found: dict[tuple[str, str], list[int]] = {}
    for row, one in enumerate(instances):
        found.setdefault((one.image, one.group), []).append(row)
    return found


def ask_texts(
    model: FillsMasks, questions: Questions, gray: Tensor | None = None
) -> dict[tuple[str, str], Array]:
    """(kind, concept) -> (templates, groups): log P(T | L) without a picture, or with one that shows nothing."""
    found: dict[tuple[str, str], Array] = {}
    with torch.inference_mode(), fitting_threads(getattr(model, "network", None)):
        for kind, concepts in questions.concepts.items():
            texts = [
                (concept, template.of(word, kind, concept))
                for concept in concepts
                for template in questions.templates
                for word in questions.words.values()
            ]
            once = list(dict.fromkeys(text for _, text in texts))
            images = None if gray is None else gray.expand(len(once), *gray.shape[1:])
            said = (
                model.word_log_probs(images, once, list(concepts), over=questions.normalize_over)
                .double()
                .cpu()
                .numpy()
            )
            row, column = ({name: n for n, name in enumerate(names)} for names in (once, concepts))
            shape = (len(questions.templates), 2)
            for concept in concepts:
                own = [said[row[text], column[concept]] for asked, text in texts if asked == concept]
                found[kind, concept] = np.array(own).reshape(shape)
    return found


@dataclass(frozen=True)
class _Part:
    numbers: dict[str, Array]
    pixels: Sequence[Any]  # of each kind of picture

    def picture(self, at: int) -> NDArray[np.uint8]:
        """Of one size, that of the factual one; a given counterfactual may have another."""
        ones = [pixels[at].float().cpu() for pixels in self.pixels]
        size = ones[FACTUAL].shape[1:]
        ones = [
            one if one.shape[1:] == size else functional.interpolate(one[None], size, mode="bilinear")[0]
            for one in ones
        ]
        made: NDArray[np.uint8] = (torch.stack(ones) * 255).round().byte().permute(0, 2, 3, 1).numpy()
        return made


class _Asker:
    def __init__(
        self, model: FillsMasks, questions: Questions, attack: Attack | None, placebo: bool, seed: int
    ) -> None:
        self.model, self.questions, self.attack, self.placebo, self.seed = (
            model,
            questions,
            attack,
            placebo,
            seed,
        )
        self.nouns = list(questions.words.values())
        self.device = getattr(model, "device", "cpu")

    def ask(
        self,
        instances: Sequence[Instance],
        at: Tensor,
        pictures: Sequence[Instance],
        loaded: Sequence[Sequence[Any]],
    ) -> _Part:
        """Of a batch of pictures, with the instances of each."""
        own = torch.tensor([self.questions.groups.index(one.group) for one in pictures], device=self.device)
        pixels = [self._here(seen) for seen in loaded]
        if self.attack is not None:
            pixels += self._attacked(pixels[FACTUAL], own, pictures)
        rows = at.to(self.device)
        found: dict[str, list[Any]] = {"target": [], "present": [], "share": [], "controls": [], "moved": []}
        with torch.inference_mode():
            for kind in pixels:
                looked = self.model.encode(kind)
                who = self._who(looked).exp()
                mine, theirs = who.gather(1, own[:, None])[:, 0], who.gather(1, 1 - own[:, None])[:, 0]
                found["present"].append(mine[rows])
                found["share"].append((theirs / (mine + theirs))[rows])
                found["controls"].append(self._controls(looked).exp()[rows])
                found["moved"].append(_distance(kind, pixels[FACTUAL])[rows])
                found["target"].append(self._targets(looked, instances, rows))
        made = {
            name: np.stack([part.double().cpu().numpy() for part in parts], axis=2 if name == "target" else 1)
            for name, parts in found.items()
        }
        return _Part(made, pixels)

    def _here(self, pixels: Any) -> Any:
        return (
            pixels.to(self.device) if isinstance(pixels, Tensor) else [one.to(self.device) for one in pixels]
        )

    def _attacked(self, pixels: Any, own: Tensor, pictures: Sequence[Instance]) -> list[Any]:
        """The counterfactual and, where it is asked for, the placebo: as many steps toward another control word."""
        assert self.attack is not None
        aim = Aim(self.questions.bias_prompt, self.nouns, own, 1 - own, self._bias_over)
        parts = [self._perturbed(pixels, aim, None)]
        if self.placebo:
            with torch.inference_mode():
                now = self._controls(self.model.encode(pixels)).argmax(dim=1)
            many = len(self.questions.control_words)
            away = [1 + _lot(f"{self.seed} {one.image}") % (many - 1) for one in pictures]
            other = (now + torch.tensor(away, device=now.device)) % many
            aim = Aim(self.questions.control_prompt, self.questions.control_words, now, other)
            parts.append(self._perturbed(pixels, aim, parts[0][1]))
        return [moved for moved, _ in parts]

    def _perturbed(self, pixels: Any, aim: Aim, as_many: Tensor | None) -> tuple[Any, Tensor]:
        """Pictures of one shape at a time."""
        assert self.attack is not None
        if isinstance(pixels, Tensor):
            made = perturb(self.model, pixels, aim, self.attack, as_many)
            return made.pixels, made.steps
        moved: list[Tensor] = list(pixels)
        steps = torch.zeros(len(pixels), dtype=torch.long, device=self.device)
        for shape in dict.fromkeys(one.shape for one in pixels):
            some = torch.tensor([n for n, one in enumerate(pixels) if one.shape == shape], device=self.device)
            here = Aim(aim.prompt, aim.words, aim.was[some], aim.toward[some], aim.normalize_over)
            stacked = torch.stack([pixels[n] for n in some.tolist()])
            made = perturb(self.model, stacked, here, self.attack, None if as_many is None else as_many[some])
            steps[some] = made.steps
            for n, one in zip(some.tolist(), made.pixels, strict=True):
                moved[n] = one
        return moved, steps

    @property
    def _bias_over(self) -> Over:
        return "candidates" if self.questions.bias_normalize_over == "groups" else "vocabulary"

    def _who(self, looked: Looked | Tensor) -> Tensor:
        return self.model.word_log_probs(looked, self.questions.bias_prompt, self.nouns, over=self._bias_over)

    def _controls(self, looked: Looked | Tensor) -> Tensor:
        words = list(self.questions.control_words)
        return self.model.word_log_probs(looked, self.questions.control_prompt, words, over="candidates")

    def _targets(self, looked: Looked | Tensor, instances: Sequence[Instance], rows: Tensor) -> Tensor:
        """(instances, templates, texts). A text is asked of a picture once, however many concepts it is asked about."""
        known = {(one.group, one.kind, one.concept) for one in instances}
        texts_of = {about: self._texts(*about) for about in known}
        asked = [texts_of[one.group, one.kind, one.concept] for one in instances]
        made = torch.empty(len(instances), len(self.questions.templates), 2, device=self.device)
        pictures = rows.tolist()
        for kind, concepts in self.questions.concepts.items():
            texts: dict[int, dict[str, int]] = {}  # of each picture, each with its place
            some = [n for n, one in enumerate(instances) if one.kind == kind]
            for n in some:
                own = texts.setdefault(pictures[n], {})
                for text in asked[n]:
                    own.setdefault(text, len(own))
            for many in dict.fromkeys(len(own) for own in texts.values()):
                alike = [picture for picture, own in texts.items() if len(own) == many]
                said = self._said(
                    _those(looked, alike), [list(texts[picture]) for picture in alike], concepts
                )
                place, column = ({name: n for n, name in enumerate(names)} for names in (alike, concepts))
                here = [n for n in some if pictures[n] in place]
                spots = [
                    [
                        (place[pictures[n]], texts[pictures[n]][text], column[instances[n].concept])
                        for text in asked[n]
                    ]
                    for n in here
                ]
                found = said[torch.tensor(spots, device=self.device).unbind(2)].exp()
                made[torch.tensor(here, device=self.device)] = found.view(len(here), -1, 2)
        return made

    def _said(self, looked: Looked | Tensor, texts: Sequence[Sequence[str]], words: Sequence[str]) -> Tensor:
        """(pictures, texts, words): every picture has as many texts."""
        many = len(texts[0])
        if isinstance(looked, Looked):
            parts = [slice(start, start + _TOGETHER) for start in range(0, many, _TOGETHER)]
            return torch.cat(
                [self._said_together(looked, [own[part] for own in texts], words) for part in parts], 1
            )
        return torch.stack(
            [self._words(looked, [own[place] for own in texts], words) for place in range(many)], dim=1
        )

    def _said_together(self, looked: Looked, texts: Sequence[Sequence[str]], words: Sequence[str]) -> Tensor:
        said = self._words(looked.with_each(len(texts[0])), [text for own in texts for text in own], words)
        return said.view(len(texts), -1, len(words))

    def _words(self, images: Looked | Tensor, texts: Sequence[str], words: Sequence[str]) -> Tensor:
        return self.model.word_log_probs(images, texts, words, over=self.questions.normalize_over)

    def _texts(self, group: str, kind: str, concept: str) -> tuple[str, ...]:
        """In every template, of the own group and of the other."""
        words = [self.questions.words[name] for name in (group, self.questions.other(group))]
        return tuple(
            template.of(word, kind, concept) for template in self.questions.templates for word in words
        )


def _loaded(
    model: FillsMasks, pictures: Sequence[Instance], exact: bool, load: Load, batch: int
) -> Iterator[tuple[list[int], list[Any]]]:
    """Batches of pixels, of pictures that are read by many hands while the batch before is asked about."""

    def read_all(some: list[int]) -> list[Any]:
        files = [[pictures[n].path for n in some]]
        if exact:
            files.append([path for n in some if (path := pictures[n].exact) is not None])
        return [model.pixels(list(readers.map(load, those))) for those in files]

    parts = [
        list(range(start, min(start + batch, len(pictures)))) for start in range(0, len(pictures), batch)
    ]
    with ThreadPoolExecutor() as readers, ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(read_all, parts[0]) if parts else None
        for number, some in enumerate(parts):
            assert coming is not None
            loaded = coming.result()
            coming = ahead.submit(read_all, parts[number + 1]) if number + 1 < len(parts) else None
            yield some, loaded


def _those(looked: Looked | Tensor, pictures: Sequence[int]) -> Looked | Tensor:
    """Some of them, or all as they are, so that what was made of them for one text serves the next."""
    if list(pictures) == list(range(len(looked))):
        return looked
    device = looked.tokens.device if isinstance(looked, Looked) else looked.device
    return looked[torch.tensor(pictures, device=device)]


def _lot(name: str) -> int:
    """A number by lot that a picture has in any company."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _distance(pixels: Any, factual: Any) -> Tensor:
    """By how much a pixel of each picture was moved, on average; undefined between pictures of different shapes."""
    if isinstance(pixels, Tensor) and isinstance(factual, Tensor) and pixels.shape == factual.shape:
        return (pixels - factual).abs().flatten(1).mean(dim=1)
    return torch.stack(
        [
            (one - was).abs().mean() if one.shape == was.shape else was.new_tensor(float("nan"))
            for one, was in zip(pixels, factual, strict=True)
        ]
    )


def _empty(instances: int, templates: int, pictures: int, words: int) -> Answers:
    return Answers(
        np.full((instances, templates, pictures, 2), np.nan),
        np.full((instances, pictures), np.nan),
        np.full((instances, pictures), np.nan),
        np.full((instances, pictures, words), np.nan),
        np.full((instances, pictures), np.nan),
        {},
    )
