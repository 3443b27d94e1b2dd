"""The losses of FairVLP and the other mitigation methods in a training step."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from portrayal.errors import PortrayalError
from portrayal.mitigate.counterfactual_images import attack_images, attack_images_varied, patch_images
from portrayal.mitigate.counterfactual_texts import NO_GROUP, Counterparts
from portrayal.mitigate.methods import ATTACK, GIVEN, PATCHES, SAME, VARIED, Hyperparameters, Method
from portrayal.mitigate.training_data import TrainingData
from portrayal.models.masked_vlm.network import ImageEmbeddings, VLMNetwork
from portrayal.models.masked_vlm.training import ImageTextPairs
from portrayal.models.masked_vlm.training.losses import (
    IGNORE_INDEX,
    BatchSample,
    Losses,
    MaskedTexts,
    batch_pixels,
    caption_losses,
    mask_captions,
    mask_sentences,
    mlm_logits,
    mlm_loss,
    select_texts,
)


@dataclass(frozen=True)
class MitigationSample(BatchSample):
    """The random numbers of a step, with one for each counterfactual image, from 0 to 1."""

    counterfactual: Tensor


@dataclass(frozen=True)
class _TextPass:
    """Masked texts of a batch, the logits at their tokens, and their counterparts."""

    masked_texts: MaskedTexts
    logits: Tensor
    group: Tensor
    counterparts: Tensor

    @property
    def counterfactual_loss_mask(self) -> Tensor:
        """Positions of masked words that do not name a group: only these count in the counterfactual losses.

        With the groups' words included, a network would learn to ignore the group.
        """
        return (self.masked_texts.labels != IGNORE_INDEX) & (self.masked_texts.ids == self.counterparts)

    def masked_counterparts(self, mask: int) -> Tensor:
        return torch.where(self.masked_texts.labels != IGNORE_INDEX, mask, self.counterparts)


class MitigationTask:
    """A mitigation method as a training task (see `models.masked_vlm.training.losses.TrainingTask`)."""

    def __init__(self, method: Method, training_data: TrainingData, hyperparameters: Hyperparameters):
        if method.image == GIVEN and training_data.counterfactuals is None:
            raise PortrayalError(
                f"The method '{method.name}' needs counterfactual images (with a person of the other group), "
                "and there are none."
            )
        self.method, self.training_data, self.hyperparameters = method, training_data, hyperparameters

    @property
    def digest(self) -> str:
        return json.dumps(
            [self.method.name, self.hyperparameters.used_by(self.method), self.training_data.digest]
        )

    def to(self, device: str) -> MitigationTask:
        return MitigationTask(self.method, self.training_data.to(device), self.hyperparameters)

    def sample(self, pairs: ImageTextPairs, batch_size: int, seed: int, step: int) -> MitigationSample:
        standard = BatchSample.for_step(pairs, batch_size, seed, step)
        counterfactual = np.random.default_rng([seed, step, 1]).random(len(standard.image_index), np.float32)
        return MitigationSample(**vars(standard), counterfactual=torch.from_numpy(counterfactual))

    def losses(
        self,
        network: VLMNetwork,
        pairs: ImageTextPairs,
        sample: BatchSample,
        mask_probability: float,
        n_captioned: int,
    ) -> Losses:
        assert isinstance(sample, MitigationSample)
        pixels = batch_pixels(pairs, sample)
        embeddings = network.encode_image(pixels)
        texts, losses = self._forward_texts(network, pairs, sample, embeddings, mask_probability, n_captioned)
        word_losses = {
            name: mlm_loss(self._adjusted(text_pass.logits, text_pass), text_pass.masked_texts.labels)
            for name, text_pass in texts.items()
        }
        if not self.method.has_counterfactual:
            return {**word_losses, **losses}
        group = self._image_group(texts)
        counterfactual_embeddings, has_counterfactual = self._counterfactual_embeddings(
            network, sample, pixels, embeddings, group
        )
        word_weight = 1 - self.hyperparameters.weight if self.method.consistency else 0.5
        for name, text_pass in texts.items():
            rows = slice(0, len(text_pass.group))
            valid_rows = (
                has_counterfactual[rows] & (text_pass.group != NO_GROUP) & (text_pass.group == group[rows])
            )
            counterpart_ids = (
                text_pass.masked_counterparts(pairs.mask_id)
                if self.method.swap
                else text_pass.masked_texts.masked_ids
            )
            counterfactual_logits = mlm_logits(
                network, counterfactual_embeddings[rows], counterpart_ids, pairs
            )
            valid = text_pass.counterfactual_loss_mask & valid_rows[:, None]
            losses[name] = word_weight * word_losses[name]
            cross_entropy = _cross_entropy(
                self._adjusted(counterfactual_logits, text_pass), text_pass.masked_texts.labels
            )
            losses[f"{name}, counterfactual"] = word_weight * _masked_mean(cross_entropy, valid)
            if self.method.consistency:
                losses[f"{name}, KL"] = self.hyperparameters.weight * _masked_mean(
                    _kl_divergence(text_pass.logits, counterfactual_logits), valid
                )
        return losses

    def _forward_texts(
        self,
        network: VLMNetwork,
        pairs: ImageTextPairs,
        sample: BatchSample,
        embeddings: ImageEmbeddings,
        mask_probability: float,
        n_captioned: int,
    ) -> tuple[dict[str, _TextPass], Losses]:
        """Return the masked texts with their logits, by kind, and the matching and contrastive losses of captions."""
        masked_texts = mask_sentences(pairs, sample, mask_probability)
        scores = mlm_logits(network, embeddings, masked_texts.masked_ids, pairs)
        texts = {
            "sentences": _TextPass(
                masked_texts,
                scores,
                *_chosen_counterparts(
                    self.training_data.sentences, sample.image_index, sample.sentence_choice
                ),
            )
        }
        losses: Losses = {}
        if n_captioned:
            rows = slice(0, n_captioned)
            masked_texts = mask_captions(pairs, sample, mask_probability, n_captioned)
            scores, losses = caption_losses(network, embeddings[rows], masked_texts, pairs, sample)
            counterparts = _chosen_counterparts(
                self.training_data.captions, sample.image_index[rows], sample.caption_choice[rows]
            )
            texts["captions"] = _TextPass(masked_texts, scores, *counterparts)
        return texts, losses

    def _adjusted(self, logits: Tensor, text_pass: _TextPass) -> Tensor:
        """Return logits with the adjustment for the texts' group added, for the group-balanced word loss.

        A counterfactual pair predicts the words of the original texts, so it has their group's adjustment.
        """
        if not self.method.balanced_word_loss:
            return logits
        return logits.float() + self.training_data.logit_adjustment[text_pass.group][:, None, :]

    @staticmethod
    def _image_group(texts: dict[str, _TextPass]) -> Tensor:
        """Return the group of each image: that of its sentence, else that of its caption."""
        group = texts["sentences"].group
        if "captions" not in texts:
            return group
        caption_group = texts["captions"].group
        caption_group = functional.pad(caption_group, (0, len(group) - len(caption_group)), value=NO_GROUP)
        return torch.where(group == NO_GROUP, caption_group, group)

    def _counterfactual_embeddings(
        self,
        network: VLMNetwork,
        sample: MitigationSample,
        pixels: Tensor,
        embeddings: ImageEmbeddings,
        group: Tensor,
    ) -> tuple[ImageEmbeddings, Tensor]:
        """Return the embeddings of counterfactual images, and which images have one."""
        kind, has_counterfactual = self.method.image, torch.ones_like(group, dtype=torch.bool)
        if kind == SAME:
            return embeddings, has_counterfactual
        prompt, hyperparameters = self.training_data.prompt, self.hyperparameters
        if kind == GIVEN:
            assert self.training_data.counterfactuals is not None
            images = self.training_data.counterfactuals[sample.image_index].permute(0, 3, 1, 2).float() / 255
            if self.training_data.has_counterfactual is not None:
                has_counterfactual = self.training_data.has_counterfactual[sample.image_index]
        elif kind == ATTACK:
            images = attack_images(network, pixels, group, prompt, hyperparameters)
        elif kind == VARIED:
            images = attack_images_varied(
                network, pixels, group, prompt, hyperparameters, sample.counterfactual
            )
        else:
            assert kind == PATCHES
            images, has_counterfactual = patch_images(
                network, pixels, group, prompt, hyperparameters, sample.counterfactual
            )
        return network.encode_image(images.detach()), has_counterfactual


class RetrievalTask:
    """The matching and contrastive losses of captions alone, to fine-tune a model for retrieval."""

    digest = "retrieval"

    def to(self, device: str) -> RetrievalTask:  # noqa: ARG002 (it holds nothing)
        return self

    def sample(self, pairs: ImageTextPairs, batch_size: int, seed: int, step: int) -> BatchSample:
        return BatchSample.for_step(pairs, batch_size, seed, step)

    def losses(
        self,
        network: VLMNetwork,
        pairs: ImageTextPairs,
        sample: BatchSample,
        mask_probability: float,
        n_captioned: int,
    ) -> Losses:
        embeddings = network.encode_image(batch_pixels(pairs, sample))[:n_captioned]
        return caption_losses(
            network, embeddings, mask_captions(pairs, sample, mask_probability, n_captioned), pairs, sample
        )[1]


def _chosen_counterparts(counterparts: Counterparts, chosen: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Return the group and the counterparts of the texts chosen for a batch."""
    ids = select_texts(counterparts.ids, chosen, u)
    return counterparts.group[chosen, (u * counterparts.group.shape[1]).long()], ids


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of shape (texts, tokens), 0 where no word is masked."""
    losses = functional.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE_INDEX, reduction="none"
    )
    return losses.view(labels.shape)


def _kl_divergence(logits: Tensor, counterfactual_logits: Tensor) -> Tensor:
    """Return KL(original || counterfactual) of shape (texts, tokens), with gradients for both."""
    first, second = (
        functional.log_softmax(logits.float(), -1),
        functional.log_softmax(counterfactual_logits.float(), -1),
    )
    return (first.exp() * (first - second)).sum(dim=-1)


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the positions of the mask; 0 where there are none."""
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)
