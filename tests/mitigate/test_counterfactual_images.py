"""Counterfactual images: close to the image, and predicted as the other group."""

from __future__ import annotations

import importlib.util

import pytest

from tests.mitigate import tiny
from tests.mitigate.tiny import STREAMS

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)
PATCH = 8


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.fixture(scope="module", params=STREAMS)
def network(request):
    return tiny.network(request.param)


@pytest.fixture(scope="module")
def prompt():
    return tiny.training_data().prompt


@pytest.fixture(scope="module")
def pixels(torch):
    return torch.from_numpy(tiny.images()[:6]).permute(0, 3, 1, 2).float() / 255


@pytest.fixture(scope="module")
def group(torch):
    return torch.tensor([0, 1, 0, 1, 2, 0])


def hyperparameters(**options):
    from portrayal.mitigate.methods import Hyperparameters

    return Hyperparameters(**{"epsilon": 0.03, "step_size": 0.01, "steps": 4, "stop_at": 0.99, **options})


def share(torch, network, pixels, group, prompt):
    """Probability of the other group's word as a share of both groups' words, from the network's logits."""
    with torch.no_grad():
        ids = prompt.ids.repeat(len(pixels), 1)
        exp_logits = (
            network.word_logits(network.cross_encode(network.encode_image(pixels), ids, ids >= 0))[
                :, prompt.mask_index
            ]
            .double()
            .exp()
        )
    pair = exp_logits[:, [tiny.MAN, tiny.WOMAN]]
    own_group = group.clamp(max=1)
    return pair[torch.arange(len(own_group)), 1 - own_group] / pair.sum(dim=1)


def test_the_prompt_is_that_of_the_bias_metric(torch, network, pixels, prompt):
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.mitigate.counterfactual_images import group_log_probs
    from portrayal.models.masked_vlm import TorchMaskedVLM

    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    expected = model.word_log_probs(pixels, BIAS_PROMPT, ["man", "woman"])
    assert torch.allclose(group_log_probs(network, pixels, prompt), expected, atol=1e-5)
    network.requires_grad_(True)


def test_an_attack_raises_the_target_group_within_epsilon(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    attacked = attack_images(network, pixels, group, prompt, hyperparameters())
    assert attacked.shape == pixels.shape
    assert (attacked - pixels).abs().max() <= 0.03 + 1e-6
    assert (attacked - pixels).abs().flatten(1).amax(dim=1).min() > 0.005
    assert attacked.min() >= 0
    assert attacked.max() <= 1
    share_before, share_after = (
        share(torch, network, images, group, prompt) for images in (pixels, attacked)
    )
    assert (share_after > share_before).all()
    assert not attacked.requires_grad
    assert all(parameter.grad is None for parameter in network.parameters())


def test_black_and_white_pixels_stay_in_range(torch, network, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    for level in (0.0, 1.0):
        uniform_pixels = torch.full((6, 3, 32, 32), level)
        attacked = attack_images(
            network, uniform_pixels, group, prompt, hyperparameters(epsilon=0.2, step_size=0.1)
        )
        assert attacked.min() >= 0
        assert attacked.max() <= 1
        assert not torch.equal(attacked, uniform_pixels)


def test_an_image_already_predicted_as_the_target_group_is_unchanged(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    predicted = (share(torch, network, pixels, torch.zeros_like(group), prompt) > 0.5).long()
    # The first three are already predicted as the other group.
    image_group = torch.cat([1 - predicted[:3], predicted[3:]])
    attacked = attack_images(network, pixels, image_group, prompt, hyperparameters(stop_at=0.5))
    assert torch.equal(attacked[:3], pixels[:3])
    assert (attacked != pixels)[3:].flatten(1).any(dim=1).all()


@pytest.mark.parametrize("steps", [1, 3])
def test_the_attack_equals_that_of_the_bias_metric(torch, network, pixels, prompt, steps):
    """Training has its own attack, which never waits for the device. Both change the same pixels by the same amount."""
    from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.mitigate.counterfactual_images import attack_images
    from portrayal.models.masked_vlm import TorchMaskedVLM

    network.eval()
    image_group = torch.tensor([0, 1, 0, 1, 0, 1])
    target = AttackTarget(BIAS_PROMPT, ("man", "woman"), image_group, 1 - image_group)
    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    for stop_at in (0.6, 0.99):
        attack = Attack(norm="linf", epsilon=0.02, step_size=0.015, steps=steps, stop_at=stop_at)
        expected = perturb(model, pixels, target, attack).pixels
        attacked = attack_images(
            network,
            pixels,
            image_group,
            prompt,
            hyperparameters(epsilon=0.02, step_size=0.015, steps=steps, stop_at=stop_at),
        )
        # A gradient near 0 may have either sign.
        assert ((attacked - expected).abs() < 1e-5).float().mean() > 0.999
        assert not torch.equal(expected, pixels)
    network.requires_grad_(True)


def test_attack_sizes_vary_with_u(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images, attack_images_varied

    u = torch.tensor([0.0, 0.25, 0.5, 0.75, 0.999, 0.1])
    attacked = attack_images_varied(network, pixels, group, prompt, hyperparameters(), u)
    max_change = (attacked - pixels).abs().flatten(1).amax(dim=1)
    for u_of_image, change in zip(u.tolist(), max_change.tolist(), strict=True):
        assert change <= 0.03 * 4**u_of_image + 1e-6
        assert change > 0.01 * 4**u_of_image - 1e-6  # the step size grows too
    assert max_change.max() <= 4 * 0.03
    assert attacked.min() >= 0
    assert attacked.max() <= 1
    default_attack = attack_images(network, pixels, group, prompt, hyperparameters())
    assert torch.allclose(attacked[0], default_attack[0], atol=1e-6)  # u = 0: the default size
    assert not torch.allclose(attacked[4], default_attack[4], atol=1e-3)


# -- patches --------------------------------------------------------------------------------------------------------


def patches(torch, image):
    """The patches of an image: (patches, values)."""
    return (
        image.unfold(1, PATCH, PATCH)
        .unfold(2, PATCH, PATCH)
        .permute(1, 2, 0, 3, 4)
        .reshape(-1, 3 * PATCH * PATCH)
    )


def test_patches_are_copied_from_one_image_of_the_other_group(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    u = torch.tensor([0.1, 0.5, 0.9, 0.3, 0.7, 0.2])
    patched, has_donor = patch_images(network, pixels, group, prompt, hyperparameters(patches=0.5), u)
    assert has_donor.tolist() == [True, True, True, True, False, True]
    assert torch.equal(patched[4], pixels[4])  # it shows nobody
    donor_pairs, patch_counts = set(), []
    for row in (0, 1, 2, 3, 5):
        before, after = patches(torch, pixels[row]), patches(torch, patched[row])
        copied = [n for n in range(16) if not torch.equal(before[n], after[n])]
        patch_counts.append(len(copied))
        donors = {
            donor
            for donor in range(6)
            if copied and all(torch.equal(patches(torch, pixels[donor])[n], after[n]) for n in copied)
        }
        assert len(donors) == (1 if copied else 0)
        for donor in donors:
            assert group[donor] == 1 - group[row]
            donor_pairs.add((row, donor))
    assert max(patch_counts) <= 8  # half of 16
    assert min(patch_counts) >= 1
    assert not patched.requires_grad
    assert all(parameter.grad is None for parameter in network.parameters())
    # The donor is the image of the other group with the next larger u, cyclically.
    assert donor_pairs == {(0, 3), (1, 2), (2, 3), (3, 2), (5, 3)}


def test_patches_with_the_largest_effect_on_the_predicted_group_are_copied(torch, network, pixels, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    images, group = pixels[:2], torch.tensor([0, 1])
    patched, _ = patch_images(
        network, images, group, prompt, hyperparameters(patches=1 / 16), torch.tensor([0.3, 0.6])
    )
    for row in (0, 1):
        image = images[row : row + 1].clone().requires_grad_(True)
        ids = prompt.ids
        logits = network.word_logits(network.cross_encode(network.encode_image(image), ids, ids >= 0))[
            0, prompt.mask_index
        ]
        words = (tiny.MAN, tiny.WOMAN) if row else (tiny.WOMAN, tiny.MAN)
        (gradient,) = torch.autograd.grad(logits[words[0]] - logits[words[1]], image)
        gain = patches(torch, (gradient * (images[1 - row] - image))[0].detach()).sum(dim=1)
        before, after = patches(torch, images[row]), patches(torch, patched[row])
        assert [n for n in range(16) if not torch.equal(before[n], after[n])] == [int(gain.argmax())]


@pytest.mark.parametrize("groups", [[0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 2, 0]])
def test_images_are_unchanged_without_an_image_of_the_other_group(torch, network, pixels, prompt, groups):
    from portrayal.mitigate.counterfactual_images import patch_images

    patched, has_donor = patch_images(
        network, pixels[:3], torch.tensor(groups), prompt, hyperparameters(), torch.tensor([0.1, 0.5, 0.9])
    )
    assert not has_donor.any()
    assert torch.equal(patched, pixels[:3])


def test_the_number_of_patches_varies_and_is_bounded(torch, network, pixels, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    group = torch.tensor([0, 1, 0, 1, 0, 1])
    counts = set()
    for seed in range(6):
        u = torch.rand(6, generator=torch.Generator().manual_seed(seed))
        patched, _ = patch_images(network, pixels, group, prompt, hyperparameters(patches=0.25), u)
        for patched_image, image in zip(patched, pixels, strict=True):
            is_copied = (patches(torch, patched_image) != patches(torch, image)).any(dim=1)
            counts.add(int(is_copied.sum()))
    assert max(counts) <= 4  # a quarter of 16
    assert len(counts) > 1
