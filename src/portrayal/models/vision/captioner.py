"""Captions from a pretrained captioner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from portrayal.errors import PortrayalError, need
from portrayal.models.device import best_device
from portrayal.models.vision.loading import from_pretrained

if TYPE_CHECKING:
    from PIL.Image import Image

BEAMS = 3
WORDS = 30  # strictly: the model's tokens, of which a word has one or a few
_PURPOSE = "A captioner"


class Captioner:
    """A model that captions a picture with no question asked, such as BLIP, GIT or a vision encoder with a decoder.

    Nothing is drawn at random: the same picture gets the same caption.
    """

    def __init__(
        self, name: str, model: Any, prepare: Any, tokenizer: Any, device: str, beams: int, words: int
    ):
        self.name = name
        self._model, self._prepare, self._tokenizer, self._device = model, prepare, tokenizer, device
        self._how: dict[str, Any] = {"do_sample": False, "num_beams": beams, "max_new_tokens": words}
        if model.generation_config.pad_token_id is None:  # captions of one batch differ in length
            fill = tokenizer.pad_token_id
            self._how["pad_token_id"] = tokenizer.eos_token_id if fill is None else fill

    @classmethod
    def load(cls, name: str, device: str = "auto", *, beams: int = BEAMS, words: int = WORDS) -> Captioner:
        """By name or folder. With one beam the likeliest next word is taken each time; more look further ahead."""
        need("torch", "neural", _PURPOSE)
        transformers = need("transformers", "neural", _PURPOSE)
        if beams < 1 or words < 1:
            raise PortrayalError(
                f"A captioner needs at least one beam and one word, got {beams} and {words}."
            )
        where = best_device(device)
        tokenizer = from_pretrained(transformers.AutoTokenizer, name)
        if getattr(tokenizer, "chat_template", None):
            raise PortrayalError(
                f"The model '{name}' answers questions in a chat: expected a captioner, which needs none."
            )
        prepare = from_pretrained(transformers.AutoImageProcessor, name)
        model = from_pretrained(transformers.AutoModelForImageTextToText, name).to(where).eval()
        return cls(name, model, prepare, tokenizer, where, beams, words)

    def captions(self, pictures: Sequence[Image]) -> list[str]:
        """One caption each, on one line; it may be empty."""
        if not pictures:
            return []
        with need("torch", "neural", _PURPOSE).inference_mode():
            shown = self._prepare(images=list(pictures), return_tensors="pt").to(self._device)
            said = self._model.generate(pixel_values=shown["pixel_values"], **self._how)
        texts = self._tokenizer.batch_decode(said, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]
