"""Pretrained image captioning models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from portrayal.errors import PortrayalError, need
from portrayal.models.device import resolve_device
from portrayal.models.vision.loading import from_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

NUM_BEAMS = 3
MAX_NEW_TOKENS = 30  # of a caption; a word has one token or a few
_PURPOSE = "A captioner"


class ImageCaptioner:
    """An image captioning model, such as BLIP, GIT or a vision encoder with a text decoder.

    Decoding is deterministic: the same image gets the same caption.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        processor: Any,
        tokenizer: Any,
        device: str,
        num_beams: int,
        max_new_tokens: int,
    ):
        self.name = name
        self._model, self._processor, self._tokenizer, self._device = model, processor, tokenizer, device
        self._generate_options: dict[str, Any] = {
            "do_sample": False,
            "num_beams": num_beams,
            "max_new_tokens": max_new_tokens,
        }
        if model.generation_config.pad_token_id is None:  # captions of a batch differ in length
            pad_token_id = tokenizer.pad_token_id
            self._generate_options["pad_token_id"] = (
                tokenizer.eos_token_id if pad_token_id is None else pad_token_id
            )

    @classmethod
    def load(
        cls,
        name: str,
        device: str = "auto",
        *,
        num_beams: int = NUM_BEAMS,
        max_new_tokens: int = MAX_NEW_TOKENS,
    ) -> ImageCaptioner:
        """Return the captioner with this name or in this folder. One beam is greedy decoding."""
        need("torch", "neural", _PURPOSE)
        transformers = need("transformers", "neural", _PURPOSE)
        if num_beams < 1 or max_new_tokens < 1:
            raise PortrayalError(
                f"A captioner needs at least one beam and one token, got {num_beams} and {max_new_tokens}."
            )
        resolved_device = resolve_device(device)
        tokenizer = from_pretrained(transformers.AutoTokenizer, name)
        if getattr(tokenizer, "chat_template", None):
            raise PortrayalError(
                f"The model '{name}' is a chat model: expected a captioner, which needs no prompt."
            )
        processor = from_pretrained(transformers.AutoImageProcessor, name)
        model = from_pretrained(transformers.AutoModelForImageTextToText, name).to(resolved_device).eval()
        return cls(name, model, processor, tokenizer, resolved_device, num_beams, max_new_tokens)

    def caption_images(self, images: Sequence[Image]) -> list[str]:
        """Return one caption for each image, on one line; it may be empty."""
        if not images:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            inputs = self._processor(images=list(images), return_tensors="pt").to(self._device)
            token_ids = self._model.generate(pixel_values=inputs["pixel_values"], **self._generate_options)
        texts = self._tokenizer.batch_decode(token_ids, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]
