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

ReportProgress = Callable[[int, int], None]  # number of images done, total number of images
LoadImage = Callable[[Path], Any]
_MAX_TEXTS_PER_IMAGE = 8  # in one call of the model: the four templates with both groups' words


def query_model(
    model: MaskedVLM,
    instances: Sequence[Instance],
    prompts: Prompts,
    attack: Attack | None,
    load_image: LoadImage,
    *,
    placebo: bool = True,
    seed: int = 0,
    batch_size: int = 64,
    keep_images: Sequence[int] = (),
    report_progress: ReportProgress | None = None,
) -> ModelOutputs:
    """Return the probabilities that a model gives for the factual, counterfactual and placebo images of all instances.

    Images are loaded in batches, so that memory use does not grow with their number. Instances of the same image
    share its counterfactual.

    Parameters
    ----------
    model
        A masked vision-language model.
    instances
        Images with their groups and concepts.
    prompts
        The words of the groups, the templates and the prompts.
    attack
        The attack that makes the counterfactual images; None to use the counterfactual images of the manifest.
    load_image
        Opens an image file.
    placebo
        Whether to attack the control prompt too. Without an attack there is no placebo.
    seed
        Seed that chooses the control words that the placebo attack targets.
    batch_size
        Number of images in a batch.
    keep_images
        Indices of the instances whose images are part of the output.
    report_progress
        Called with the number of images done and the total number of images.
    """
    if attack is None:
        n_missing = sum(instance.counterfactual is None for instance in instances)
        if n_missing:
            raise PortrayalError(
                f"{n_missing:,} of {len(instances):,} rows name no counterfactual image: expected one in the column "
                f"'counterfactual' of each, or an attack."
            )
    placebo = placebo and attack is not None
    rows_of_images = list(rows_by_image(instances).values())
    images = [instances[rows[0]] for rows in rows_of_images]
    n_variants = 3 if placebo else 2
    outputs = _empty_outputs(len(instances), len(prompts.templates), n_variants, len(prompts.control_words))
    kept_images: dict[int, NDArray[np.uint8]] = {}
    rows_to_keep = set(keep_images)
    query = _BatchQuery(model, prompts, attack, placebo, seed)
    n_done = 0
    with limit_threads(getattr(model, "network", None)):
        for image_indices, pixels in _load_batches(model, images, attack is None, load_image, batch_size):
            rows = [row for index in image_indices for row in rows_of_images[index]]
            positions = torch.tensor(
                [index - image_indices[0] for index in image_indices for _ in rows_of_images[index]]
            )
            batch_outputs = query.run(
                [instances[row] for row in rows],
                positions,
                [images[index] for index in image_indices],
                pixels,
            )
            for name, values in batch_outputs.arrays.items():
                getattr(outputs, name)[rows] = values
            for row_index, row in enumerate(rows):
                if row in rows_to_keep:
                    kept_images[row] = batch_outputs.image_stack(int(positions[row_index]))
            n_done += len(image_indices)
            if report_progress is not None:
                report_progress(n_done, len(images))
    return ModelOutputs(
        outputs.concept_probs,
        outputs.group_probs,
        outputs.other_group_share,
        outputs.control_probs,
        outputs.pixel_change,
        kept_images,
    )


def rows_by_image(instances: Sequence[Instance]) -> dict[tuple[str, str], list[int]]:
    """Return the indices of the instances of each (image, group); they share a counterfactual."""
    rows_by_key: dict[tuple[str, str], list[int]] = {}
    for row, instance in enumerate(instances):
        rows_by_key.setdefault((instance.image, instance.group), []).append(row)
    return rows_by_key


def query_texts(
    model: MaskedVLM, prompts: Prompts, gray_image: Tensor | None = None
) -> dict[tuple[str, str], Array]:
    """Return log P(T | L), with a gray image or with none: (kind, concept) -> array (templates, groups)."""
    log_probs_by_concept: dict[tuple[str, str], Array] = {}
    with torch.inference_mode(), limit_threads(getattr(model, "network", None)):
        for kind, concepts in prompts.concepts.items():
            concept_texts = [
                (concept, template.fill(word, kind, concept))
                for concept in concepts
                for template in prompts.templates
                for word in prompts.words.values()
            ]
            unique_texts = list(dict.fromkeys(text for _, text in concept_texts))
            images = (
                None if gray_image is None else gray_image.expand(len(unique_texts), *gray_image.shape[1:])
            )
            log_probs = (
                model.word_log_probs(
                    images, unique_texts, list(concepts), normalize_over=prompts.normalize_over
                )
                .double()
                .cpu()
                .numpy()
            )
            row, column = (
                {name: index for index, name in enumerate(names)} for names in (unique_texts, concepts)
            )
            shape = (len(prompts.templates), 2)
            for concept in concepts:
                values = [
                    log_probs[row[text], column[concept]]
                    for text_concept, text in concept_texts
                    if text_concept == concept
                ]
                log_probs_by_concept[kind, concept] = np.array(values).reshape(shape)
    return log_probs_by_concept


@dataclass(frozen=True)
class _BatchOutputs:
    arrays: dict[str, Array]  # by field of `ModelOutputs`
    pixels: Sequence[Any]  # the images of each variant: factual, counterfactual, placebo

    def image_stack(self, position: int) -> NDArray[np.uint8]:
        """Return all variants of one image, resized to the factual one; a given counterfactual may differ in size."""
        variants = [pixels[position].float().cpu() for pixels in self.pixels]
        size = variants[FACTUAL].shape[1:]
        variants = [
            image
            if image.shape[1:] == size
            else functional.interpolate(image[None], size, mode="bilinear")[0]
            for image in variants
        ]
        stack: NDArray[np.uint8] = (torch.stack(variants) * 255).round().byte().permute(0, 2, 3, 1).numpy()
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
        self.group_words = list(prompts.words.values())
        self.device = getattr(model, "device", "cpu")

    def run(
        self,
        instances: Sequence[Instance],
        positions: Tensor,
        images: Sequence[Instance],
        loaded_pixels: Sequence[Sequence[Any]],
    ) -> _BatchOutputs:
        """Return the outputs for all instances of a batch.

        Parameters
        ----------
        instances
            The instances of the batch.
        positions
            Index in the batch of each instance's image.
        images
            One instance of each image of the batch.
        loaded_pixels
            The factual images, and the counterfactual ones if there is no attack.
        """
        own_group = torch.tensor(
            [self.prompts.groups.index(image.group) for image in images], device=self.device
        )
        pixels = [self._to_device(batch) for batch in loaded_pixels]
        if self.attack is not None:
            pixels += self._attack_images(pixels[FACTUAL], own_group, images)
        image_index = positions.to(self.device)
        arrays_by_variant: dict[str, list[Any]] = {
            "concept_probs": [], "group_probs": [], "other_group_share": [], "control_probs": [], "pixel_change": [],
        }  # fmt: skip
        with torch.inference_mode():
            for variant in pixels:
                embeddings = self.model.encode_images(variant)
                group_probs = self._group_log_probs(embeddings).exp()
                own_prob = group_probs.gather(1, own_group[:, None])[:, 0]
                other_prob = group_probs.gather(1, 1 - own_group[:, None])[:, 0]
                arrays_by_variant["group_probs"].append(own_prob[image_index])
                arrays_by_variant["other_group_share"].append(
                    (other_prob / (own_prob + other_prob))[image_index]
                )
                arrays_by_variant["control_probs"].append(
                    self._control_log_probs(embeddings).exp()[image_index]
                )
                arrays_by_variant["pixel_change"].append(
                    _mean_distance(variant, pixels[FACTUAL])[image_index]
                )
                arrays_by_variant["concept_probs"].append(
                    self._concept_probs(embeddings, instances, image_index)
                )
        arrays = {
            name: np.stack(
                [array.double().cpu().numpy() for array in variant_arrays],
                axis=2 if name == "concept_probs" else 1,
            )
            for name, variant_arrays in arrays_by_variant.items()
        }
        return _BatchOutputs(arrays, pixels)

    def _to_device(self, pixels: Any) -> Any:
        return (
            pixels.to(self.device)
            if isinstance(pixels, Tensor)
            else [image.to(self.device) for image in pixels]
        )

    def _attack_images(self, pixels: Any, own_group: Tensor, images: Sequence[Instance]) -> list[Any]:
        """Return counterfactual and placebo images.

        A placebo attack takes as many steps as the counterfactual one, from the predicted control word to another.
        """
        assert self.attack is not None
        target = AttackTarget(
            self.prompts.bias_prompt, self.group_words, own_group, 1 - own_group, self._bias_normalize_over
        )
        attacked = [self._perturb_images(pixels, target, None)]
        if self.placebo:
            with torch.inference_mode():
                predicted = self._control_log_probs(self.model.encode_images(pixels)).argmax(dim=1)
            n_words = len(self.prompts.control_words)
            offsets = [1 + _name_hash(f"{self.seed} {image.image}") % (n_words - 1) for image in images]
            other_word = (predicted + torch.tensor(offsets, device=predicted.device)) % n_words
            target = AttackTarget(
                self.prompts.control_prompt, self.prompts.control_words, predicted, other_word
            )
            attacked.append(self._perturb_images(pixels, target, attacked[0][1]))
        return [perturbed for perturbed, _ in attacked]

    def _perturb_images(
        self, pixels: Any, target: AttackTarget, n_steps: Tensor | None
    ) -> tuple[Any, Tensor]:
        """Return the attacked images and their numbers of steps; images of one shape are attacked together."""
        assert self.attack is not None
        if isinstance(pixels, Tensor):
            result = perturb(self.model, pixels, target, self.attack, n_steps)
            return result.pixels, result.steps
        perturbed: list[Tensor] = list(pixels)
        steps = torch.zeros(len(pixels), dtype=torch.long, device=self.device)
        for shape in dict.fromkeys(image.shape for image in pixels):
            indices = torch.tensor(
                [index for index, image in enumerate(pixels) if image.shape == shape], device=self.device
            )
            shape_target = AttackTarget(
                target.prompt,
                target.words,
                target.source_index[indices],
                target.target_index[indices],
                target.normalize_over,
            )
            stacked = torch.stack([pixels[index] for index in indices.tolist()])
            shape_n_steps = None if n_steps is None else n_steps[indices]
            result = perturb(self.model, stacked, shape_target, self.attack, shape_n_steps)
            steps[indices] = result.steps
            for index, image in zip(indices.tolist(), result.pixels, strict=True):
                perturbed[index] = image
        return perturbed, steps

    @property
    def _bias_normalize_over(self) -> NormalizeOver:
        return "candidates" if self.prompts.bias_normalize_over == "groups" else "vocabulary"

    def _group_log_probs(self, embeddings: ImageEmbeddings | Tensor) -> Tensor:
        return self.model.word_log_probs(
            embeddings, self.prompts.bias_prompt, self.group_words, normalize_over=self._bias_normalize_over
        )

    def _control_log_probs(self, embeddings: ImageEmbeddings | Tensor) -> Tensor:
        words = list(self.prompts.control_words)
        return self.model.word_log_probs(
            embeddings, self.prompts.control_prompt, words, normalize_over="candidates"
        )

    def _concept_probs(
        self, embeddings: ImageEmbeddings | Tensor, instances: Sequence[Instance], image_index: Tensor
    ) -> Tensor:
        """Return the probability of each instance's concept: (instances, templates, groups' words).

        A text is queried once for each image, however many concepts the image has.
        """
        keys = {(instance.group, instance.kind, instance.concept) for instance in instances}
        texts_by_key = {key: self._texts(*key) for key in keys}
        instance_texts = [
            texts_by_key[instance.group, instance.kind, instance.concept] for instance in instances
        ]
        concept_probs = torch.empty(len(instances), len(self.prompts.templates), 2, device=self.device)
        images = image_index.tolist()
        for kind, concepts in self.prompts.concepts.items():
            text_index: dict[int, dict[str, int]] = {}  # image -> text -> its index among the image's texts
            kind_rows = [row for row, instance in enumerate(instances) if instance.kind == kind]
            for row in kind_rows:
                index_by_text = text_index.setdefault(images[row], {})
                for text in instance_texts[row]:
                    index_by_text.setdefault(text, len(index_by_text))
            # Images with equally many texts are queried together.
            for n_texts in dict.fromkeys(len(index_by_text) for index_by_text in text_index.values()):
                selected_images = [
                    image for image, index_by_text in text_index.items() if len(index_by_text) == n_texts
                ]
                log_probs = self._log_probs(
                    _select(embeddings, selected_images),
                    [list(text_index[image]) for image in selected_images],
                    concepts,
                )
                position, column = (
                    {name: index for index, name in enumerate(names)} for names in (selected_images, concepts)
                )
                selected_rows = [row for row in kind_rows if images[row] in position]
                log_prob_indices = [
                    [
                        (position[images[row]], text_index[images[row]][text], column[instances[row].concept])
                        for text in instance_texts[row]
                    ]
                    for row in selected_rows
                ]
                probs = log_probs[torch.tensor(log_prob_indices, device=self.device).unbind(2)].exp()
                concept_probs[torch.tensor(selected_rows, device=self.device)] = probs.view(
                    len(selected_rows), -1, 2
                )
        return concept_probs

    def _log_probs(
        self,
        embeddings: ImageEmbeddings | Tensor,
        texts_by_image: Sequence[Sequence[str]],
        words: Sequence[str],
    ) -> Tensor:
        """Return log-probabilities (images, texts, words); all images have equally many texts."""
        n_texts = len(texts_by_image[0])
        if isinstance(embeddings, ImageEmbeddings):
            slices = [
                slice(start, start + _MAX_TEXTS_PER_IMAGE)
                for start in range(0, n_texts, _MAX_TEXTS_PER_IMAGE)
            ]
            return torch.cat(
                [
                    self._log_probs_of_slice(embeddings, [texts[part] for texts in texts_by_image], words)
                    for part in slices
                ],
                1,
            )
        return torch.stack(
            [
                self._word_log_probs(embeddings, [texts[index] for texts in texts_by_image], words)
                for index in range(n_texts)
            ],
            dim=1,
        )

    def _log_probs_of_slice(
        self, embeddings: ImageEmbeddings, texts_by_image: Sequence[Sequence[str]], words: Sequence[str]
    ) -> Tensor:
        """Return log-probabilities (images, texts, words) from one call of the model."""
        repeated = embeddings.with_texts_per_image(len(texts_by_image[0]))
        log_probs = self._word_log_probs(
            repeated, [text for texts in texts_by_image for text in texts], words
        )
        return log_probs.view(len(texts_by_image), -1, len(words))

    def _word_log_probs(
        self, images: ImageEmbeddings | Tensor, texts: Sequence[str], words: Sequence[str]
    ) -> Tensor:
        return self.model.word_log_probs(images, texts, words, normalize_over=self.prompts.normalize_over)

    def _texts(self, group: str, kind: str, concept: str) -> tuple[str, ...]:
        """Return the texts of all templates, each with the word of the person's own group and of the other."""
        words = [self.prompts.words[name] for name in (group, self.prompts.other_group(group))]
        return tuple(
            template.fill(word, kind, concept) for template in self.prompts.templates for word in words
        )


def _load_batches(
    model: MaskedVLM,
    images: Sequence[Instance],
    with_counterfactuals: bool,
    load_image: LoadImage,
    batch_size: int,
) -> Iterator[tuple[list[int], list[Any]]]:
    """Yield the image indices and the pixels of each batch; threads load the next batch during inference."""

    def load_batch(indices: list[int]) -> list[Any]:
        paths_by_variant = [[images[index].path for index in indices]]
        if with_counterfactuals:
            paths_by_variant.append(
                [path for index in indices if (path := images[index].counterfactual) is not None]
            )
        return [model.preprocess(list(loaders.map(load_image, paths))) for paths in paths_by_variant]

    batches = [
        list(range(start, min(start + batch_size, len(images))))
        for start in range(0, len(images), batch_size)
    ]
    with ThreadPoolExecutor() as loaders, ThreadPoolExecutor(1) as prefetcher:
        next_batch = prefetcher.submit(load_batch, batches[0]) if batches else None
        for batch_index, indices in enumerate(batches):
            assert next_batch is not None
            pixels = next_batch.result()
            next_batch = (
                prefetcher.submit(load_batch, batches[batch_index + 1])
                if batch_index + 1 < len(batches)
                else None
            )
            yield indices, pixels


def _select(embeddings: ImageEmbeddings | Tensor, indices: Sequence[int]) -> ImageEmbeddings | Tensor:
    """Return the embeddings of these images; for all images the same object, so that its cache is reused."""
    if list(indices) == list(range(len(embeddings))):
        return embeddings
    device = embeddings.tokens.device if isinstance(embeddings, ImageEmbeddings) else embeddings.device
    return embeddings[torch.tensor(indices, device=device)]


def _name_hash(name: str) -> int:
    """Return a pseudo-random integer that depends only on the name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _mean_distance(pixels: Any, factual: Any) -> Tensor:
    """Return the mean absolute difference of the pixels of each image; nan between images of different shapes."""
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


def _empty_outputs(n_instances: int, n_templates: int, n_variants: int, n_words: int) -> ModelOutputs:
    return ModelOutputs(
        np.full((n_instances, n_templates, n_variants, 2), np.nan),
        np.full((n_instances, n_variants), np.nan),
        np.full((n_instances, n_variants), np.nan),
        np.full((n_instances, n_variants, n_words), np.nan),
        np.full((n_instances, n_variants), np.nan),
        {},
    )
