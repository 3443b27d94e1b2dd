"""Training losses. Nothing here waits for the device, so that a step can be captured as a CUDA graph."""

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
    """The random numbers of one step."""

    image_index: Tensor  # indices of the batch's images
    caption_choice: Tensor  # which caption of each, from 0 to 1
    sentence_choice: Tensor
    caption_mask_draw: Tensor  # for every token, from 0 to 1: the lowest are masked
    sentence_mask_draw: Tensor
    negative_offset: Tensor  # any integer: offset in the batch of the image whose text is a random negative
    negative_draw: Tensor  # from 0 to 1: below .5 the random negative, else which hard negative

    @classmethod
    def for_step(cls, pairs: ImageTextPairs, batch_size: int, seed: int, step: int) -> BatchSample:
        """Return the sample of a step; it depends on the seed and the step alone."""
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
        """Return the sample in n parts, for gradient accumulation."""
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

        Sentences are short and contribute most; captions are long, so only the first `n_captioned` images of
        a batch have one.
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
    """Texts, the same with masks, and the labels: `IGNORE_INDEX` where no word is masked."""

    ids: Tensor
    masked_ids: Tensor
    labels: Tensor


def batch_pixels(pairs: ImageTextPairs, sample: BatchSample) -> Tensor:
    """Return the images of a batch, from 0 to 1."""
    return pairs.images[sample.image_index].permute(0, 3, 1, 2).float() / 255


def mask_sentences(pairs: ImageTextPairs, sample: BatchSample, mask_probability: float) -> MaskedTexts:
    ids = select_texts(pairs.sentences, sample.image_index, sample.sentence_choice)
    return MaskedTexts(ids, *mask_tokens(ids, sample.sentence_mask_draw, mask_probability, pairs))


def mask_captions(
    pairs: ImageTextPairs, sample: BatchSample, mask_probability: float, n_captioned: int
) -> MaskedTexts:
    rows = slice(0, n_captioned)
    ids = select_texts(pairs.captions, sample.image_index[rows], sample.caption_choice[rows])
    return MaskedTexts(ids, *mask_tokens(ids, sample.caption_mask_draw[rows], mask_probability, pairs))


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
    with_caption = slice(0, n)
    all_ids = torch.cat([masked_captions.masked_ids, ids])
    attention_mask = all_ids != pairs.pad_id
    unmasked = slice(n, 2 * n)
    random_negative = _random_negatives(sample.negative_offset[with_caption])
    if isinstance(network, DualEncoder):
        text_states = network.encode_text(all_ids, attention_mask)
        losses["contrastive"], similarity = _contrastive_loss(network, images, text_states[unmasked])
        negatives = torch.where(
            sample.negative_draw[with_caption, 0] < 0.5,
            random_negative,
            _hard_negatives(similarity, 2 * sample.negative_draw[with_caption] - 1),
        )
        states = torch.cat([text_states, text_states[unmasked][negatives]])
        attention_mask = torch.cat([attention_mask, attention_mask[unmasked][negatives]])
        hidden = network.cross_encode_text(_repeat_images(images, 3), states, attention_mask)
    else:
        states = torch.cat([all_ids, ids[random_negative]])
        attention_mask = torch.cat([attention_mask, attention_mask[unmasked][random_negative]])
        hidden = network.cross_encode(_repeat_images(images, 3), states, attention_mask)
    logits = network.word_logits(hidden[:n])
    if network.has_match_head:
        losses["matching"] = _match_loss(network, hidden[n:])
    return logits, losses


def mask_tokens(
    ids: Tensor, uniform: Tensor, mask_probability: float, pairs: ImageTextPairs
) -> tuple[Tensor, Tensor]:
    """Return texts with masks, at least one in each, and the labels.

    Common words are masked less often. A masked word always becomes [MASK]: no other word is ever predicted,
    and short texts have no words to spare for the random replacements of BERT.
    """
    maskable = ids != pairs.pad_id
    if pairs.has_end_token:
        maskable = maskable.scatter(1, maskable.sum(dim=1, keepdim=True) - 1, False)
    maskable[:, 0] = False  # the start and end tokens are no words
    uniform = (uniform / pairs.masking_weights[ids]).masked_fill(~maskable, torch.inf)
    is_masked = maskable & ((uniform < mask_probability) | (uniform == uniform.amin(dim=1, keepdim=True)))
    return ids.masked_fill(is_masked, pairs.mask_id), ids.masked_fill(~is_masked, IGNORE_INDEX)


def select_texts(texts: Tensor, image_index: Tensor, choice: Tensor) -> Tensor:
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
    """Return another index of the batch for each; with a batch of one, its own."""
    n = len(offset)
    return (torch.arange(n, device=offset.device) + 1 + offset % max(n - 1, 1)) % n


def _hard_negatives(similarity: Tensor, draw: Tensor) -> Tensor:
    """Return for each image the index of another's text, sampled in proportion to its similarity."""
    is_other = ~torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    weights = (functional.softmax(similarity.detach(), dim=1) + 1e-6) * is_other
    # A cumulative sum that is deterministic on every device.
    cumulative = weights @ torch.ones_like(weights).triu()
    threshold = draw.clamp(0, 0.9999) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, threshold, right=True).clamp(max=len(cumulative) - 1).squeeze(1)


def _match_loss(network: VLMNetwork, hidden: Tensor) -> Tensor:
    """Return the matching loss: the first half of the texts match their images, the others do not."""
    logits = network.match_logits(hidden).float()
    targets = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    targets[: len(logits) // 2] = 1
    return functional.cross_entropy(logits, targets)
