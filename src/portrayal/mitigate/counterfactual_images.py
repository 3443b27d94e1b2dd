"""Counterfactual images made during training, against the current state of the network.

Nothing here synchronises with the device, so that a step can run as a CUDA graph; images that are not attacked any
further stay in the batch unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from portrayal.mitigate.methods import Hyperparameters
from portrayal.mitigate.training_data import GroupPrompt
from portrayal.models.masked_vlm.network import VLMNetwork

_MAX_SIZE_FACTOR = 4.0


def group_log_probs(network: VLMNetwork, pixels: Tensor, prompt: GroupPrompt) -> Tensor:
    """Return the log-probabilities of the groups' words at the mask, of shape (images, 2)."""
    ids = prompt.ids.expand(len(pixels), -1)
    hidden = network.cross_encode(network.encode_image(pixels), ids, torch.ones_like(ids, dtype=torch.bool))
    scores = network.word_logits(hidden[:, prompt.mask_index]).float()
    log_probs = functional.log_softmax(scores, dim=-1)
    return torch.stack([log_probs[:, word] for word in prompt.words], dim=1)


def attack_images(
    network: VLMNetwork,
    pixels: Tensor,
    group: Tensor,
    prompt: GroupPrompt,
    hyperparameters: Hyperparameters,
    size_factors: Tensor | None = None,
) -> Tensor:
    """Return images perturbed until the network predicts the other group (PGD).

    Stop attacking an image once the other group has the share `stop_at` of the two groups' probability. `size_factors`
    scales the size of the attack for each image.
    """
    size = torch.ones(len(pixels), device=pixels.device) if size_factors is None else size_factors
    size = size.view(-1, 1, 1, 1)
    perturbed = pixels
    for _ in range(hyperparameters.steps):
        gradient, share = _gradient(network, perturbed, group, prompt)
        active = (share < hyperparameters.stop_at).view(-1, 1, 1, 1)
        candidate = perturbed + size * hyperparameters.step_size * gradient.sign()
        candidate = torch.minimum(
            torch.maximum(candidate, pixels - size * hyperparameters.epsilon),
            pixels + size * hyperparameters.epsilon,
        )
        perturbed = torch.where(active, candidate.clamp(0, 1), perturbed)
    return perturbed


def attack_images_varied(
    network: VLMNetwork,
    pixels: Tensor,
    group: Tensor,
    prompt: GroupPrompt,
    hyperparameters: Hyperparameters,
    u: Tensor,
) -> Tensor:
    """Return attacked images, with sizes from the default to four times as large: 4 ** `u` with `u` from 0 to 1."""
    return attack_images(network, pixels, group, prompt, hyperparameters, _MAX_SIZE_FACTOR**u)


def patch_images(
    network: VLMNetwork,
    pixels: Tensor,
    group: Tensor,
    prompt: GroupPrompt,
    hyperparameters: Hyperparameters,
    u: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return images with patches of a donor image of the other group, and whether an image has a donor.

    The patches are those that change the predicted group most, estimated by the gradient at the image.
    """
    distance = (u[None, :] - u[:, None]) % 1.0
    is_other_group = group[None, :] == 1 - group[:, None]
    donor = torch.where(is_other_group, distance, 2.0).argmin(dim=1)
    has_donor = is_other_group.any(dim=1)
    donor_pixels = pixels[donor]
    gradient, _ = _gradient(network, pixels, group, prompt, difference=True)
    gain = functional.avg_pool2d(
        (gradient * (donor_pixels - pixels)).sum(dim=1, keepdim=True), network.patch_size
    ).flatten(1)
    # A random share of the patches for each image, from a quarter of the maximum to the maximum.
    n_patches = (gain.shape[1] * hyperparameters.patches * (0.25 + 0.75 * (u * 7 % 1.0))).clamp(min=1.0)
    rank = gain.argsort(dim=1, descending=True).argsort(dim=1)
    replaced = ((rank < n_patches[:, None]) & (gain > 0) & has_donor[:, None]).float()
    rows, columns = pixels.shape[2] // network.patch_size, pixels.shape[3] // network.patch_size
    mask = replaced.view(-1, 1, rows, columns)
    mask = mask.repeat_interleave(network.patch_size, dim=2).repeat_interleave(network.patch_size, dim=3)
    return torch.where(mask > 0, donor_pixels, pixels), has_donor


def _gradient(
    network: VLMNetwork, pixels: Tensor, group: Tensor, prompt: GroupPrompt, difference: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the gradient of the other group's log-probability, and its share of the two groups' probability."""
    # Images without a group get an arbitrary target, since they are not used.
    is_first = group == 0
    with torch.enable_grad():
        pixels = pixels.detach().requires_grad_(True)
        first_log_prob, second_log_prob = group_log_probs(network, pixels, prompt).unbind(dim=1)
        target, original = (
            torch.where(is_first, second_log_prob, first_log_prob),
            torch.where(is_first, first_log_prob, second_log_prob),
        )
        (gradient,) = torch.autograd.grad((target - original if difference else target).sum(), pixels)
    return gradient, torch.sigmoid((target - original).detach())
