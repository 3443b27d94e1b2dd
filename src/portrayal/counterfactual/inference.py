"""Inference of a masked vision-language model on factual, counterfactual and placebo images."""

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

from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
from portrayal.counterfactual.formulas import FACTUAL, Array
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.model import MaskedVLM, NormalizeOver
from portrayal.models.masked_vlm.network import ImageEmbeddings
from portrayal.models.threads import limit_threads

ReportProgress = Callable[[int, int], None]  # images done, images in all
Load = Callable[[Path], Any]
_TEXTS_AT_ONCE = 8  # texts of an image: the four templates in both groups' words


def query_model(
    model: MaskedVLM,
    instances: Sequence[Instance],
    prompts: Prompts,
    attack: Attack | None,
    load: Load,
    *,
    placebo: bool = True,
    seed: int = 0,
    batch: int = 64,
    keep_images: Sequence[int] = (),
    report_progress: ReportProgress | None = None,
) -> ModelOutputs:
    """Run inference on factual, counterfactual and placebo images of all instances.

    Images are loaded in batches, so that memory does not grow with their number. Instances of one image share its
    counterfactual.

    Parameters
    ----------
    model
        A masked vision-language model.
    instances
        Images with their groups and concepts.
    prompts
        The words of the groups, the templates and the prompts.
    attack
        How counterfactual images are made; None for the counterfactual images that the instances name.
    load
        Opens an image file.
    placebo
        Whether to attack the control prompt too. Without an attack there is no placebo.
    seed
        Seed of the control words that the placebo aims at.
    batch
        Number of images in a batch.
    keep_images
        Rows of the instances whose images the output keeps.
    report_progress
        Called with the number of images done, and in all.
    """
    if attack is None:
        lacking = sum(instance.counterfactual is None for instance in instances)
        if lacking:
            raise PortrayalError(
                f"{lacking:,} of {len(instances):,} rows name no counterfactual image: expected one in the column "
                f"'counterfactual' of each, or an attack."
            )
    placebo = placebo and attack is not None
    image_rows = list(rows_by_image(instances).values())
    images = [instances[rows[0]] for rows in image_rows]
    kinds = 3 if placebo else 2
    outputs = _empty_outputs(len(instances), len(prompts.templates), kinds, len(prompts.control_words))
    kept: dict[int, NDArray[np.uint8]] = {}
    rows_to_keep = set(keep_images)
    query = _BatchQuery(model, prompts, attack, placebo, seed)
    done = 0
    with limit_threads(getattr(model, "network", None)):
        for numbers, loaded in _load_batches(model, images, attack is None, load, batch):
            rows = [row for number in numbers for row in image_rows[number]]
            positions = torch.tensor([number - numbers[0] for number in numbers for _ in image_rows[number]])
            batch_outputs = query.run(
                [instances[row] for row in rows], positions, [images[number] for number in numbers], loaded
            )
            for name, values in batch_outputs.arrays.items():
                getattr(outputs, name)[rows] = values
            for number, row in enumerate(rows):
                if row in rows_to_keep:
                    kept[row] = batch_outputs.image_stack(int(positions[number]))
            done += len(numbers)
            if report_progress is not None:
                report_progress(done, len(images))
    return ModelOutputs(outputs.target, outputs.present, outputs.share, outputs.controls, outputs.moved, kept)


def rows_by_image(instances: Sequence[Instance]) -> dict[tuple[str, str], list[int]]:
    """(image, group) -> rows of its instances, which share a counterfactual."""
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, instance in enumerate(instances):
        rows_of.setdefault((instance.image, instance.group), []).append(row)
    return rows_of


def query_texts(
    model: MaskedVLM, prompts: Prompts, gray: Tensor | None = None
) -> dict[tuple[str, str], Array]:
    """(kind, concept) -> (templates, groups): log P(T | L) without an image, or with a gray one."""
    log_probs_of: dict[tuple[str, str], Array] = {}
    with torch.inference_mode(), limit_threads(getattr(model, "network", None)):
        for kind, concepts in prompts.concepts.items():
            texts = [
                (concept, template.of(word, kind, concept))
                for concept in concepts
                for template in prompts.templates
                for word in prompts.words.values()
            ]
            unique_texts = list(dict.fromkeys(text for _, text in texts))
            images = None if gray is None else gray.expand(len(unique_texts), *gray.shape[1:])
            log_probs = (
                model.word_log_probs(
                    images, unique_texts, list(concepts), normalize_over=prompts.normalize_over
                )
                .double()
                .cpu()
                .numpy()
            )
            row, column = ({name: n for n, name in enumerate(names)} for names in (unique_texts, concepts))
            shape = (len(prompts.templates), 2)
            for concept in concepts:
                values = [log_probs[row[text], column[concept]] for of, text in texts if of == concept]
                log_probs_of[kind, concept] = np.array(values).reshape(shape)
    return log_probs_of


@dataclass(frozen=True)
class _BatchOutputs:
    arrays: dict[str, Array]
    pixels: Sequence[Any]  # of each kind of image

    def image_stack(self, position: int) -> NDArray[np.uint8]:
        """All kinds of an image, resized to the factual one; a given counterfactual may have another size."""
        images = [pixels[position].float().cpu() for pixels in self.pixels]
        size = images[FACTUAL].shape[1:]
        images = [
            image
            if image.shape[1:] == size
            else functional.interpolate(image[None], size, mode="bilinear")[0]
            for image in images
        ]
        stack: NDArray[np.uint8] = (torch.stack(images) * 255).round().byte().permute(0, 2, 3, 1).numpy()
        return stack


class _BatchQuery:
    """Inference on a batch of images."""

    def __init__(
        self, model: MaskedVLM, prompts: Prompts, attack: Attack | None, placebo: bool, seed: int
    ) -> None:
        self.model, self.prompts, self.attack, self.placebo, self.seed = (
            model,
            prompts,
            attack,
            placebo,
            seed,
        )
        self.nouns = list(prompts.words.values())
        self.device = getattr(model, "device", "cpu")

    def run(
        self,
        instances: Sequence[Instance],
        positions: Tensor,
        images: Sequence[Instance],
        loaded: Sequence[Sequence[Any]],
    ) -> _BatchOutputs:
        """Outputs for all instances of a batch; `positions` are those of each instance's image in the batch."""
        source = torch.tensor(
            [self.prompts.groups.index(image.group) for image in images], device=self.device
        )
        pixels = [self._to_device(batch) for batch in loaded]
        if self.attack is not None:
            pixels += self._attacked(pixels[FACTUAL], source, images)
        rows = positions.to(self.device)
        parts_of: dict[str, list[Any]] = {
            "target": [], "present": [], "share": [], "controls": [], "moved": [],
        }  # fmt: skip
        with torch.inference_mode():
            for kind in pixels:
                embeddings = self.model.encode_images(kind)
                groups = self._group_log_probs(embeddings).exp()
                own = groups.gather(1, source[:, None])[:, 0]
                other = groups.gather(1, 1 - source[:, None])[:, 0]
                parts_of["present"].append(own[rows])
                parts_of["share"].append((other / (own + other))[rows])
                parts_of["controls"].append(self._control_log_probs(embeddings).exp()[rows])
                parts_of["moved"].append(_mean_distance(kind, pixels[FACTUAL])[rows])
                parts_of["target"].append(self._targets(embeddings, instances, rows))
        arrays = {
            name: np.stack([part.double().cpu().numpy() for part in parts], axis=2 if name == "target" else 1)
            for name, parts in parts_of.items()
        }
        return _BatchOutputs(arrays, pixels)

    def _to_device(self, pixels: Any) -> Any:
        return (
            pixels.to(self.device)
            if isinstance(pixels, Tensor)
            else [image.to(self.device) for image in pixels]
        )

    def _attacked(self, pixels: Any, source: Tensor, images: Sequence[Instance]) -> list[Any]:
        """Counterfactual and placebo images; a placebo takes as many steps, toward another control word."""
        assert self.attack is not None
        target = AttackTarget(self.prompts.bias_prompt, self.nouns, source, 1 - source, self._bias_over)
        parts = [self._perturbed(pixels, target, None)]
        if self.placebo:
            with torch.inference_mode():
                now = self._control_log_probs(self.model.encode_images(pixels)).argmax(dim=1)
            n_words = len(self.prompts.control_words)
            offsets = [1 + _name_hash(f"{self.seed} {image.image}") % (n_words - 1) for image in images]
            other = (now + torch.tensor(offsets, device=now.device)) % n_words
            target = AttackTarget(self.prompts.control_prompt, self.prompts.control_words, now, other)
            parts.append(self._perturbed(pixels, target, parts[0][1]))
        return [moved for moved, _ in parts]

    def _perturbed(self, pixels: Any, target: AttackTarget, n_steps: Tensor | None) -> tuple[Any, Tensor]:
        """Attacked images and their numbers of steps; images of one shape are attacked together."""
        assert self.attack is not None
        if isinstance(pixels, Tensor):
            perturbed = perturb(self.model, pixels, target, self.attack, n_steps)
            return perturbed.pixels, perturbed.steps
        moved: list[Tensor] = list(pixels)
        steps = torch.zeros(len(pixels), dtype=torch.long, device=self.device)
        for shape in dict.fromkeys(image.shape for image in pixels):
            numbers = torch.tensor(
                [n for n, image in enumerate(pixels) if image.shape == shape], device=self.device
            )
            shape_target = AttackTarget(
                target.prompt,
                target.words,
                target.source[numbers],
                target.target[numbers],
                target.normalize_over,
            )
            stacked = torch.stack([pixels[n] for n in numbers.tolist()])
            limit = None if n_steps is None else n_steps[numbers]
            perturbed = perturb(self.model, stacked, shape_target, self.attack, limit)
            steps[numbers] = perturbed.steps
            for n, image in zip(numbers.tolist(), perturbed.pixels, strict=True):
                moved[n] = image
        return moved, steps

    @property
    def _bias_over(self) -> NormalizeOver:
        return "candidates" if self.prompts.bias_normalize_over == "groups" else "vocabulary"

    def _group_log_probs(self, embeddings: ImageEmbeddings | Tensor) -> Tensor:
        return self.model.word_log_probs(
            embeddings, self.prompts.bias_prompt, self.nouns, normalize_over=self._bias_over
        )

    def _control_log_probs(self, embeddings: ImageEmbeddings | Tensor) -> Tensor:
        words = list(self.prompts.control_words)
        return self.model.word_log_probs(
            embeddings, self.prompts.control_prompt, words, normalize_over="candidates"
        )

    def _targets(
        self, embeddings: ImageEmbeddings | Tensor, instances: Sequence[Instance], rows: Tensor
    ) -> Tensor:
        """(instances, templates, texts). Each text of an image is queried once, whatever its number of concepts."""
        keys = {(instance.group, instance.kind, instance.concept) for instance in instances}
        texts_of = {key: self._texts(*key) for key in keys}
        instance_texts = [texts_of[row.group, row.kind, row.concept] for row in instances]
        targets = torch.empty(len(instances), len(self.prompts.templates), 2, device=self.device)
        images = rows.tolist()
        for kind, concepts in self.prompts.concepts.items():
            texts: dict[int, dict[str, int]] = {}  # image -> text -> its index among the image's texts
            of_kind = [n for n, instance in enumerate(instances) if instance.kind == kind]
            for n in of_kind:
                indices = texts.setdefault(images[n], {})
                for text in instance_texts[n]:
                    indices.setdefault(text, len(indices))
            # Images with equally many texts are queried together.
            for count in dict.fromkeys(len(indices) for indices in texts.values()):
                alike = [image for image, indices in texts.items() if len(indices) == count]
                log_probs = self._log_probs(
                    _select(embeddings, alike), [list(texts[image]) for image in alike], concepts
                )
                position, column = ({name: n for n, name in enumerate(names)} for names in (alike, concepts))
                present = [n for n in of_kind if images[n] in position]
                indices_of = [
                    [
                        (position[images[n]], texts[images[n]][text], column[instances[n].concept])
                        for text in instance_texts[n]
                    ]
                    for n in present
                ]
                probs = log_probs[torch.tensor(indices_of, device=self.device).unbind(2)].exp()
                targets[torch.tensor(present, device=self.device)] = probs.view(len(present), -1, 2)
        return targets

    def _log_probs(
        self, embeddings: ImageEmbeddings | Tensor, texts: Sequence[Sequence[str]], words: Sequence[str]
    ) -> Tensor:
        """(images, texts, words): all images have equally many texts."""
        count = len(texts[0])
        if isinstance(embeddings, ImageEmbeddings):
            parts = [slice(start, start + _TEXTS_AT_ONCE) for start in range(0, count, _TEXTS_AT_ONCE)]
            return torch.cat(
                [self._log_probs_together(embeddings, [own[part] for own in texts], words) for part in parts],
                1,
            )
        return torch.stack(
            [
                self._word_log_probs(embeddings, [own[index] for own in texts], words)
                for index in range(count)
            ],
            dim=1,
        )

    def _log_probs_together(
        self, embeddings: ImageEmbeddings, texts: Sequence[Sequence[str]], words: Sequence[str]
    ) -> Tensor:
        repeated = embeddings.with_texts_per_image(len(texts[0]))
        log_probs = self._word_log_probs(repeated, [text for own in texts for text in own], words)
        return log_probs.view(len(texts), -1, len(words))

    def _word_log_probs(
        self, images: ImageEmbeddings | Tensor, texts: Sequence[str], words: Sequence[str]
    ) -> Tensor:
        return self.model.word_log_probs(images, texts, words, normalize_over=self.prompts.normalize_over)

    def _texts(self, group: str, kind: str, concept: str) -> tuple[str, ...]:
        """The texts of all templates, each for the own group and for the other."""
        words = [self.prompts.words[name] for name in (group, self.prompts.other(group))]
        return tuple(
            template.of(word, kind, concept) for template in self.prompts.templates for word in words
        )


def _load_batches(
    model: MaskedVLM, images: Sequence[Instance], counterfactual: bool, load: Load, batch: int
) -> Iterator[tuple[list[int], list[Any]]]:
    """Yield the numbers and the pixels of each batch of images; threads load the next batch during inference."""

    def load_batch(numbers: list[int]) -> list[Any]:
        files = [[images[n].path for n in numbers]]
        if counterfactual:
            files.append([path for n in numbers if (path := images[n].counterfactual) is not None])
        return [model.preprocess(list(loaders.map(load, paths))) for paths in files]

    parts = [list(range(start, min(start + batch, len(images)))) for start in range(0, len(images), batch)]
    with ThreadPoolExecutor() as loaders, ThreadPoolExecutor(1) as prefetcher:
        following = prefetcher.submit(load_batch, parts[0]) if parts else None
        for number, numbers in enumerate(parts):
            assert following is not None
            loaded = following.result()
            following = prefetcher.submit(load_batch, parts[number + 1]) if number + 1 < len(parts) else None
            yield numbers, loaded


def _select(embeddings: ImageEmbeddings | Tensor, images: Sequence[int]) -> ImageEmbeddings | Tensor:
    """The embeddings of some images; the same object for all images, which keeps its cache."""
    if list(images) == list(range(len(embeddings))):
        return embeddings
    device = embeddings.tokens.device if isinstance(embeddings, ImageEmbeddings) else embeddings.device
    return embeddings[torch.tensor(images, device=device)]


def _name_hash(name: str) -> int:
    """A pseudo-random number of an image, independent of the other images."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _mean_distance(pixels: Any, factual: Any) -> Tensor:
    """The mean absolute change of a pixel of each image; nan between images of different shapes."""
    if isinstance(pixels, Tensor) and isinstance(factual, Tensor) and pixels.shape == factual.shape:
        return (pixels - factual).abs().flatten(1).mean(dim=1)
    return torch.stack(
        [
            (image - original).abs().mean()
            if image.shape == original.shape
            else original.new_tensor(float("nan"))
            for image, original in zip(pixels, factual, strict=True)
        ]
    )


def _empty_outputs(instances: int, templates: int, images: int, words: int) -> ModelOutputs:
    return ModelOutputs(
        np.full((instances, templates, images, 2), np.nan),
        np.full((instances, images), np.nan),
        np.full((instances, images), np.nan),
        np.full((instances, images, words), np.nan),
        np.full((instances, images), np.nan),
        {},
    )
