"""Training losses. No function synchronises with the device, so that a step can be captured as a CUDA graph."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from portrayal.models.masked_vlm.network import DualEncoder, ImageEmbeddings, VLMNetwork
from portrayal.models.masked_vlm.training.data import ImageTextPairs

IGNORE_INDEX = -100  # label of tokens that are not predicted
Losses = dict[str, Tensor]


@dataclass(frozen=True)
class BatchSample:
    """The random numbers of one training step."""

    image_index: Tensor  # indices of the images of the batch
    caption_choice: Tensor  # from 0 to 1: selects one of the captions of each image
    sentence_choice: Tensor  # from 0 to 1: selects one of the sentences
    caption_mask_uniform: Tensor  # from 0 to 1 for every token: tokens with the lowest are masked
    sentence_mask_uniform: Tensor
    negative_offset: (
        Tensor  # any integer: distance in the batch to the image whose text is the random negative
    )
    negative_choice: Tensor  # from 0 to 1: below .5 the random negative, else selects a hard negative

    @classmethod
    def for_step(cls, pairs: ImageTextPairs, batch_size: int, seed: int, step: int) -> BatchSample:
        """Return the random numbers of a step, which depend on the seed and the step only."""
        rng = np.random.default_rng([seed, step])
        n = min(batch_size, len(pairs))
        return cls(
            torch.from_numpy(rng.integers(0, len(pairs), n)),
            torch.from_numpy(rng.random(n, np.float32)),
            torch.from_numpy(rng.random(n, np.float32)),
            torch.from_numpy(rng.random((n, pairs.captions.shape[2]), np.float32)),
            torch.from_numpy(rng.random((n, pairs.sentences.shape[2]), np.float32)),
            torch.from_numpy(rng.integers(0, 1 << 30, n)),
            torch.from_numpy(rng.random((n, 1), np.float32)),
        )

    def to(self, device: str) -> Self:
        return type(self)(*(getattr(self, field.name).to(device) for field in fields(self)))

    def copy_from(self, other: BatchSample) -> None:
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def split(self, n: int) -> list[Self]:
        """Return n parts of the batch, for gradient accumulation."""
        if n == 1:
            return [self]
        chunks = [getattr(self, field.name).tensor_split(n) for field in fields(self)]
        return [type(self)(*part) for part in zip(*chunks, strict=True) if len(part[0])]


class TrainingTask(Protocol):
    """The objective that a network is trained on."""

    @property
    def digest(self) -> str:
        """Identifies the objective."""

    def to(self, device: str) -> TrainingTask: ...

    def sample(self, pairs: ImageTextPairs, batch_size: int, seed: int, step: int) -> BatchSample: ...

    def losses(
        self,
        network: VLMNetwork,
        pairs: ImageTextPairs,
        sample: BatchSample,
        mask_probability: float,
        n_captioned: int,
    ) -> Losses: ...


class PretrainingTask:
    """Masked language modelling, image-text matching and contrastive learning."""

    digest = "pretraining"

    def to(self, device: str) -> PretrainingTask:  # noqa: ARG002 (it has no tensors)
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
        """Return the losses of a batch.

        Each image has a short sentence. Captions are long and therefore slow, so only the first `n_captioned`
        images of a batch have one.
        """
        embeddings = network.encode_image(batch_pixels(pairs, sample))
        masked_sentences = mask_sentences(pairs, sample, mask_probability)
        losses = {
            "sentences": mlm_loss(
                mlm_logits(network, embeddings, masked_sentences.masked_ids, pairs), masked_sentences.labels
            )
        }
        if n_captioned:
            masked_captions = mask_captions(pairs, sample, mask_probability, n_captioned)
            logits, image_losses = caption_losses(
                network, embeddings[:n_captioned], masked_captions, pairs, sample
            )
            losses |= {"captions": mlm_loss(logits, masked_captions.labels), **image_losses}
        return losses


@dataclass(frozen=True)
class MaskedTexts:
    """Token ids of texts, the ids with masks, and the labels: `IGNORE_INDEX` where no word is masked."""

    ids: Tensor
    masked_ids: Tensor
    labels: Tensor


def batch_pixels(pairs: ImageTextPairs, sample: BatchSample) -> Tensor:
    """Return the images of a batch, from 0 to 1."""
    return pairs.images[sample.image_index].permute(0, 3, 1, 2).float() / 255


def mask_sentences(pairs: ImageTextPairs, sample: BatchSample, mask_probability: float) -> MaskedTexts:
    """Return a masked sentence for each image of the batch."""
    ids = select_texts(pairs.sentences, sample.image_index, sample.sentence_choice)
    return MaskedTexts(ids, *mask_tokens(ids, sample.sentence_mask_uniform, mask_probability, pairs))


def mask_captions(
    pairs: ImageTextPairs, sample: BatchSample, mask_probability: float, n_captioned: int
) -> MaskedTexts:
    """Return a masked caption for each of the first `n_captioned` images of the batch."""
    captioned = slice(0, n_captioned)
    ids = select_texts(pairs.captions, sample.image_index[captioned], sample.caption_choice[captioned])
    return MaskedTexts(
        ids, *mask_tokens(ids, sample.caption_mask_uniform[captioned], mask_probability, pairs)
    )


def mlm_logits(
    network: VLMNetwork, images: ImageEmbeddings, masked_ids: Tensor, pairs: ImageTextPairs
) -> Tensor:
    """Return a logit for every word at every position of the texts."""
    return network.word_logits(network.cross_encode(images, masked_ids, masked_ids != pairs.pad_id))


def caption_losses(
    network: VLMNetwork,
    images: ImageEmbeddings,
    masked_captions: MaskedTexts,
    pairs: ImageTextPairs,
    sample: BatchSample,
) -> tuple[Tensor, Losses]:
    """Return the word logits of captions, and the contrastive and matching losses."""
    losses: Losses = {}
    ids, n = masked_captions.ids, len(masked_captions.ids)
    captioned = slice(0, n)
    all_ids = torch.cat([masked_captions.masked_ids, ids])
    attention_mask = all_ids != pairs.pad_id
    unmasked = slice(n, 2 * n)
    random_negatives = _random_negatives(sample.negative_offset[captioned])
    if isinstance(network, DualEncoder):
        text_states = network.encode_text(all_ids, attention_mask)
        losses["contrastive"], similarity = _contrastive_loss(network, images, text_states[unmasked])
        negatives = torch.where(
            sample.negative_choice[captioned, 0] < 0.5,
            random_negatives,
            _hard_negatives(similarity, 2 * sample.negative_choice[captioned] - 1),
        )
        states = torch.cat([text_states, text_states[unmasked][negatives]])
        attention_mask = torch.cat([attention_mask, attention_mask[unmasked][negatives]])
        hidden = network.cross_encode_text(_repeat_images(images, 3), states, attention_mask)
    else:
        input_ids = torch.cat([all_ids, ids[random_negatives]])
        attention_mask = torch.cat([attention_mask, attention_mask[unmasked][random_negatives]])
        hidden = network.cross_encode(_repeat_images(images, 3), input_ids, attention_mask)
    logits = network.word_logits(hidden[:n])
    if network.has_match_head:
        losses["matching"] = _match_loss(network, hidden[n:])
    return logits, losses


def mask_tokens(
    ids: Tensor, uniform: Tensor, mask_probability: float, pairs: ImageTextPairs
) -> tuple[Tensor, Tensor]:
    """Return the token ids with masks, at least one in each text, and the labels.

    Common words are masked less often. A masked word always becomes [MASK]. BERT replaces some words at random
    instead, which would leave too few words in short texts.
    """
    maskable = ids != pairs.pad_id
    if pairs.has_end_token:
        maskable = maskable.scatter(1, maskable.sum(dim=1, keepdim=True) - 1, False)
    maskable[:, 0] = False  # the start token, like the end token, is never masked
    uniform = (uniform / pairs.masking_weights[ids]).masked_fill(~maskable, torch.inf)
    is_masked = maskable & ((uniform < mask_probability) | (uniform == uniform.amin(dim=1, keepdim=True)))
    return ids.masked_fill(is_masked, pairs.mask_id), ids.masked_fill(~is_masked, IGNORE_INDEX)


def select_texts(texts: Tensor, image_index: Tensor, choice: Tensor) -> Tensor:
    """Return one text of each image, selected by numbers from 0 to 1."""
    return texts[image_index, (choice * texts.shape[1]).long()].long()


def _repeat_images(images: ImageEmbeddings, times: int) -> ImageEmbeddings:
    return ImageEmbeddings(images.tokens.repeat(times, 1, 1))


def mlm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of the masked words."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORE_INDEX)


def _contrastive_loss(
    network: DualEncoder, images: ImageEmbeddings, text_states: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the contrastive loss over the texts of the batch in both directions, and the similarities."""
    similarity = network.image_features(images) @ network.text_features(text_states).T / network.temperature()
    similarity = similarity.float()
    targets = torch.arange(len(similarity), device=similarity.device)
    loss = functional.cross_entropy(similarity, targets) + functional.cross_entropy(similarity.T, targets)
    return loss / 2, similarity


def _random_negatives(offset: Tensor) -> Tensor:
    """Return for each image the index of another image of the batch; in a batch of one, its own index."""
    n = len(offset)
    return (torch.arange(n, device=offset.device) + 1 + offset % max(n - 1, 1)) % n


def _hard_negatives(similarity: Tensor, choice: Tensor) -> Tensor:
    """Return for each image the index of the text of another image, sampled in proportion to its similarity."""
    is_other = ~torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    weights = (functional.softmax(similarity.detach(), dim=1) + 1e-6) * is_other
    # A cumulative sum that is deterministic on every device.
    cumulative = weights @ torch.ones_like(weights).triu()
    threshold = choice.clamp(0, 0.9999) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, threshold, right=True).clamp(max=len(cumulative) - 1).squeeze(1)


def _match_loss(network: VLMNetwork, hidden: Tensor) -> Tensor:
    """Return the matching loss: the first half of the texts match their images, the others do not."""
    logits = network.match_logits(hidden).float()
    targets = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    targets[: len(logits) // 2] = 1
    return functional.cross_entropy(logits, targets)
