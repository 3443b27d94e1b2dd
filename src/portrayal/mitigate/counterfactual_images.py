"""The other picture, made while a network is trained against what it has learnt so far.

Nothing here waits for the device, so that a step can be recorded and replayed; pictures that are left alone are carried
along unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from portrayal.mitigate.methods import Dose
from portrayal.mitigate.training_data import Prompt
from portrayal.models.masked_vlm.network import Network

_LARGEST = 4.0  # times the size of an attack, where sizes vary


def who(network: Network, pixels: Tensor, prompt: Prompt) -> Tensor:
    """(pictures, 2): log-probabilities of the groups' words."""
    ids = prompt.ids.expand(len(pixels), -1)
    hidden = network.fuse(network.look(pixels), ids, torch.ones_like(ids, dtype=torch.bool))
    scores = network.words(hidden[:, prompt.place]).float()
    said = functional.log_softmax(scores, dim=-1)
    return torch.stack([said[:, word] for word in prompt.words], dim=1)


def attacked(
    network: Network, pixels: Tensor, group: Tensor, prompt: Prompt, dose: Dose, times: Tensor | None = None
) -> Tensor:
    """Pixels moved until the network takes the person for one of the other group. `times` scales each one's size."""
    size = torch.ones(len(pixels), device=pixels.device) if times is None else times
    size = size.view(-1, 1, 1, 1)
    moved = pixels
    for _ in range(dose.steps):
        slope, share = _slope(network, moved, group, prompt)
        on = (share < dose.stop_at).view(-1, 1, 1, 1)
        further = moved + size * dose.step_size * slope.sign()
        further = torch.minimum(
            torch.maximum(further, pixels - size * dose.epsilon), pixels + size * dose.epsilon
        )
        moved = torch.where(on, further.clamp(0, 1), moved)
    return moved


def varied(
    network: Network, pixels: Tensor, group: Tensor, prompt: Prompt, dose: Dose, drawn: Tensor
) -> Tensor:
    """Attacks from the usual size up to several times as large: `drawn` from 0 to 1 says how large each is."""
    return attacked(network, pixels, group, prompt, dose, _LARGEST**drawn)


def patched(
    network: Network, pixels: Tensor, group: Tensor, prompt: Prompt, dose: Dose, drawn: Tensor
) -> tuple[Tensor, Tensor]:
    """Patches of another picture, of somebody of the other group, where they change most whom the network sees.

    How much each patch would change is told by the slope at the picture. Returned with whether a picture found another.
    """
    distance = (drawn[None, :] - drawn[:, None]) % 1.0
    fitting = group[None, :] == 1 - group[:, None]
    donor = torch.where(fitting, distance, 2.0).argmin(dim=1)
    found = fitting.any(dim=1)
    lent = pixels[donor]
    slope, _ = _slope(network, pixels, group, prompt, difference=True)
    gain = functional.avg_pool2d((slope * (lent - pixels)).sum(dim=1, keepdim=True), network.patch).flatten(1)
    # A share of the patches, drawn anew for each picture, from a quarter of the most to the most.
    many = (gain.shape[1] * dose.patches * (0.25 + 0.75 * (drawn * 7 % 1.0))).clamp(min=1.0)
    rank = gain.argsort(dim=1, descending=True).argsort(dim=1)
    taken = ((rank < many[:, None]) & (gain > 0) & found[:, None]).float()
    rows, columns = pixels.shape[2] // network.patch, pixels.shape[3] // network.patch
    where = taken.view(-1, 1, rows, columns)
    where = where.repeat_interleave(network.patch, dim=2).repeat_interleave(network.patch, dim=3)
    return torch.where(where > 0, lent, pixels), found


def _slope(
    network: Network, pixels: Tensor, group: Tensor, prompt: Prompt, difference: bool = False
) -> tuple[Tensor, Tensor]:
    """How the other group's log-probability changes with each pixel, and its share of both groups'."""
    first = group == 0  # of pictures of nobody any aim will do: they are not used
    with torch.enable_grad():
        pixels = pixels.detach().requires_grad_(True)
        one, two = who(network, pixels, prompt).unbind(dim=1)
        toward, was = torch.where(first, two, one), torch.where(first, one, two)
        (slope,) = torch.autograd.grad((toward - was if difference else toward).sum(), pixels)
    return slope, torch.sigmoid((toward - was).detach())
