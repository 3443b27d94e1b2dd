"""A masked vision-language model as metrics use it: pictures and texts in, log-probabilities of words out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from portrayal.errors import PortrayalError, shown, unknown_name
from portrayal.models.masked_vlm.network import PRECISIONS, Comparable, Looked, Network
from portrayal.models.masked_vlm.pixels import as_pixels
from portrayal.models.masked_vlm.vocabulary import MASK, Reader, padded

if TYPE_CHECKING:
    from PIL.Image import Image

Images: TypeAlias = "Tensor | Sequence[Tensor] | Looked | None"
Texts: TypeAlias = "str | Sequence[str]"
Over = Literal["vocabulary", "candidates"]
Pieces = Literal["product", "refuse"]
_OVER, _PIECES = ("vocabulary", "candidates"), ("product", "refuse")


class FillsMasks(ABC):
    """Anything that says how likely words are at a mask in a text, given a picture or none.

    Images are pixels from 0 to 1, a tensor (images, 3, height, width) or a list of (3, height, width), or what
    `encode` made of them, or None for no picture. A text that is not a list goes with all of them. Gradients flow back
    to the pixels.
    """

    name: str

    @abstractmethod
    def pixels(self, pictures: Sequence[Image]) -> Tensor | list[Tensor]:
        """Pictures in the size and shape that the model takes, with values from 0 to 1."""

    @abstractmethod
    def encode(self, images: Tensor | Sequence[Tensor]) -> Looked | Tensor:
        """What the model sees, to be used with several texts at the cost of one."""

    @abstractmethod
    def log_probs(self, images: Images, texts: Texts) -> Tensor:
        """(texts, masks of each, vocabulary). All texts have as many masks."""

    def word_log_probs(
        self,
        images: Images,
        texts: Texts,
        words: Sequence[str],
        over: Over = "vocabulary",
        pieces: Pieces = "product",
    ) -> Tensor:
        """(texts, words): how likely each word is at the one mask of each text.

        Over the vocabulary, or over these words alone. A word of several pieces gets as many masks, and the product of
        what each piece has when those before it are filled in; or it is refused.
        """
        if over not in _OVER:
            raise unknown_name("set of words", over, _OVER)
        if pieces not in _PIECES:
            raise unknown_name("way with several pieces", pieces, _PIECES)
        if not words:
            raise PortrayalError("There are no words to ask about.")
        made = self._over_vocabulary(images, texts, words, pieces)
        return functional.log_softmax(made, dim=1) if over == "candidates" else made

    @abstractmethod
    def _over_vocabulary(self, images: Images, texts: Texts, words: Sequence[str], pieces: Pieces) -> Tensor:
        """(texts, words), among all that the model knows; words that it cannot tell apart are refused."""


class MaskedModel(FillsMasks):
    """A network, the way it reads text, and where and how exactly it computes."""

    def __init__(
        self,
        name: str,
        network: Network,
        reader: Reader,
        device: str = "cpu",
        precision: str = "float32",
        batch: int = 64,
    ):
        if precision not in PRECISIONS:
            raise PortrayalError(f"A model computes in {' or '.join(PRECISIONS)}, got {shown(precision)}.")
        if batch < 1:
            raise PortrayalError(f"A batch has one text or more, got {batch}.")
        self.name, self.reader, self.device, self.batch = name, reader, device, batch
        self.network = network.to(device, PRECISIONS[precision]).eval().requires_grad_(False)

    def pixels(self, pictures: Sequence[Image]) -> Tensor | list[Tensor]:
        return as_pixels(pictures, self.network, self.device)

    def gray(self, many: int) -> Tensor:
        """Pictures without content: another way to show none."""
        return torch.full((many, 3, self.network.side, self.network.side), 0.5)

    def encode(self, images: Tensor | Sequence[Tensor]) -> Looked:
        if not self.network.side:
            raise PortrayalError(f"The model '{self.name}' reads texts alone: it takes no pictures.")
        if not len(images):
            raise PortrayalError("There are no pictures to look at.")
        if isinstance(images, Tensor):
            return Looked.together([self._look(some) for some in images.split(self.batch)])
        return self._encode_shapes(images)

    def _encode_shapes(self, images: Sequence[Tensor]) -> Looked:
        """Pictures that may differ in shape: those of one shape are looked at together."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, one in enumerate(images):
            alike.setdefault(tuple(one.shape), []).append(place)
        batches = [
            places[start : start + self.batch]
            for places in alike.values()
            for start in range(0, len(places), self.batch)
        ]
        parts = [self._look(torch.stack([images[place] for place in some])) for some in batches]
        seen = torch.tensor([place for some in batches for place in some], device=self.device)
        return Looked.together(parts)[seen.argsort()]

    def log_probs(self, images: Images, texts: Texts) -> Tensor:
        return self._at_masks(images, self._read(images, texts), lambda scores: scores)

    def _over_vocabulary(self, images: Images, texts: Texts, words: Sequence[str], pieces: Pieces) -> Tensor:
        spelled = self._spelled(words, pieces)
        rows = self._read(images, texts)
        if images is not None and not isinstance(images, Looked) and len(rows) > self.batch:
            said = [texts] * len(rows) if isinstance(texts, str) else texts
            some = [slice(start, start + self.batch) for start in range(0, len(rows), self.batch)]
            return torch.cat(
                [self._over_vocabulary(images[part], said[part], words, pieces) for part in some]
            )
        for row in rows:
            if row.count(self.reader.mask) != 1:
                raise PortrayalError(
                    f"A word is filled in at one {MASK}, and a text has {row.count(self.reader.mask)} of them."
                )
        self._check_starts(rows, words)
        short = [place for place, numbers in enumerate(spelled) if len(numbers) == 1]
        if images is not None and not isinstance(images, Looked) and len(short) < len(words):
            images = self.encode(images)  # once for all words
        columns: dict[int, Tensor] = {}
        if short:
            asked = torch.tensor([spelled[place][0] for place in short], device=self.device)
            found = self._at_masks(images, rows, lambda scores: scores[..., asked])[:, 0]
            columns.update(zip(short, found.unbind(1), strict=True))
        for place, numbers in enumerate(spelled):
            if len(numbers) > 1:
                columns[place] = self._product(images, rows, numbers)
        return torch.stack([columns[place] for place in range(len(words))], dim=1)

    def match_log_probs(self, images: Images, texts: Texts) -> Tensor:
        """How likely each text is to belong to its picture."""
        return functional.log_softmax(self.match_logits(images, texts), dim=1)[:, 1]

    def match_logits(self, images: Images, texts: Texts) -> Tensor:
        """(texts, 2): that a text does not belong to its picture, and that it does."""
        self._must_match()
        rows = self._read(images, texts, self.reader.caption)
        return torch.cat([self.network.match(hidden).float() for _, hidden in self._fused(images, rows)])

    def picture_vectors(self, images: Tensor | Sequence[Tensor] | Looked) -> Tensor:
        """(images, width), of length 1: their products with those of texts say how like they are."""
        looked = images if isinstance(images, Looked) else self.encode(images)
        return self._comparing().picture_vectors(looked).float()

    def text_vectors(self, texts: Sequence[str]) -> Tensor:
        """(texts, width), of length 1."""
        network = self._comparing()
        if not texts or isinstance(texts, str):
            raise PortrayalError("Expected a list of texts, at least one.")
        rows = [self.reader.caption(text) for text in texts]
        read = [
            network.text_vectors(network.read(*self._ids(rows[start : start + self.batch])))
            for start in range(0, len(rows), self.batch)
        ]
        return torch.cat(read).float()

    def _comparing(self) -> Comparable:
        if not isinstance(self.network, Comparable):
            raise PortrayalError(
                f"The model '{self.name}' cannot compare pictures with texts it reads apart."
            )
        return self.network

    def _must_match(self) -> None:
        if not self.network.matching:
            raise PortrayalError(
                f"The model '{self.name}' has no part that tells whether a picture and a text belong together."
            )

    def _look(self, pixels: Tensor) -> Looked:
        if pixels.ndim != 4 or pixels.shape[1] != 3:
            raise PortrayalError(
                f"Pictures are given as (pictures, 3, height, width), got {tuple(pixels.shape)}."
            )
        height, width = pixels.shape[2:]
        side, patch = self.network.side, self.network.patch
        if self.network.square and (height, width) != (side, side):
            raise PortrayalError(
                f"The model '{self.name}' takes pictures of {side} by {side} pixels, got {height} by {width}."
            )
        if height % patch or width % patch:
            raise PortrayalError(
                f"The model '{self.name}' takes pictures whose sides are multiples of {patch}, got {height} by {width}."
            )
        check_range(pixels)
        return self.network.look(pixels.to(self.device))

    def _read(
        self, images: Images, texts: Texts, read: Callable[[str], list[int]] | None = None
    ) -> list[list[int]]:
        many = None if images is None else len(images)
        if isinstance(texts, str):
            texts = [texts] * (1 if many is None else many)
        if many is not None and many != len(texts):
            raise PortrayalError(
                f"There is a text for each picture: got {many} pictures, {len(texts)} texts."
            )
        if not texts:
            raise PortrayalError("There is no text to read.")
        known = {text: (read or self.reader.question)(text) for text in dict.fromkeys(texts)}
        return [known[text] for text in texts]

    def _spelled(self, words: Sequence[str], pieces: Pieces) -> list[list[int]]:
        spelled = [self.reader.pieces(word) for word in words]
        if len({tuple(numbers) for numbers in spelled}) < len(words):
            raise PortrayalError("Each word is asked about once: some are the same to the model.")
        long = [word for word, numbers in zip(words, spelled, strict=True) if len(numbers) > 1]
        if long and pieces == "refuse":
            raise PortrayalError(
                f"The model '{self.name}' writes some words in several pieces: {', '.join(map(shown, long))}."
            )
        return spelled

    def _check_starts(self, rows: Sequence[list[int]], words: Sequence[str]) -> None:
        """Some tokenizers write a word otherwise where a text begins with it: that is not asked about."""
        if any(row.index(self.reader.mask) == 1 for row in rows):
            odd = [word for word in words if not self.reader.same_at_start(word)]
            if odd:
                raise PortrayalError(
                    f"The model '{self.name}' writes some words otherwise at the beginning of a text "
                    f"({', '.join(map(shown, odd[:5]))}): put a word before the {MASK}."
                )

    def _product(self, images: Images, rows: Sequence[list[int]], numbers: Sequence[int]) -> Tensor:
        total: Tensor | None = None
        for done, number in enumerate(numbers):
            span = [*numbers[:done], *[self.reader.mask] * (len(numbers) - done)]
            filled = []
            for row in rows:
                at = row.index(self.reader.mask)
                filled.append([*row[:at], *span, *row[at + 1 :]])
                if len(filled[-1]) > self.reader.longest:
                    raise PortrayalError(
                        f"A text with a word of {len(numbers)} pieces is longer than the model takes: expected at most "
                        f"{self.reader.longest} pieces, found {len(filled[-1])}."
                    )
            found = self._at_masks(images, filled, _piece(number))[:, 0]
            total = found if total is None else total + found
        assert total is not None
        return total

    def _at_masks(
        self, images: Images, rows: Sequence[list[int]], keep: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """What is kept of (texts, masks, vocabulary)."""
        if not self.network.filling:
            raise PortrayalError(f"The model '{self.name}' has no part that fills masks.")
        masks = {row.count(self.reader.mask) for row in rows}
        if masks == {0} or len(masks) > 1:
            raise PortrayalError(
                f"Every text has as many {MASK}, and at least one: found {', '.join(map(str, sorted(masks)))}."
            )
        places = [[at for at, number in enumerate(row) if number == self.reader.mask] for row in rows]
        places_here = torch.tensor(places, device=self.device)
        found = []
        for some, hidden in self._fused(images, rows):
            at = places_here[some, :, None].expand(-1, -1, hidden.shape[2])
            for masked in hidden.gather(1, at).split(self.batch):  # a vocabulary is long
                said = self.network.words(masked)
                found.append(keep(functional.log_softmax(said.float(), dim=-1)))
        return torch.cat(found)

    def _fused(self, images: Images, rows: Sequence[list[int]]) -> Iterator[tuple[slice, Tensor]]:
        """Hidden states of texts that are read with their pictures, a batch at a time."""
        many = self._at_once(images)
        for start in range(0, len(rows), many):
            some = slice(start, start + many)
            once = {text: number for number, text in enumerate(dict.fromkeys(map(tuple, rows[some])))}
            # Before the pictures: a copy waits for all that is under way on a device.
            ids, there = self._ids([list(text) for text in once])
            which = torch.tensor([once[tuple(row)] for row in rows[some]], device=self.device)
            looked = None
            if isinstance(images, Looked):
                looked = images[some]
            elif images is not None:
                looked = self.encode(images[some])
            if isinstance(self.network, Comparable):
                yield some, self.network.fuse_read(looked, self.network.read(ids, there)[which], there[which])
            else:
                yield some, self.network.fuse(looked, ids[which], there[which])

    def _at_once(self, images: Images) -> int:
        """How many texts: a batch of pictures with all of theirs where they are read apart, since texts are short."""
        each = images.texts if isinstance(images, Looked) else 1
        return self.batch * each if isinstance(self.network, Comparable) else self.batch

    def _ids(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        """(texts, tokens): as numbers, and which are there."""
        ids = torch.tensor(padded(rows, self.reader.pad), device=self.device)
        return ids, ids != self.reader.pad


def _piece(number: int) -> Callable[[Tensor], Tensor]:
    """Of the first mask, one piece."""
    return lambda scores: scores[:, :1, number]


def check_range(pixels: Tensor) -> None:
    low, high = (float(edge) for edge in pixels.detach().aminmax())
    if not 0 <= low <= high <= 1:
        raise PortrayalError(f"Pixels have values from 0 to 1, got {low:g} to {high:g}.")
