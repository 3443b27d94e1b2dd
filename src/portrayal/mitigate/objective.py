"""What a method asks of a network in a step of training."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from portrayal.errors import PortrayalError
from portrayal.mitigate.counterfactual_images import attacked, patched, varied
from portrayal.mitigate.counterparts import NOBODY, Twins
from portrayal.mitigate.methods import ATTACK, GIVEN, PATCHES, SAME, VARIED, Dose, Method
from portrayal.mitigate.training_data import Material
from portrayal.models.masked_vlm.network import Looked, Network
from portrayal.models.masked_vlm.training import Pairs
from portrayal.models.masked_vlm.training.losses import (
    IGNORED,
    Asked,
    Draws,
    Losses,
    captions_of,
    fill,
    one_of_each,
    seen,
    sentences_of,
    with_captions,
    word_loss,
)


@dataclass(frozen=True)
class MoreDraws(Draws):
    """With a number for how each picture's counterpart is made."""

    other: Tensor  # from 0 to 1


@dataclass(frozen=True)
class _Said:
    """Texts of a batch with words hidden, what the network says there, and their counterparts."""

    asked: Asked
    scores: Tensor
    group: Tensor
    twins: Tensor

    @property
    def counted(self) -> Tensor:
        """Where a word is hidden that does not name a group: only there are both pairs to be told the same.

        With the groups' words in, a network would learn not to see them.
        """
        return (self.asked.words != IGNORED) & (self.asked.texts == self.twins)

    def other_hidden(self, mask: int) -> Tensor:
        return torch.where(self.asked.words != IGNORED, mask, self.twins)


class Remedy:
    """A method as a task of training (see `models.masked.training.losses.Task`)."""

    def __init__(self, method: Method, material: Material, dose: Dose):
        if method.picture == GIVEN and material.counterfactuals is None:
            raise PortrayalError(
                f"The method '{method.name}' needs the pictures with somebody of the other group, and there are none."
            )
        self.method, self.material, self.dose = method, material, dose

    @property
    def digest(self) -> str:
        return json.dumps([self.method.name, self.dose.told(self.method), self.material.digest])

    def on(self, device: str) -> Remedy:
        return Remedy(self.method, self.material.on(device), self.dose)

    def draws(self, pairs: Pairs, batch: int, seed: int, step: int) -> MoreDraws:
        usual = Draws.of_step(pairs, batch, seed, step)
        other = np.random.default_rng([seed, step, 1]).random(len(usual.chosen), np.float32)
        return MoreDraws(**vars(usual), other=torch.from_numpy(other))

    def losses(self, network: Network, pairs: Pairs, draws: Draws, masked: float, captioned: int) -> Losses:
        assert isinstance(draws, MoreDraws)
        pixels = seen(pairs, draws)
        looked = network.look(pixels)
        texts, losses = self._said(network, pairs, draws, looked, masked, captioned)
        words = {
            name: word_loss(self._evened(said.scores, said), said.asked.words) for name, said in texts.items()
        }
        if not self.method.doubles:
            return {**words, **losses}
        group = self._group(texts)
        other, found = self._other(network, draws, pixels, looked, group)
        share = 1 - self.dose.weight if self.method.agree else 0.5
        for name, said in texts.items():
            some = slice(0, len(said.group))
            known = found[some] & (said.group != NOBODY) & (said.group == group[some])
            hidden = said.other_hidden(pairs.mask) if self.method.swap else said.asked.hidden
            again = fill(network, other[some], hidden, pairs)
            counted = said.counted & known[:, None]
            losses[name] = share * words[name]
            lost = _lost(self._evened(again, said), said.asked.words)
            losses[f"{name}, other"] = share * _mean(lost, counted)
            if self.method.agree:
                losses[f"{name}, apart"] = self.dose.weight * _mean(_apart(said.scores, again), counted)
        return losses

    def _said(
        self, network: Network, pairs: Pairs, draws: Draws, looked: Looked, masked: float, captioned: int
    ) -> tuple[dict[str, _Said], Losses]:
        """Of sentences and captions; and what is lost on telling whose captions are."""
        asked = sentences_of(pairs, draws, masked)
        scores = fill(network, looked, asked.hidden, pairs)
        texts = {
            "sentences": _Said(asked, scores, *_chosen(self.material.sentences, draws.chosen, draws.sentence))
        }
        losses: Losses = {}
        if captioned:
            some = slice(0, captioned)
            asked = captions_of(pairs, draws, masked, captioned)
            scores, losses = with_captions(network, looked[some], asked, pairs, draws)
            twins = _chosen(self.material.captions, draws.chosen[some], draws.caption[some])
            texts["captions"] = _Said(asked, scores, *twins)
        return texts, losses

    def _evened(self, scores: Tensor, said: _Said) -> Tensor:
        """Where words are learnt evenly, what the texts' group makes likelier is put to their account in advance.

        The other pair has the words of the texts it was made from, and so their group's account.
        """
        if not self.method.even:
            return scores
        return scores.float() + self.material.leaning[said.group][:, None, :]

    @staticmethod
    def _group(texts: dict[str, _Said]) -> Tensor:
        """Of each picture: what its sentence says, else its caption."""
        group = texts["sentences"].group
        if "captions" not in texts:
            return group
        told = texts["captions"].group
        told = functional.pad(told, (0, len(group) - len(told)), value=NOBODY)
        return torch.where(group == NOBODY, told, group)

    def _other(
        self, network: Network, draws: MoreDraws, pixels: Tensor, looked: Looked, group: Tensor
    ) -> tuple[Looked, Tensor]:
        """What the network sees in the other pictures, and which were made."""
        how, found = self.method.picture, torch.ones_like(group, dtype=torch.bool)
        if how == SAME:
            return looked, found
        prompt, dose = self.material.prompt, self.dose
        if how == GIVEN:
            assert self.material.counterfactuals is not None
            made = self.material.counterfactuals[draws.chosen].permute(0, 3, 1, 2).float() / 255
            if self.material.swapped is not None:
                found = self.material.swapped[draws.chosen]
        elif how == ATTACK:
            made = attacked(network, pixels, group, prompt, dose)
        elif how == VARIED:
            made = varied(network, pixels, group, prompt, dose, draws.other)
        else:
            assert how == PATCHES
            made, found = patched(network, pixels, group, prompt, dose, draws.other)
        return network.look(made.detach()), found


class Retrieval:
    """Telling whose captions are, and nothing else: how a model is fitted to searching."""

    digest = "retrieval"

    def on(self, device: str) -> Retrieval:  # noqa: ARG002 (it holds nothing)
        return self

    def draws(self, pairs: Pairs, batch: int, seed: int, step: int) -> Draws:
        return Draws.of_step(pairs, batch, seed, step)

    def losses(self, network: Network, pairs: Pairs, draws: Draws, masked: float, captioned: int) -> Losses:
        looked = network.look(seen(pairs, draws))[:captioned]
        return with_captions(network, looked, captions_of(pairs, draws, masked, captioned), pairs, draws)[1]


def _chosen(twins: Twins, chosen: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """As the texts of a batch were chosen."""
    ids = one_of_each(twins.ids, chosen, which)
    return twins.group[chosen, (which * twins.group.shape[1]).long()], ids


def _lost(scores: Tensor, words: Tensor) -> Tensor:
    """(texts, places): cross-entropy, 0 where nothing is asked."""
    lost = functional.cross_entropy(
        scores.float().flatten(0, 1), words.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return lost.view(words.shape)


def _apart(scores: Tensor, again: Tensor) -> Tensor:
    """(texts, places): by how much what is said of the other pair differs (KL), for both to learn from."""
    first, second = functional.log_softmax(scores.float(), -1), functional.log_softmax(again.float(), -1)
    return (first.exp() * (first - second)).sum(dim=-1)


def _mean(values: Tensor, where: Tensor) -> Tensor:
    """Over the places that count; 0 where there are none."""
    return torch.where(where, values, 0.0).sum() / where.sum().clamp(min=1)
