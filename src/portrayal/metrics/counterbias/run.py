"""One model on the pictures of two groups: ask it, then write the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl
from threadpoolctl import threadpool_limits

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.concepts import Template
from portrayal.counterfactual.inference import ask_texts
from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.counterfactual.prompts import ATTACKS, BIAS_OVER, EXACT, NONE, OVER, Answers, Questions
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, need, unknown_name
from portrayal.files import content_digest
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.images import picture_frame
from portrayal.metrics.counterbias.inference import answers_of
from portrayal.metrics.counterbias.measurements import Rows
from portrayal.metrics.counterbias.text_measurements import text_rows
from portrayal.models.masked_vlm.model import FillsMasks
from portrayal.results import PICTURES_SCHEMA, Results

SHOWN = 24  # instances whose pictures are kept for the page, for each model and attack


@dataclass(frozen=True)
class Settings:
    """All that decides the numbers, but for the model and the pictures."""

    attacks: tuple[str, ...]
    epsilon: float | None
    steps: int | None
    step_size: float | None
    norm: str | None
    stop_at: float
    placebo: bool
    normalize_over: str
    bias_normalize_over: str
    bias_prompt: str
    control_prompt: str
    control_words: tuple[str, ...]
    templates: tuple[Template, ...]
    blank_image: str
    batch_size: int
    seed: int
    n_resamples: int
    stereotypes: Mapping[str, str]

    def __post_init__(self) -> None:
        for what, value, known in (
            ("set of words", self.normalize_over, OVER),
            ("set of words of the bias prompt", self.bias_normalize_over, BIAS_OVER),
            ("way to show no picture", self.blank_image, NONE),
            *(("attack", attack, ATTACKS) for attack in self.attacks),
        ):
            if value not in known:
                raise unknown_name(what, value, known)
        if len(set(self.control_words)) < 2:
            raise PortrayalError("A placebo moves from one control word to another: give two or more.")
        if self.batch_size < 1 or self.n_resamples < 20:
            raise PortrayalError("A batch has one picture or more, and intervals rest on 20 draws or more.")
        for attack in self.attacks:
            self.attack(attack)

    @property
    def exact(self) -> bool:
        return EXACT in self.attacks

    def attack(self, kind: str) -> Attack | None:
        if kind == EXACT:
            return None
        return Attack.usual(kind, self.norm, self.epsilon, self.step_size, self.steps, self.stop_at)

    def told(self, kind: str) -> dict[str, Any]:
        """As rows tell it."""
        attack = self.attack(kind)
        size: dict[str, Any] = {}
        if attack is not None:
            size = {"epsilon": round(attack.epsilon, 6), "norm": attack.norm, "steps": attack.most}
            size |= {"step_size": round(attack.stride, 6)}
        return {
            "attack": kind,
            **size,
            "stop_at": self.stop_at,
            "bias_prompt": self.bias_prompt,
            "bias_normalize_over": self.bias_normalize_over,
            "control_prompt": self.control_prompt,
        }


class Run:
    def __init__(
        self,
        model: FillsMasks,
        known_as: str | None,
        attribute: str,
        words: Mapping[str, str],
        instances: Sequence[Instance],
        settings: Settings,
    ) -> None:
        self.model, self.known_as, self.attribute, self.settings = model, known_as, attribute, settings
        self.instances = instances
        self.questions = Questions(
            words,
            Manifest("", tuple(instances)).concepts,
            settings.templates,
            cast(Literal["vocabulary", "candidates"], settings.normalize_over),
            settings.bias_prompt,
            cast(Literal["vocabulary", "groups"], settings.bias_normalize_over),
            settings.control_prompt,
            settings.control_words,
        )
        lonely = [kind for kind, listed in self.questions.concepts.items() if len(listed) < 2]
        if settings.normalize_over == "candidates" and lonely:
            raise PortrayalError(
                f"Among one candidate alone every answer is certain: ask about two or more of '{lonely[0]}', or "
                f"over the vocabulary."
            )
        self.shared = {
            "groups": list(words),
            "words": list(words.values()),
            "normalize_over": settings.normalize_over,
            "questions": self.questions.digest,
        }

    @property
    def sees(self) -> bool:
        """A model that reads texts alone has no pictures to be changed."""
        return getattr(getattr(self.model, "network", None), "side", 1) != 0

    def results(self, card: Card, checkpoint: Path | None, progress: Progress | None) -> Results:
        builder = ResultBuilder(card, self.attribute, {})
        said = self._texts()
        frames = [pl.DataFrame(schema=PICTURES_SCHEMA)]
        if self.sees:
            self._try_prompts()
            for kind in self.settings.attacks:
                answers = self._answers(kind, checkpoint, progress)
                builder.settings = {**self.shared, **self.settings.told(kind)}
                rows = Rows(
                    builder, self.model.name, self.instances, answers, self.questions,
                    self.settings.stereotypes, self.settings.seed, self.settings.n_resamples,
                )  # fmt: skip
                with threadpool_limits(1):  # one thread adds in one order: the same digits on every machine
                    rows.write()
                frames.append(picture_frame(answers, self.instances, self.model.name, kind))
        text_rows(
            builder,
            self.model.name,
            said,
            self.questions,
            {**self.shared, "blank_image": self.settings.blank_image},
        )
        return replace(builder.results(), pictures=pl.concat(frames).unique("image_id", maintain_order=True))

    def _answers(self, kind: str, checkpoint: Path | None, progress: Progress | None) -> Answers:
        settings = self.settings
        return answers_of(
            self.model, self.known_as, self.instances, self.questions, settings.attack(kind),
            placebo=settings.placebo, seed=settings.seed, batch=settings.batch_size, show=self._shown(),
            checkpoint=checkpoint, progress=progress, title=f"{self.model.name}, {kind}",
        )  # fmt: skip

    def _texts(self) -> dict[tuple[str, str], Any]:
        """Asked first: a word that the model lacks is an error now, and not after hours of work."""
        try:
            return ask_texts(self.model, self.questions, self._gray())
        except PortrayalError as error:
            raise PortrayalError(
                f"{error} (--concepts asks every picture about words that a model knows.)"
            ) from None

    def _gray(self) -> Any:
        if self.settings.blank_image == "text" or not self.sees:
            return None
        gray = getattr(self.model, "gray", None)
        if gray is None:
            raise PortrayalError(f"The model '{self.model.name}' has no gray picture: measure without one.")
        return gray(1)

    def _try_prompts(self) -> None:
        """Likewise."""
        torch = need("torch", "neural", "CounterBias")
        with torch.inference_mode():
            self.model.word_log_probs(None, self.settings.bias_prompt, list(self.questions.words.values()))
            self.model.word_log_probs(None, self.settings.control_prompt, list(self.settings.control_words))

    def _shown(self) -> list[int]:
        """The first instances of each concept and group in turn, a picture once."""
        turn: Counter[tuple[str, str]] = Counter()
        order, seen = [], set()
        for row, one in enumerate(self.instances):
            if one.image not in seen:
                seen.add(one.image)
                order.append((turn[one.concept, one.group], row))
                turn[one.concept, one.group] += 1
        return [row for _, row in sorted(order)[:SHOWN]]


def names_of(models: Sequence[str | FillsMasks]) -> list[str]:
    """By which rows tell models apart: each has one of its own, which is checked before hours of work."""
    from portrayal.models.masked_vlm.loading import plain_name

    names = [plain_name(one) if isinstance(one, str) else one.name for one in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise PortrayalError(
            f"Two of the models are called '{twice[0]}': rename a file or folder, or measure them apart."
        )
    return names


def loaded(
    model: str | FillsMasks, device: str, precision: str, batch: int, tokenizer: str | None
) -> tuple[FillsMasks, str | None]:
    """The model, and what tells it from others: of a name what lies behind it, since a name does not say.

    Nothing tells an object from what it was before somebody changed it: what it says is not kept.
    """
    if not isinstance(model, str):
        return model, None
    from portrayal.models.masked_vlm.loading import load_masked, located

    where = Path(located(model))
    content = content_digest(where) if where.exists() else model
    known_as = f"{content} {device} {precision} {batch} {tokenizer}"
    return load_masked(model, device, precision, batch, tokenizer=tokenizer), known_as
