"""What training asks of a network. Nothing here waits for the device, so that a step can be recorded and replayed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from portrayal.models.masked_vlm.network import Comparable, Looked, Network
from portrayal.models.masked_vlm.training.data import Pairs

IGNORED = -100  # a position whose word is not asked for
Losses = dict[str, Tensor]


@dataclass(frozen=True)
class Draws:
    """The random numbers of one step."""

    chosen: Tensor  # which pictures
    caption: Tensor  # which text of each, from 0 to 1
    sentence: Tensor
    hide_caption: Tensor  # for every word, from 0 to 1: the lowest are hidden
    hide_sentence: Tensor
    away: Tensor  # any number, by which a picture further on in the batch is chosen, to take its text
    like: Tensor  # from 0 to 1: in the upper half, which of the texts that are like its own is taken instead

    @classmethod
    def of_step(cls, pairs: Pairs, batch: int, seed: int, step: int) -> Draws:
        """They depend on the seed and the step alone."""
        random = np.random.default_rng([seed, step])
        many = min(batch, len(pairs))
        return cls(
            torch.from_numpy(random.integers(0, len(pairs), many)),
            torch.from_numpy(random.random(many, np.float32)),
            torch.from_numpy(random.random(many, np.float32)),
            torch.from_numpy(random.random((many, pairs.captions.shape[2]), np.float32)),
            torch.from_numpy(random.random((many, pairs.sentences.shape[2]), np.float32)),
            torch.from_numpy(random.integers(0, 1 << 30, many)),
            torch.from_numpy(random.random((many, 1), np.float32)),
        )

    def on(self, device: str) -> Self:
        return type(self)(*(getattr(self, field.name).to(device) for field in fields(self)))

    def copy_from(self, other: Draws) -> None:
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def parts(self, many: int) -> list[Self]:
        """The numbers of a batch that is gone through in so many parts."""
        if many == 1:
            return [self]
        split = [getattr(self, field.name).tensor_split(many) for field in fields(self)]
        return [type(self)(*part) for part in zip(*split, strict=True) if len(part[0])]


class Task(Protocol):
    """What a network learns from pairs."""

    @property
    def digest(self) -> str:
        """Tells it from others."""

    def on(self, device: str) -> Task: ...

    def draws(self, pairs: Pairs, batch: int, seed: int, step: int) -> Draws: ...

    def losses(
        self, network: Network, pairs: Pairs, draws: Draws, masked: float, captioned: int
    ) -> Losses: ...


class Usual:
    """Hidden words, matching pairs, and comparing pictures with texts."""

    digest = "usual"

    def on(self, device: str) -> Usual:  # noqa: ARG002 (it holds nothing)
        return self

    def draws(self, pairs: Pairs, batch: int, seed: int, step: int) -> Draws:
        return Draws.of_step(pairs, batch, seed, step)

    def losses(self, network: Network, pairs: Pairs, draws: Draws, masked: float, captioned: int) -> Losses:
        """Sentences are short and teach most; captions are long, so only the first `captioned` pictures of a batch
        have one.
        """
        looked = network.look(seen(pairs, draws))
        asked = sentences_of(pairs, draws, masked)
        losses = {"sentences": word_loss(fill(network, looked, asked.hidden, pairs), asked.words)}
        if captioned:
            about = captions_of(pairs, draws, masked, captioned)
            scores, others = with_captions(network, looked[:captioned], about, pairs, draws)
            losses |= {"captions": word_loss(scores, about.words), **others}
        return losses


@dataclass(frozen=True)
class Asked:
    """Texts, the same with words hidden, and what stood there; `IGNORED` where nothing is asked."""

    texts: Tensor
    hidden: Tensor
    words: Tensor


def seen(pairs: Pairs, draws: Draws) -> Tensor:
    """The pictures of a batch, from 0 to 1."""
    return pairs.pictures[draws.chosen].permute(0, 3, 1, 2).float() / 255


def sentences_of(pairs: Pairs, draws: Draws, masked: float) -> Asked:
    texts = one_of_each(pairs.sentences, draws.chosen, draws.sentence)
    return Asked(texts, *hide(texts, draws.hide_sentence, masked, pairs))


def captions_of(pairs: Pairs, draws: Draws, masked: float, captioned: int) -> Asked:
    some = slice(0, captioned)
    texts = one_of_each(pairs.captions, draws.chosen[some], draws.caption[some])
    return Asked(texts, *hide(texts, draws.hide_caption[some], masked, pairs))


def fill(network: Network, looked: Looked, hidden: Tensor, pairs: Pairs) -> Tensor:
    """A logit of every word at every place of texts."""
    return network.words(network.fuse(looked, hidden, hidden != pairs.pad))


def with_captions(
    network: Network, looked: Looked, asked: Asked, pairs: Pairs, draws: Draws
) -> tuple[Tensor, Losses]:
    """The words of captions, and what is lost on telling whose they are."""
    losses: Losses = {}
    captions, captioned = asked.texts, len(asked.texts)
    some = slice(0, captioned)
    texts = torch.cat([asked.hidden, captions])
    there = texts != pairs.pad
    own = slice(captioned, 2 * captioned)
    away = _others(draws.away[some])
    if isinstance(network, Comparable):
        read = network.read(texts, there)
        losses["compared"], likeness = _compared(network, looked, read[own])
        others = torch.where(draws.like[some, 0] < 0.5, away, _alike(likeness, 2 * draws.like[some] - 1))
        rows, there = torch.cat([read, read[own][others]]), torch.cat([there, there[own][others]])
        fused = network.fuse_read(_repeated(looked, 3), rows, there)
    else:
        rows, there = torch.cat([texts, captions[away]]), torch.cat([there, there[own][away]])
        fused = network.fuse(_repeated(looked, 3), rows, there)
    scores = network.words(fused[:captioned])
    if network.matching:
        losses["matched"] = _matched(network, fused[captioned:])
    return scores, losses


def hide(ids: Tensor, chance: Tensor, share: float, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Texts with words hidden, at least one in each, and what stood there.

    Words that stand in every text are hidden less. A hidden word always becomes the mask: nothing else is ever asked
    about, and short texts have no words to spare for the changes that BERT makes to others.
    """
    words = ids != pairs.pad
    if pairs.ends:
        words = words.scatter(1, words.sum(dim=1, keepdim=True) - 1, False)
    words[:, 0] = False  # the beginning and the end of a text are no words
    chance = (chance / pairs.often[ids]).masked_fill(~words, torch.inf)
    hidden = words & ((chance < share) | (chance == chance.amin(dim=1, keepdim=True)))
    return ids.masked_fill(hidden, pairs.mask), ids.masked_fill(~hidden, IGNORED)


def one_of_each(texts: Tensor, chosen: Tensor, which: Tensor) -> Tensor:
    return texts[chosen, (which * texts.shape[1]).long()].long()


def _repeated(looked: Looked, times: int) -> Looked:
    return Looked(looked.tokens.repeat(times, 1, 1))


def word_loss(scores: Tensor, words: Tensor) -> Tensor:
    """Cross-entropy of the hidden words."""
    return functional.cross_entropy(scores.flatten(0, 1).float(), words.flatten(), ignore_index=IGNORED)


def _compared(network: Comparable, looked: Looked, read: Tensor) -> tuple[Tensor, Tensor]:
    """Among all texts of the batch, which is the picture's, and the other way round; and how like they are."""
    likeness = network.picture_vectors(looked) @ network.text_vectors(read).T / network.temperature()
    likeness = likeness.float()
    truth = torch.arange(len(likeness), device=likeness.device)
    loss = functional.cross_entropy(likeness, truth) + functional.cross_entropy(likeness.T, truth)
    return loss / 2, likeness


def _others(drawn: Tensor) -> Tensor:
    """For each of a batch any other of it, and of one alone itself."""
    many = len(drawn)
    return (torch.arange(many, device=drawn.device) + 1 + drawn % max(many - 1, 1)) % many


def _alike(likeness: Tensor, drawn: Tensor) -> Tensor:
    """For each picture the text of another, the likelier the more it is like its own."""
    others = ~torch.eye(len(likeness), dtype=torch.bool, device=likeness.device)
    weights = (functional.softmax(likeness.detach(), dim=1) + 1e-6) * others
    upto = weights @ torch.ones_like(weights).triu()  # a running sum, the same each time on every device
    aim = drawn.clamp(0, 0.9999) * upto[:, -1:]
    return torch.searchsorted(upto, aim, right=True).clamp(max=len(upto) - 1).squeeze(1)


def _matched(network: Network, fused: Tensor) -> Tensor:
    """The first half of the texts are with their pictures, the others with those of others."""
    scores = network.match(fused).float()
    truth = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    truth[: len(scores) // 2] = 1
    return functional.cross_entropy(scores, truth)
