"""Run CounterBias for one model and one pair of groups: inference, then measurements."""

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
from portrayal.counterfactual.inference import query_texts
from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.counterfactual.prompts import (
    ATTACKS,
    BIAS_NORMALIZE_OVER,
    BLANK_IMAGES,
    EXACT,
    NORMALIZE_OVER,
    ModelOutputs,
    Prompts,
)
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, need, unknown_name
from portrayal.files import content_digest
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.checkpointed_inference import run_inference
from portrayal.metrics.counterbias.images import image_frame
from portrayal.metrics.counterbias.measurements import CounterbiasMeasurements
from portrayal.metrics.counterbias.text_measurements import add_text_measurements
from portrayal.models.masked_vlm.model import MaskedVLM
from portrayal.results import THUMBNAILS_SCHEMA, Results

N_SHOWN = 24  # instances whose images are kept for the page, for each model and attack


@dataclass(frozen=True)
class CounterbiasSettings:
    """All options that decide the numbers, apart from the model and the images."""

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
            ("set of words", self.normalize_over, NORMALIZE_OVER),
            ("set of words of the bias prompt", self.bias_normalize_over, BIAS_NORMALIZE_OVER),
            ("blank image", self.blank_image, BLANK_IMAGES),
            *(("attack", attack, ATTACKS) for attack in self.attacks),
        ):
            if value not in known:
                raise unknown_name(what, value, known)
        if len(set(self.control_words)) < 2:
            raise PortrayalError("A placebo moves from one control word to another: give two or more.")
        if self.batch_size < 1 or self.n_resamples < 20:
            raise PortrayalError(
                "Expected a batch size of 1 or more and 20 bootstrap resamples or more, got "
                f"{self.batch_size} and {self.n_resamples}."
            )
        for attack in self.attacks:
            self.attack(attack)

    @property
    def exact(self) -> bool:
        return EXACT in self.attacks

    def attack(self, kind: str) -> Attack | None:
        """Return the attack; None for given counterfactual images."""
        if kind == EXACT:
            return None
        return Attack.default(kind, self.norm, self.epsilon, self.step_size, self.steps, self.stop_at)

    def row_settings(self, kind: str) -> dict[str, Any]:
        """Return the settings that rows of this attack state."""
        attack = self.attack(kind)
        size: dict[str, Any] = {}
        if attack is not None:
            size = {"epsilon": round(attack.epsilon, 6), "norm": attack.norm, "steps": attack.max_steps}
            size |= {"step_size": round(attack.effective_step_size, 6)}
        return {
            "attack": kind,
            **size,
            "stop_at": self.stop_at,
            "bias_prompt": self.bias_prompt,
            "bias_normalize_over": self.bias_normalize_over,
            "control_prompt": self.control_prompt,
        }


class CounterbiasRun:
    """One model on the images of two groups."""

    def __init__(
        self,
        model: MaskedVLM,
        model_key: str | None,
        attribute: str,
        words: Mapping[str, str],
        instances: Sequence[Instance],
        settings: CounterbiasSettings,
    ) -> None:
        self.model, self.model_key, self.attribute, self.settings = model, model_key, attribute, settings
        self.instances = instances
        self.prompts = Prompts(
            words,
            Manifest("", tuple(instances)).concepts,
            settings.templates,
            cast(Literal["vocabulary", "candidates"], settings.normalize_over),
            settings.bias_prompt,
            cast(Literal["vocabulary", "groups"], settings.bias_normalize_over),
            settings.control_prompt,
            settings.control_words,
        )
        lonely = [kind for kind, listed in self.prompts.concepts.items() if len(listed) < 2]
        if settings.normalize_over == "candidates" and lonely:
            raise PortrayalError(
                f"A single candidate always has probability 1: name two or more concepts of '{lonely[0]}', or "
                f"normalize over the vocabulary."
            )
        self.shared_settings = {
            "groups": list(words),
            "words": list(words.values()),
            "normalize_over": settings.normalize_over,
            "questions": self.prompts.digest,
        }

    @property
    def takes_images(self) -> bool:
        """Whether the model takes images; a text-only model has none to attack."""
        return getattr(getattr(self.model, "network", None), "image_size", 1) != 0

    def results(self, card: Card, checkpoint: Path | None, progress: Progress | None) -> Results:
        builder = ResultBuilder(card, self.attribute, {})
        log_probs = self._text_log_probs()
        frames = [pl.DataFrame(schema=THUMBNAILS_SCHEMA)]
        if self.takes_images:
            self._try_prompts()
            for kind in self.settings.attacks:
                outputs = self._outputs(kind, checkpoint, progress)
                row_settings = {**self.shared_settings, **self.settings.row_settings(kind)}
                measurements = CounterbiasMeasurements(
                    replace(builder, settings=row_settings), self.model.name, self.instances, outputs,
                    self.prompts, self.settings.stereotypes, self.settings.seed, self.settings.n_resamples,
                )  # fmt: skip
                with threadpool_limits(1):  # one thread adds in one order: the same digits on every machine
                    measurements.write()
                frames.append(image_frame(outputs, self.instances, self.model.name, kind))
        add_text_measurements(
            builder,
            self.model.name,
            log_probs,
            self.prompts,
            {**self.shared_settings, "blank_image": self.settings.blank_image},
        )
        return replace(
            builder.results(), thumbnails=pl.concat(frames).unique("image_id", maintain_order=True)
        )

    def _outputs(self, kind: str, checkpoint: Path | None, progress: Progress | None) -> ModelOutputs:
        settings = self.settings
        return run_inference(
            self.model, self.model_key, self.instances, self.prompts, settings.attack(kind),
            placebo=settings.placebo, seed=settings.seed, batch_size=settings.batch_size,
            keep_images=self._shown(), checkpoint=checkpoint, progress=progress,
            title=f"{self.model.name}, {kind}",
        )  # fmt: skip

    def _text_log_probs(self) -> dict[tuple[str, str], Any]:
        """Return log-probabilities without an image.

        This runs first: a word that the model lacks raises now, and not after hours of work.
        """
        try:
            return query_texts(self.model, self.prompts, self._gray_image())
        except PortrayalError as error:
            raise PortrayalError(
                f"{error} (--concepts measures every image with concepts that a model knows.)"
            ) from None

    def _gray_image(self) -> Any:
        if self.settings.blank_image == "text" or not self.takes_images:
            return None
        gray_images = getattr(self.model, "gray_images", None)
        if gray_images is None:
            raise PortrayalError(f"The model '{self.model.name}' has no gray image: measure without one.")
        return gray_images(1)

    def _try_prompts(self) -> None:
        """Raise now if the model lacks a word of the bias or control prompt."""
        torch = need("torch", "neural", "CounterBias")
        with torch.inference_mode():
            self.model.word_log_probs(None, self.settings.bias_prompt, list(self.prompts.words.values()))
            self.model.word_log_probs(None, self.settings.control_prompt, list(self.settings.control_words))

    def _shown(self) -> list[int]:
        """Return the first instances of each concept and group in turn, each image once."""
        n_listed: Counter[tuple[str, str]] = Counter()
        order, listed_images = [], set()
        for row, instance in enumerate(self.instances):
            if instance.image not in listed_images:
                listed_images.add(instance.image)
                order.append((n_listed[instance.concept, instance.group], row))
                n_listed[instance.concept, instance.group] += 1
        return [row for _, row in sorted(order)[:N_SHOWN]]


def model_names(models: Sequence[str | MaskedVLM]) -> list[str]:
    """Return the models' names in rows; raise if two are equal, before hours of work."""
    from portrayal.models.masked_vlm.loading import display_name

    names = [display_name(model) if isinstance(model, str) else model.name for model in models]
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise PortrayalError(
            f"Two of the models are called '{duplicates[0]}': rename a file or folder, or measure them separately."
        )
    return names


def load_model(
    model: str | MaskedVLM, device: str, precision: str, batch_size: int, tokenizer: str | None
) -> tuple[MaskedVLM, str | None]:
    """Return the model and its key in the checkpoint: a digest of its content, since a name does not identify it.

    A model object and a plug-in have no key, since their content is unknown: their outputs are not checkpointed.
    """
    if not isinstance(model, str):
        return model, None
    from portrayal.models.masked_vlm.loading import lab_model_path, load_masked, load_plugin_model

    plugin_model = load_plugin_model(model, device, precision, batch_size)
    if plugin_model is not None:
        return plugin_model, None
    path = Path(lab_model_path(model))
    content = content_digest(path) if path.exists() else model
    model_key = f"{content} {device} {precision} {batch_size} {tokenizer}"
    return load_masked(model, device, precision, batch_size, tokenizer=tokenizer), model_key
