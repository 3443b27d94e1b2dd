"""The other picture by an attack: pixels are moved a little, until a model takes the person for somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from portrayal.counterfactual.prompts import ATTACKS, EXACT, NORMS, USUAL_NORM
from portrayal.errors import PortrayalError, unknown_name
from portrayal.models.masked_vlm.model import FillsMasks, Over

KINDS = tuple(kind for kind in ATTACKS if kind != EXACT)


@dataclass(frozen=True)
class Attack:
    """How far and how pixels, which are from 0 to 1, may be moved.

    `epsilon` is the most that any pixel moves (linf), or the root of the mean square of all moves (l2), so that a size
    means the same in small and large pictures. `pgd` takes up to `steps` steps of `step` each, and leaves a picture
    alone once its aim has `stop_at` of what the aim and what it was have together; `fgsm` takes one step of `epsilon`.
    """

    kind: str = "pgd"
    epsilon: float = NORMS["l2"].epsilon
    steps: int = NORMS["l2"].steps
    step_size: float = NORMS["l2"].step_size
    norm: str = "l2"
    stop_at: float = 0.9

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("attack", self.kind, KINDS)
        if self.norm not in NORMS:
            raise unknown_name("norm", self.norm, NORMS)
        if not 0 < self.epsilon <= 1 or not 0 < self.step_size <= 1:
            raise PortrayalError(
                f"Pixels are from 0 to 1 and move by more than 0, got epsilon {self.epsilon:g}, step {self.step_size:g}."
            )
        if self.steps < 1:
            raise PortrayalError(f"An attack takes one step or more, got {self.steps}.")
        if not 0.5 <= self.stop_at < 1:
            raise PortrayalError(f"An attack stops at a share from 0.5 to below 1, got {self.stop_at:g}.")

    @classmethod
    def usual(
        cls,
        kind: str = "pgd",
        norm: str | None = None,
        epsilon: float | None = None,
        step: float | None = None,
        steps: int | None = None,
        stop_at: float = 0.9,
    ) -> Attack:
        """With the kind's own norm, and the norm's own size, where none is given."""
        norm = norm or USUAL_NORM.get(kind, "l2")
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        usual = NORMS[norm]
        return cls(
            kind,
            usual.epsilon if epsilon is None else epsilon,
            usual.steps if steps is None else steps,
            usual.step_size if step is None else step,
            norm,
            stop_at,
        )

    @property
    def most(self) -> int:
        return self.steps if self.kind == "pgd" else 1

    @property
    def stride(self) -> float:
        return self.step_size if self.kind == "pgd" else self.epsilon


@dataclass(frozen=True)
class Aim:
    """What an attack makes a model say: at the mask of `prompt`, one of `words` instead of another."""

    prompt: str
    words: Sequence[str]
    was: Tensor  # of each picture, which word it was
    toward: Tensor  # and which it becomes
    normalize_over: Over = "vocabulary"


@dataclass(frozen=True)
class Perturbed:
    pixels: Tensor
    steps: Tensor  # taken by each picture


def perturb(
    model: FillsMasks, pixels: Tensor, aim: Aim, attack: Attack, as_many: Tensor | None = None
) -> Perturbed:
    """Pictures of one size, moved toward the aim and still pictures.

    With `as_many`, each takes that many steps whether or not it has arrived: an attack as large as another one.
    """
    taken = torch.zeros(len(pixels), dtype=torch.long, device=pixels.device)
    limit = torch.full_like(taken, attack.most) if as_many is None else as_many.to(pixels.device)
    moved = pixels.clone()
    going = torch.arange(len(pixels), device=pixels.device)
    for _ in range(attack.most):
        going = going[taken[going] < limit[going]]
        if not len(going):
            break
        slope, share = _slope(model, moved[going], aim, going)
        if as_many is None:
            on = share < attack.stop_at
            going, slope = going[on], slope[on]
        if not len(going):
            break
        moved[going] = _stepped(moved[going], pixels[going], slope, attack)
        taken[going] += 1
    return Perturbed(moved, taken)


def _slope(model: FillsMasks, pixels: Tensor, aim: Aim, rows: Tensor) -> tuple[Tensor, Tensor]:
    """How the aim's log-probability changes with each pixel, and its share of itself and what the picture was."""
    with torch.enable_grad():
        pixels = pixels.detach().requires_grad_(True)
        said = model.word_log_probs(pixels, aim.prompt, aim.words, over=aim.normalize_over)
        toward = said.gather(1, aim.toward[rows, None])[:, 0]
        was = said.gather(1, aim.was[rows, None])[:, 0]
        if not toward.requires_grad:
            raise PortrayalError(
                f"The model '{model.name}' gives no gradients, which an attack follows: measure it with pictures "
                f"that are given (--attack exact)."
            )
        (slope,) = torch.autograd.grad(toward.sum(), pixels)
    return slope, torch.sigmoid((toward - was).detach())


def _stepped(moved: Tensor, pixels: Tensor, slope: Tensor, attack: Attack) -> Tensor:
    if attack.norm == "linf":
        moved = moved + attack.stride * slope.sign()
        moved = torch.minimum(torch.maximum(moved, pixels - attack.epsilon), pixels + attack.epsilon)
    else:
        moved = moved + attack.stride * slope / _spread(slope).clamp(min=1e-30)
        away = moved - pixels
        moved = pixels + away * (attack.epsilon / _spread(away).clamp(min=1e-30)).clamp(max=1)
    return moved.clamp(0, 1)


def _spread(of: Tensor) -> Tensor:
    """The root of the mean square of each picture."""
    made: Tensor = of.float().square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return made
