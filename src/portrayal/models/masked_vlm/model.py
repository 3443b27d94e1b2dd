"""Masked vision-language models, which give the log-probabilities of words at a mask in a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from portrayal.errors import PortrayalError, shown, unknown_name
from portrayal.models.masked_vlm.network import PRECISIONS, DualEncoder, ImageEmbeddings, VLMNetwork
from portrayal.models.masked_vlm.pixels import preprocess_images
from portrayal.models.masked_vlm.vocabulary import MASK, Tokenizer, pad_rows

if TYPE_CHECKING:
    from PIL.Image import Image

ImageInput: TypeAlias = "Tensor | Sequence[Tensor] | ImageEmbeddings | None"
TextInput: TypeAlias = "str | Sequence[str]"
NormalizeOver = Literal["vocabulary", "candidates"]
SubwordPolicy = Literal["product", "error"]
_NORMALIZE_OVER, _SUBWORD_POLICIES = ("vocabulary", "candidates"), ("product", "error")


class MaskedVLM(ABC):
    """A model that gives the probability of words at a mask in a text, with or without an image.

    Images are pixels from 0 to 1, as a tensor (images, 3, height, width), a list of (3, height, width), or
    the output of `encode_images`; None means no image. A single text is used for all images. Gradients flow
    back to the pixels.
    """

    name: str

    @abstractmethod
    def preprocess(self, images: Sequence[Image]) -> Tensor | list[Tensor]:
        """Return the images in the size and shape that the model takes, with values from 0 to 1."""

    @abstractmethod
    def encode_images(self, images: Tensor | Sequence[Tensor]) -> ImageEmbeddings | Tensor:
        """Return image embeddings, which can be reused with several texts."""

    @abstractmethod
    def log_probs(self, images: ImageInput, texts: TextInput) -> Tensor:
        """Return log-probabilities (texts, masks per text, vocabulary). All texts have the same number of masks."""

    def word_log_probs(
        self,
        images: ImageInput,
        texts: TextInput,
        words: Sequence[str],
        normalize_over: NormalizeOver = "vocabulary",
        subword_policy: SubwordPolicy = "product",
    ) -> Tensor:
        """Return the log-probability (texts, words) of each word at the one mask of each text.

        Parameters
        ----------
        images, texts
            One text for each image, or a single text for all.
        words
            The candidate words.
        normalize_over
            Words over which probabilities add up to 1: all of the vocabulary, or the candidates in `words`.
        subword_policy
            How to handle a word of several tokens. "product": put one mask for each token, and multiply the
            probability of each token given the tokens before it. "error": raise an error.
        """
        if normalize_over not in _NORMALIZE_OVER:
            raise unknown_name("set of words", normalize_over, _NORMALIZE_OVER)
        if subword_policy not in _SUBWORD_POLICIES:
            raise unknown_name("subword policy", subword_policy, _SUBWORD_POLICIES)
        if not words:
            raise PortrayalError("Expected at least one word.")
        log_probs = self._vocabulary_log_probs(images, texts, words, subword_policy)
        return functional.log_softmax(log_probs, dim=1) if normalize_over == "candidates" else log_probs

    @abstractmethod
    def _vocabulary_log_probs(
        self, images: ImageInput, texts: TextInput, words: Sequence[str], subword_policy: SubwordPolicy
    ) -> Tensor:
        """Return log-probabilities (texts, words) over the vocabulary; raise if two words have the same tokens."""


class TorchMaskedVLM(MaskedVLM):
    """A PyTorch network with its tokenizer, device, precision and batch size."""

    def __init__(
        self,
        name: str,
        network: VLMNetwork,
        tokenizer: Tokenizer,
        device: str = "cpu",
        precision: str = "float32",
        batch_size: int = 64,
    ):
        if precision not in PRECISIONS:
            raise PortrayalError(f"A model computes in {' or '.join(PRECISIONS)}, got {shown(precision)}.")
        if batch_size < 1:
            raise PortrayalError(f"A batch has one text or more, got {batch_size}.")
        self.name, self.tokenizer, self.device, self.batch_size = name, tokenizer, device, batch_size
        self.network = network.to(device, PRECISIONS[precision]).eval().requires_grad_(False)

    def preprocess(self, images: Sequence[Image]) -> Tensor | list[Tensor]:
        return preprocess_images(images, self.network, self.device)

    def gray_images(self, n: int) -> Tensor:
        """Return n gray images, for models that need an image even when only the text matters."""
        return torch.full((n, 3, self.network.image_size, self.network.image_size), 0.5)

    def encode_images(self, images: Tensor | Sequence[Tensor]) -> ImageEmbeddings:
        if not self.network.image_size:
            raise PortrayalError(f"The model '{self.name}' takes no images.")
        if not len(images):
            raise PortrayalError("Expected at least one image.")
        if isinstance(images, Tensor):
            return ImageEmbeddings.concat(
                [self._encode_batch(batch) for batch in images.split(self.batch_size)]
            )
        return self._encode_by_shape(images)

    def _encode_by_shape(self, images: Sequence[Tensor]) -> ImageEmbeddings:
        """Return the embeddings of images of different shapes; images of equal shape form batches."""
        indices_by_shape: dict[tuple[int, ...], list[int]] = {}
        for index, image in enumerate(images):
            indices_by_shape.setdefault(tuple(image.shape), []).append(index)
        batches = [
            indices[start : start + self.batch_size]
            for indices in indices_by_shape.values()
            for start in range(0, len(indices), self.batch_size)
        ]
        batch_embeddings = [
            self._encode_batch(torch.stack([images[index] for index in batch])) for batch in batches
        ]
        order = torch.tensor([index for batch in batches for index in batch], device=self.device)
        return ImageEmbeddings.concat(batch_embeddings)[order.argsort()]

    def log_probs(self, images: ImageInput, texts: TextInput) -> Tensor:
        return self._log_probs_at_masks(images, self._tokenize(images, texts), lambda log_probs: log_probs)

    def _vocabulary_log_probs(
        self, images: ImageInput, texts: TextInput, words: Sequence[str], subword_policy: SubwordPolicy
    ) -> Tensor:
        word_ids = self._word_ids(words, subword_policy)
        text_ids = self._tokenize(images, texts)
        if images is not None and not isinstance(images, ImageEmbeddings) and len(text_ids) > self.batch_size:
            text_list = [texts] * len(text_ids) if isinstance(texts, str) else texts
            slices = [
                slice(start, start + self.batch_size) for start in range(0, len(text_ids), self.batch_size)
            ]
            return torch.cat(
                [
                    self._vocabulary_log_probs(images[part], text_list[part], words, subword_policy)
                    for part in slices
                ]
            )
        for ids in text_ids:
            if ids.count(self.tokenizer.mask_id) != 1:
                raise PortrayalError(
                    f"A word is filled in at one {MASK}, and a text has {ids.count(self.tokenizer.mask_id)} of them."
                )
        self._check_word_starts(text_ids, words)
        single_token_words = [index for index, token_ids in enumerate(word_ids) if len(token_ids) == 1]
        if (
            images is not None
            and not isinstance(images, ImageEmbeddings)
            and len(single_token_words) < len(words)
        ):
            images = self.encode_images(images)  # encode once for all words
        columns: dict[int, Tensor] = {}
        if single_token_words:
            single_token_ids = torch.tensor(
                [word_ids[index][0] for index in single_token_words], device=self.device
            )
            single_log_probs = self._log_probs_at_masks(
                images, text_ids, lambda log_probs: log_probs[..., single_token_ids]
            )[:, 0]
            columns.update(zip(single_token_words, single_log_probs.unbind(1), strict=True))
        for index, token_ids in enumerate(word_ids):
            if len(token_ids) > 1:
                columns[index] = self._product_log_probs(images, text_ids, token_ids)
        return torch.stack([columns[index] for index in range(len(words))], dim=1)

    def match_log_probs(self, images: ImageInput, texts: TextInput) -> Tensor:
        """Return the log-probability that each text describes its image."""
        return functional.log_softmax(self.match_logits(images, texts), dim=1)[:, 1]

    def match_logits(self, images: ImageInput, texts: TextInput) -> Tensor:
        """Return two logits for each text: it does not match its image, it does."""
        self._require_match_head()
        text_ids = self._tokenize(images, texts, self.tokenizer.encode_caption)
        return torch.cat(
            [self.network.match_logits(hidden).float() for _, hidden in self._hidden_states(images, text_ids)]
        )

    def image_features(self, images: Tensor | Sequence[Tensor] | ImageEmbeddings) -> Tensor:
        """Return unit vectors (images, width); their products with `text_features` are similarities."""
        embeddings = images if isinstance(images, ImageEmbeddings) else self.encode_images(images)
        return self._require_dual_encoder().image_features(embeddings).float()

    def text_features(self, texts: Sequence[str]) -> Tensor:
        """Return unit vectors (texts, width)."""
        network = self._require_dual_encoder()
        if not texts or isinstance(texts, str):
            raise PortrayalError("Expected a list of texts, at least one.")
        text_ids = [self.tokenizer.encode_caption(text) for text in texts]
        features = [
            network.text_features(
                network.encode_text(*self._padded_ids(text_ids[start : start + self.batch_size]))
            )
            for start in range(0, len(text_ids), self.batch_size)
        ]
        return torch.cat(features).float()

    def _require_dual_encoder(self) -> DualEncoder:
        if not isinstance(self.network, DualEncoder):
            raise PortrayalError(
                f"The model '{self.name}' has no separate encoders for images and texts to compare."
            )
        return self.network

    def _require_match_head(self) -> None:
        if not self.network.has_match_head:
            raise PortrayalError(f"The model '{self.name}' has no head that matches images with texts.")

    def _encode_batch(self, pixels: Tensor) -> ImageEmbeddings:
        if pixels.ndim != 4 or pixels.shape[1] != 3:
            raise PortrayalError(
                f"Images have the shape (images, 3, height, width), got {tuple(pixels.shape)}."
            )
        height, width = pixels.shape[2:]
        image_size, patch_size = self.network.image_size, self.network.patch_size
        if self.network.square and (height, width) != (image_size, image_size):
            raise PortrayalError(
                f"The model '{self.name}' takes images of {image_size} by {image_size} pixels, got {height} by {width}."
            )
        if height % patch_size or width % patch_size:
            raise PortrayalError(
                f"The model '{self.name}' takes images whose sides are multiples of {patch_size}, got "
                f"{height} by {width}."
            )
        check_pixel_range(pixels)
        return self.network.encode_image(pixels.to(self.device))

    def _tokenize(
        self, images: ImageInput, texts: TextInput, encode: Callable[[str], list[int]] | None = None
    ) -> list[list[int]]:
        n_images = None if images is None else len(images)
        if isinstance(texts, str):
            texts = [texts] * (1 if n_images is None else n_images)
        if n_images is not None and n_images != len(texts):
            raise PortrayalError(
                f"Expected one text for each image: got {n_images} images, {len(texts)} texts."
            )
        if not texts:
            raise PortrayalError("Expected at least one text.")
        token_ids = {text: (encode or self.tokenizer.encode_prompt)(text) for text in dict.fromkeys(texts)}
        return [token_ids[text] for text in texts]

    def _word_ids(self, words: Sequence[str], subword_policy: SubwordPolicy) -> list[list[int]]:
        word_ids = [self.tokenizer.tokenize_word(word) for word in words]
        if len({tuple(token_ids) for token_ids in word_ids}) < len(words):
            raise PortrayalError("Words must be distinct: some have the same tokens in the model.")
        multi_token = [word for word, token_ids in zip(words, word_ids, strict=True) if len(token_ids) > 1]
        if multi_token and subword_policy == "error":
            raise PortrayalError(
                f"The model '{self.name}' splits some words into several tokens: {', '.join(map(shown, multi_token))}."
            )
        return word_ids

    def _check_word_starts(self, text_ids: Sequence[list[int]], words: Sequence[str]) -> None:
        """Raise if a mask starts a text and some words have other tokens there than inside a text."""
        if any(ids.index(self.tokenizer.mask_id) == 1 for ids in text_ids):
            differing = [word for word in words if not self.tokenizer.is_same_at_start(word)]
            if differing:
                raise PortrayalError(
                    f"The model '{self.name}' encodes some words differently at the start of a text "
                    f"({', '.join(map(shown, differing[:5]))}): put a word before the {MASK}."
                )

    def _product_log_probs(
        self, images: ImageInput, text_ids: Sequence[list[int]], token_ids: Sequence[int]
    ) -> Tensor:
        """Return the log-probability of a word of several tokens: the sum over its tokens."""
        word_log_probs: Tensor | None = None
        for n_filled, token_id in enumerate(token_ids):
            span = [*token_ids[:n_filled], *[self.tokenizer.mask_id] * (len(token_ids) - n_filled)]
            filled_rows = []
            for ids in text_ids:
                position = ids.index(self.tokenizer.mask_id)
                filled_rows.append([*ids[:position], *span, *ids[position + 1 :]])
                if len(filled_rows[-1]) > self.tokenizer.max_length:
                    raise PortrayalError(
                        f"A text with a word of {len(token_ids)} tokens is longer than the model takes: expected at "
                        f"most {self.tokenizer.max_length} tokens, found {len(filled_rows[-1])}."
                    )
            log_probs = self._log_probs_at_masks(images, filled_rows, _first_mask_token(token_id))[:, 0]
            word_log_probs = log_probs if word_log_probs is None else word_log_probs + log_probs
        assert word_log_probs is not None
        return word_log_probs

    def _log_probs_at_masks(
        self, images: ImageInput, text_ids: Sequence[list[int]], select: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return `select` applied to the log-probabilities (texts, masks, vocabulary)."""
        if not self.network.has_mlm_head:
            raise PortrayalError(f"The model '{self.name}' has no masked-language-model head.")
        mask_counts = {ids.count(self.tokenizer.mask_id) for ids in text_ids}
        if mask_counts == {0} or len(mask_counts) > 1:
            raise PortrayalError(
                f"Every text must have the same number of {MASK}, at least one: found "
                f"{', '.join(map(str, sorted(mask_counts)))}."
            )
        positions = [
            [position for position, token_id in enumerate(ids) if token_id == self.tokenizer.mask_id]
            for ids in text_ids
        ]
        mask_positions = torch.tensor(positions, device=self.device)
        selected_log_probs = []
        for batch, hidden in self._hidden_states(images, text_ids):
            hidden_index = mask_positions[batch, :, None].expand(-1, -1, hidden.shape[2])
            # In batches, since logits over the vocabulary need much memory.
            for masked_states in hidden.gather(1, hidden_index).split(self.batch_size):
                logits = self.network.word_logits(masked_states)
                selected_log_probs.append(select(functional.log_softmax(logits.float(), dim=-1)))
        return torch.cat(selected_log_probs)

    def _hidden_states(
        self, images: ImageInput, text_ids: Sequence[list[int]]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield the hidden states of texts encoded with their images, one batch at a time."""
        batch_size = self._texts_per_batch(images)
        for start in range(0, len(text_ids), batch_size):
            batch = slice(start, start + batch_size)
            index_by_ids = {
                token_ids: index for index, token_ids in enumerate(dict.fromkeys(map(tuple, text_ids[batch])))
            }
            # Copied before images are encoded: a copy to the device waits for all work queued on it.
            ids, attention_mask = self._padded_ids([list(token_ids) for token_ids in index_by_ids])
            text_index = torch.tensor(
                [index_by_ids[tuple(token_ids)] for token_ids in text_ids[batch]], device=self.device
            )
            embeddings = None
            if isinstance(images, ImageEmbeddings):
                embeddings = images[batch]
            elif images is not None:
                embeddings = self.encode_images(images[batch])
            if isinstance(self.network, DualEncoder):
                yield (
                    batch,
                    self.network.cross_encode_text(
                        embeddings,
                        self.network.encode_text(ids, attention_mask)[text_index],
                        attention_mask[text_index],
                    ),
                )
            else:
                yield (
                    batch,
                    self.network.cross_encode(embeddings, ids[text_index], attention_mask[text_index]),
                )

    def _texts_per_batch(self, images: ImageInput) -> int:
        """Return the number of texts in a batch.

        A batch of a dual encoder is a number of images with all their texts, since texts are short.
        """
        texts_per_image = images.texts_per_image if isinstance(images, ImageEmbeddings) else 1
        return self.batch_size * texts_per_image if isinstance(self.network, DualEncoder) else self.batch_size

    def _padded_ids(self, text_ids: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        """Return token ids (texts, tokens) and their attention mask."""
        ids = torch.tensor(pad_rows(text_ids, self.tokenizer.pad_id), device=self.device)
        return ids, ids != self.tokenizer.pad_id


def _first_mask_token(token_id: int) -> Callable[[Tensor], Tensor]:
    """Return a function that selects the log-probability of one token at the first mask."""
    return lambda log_probs: log_probs[:, :1, token_id]


def check_pixel_range(pixels: Tensor) -> None:
    """Raise unless all pixels are from 0 to 1."""
    low, high = (float(value) for value in pixels.detach().aminmax())
    if not 0 <= low <= high <= 1:
        raise PortrayalError(f"Pixels have values from 0 to 1, got {low:g} to {high:g}.")
