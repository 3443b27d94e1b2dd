"""Adversarial attacks: small changes of an image until a model assigns the person to the other group."""

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
    """The hyperparameters of an attack. Pixels are from 0 to 1.

    Parameters
    ----------
    kind
        `pgd` takes up to `steps` steps of `step_size`; `fgsm` takes one step of `epsilon`.
    epsilon
        Maximum change of a pixel (linf), or maximum root mean square of all changes (l2), which does not depend on
        the size of the image.
    steps
        Maximum number of steps of `pgd`.
    step_size
        Size of a step of `pgd`.
    norm
        `linf` or `l2`.
    stop_at
        Stop attacking an image once the target word has this share of the two words' probability.
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
        """Return an attack; None stands for the default norm of the kind, and the default size of the norm."""
        norm = norm or DEFAULT_NORM.get(kind, "l2")
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        default_size = NORMS[norm]
        return cls(
            kind,
            default_size.epsilon if epsilon is None else epsilon,
            default_size.steps if steps is None else steps,
            default_size.step_size if step_size is None else step_size,
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
    """The prompt of an attack, and the words that the model should predict at its mask before and after it."""

    prompt: str
    words: Sequence[str]
    source_index: Tensor  # index in `words` of the word that each image has before the attack
    target_index: Tensor  # index in `words` of the word that each image should have after it
    normalize_over: NormalizeOver = "vocabulary"


@dataclass(frozen=True)
class PerturbedImages:
    """Attacked images, and the number of attack steps of each."""

    pixels: Tensor
    steps: Tensor


def perturb(
    model: MaskedVLM, pixels: Tensor, target: AttackTarget, attack: Attack, n_steps: Tensor | None = None
) -> PerturbedImages:
    """Return the attacked images; all must have the same shape.

    Parameters
    ----------
    model
        A model with gradients.
    pixels
        The images, from 0 to 1.
    target
        The prompt, and the words before and after the attack.
    attack
        The hyperparameters.
    n_steps
        Fixed number of steps of each image, to make an attack as large as another one. None: stop at the target.
    """
    steps_taken = torch.zeros(len(pixels), dtype=torch.long, device=pixels.device)
    max_steps = (
        torch.full_like(steps_taken, attack.max_steps) if n_steps is None else n_steps.to(pixels.device)
    )
    perturbed = pixels.clone()
    active = torch.arange(len(pixels), device=pixels.device)
    for _ in range(attack.max_steps):
        active = active[steps_taken[active] < max_steps[active]]
        if not len(active):
            break
        gradient, target_share = _gradient(model, perturbed[active], target, active)
        if n_steps is None:
            not_reached = target_share < attack.stop_at
            active, gradient = active[not_reached], gradient[not_reached]
        if not len(active):
            break
        perturbed[active] = _take_step(perturbed[active], pixels[active], gradient, attack)
        steps_taken[active] += 1
    return PerturbedImages(perturbed, steps_taken)


def _gradient(
    model: MaskedVLM, pixels: Tensor, target: AttackTarget, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradient of the target word's log-probability, and its share of the two words' probability."""
    with torch.enable_grad():
        pixels = pixels.detach().requires_grad_(True)
        log_probs = model.word_log_probs(
            pixels, target.prompt, target.words, normalize_over=target.normalize_over
        )
        target_log_prob = log_probs.gather(1, target.target_index[indices, None])[:, 0]
        source_log_prob = log_probs.gather(1, target.source_index[indices, None])[:, 0]
        if not target_log_prob.requires_grad:
            raise PortrayalError(
                f"The model '{model.name}' gives no gradients, which an attack needs: measure it with "
                f"counterfactual images of your own (--attack exact)."
            )
        (gradient,) = torch.autograd.grad(target_log_prob.sum(), pixels)
    return gradient, torch.sigmoid((target_log_prob - source_log_prob).detach())


def _take_step(perturbed: Tensor, pixels: Tensor, gradient: Tensor, attack: Attack) -> Tensor:
    """Return the images after a step along the gradient, projected to within epsilon of the original pixels."""
    if attack.norm == "linf":
        perturbed = perturbed + attack.effective_step_size * gradient.sign()
        perturbed = torch.minimum(torch.maximum(perturbed, pixels - attack.epsilon), pixels + attack.epsilon)
    else:
        perturbed = perturbed + attack.effective_step_size * gradient / _root_mean_square(gradient).clamp(
            min=1e-30
        )
        change = perturbed - pixels
        perturbed = pixels + change * (attack.epsilon / _root_mean_square(change).clamp(min=1e-30)).clamp(
            max=1
        )
    return perturbed.clamp(0, 1)


def _root_mean_square(images: Tensor) -> Tensor:
    """Return the root mean square of each image."""
    values: Tensor = images.float().square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return values
