"""Attacks: they move toward the target, no further than epsilon, and stop."""

from __future__ import annotations

import pytest
import torch

from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
from portrayal.errors import PortrayalError
from tests.counterfactual.toy import SIDE, toy

PROMPT = "a [MASK] is in the picture"
NOUNS = ("man", "woman")


def attack_target(own_groups: list[int]) -> AttackTarget:
    source = torch.tensor(own_groups)
    return AttackTarget(PROMPT, NOUNS, source, 1 - source)


def images(*reds: float):
    pixels = torch.full((len(reds), 3, SIDE, SIDE), 0.5)
    pixels[:, 0] = torch.tensor(reds)[:, None, None]
    return pixels


def target_share(model, pixels, own_group: int) -> float:
    probs = model.word_log_probs(pixels, PROMPT, NOUNS).exp()[0]
    return float(probs[1 - own_group] / probs.sum())


def test_both_groups_reach_the_target_and_only_red_moves():
    before = images(0.55, 0.45)
    perturbed = perturb(
        toy(), before, attack_target([0, 1]), Attack(norm="linf", epsilon=0.2, step_size=0.02, steps=20)
    )
    assert target_share(toy(), perturbed.pixels[:1], 0) >= 0.9
    assert target_share(toy(), perturbed.pixels[1:], 1) >= 0.9
    assert torch.equal(perturbed.pixels[:, 1:], before[:, 1:])  # green and blue have no gradient
    assert (perturbed.pixels[0, 0] < before[0, 0]).all()
    assert (perturbed.pixels[1, 0] > before[1, 0]).all()


def test_each_image_stops_at_the_target():
    near, far = 0.49, 0.60
    perturbed = perturb(
        toy(),
        images(near, far),
        attack_target([0, 0]),
        Attack(norm="linf", epsilon=0.4, step_size=0.02, steps=20),
    )
    # share of the target: sigmoid(40 x) has .9 at x = .0549: 3 steps of .02 from .49, 8 from .60
    assert perturbed.steps.tolist() == [3, 8]
    assert float(perturbed.pixels[0, 0, 0, 0]) == pytest.approx(near - 3 * 0.02, abs=1e-6)


def test_an_image_at_the_target_is_unchanged():
    before = images(0.2)
    perturbed = perturb(toy(), before, attack_target([0]), Attack.default(norm="linf"))
    assert perturbed.steps.tolist() == [0]
    assert torch.equal(perturbed.pixels, before)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("kind", ["pgd", "fgsm"])
def test_changes_are_limited_by_epsilon(kind, norm):
    torch.manual_seed(0)
    before = torch.rand(6, 3, SIDE, SIDE)
    before[:, 0] = before[:, 0] * 0.1 + 0.5
    attack = Attack(kind, epsilon=0.03, steps=7, step_size=0.01, norm=norm)
    perturbed = perturb(toy(), before, attack_target([0] * 6), attack)
    change = (perturbed.pixels - before).flatten(1)
    distance = change.abs().amax(1) if norm == "linf" else change.square().mean(1).sqrt()
    assert (distance <= 0.03 + 1e-6).all()
    assert (distance > 0.01).all()
    assert perturbed.pixels.min() >= 0
    assert perturbed.pixels.max() <= 1
    assert perturbed.steps.tolist() == [7 if kind == "pgd" else 1] * 6


def test_perturbed_pixels_stay_between_0_and_1():
    black = torch.zeros(1, 3, SIDE, SIDE)
    perturbed = perturb(
        toy(), black, attack_target([1]), Attack(norm="linf", epsilon=0.5, step_size=0.1)
    )  # toward red
    assert 0 <= perturbed.pixels.min() <= perturbed.pixels.max() <= 1
    same_group = AttackTarget(PROMPT, NOUNS, torch.tensor([1]), torch.tensor([1]))
    perturbed_dark = perturb(toy(), images(0.01), same_group, Attack.default(norm="linf"))
    assert perturbed_dark.pixels.min() >= 0


def test_the_number_of_steps_can_be_given():
    """The placebo takes exactly these numbers of steps, whether or not it reaches the target."""
    limit = torch.tensor([0, 2, 5])
    perturbed = perturb(
        toy(),
        images(0.1, 0.1, 0.9),
        attack_target([0, 0, 0]),
        Attack(norm="linf", epsilon=1.0),
        n_steps=limit,
    )
    assert perturbed.steps.tolist() == [0, 2, 5]


def test_a_batch_changes_nothing_but_the_last_digits():
    torch.manual_seed(1)
    before = torch.rand(5, 3, SIDE, SIDE)
    own_groups = [0, 1, 0, 1, 0]
    together = perturb(toy(), before, attack_target(own_groups), Attack.default(norm="linf"))
    for n in range(5):
        single = perturb(
            toy(), before[n : n + 1], attack_target(own_groups[n : n + 1]), Attack.default(norm="linf")
        )
        assert torch.allclose(single.pixels[0], together.pixels[n], atol=1e-5)


def test_normalised_over_groups_it_moves_the_same_way():
    source = torch.tensor([0])
    target = AttackTarget(PROMPT, NOUNS, source, 1 - source, normalize_over="candidates")
    assert float(perturb(toy(), images(0.6), target, Attack.default(norm="linf")).pixels[0, 0].mean()) < 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "other"}, "Unknown attack"),
        ({"norm": "l1"}, "Unknown norm"),
        ({"epsilon": 0}, "got epsilon 0"),
        ({"epsilon": 8}, "got epsilon 8"),
        ({"steps": 0}, "one step or more"),
        ({"stop_at": 0.3}, "from 0.5 to below 1"),
    ],
)
def test_invalid_parameters_are_refused(arguments, message):
    with pytest.raises(PortrayalError, match=message):
        Attack(**arguments)
