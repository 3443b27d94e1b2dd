"""Counterfactual images: within epsilon of the image, and predicted as the other group."""

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


def hyperparameters(**more):
    from portrayal.mitigate.methods import Hyperparameters

    return Hyperparameters(**{"epsilon": 0.03, "step_size": 0.01, "steps": 4, "stop_at": 0.99, **more})


def share(torch, network, pixels, group, prompt):
    """Of the other group, among both, worked out from the network's logits."""
    with torch.no_grad():
        ids = prompt.ids.repeat(len(pixels), 1)
        scores = (
            network.word_logits(network.cross_encode(network.encode_image(pixels), ids, ids >= 0))[
                :, prompt.mask_index
            ]
            .double()
            .exp()
        )
    both = scores[:, [tiny.MAN, tiny.WOMAN]]
    own = group.clamp(max=1)
    return both[torch.arange(len(own)), 1 - own] / both.sum(dim=1)


def test_the_question_is_the_one_that_bias_is_measured_with(torch, network, pixels, prompt):
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.mitigate.counterfactual_images import group_log_probs
    from portrayal.models.masked_vlm import TorchMaskedVLM

    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    want = model.word_log_probs(pixels, BIAS_PROMPT, ["man", "woman"])
    assert torch.allclose(group_log_probs(network, pixels, prompt), want, atol=1e-5)
    network.requires_grad_(True)


def test_an_attack_goes_where_it_is_aimed_and_no_further_than_it_may(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    made = attack_images(network, pixels, group, prompt, hyperparameters())
    assert made.shape == pixels.shape
    assert (made - pixels).abs().max() <= 0.03 + 1e-6
    assert (made - pixels).abs().flatten(1).amax(dim=1).min() > 0.005
    assert made.min() >= 0
    assert made.max() <= 1
    before, after = (share(torch, network, some, group, prompt) for some in (pixels, made))
    assert (after > before).all()
    assert not made.requires_grad
    assert all(part.grad is None for part in network.parameters())


def test_pixels_at_the_end_of_their_range_stay_in_it(torch, network, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    for level in (0.0, 1.0):
        edge = torch.full((6, 3, 32, 32), level)
        made = attack_images(network, edge, group, prompt, hyperparameters(epsilon=0.2, step_size=0.1))
        assert made.min() >= 0
        assert made.max() <= 1
        assert not torch.equal(made, edge)


def test_a_picture_that_is_there_already_is_left_alone(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images

    taken_for = (share(torch, network, pixels, torch.zeros_like(group), prompt) > 0.5).long()
    said = torch.cat(
        [1 - taken_for[:3], taken_for[3:]]
    )  # the first three are taken for the other group already
    made = attack_images(network, pixels, said, prompt, hyperparameters(stop_at=0.5))
    assert torch.equal(made[:3], pixels[:3])
    assert (made != pixels)[3:].flatten(1).any(dim=1).all()


@pytest.mark.parametrize("steps", [1, 3])
def test_it_is_the_attack_that_bias_is_measured_with(torch, network, pixels, prompt, steps):
    """In training nothing may wait for the device, so it is written twice: here both move the same pixels as far."""
    from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.mitigate.counterfactual_images import attack_images
    from portrayal.models.masked_vlm import TorchMaskedVLM

    network.eval()
    was = torch.tensor([0, 1, 0, 1, 0, 1])
    aim = AttackTarget(BIAS_PROMPT, ("man", "woman"), was, 1 - was)
    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    for stop in (0.6, 0.99):
        attack = Attack(norm="linf", epsilon=0.02, step_size=0.015, steps=steps, stop_at=stop)
        want = perturb(model, pixels, aim, attack).pixels
        made = attack_images(
            network,
            pixels,
            was,
            prompt,
            hyperparameters(epsilon=0.02, step_size=0.015, steps=steps, stop_at=stop),
        )
        assert ((made - want).abs() < 1e-5).float().mean() > 0.999  # a slope of almost 0 may have either sign
        assert not torch.equal(want, pixels)
    network.requires_grad_(True)


def test_attacks_of_many_sizes(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import attack_images, attack_images_varied

    drawn = torch.tensor([0.0, 0.25, 0.5, 0.75, 0.999, 0.1])
    made = attack_images_varied(network, pixels, group, prompt, hyperparameters(), drawn)
    far = (made - pixels).abs().flatten(1).amax(dim=1)
    for size, one in zip(drawn.tolist(), far.tolist(), strict=True):
        assert one <= 0.03 * 4**size + 1e-6
        assert one > 0.01 * 4**size - 1e-6  # a step of its own size
    assert far.max() <= 4 * 0.03
    assert made.min() >= 0
    assert made.max() <= 1
    usual = attack_images(network, pixels, group, prompt, hyperparameters())
    assert torch.allclose(made[0], usual[0], atol=1e-6)  # drawn at 0: as large as ever
    assert not torch.allclose(made[4], usual[4], atol=1e-3)


# -- patches --------------------------------------------------------------------------------------------------------


def patches(torch, picture):
    """(patches, values)"""
    return (
        picture.unfold(1, PATCH, PATCH)
        .unfold(2, PATCH, PATCH)
        .permute(1, 2, 0, 3, 4)
        .reshape(-1, 3 * PATCH * PATCH)
    )


def test_patches_come_whole_from_one_picture_of_the_other_group(torch, network, pixels, group, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    drawn = torch.tensor([0.1, 0.5, 0.9, 0.3, 0.7, 0.2])
    made, found = patch_images(network, pixels, group, prompt, hyperparameters(patches=0.5), drawn)
    assert found.tolist() == [True, True, True, True, False, True]
    assert torch.equal(made[4], pixels[4])  # it shows nobody
    taken_from, many = set(), []
    for row in (0, 1, 2, 3, 5):
        own, now = patches(torch, pixels[row]), patches(torch, made[row])
        taken = [n for n in range(16) if not torch.equal(own[n], now[n])]
        many.append(len(taken))
        lenders = {
            other
            for other in range(6)
            if taken and all(torch.equal(patches(torch, pixels[other])[n], now[n]) for n in taken)
        }
        assert len(lenders) == (1 if taken else 0)
        for other in lenders:
            assert group[other] == 1 - group[row]
            taken_from.add((row, other))
    assert max(many) <= 8  # half of 16
    assert min(many) >= 1
    assert not made.requires_grad
    assert all(part.grad is None for part in network.parameters())
    # The lender is the next in the order of what was drawn, round and round.
    assert taken_from == {(0, 3), (1, 2), (2, 3), (3, 2), (5, 3)}


def test_patches_are_those_that_change_most_whom_the_network_sees(torch, network, pixels, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    pair, group = pixels[:2], torch.tensor([0, 1])
    made, _ = patch_images(
        network, pair, group, prompt, hyperparameters(patches=1 / 16), torch.tensor([0.3, 0.6])
    )
    for row in (0, 1):
        inside = pair[row : row + 1].clone().requires_grad_(True)
        ids = prompt.ids
        scores = network.word_logits(network.cross_encode(network.encode_image(inside), ids, ids >= 0))[
            0, prompt.mask_index
        ]
        words = (tiny.MAN, tiny.WOMAN) if row else (tiny.WOMAN, tiny.MAN)
        (slope,) = torch.autograd.grad(scores[words[0]] - scores[words[1]], inside)
        gain = patches(torch, (slope * (pair[1 - row] - inside))[0].detach()).sum(dim=1)
        own, now = patches(torch, pair[row]), patches(torch, made[row])
        assert [n for n in range(16) if not torch.equal(own[n], now[n])] == [int(gain.argmax())]


@pytest.mark.parametrize("groups", [[0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 2, 0]])
def test_where_nobody_of_the_other_group_is_there_pictures_stay(torch, network, pixels, prompt, groups):
    from portrayal.mitigate.counterfactual_images import patch_images

    made, found = patch_images(
        network, pixels[:3], torch.tensor(groups), prompt, hyperparameters(), torch.tensor([0.1, 0.5, 0.9])
    )
    assert not found.any()
    assert torch.equal(made, pixels[:3])


def test_how_much_is_taken_is_drawn_and_bounded(torch, network, pixels, prompt):
    from portrayal.mitigate.counterfactual_images import patch_images

    group = torch.tensor([0, 1, 0, 1, 0, 1])
    counts = set()
    for seed in range(6):
        drawn = torch.rand(6, generator=torch.Generator().manual_seed(seed))
        made, _ = patch_images(network, pixels, group, prompt, hyperparameters(patches=0.25), drawn)
        for one, was in zip(made, pixels, strict=True):
            differ = (patches(torch, one) != patches(torch, was)).any(dim=1)
            counts.add(int(differ.sum()))
    assert max(counts) <= 4  # a quarter of 16
    assert len(counts) > 1
