"""Adversarial attacks: move pixels a little, until a model assigns the person to the other group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from portrayal.counterfactual.prompts import ATTACKS, DEFAULT_NORM, EXACT, NORMS
from portrayal.errors import PortrayalError, unknown_name
from portrayal.models.masked_vlm.model import MaskedVLM, NormalizeOver

ATTACK_KINDS = tuple(kind for kind in ATTACKS if kind != EXACT)


@dataclass(frozen=True)
class Attack:
    """The parameters of an attack on pixels from 0 to 1.

    Parameters
    ----------
    kind
        `pgd` takes up to `steps` steps of `step_size`; `fgsm` takes one step of `epsilon`.
    epsilon
        Largest change of any pixel (linf), or root mean square of all changes (l2). The latter means the same in small
        and large images.
    steps
        Number of steps of `pgd`, at most.
    step_size
        Size of a step of `pgd`.
    norm
        `linf` or `l2`.
    stop_at
        Stop attacking an image once the target has this share of the probability of target and source together.
    """

    kind: str = "pgd"
    epsilon: float = NORMS["l2"].epsilon
    steps: int = NORMS["l2"].steps
    step_size: float = NORMS["l2"].step_size
    norm: str = "l2"
    stop_at: float = 0.9

    def __post_init__(self) -> None:
        if self.kind not in ATTACK_KINDS:
            raise unknown_name("attack", self.kind, ATTACK_KINDS)
        if self.norm not in NORMS:
            raise unknown_name("norm", self.norm, NORMS)
        if not 0 < self.epsilon <= 1 or not 0 < self.step_size <= 1:
            raise PortrayalError(
                f"Pixels are from 0 to 1 and move by more than 0, got epsilon {self.epsilon:g}, "
                f"step {self.step_size:g}."
            )
        if self.steps < 1:
            raise PortrayalError(f"An attack takes one step or more, got {self.steps}.")
        if not 0.5 <= self.stop_at < 1:
            raise PortrayalError(f"An attack stops at a share from 0.5 to below 1, got {self.stop_at:g}.")

    @classmethod
    def default(
        cls,
        kind: str = "pgd",
        norm: str | None = None,
        epsilon: float | None = None,
        step_size: float | None = None,
        steps: int | None = None,
        stop_at: float = 0.9,
    ) -> Attack:
        """An attack with the default norm of the kind, and the default size of the norm."""
        norm = norm or DEFAULT_NORM.get(kind, "l2")
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        size = NORMS[norm]
        return cls(
            kind,
            size.epsilon if epsilon is None else epsilon,
            size.steps if steps is None else steps,
            size.step_size if step_size is None else step_size,
            norm,
            stop_at,
        )

    @property
    def max_steps(self) -> int:
        return self.steps if self.kind == "pgd" else 1

    @property
    def effective_step_size(self) -> float:
        return self.step_size if self.kind == "pgd" else self.epsilon


@dataclass(frozen=True)
class AttackTarget:
    """What an attack makes a model predict at the mask of `prompt`: one of `words` instead of another."""

    prompt: str
    words: Sequence[str]
    source: Tensor  # index of each image's word before the attack
    target: Tensor  # index of the word after it
    normalize_over: NormalizeOver = "vocabulary"


@dataclass(frozen=True)
class Perturbed:
    """Attacked images."""

    pixels: Tensor
    steps: Tensor  # number of steps of each image


def perturb(
    model: MaskedVLM, pixels: Tensor, target: AttackTarget, attack: Attack, n_steps: Tensor | None = None
) -> Perturbed:
    """Attack images of one shape.

    Parameters
    ----------
    model
        A model with gradients.
    pixels
        The images, from 0 to 1.
    target
        What the attack aims at.
    attack
        The parameters of the attack.
    n_steps
        Number of steps of each image, whether or not it reaches the target: for an attack as large as another one.
    """
    taken = torch.zeros(len(pixels), dtype=torch.long, device=pixels.device)
    limit = torch.full_like(taken, attack.max_steps) if n_steps is None else n_steps.to(pixels.device)
    moved = pixels.clone()
    active = torch.arange(len(pixels), device=pixels.device)
    for _ in range(attack.max_steps):
        active = active[taken[active] < limit[active]]
        if not len(active):
            break
        gradient, share = _gradient(model, moved[active], target, active)
        if n_steps is None:
            remaining = share < attack.stop_at
            active, gradient = active[remaining], gradient[remaining]
        if not len(active):
            break
        moved[active] = _take_step(moved[active], pixels[active], gradient, attack)
        taken[active] += 1
    return Perturbed(moved, taken)


def _gradient(model: MaskedVLM, pixels: Tensor, target: AttackTarget, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of the target's log-probability by pixel, and its share of the probability of target and source."""
    with torch.enable_grad():
        pixels = pixels.detach().requires_grad_(True)
        log_probs = model.word_log_probs(
            pixels, target.prompt, target.words, normalize_over=target.normalize_over
        )
        target_log_prob = log_probs.gather(1, target.target[rows, None])[:, 0]
        source_log_prob = log_probs.gather(1, target.source[rows, None])[:, 0]
        if not target_log_prob.requires_grad:
            raise PortrayalError(
                f"The model '{model.name}' gives no gradients, which an attack needs: measure it with "
                f"counterfactual images of your own (--attack exact)."
            )
        (gradient,) = torch.autograd.grad(target_log_prob.sum(), pixels)
    return gradient, torch.sigmoid((target_log_prob - source_log_prob).detach())


def _take_step(moved: Tensor, pixels: Tensor, gradient: Tensor, attack: Attack) -> Tensor:
    if attack.norm == "linf":
        moved = moved + attack.effective_step_size * gradient.sign()
        moved = torch.minimum(torch.maximum(moved, pixels - attack.epsilon), pixels + attack.epsilon)
    else:
        moved = moved + attack.effective_step_size * gradient / _root_mean_square(gradient).clamp(min=1e-30)
        change = moved - pixels
        moved = pixels + change * (attack.epsilon / _root_mean_square(change).clamp(min=1e-30)).clamp(max=1)
    return moved.clamp(0, 1)


def _root_mean_square(images: Tensor) -> Tensor:
    """The root mean square of each image."""
    values: Tensor = images.float().square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return values
