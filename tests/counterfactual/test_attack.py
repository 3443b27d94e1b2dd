"""The attack: it goes where it is aimed, no further than it may, and stops."""

from __future__ import annotations

import pytest
import torch

from portrayal.counterfactual.attack import Aim, Attack, perturb
from portrayal.errors import PortrayalError
from tests.counterfactual.toy import SIDE, toy

PROMPT = "a [MASK] is in the picture"
NOUNS = ("man", "woman")


def aim(own: list[int]) -> Aim:
    was = torch.tensor(own)
    return Aim(PROMPT, NOUNS, was, 1 - was)


def pictures(*reds: float):
    made = torch.full((len(reds), 3, SIDE, SIDE), 0.5)
    made[:, 0] = torch.tensor(reds)[:, None, None]
    return made


def share(model, pixels, own: int) -> float:
    said = model.word_log_probs(pixels, PROMPT, NOUNS).exp()[0]
    return float(said[1 - own] / said.sum())


def test_it_turns_both_groups_and_moves_nothing_else():
    before = pictures(0.55, 0.45)
    made = perturb(toy(), before, aim([0, 1]), Attack(norm="linf", epsilon=0.2, step_size=0.02, steps=20))
    assert share(toy(), made.pixels[:1], 0) >= 0.9
    assert share(toy(), made.pixels[1:], 1) >= 0.9
    assert torch.equal(made.pixels[:, 1:], before[:, 1:])  # green and blue have no slope
    assert (made.pixels[0, 0] < before[0, 0]).all()
    assert (made.pixels[1, 0] > before[1, 0]).all()


def test_it_stops_each_picture_when_it_has_arrived():
    near, far = 0.49, 0.60
    made = perturb(
        toy(), pictures(near, far), aim([0, 0]), Attack(norm="linf", epsilon=0.4, step_size=0.02, steps=20)
    )
    # of the aim and what it was, sigmoid(40 x) has .9 at x = .0549: 3 steps of .02 from .49, 8 from .60
    assert made.steps.tolist() == [3, 8]
    assert float(made.pixels[0, 0, 0, 0]) == pytest.approx(near - 3 * 0.02, abs=1e-6)


def test_one_that_is_there_already_is_left_alone():
    before = pictures(0.2)
    made = perturb(toy(), before, aim([0]), Attack.usual(norm="linf"))
    assert made.steps.tolist() == [0]
    assert torch.equal(made.pixels, before)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("kind", ["pgd", "fgsm"])
def test_it_goes_no_further_than_it_may(kind, norm):
    torch.manual_seed(0)
    before = torch.rand(6, 3, SIDE, SIDE)
    before[:, 0] = before[:, 0] * 0.1 + 0.5
    attack = Attack(kind, epsilon=0.03, steps=7, step_size=0.01, norm=norm)
    made = perturb(toy(), before, aim([0] * 6), attack)
    away = (made.pixels - before).flatten(1)
    size = away.abs().amax(1) if norm == "linf" else away.square().mean(1).sqrt()
    assert (size <= 0.03 + 1e-6).all()
    assert (size > 0.01).all()
    assert made.pixels.min() >= 0
    assert made.pixels.max() <= 1
    assert made.steps.tolist() == [7 if kind == "pgd" else 1] * 6


def test_pixels_stay_pixels():
    edge = torch.zeros(1, 3, SIDE, SIDE)
    made = perturb(toy(), edge, aim([1]), Attack(norm="linf", epsilon=0.5, step_size=0.1))  # toward red
    assert 0 <= made.pixels.min() <= made.pixels.max() <= 1
    same = Aim(PROMPT, NOUNS, torch.tensor([1]), torch.tensor([1]))
    dark = perturb(toy(), pictures(0.01), same, Attack.usual(norm="linf"))
    assert dark.pixels.min() >= 0


def test_as_many_steps_as_another_took():
    """The placebo: neither less nor more, whether or not it has arrived."""
    limit = torch.tensor([0, 2, 5])
    made = perturb(
        toy(), pictures(0.1, 0.1, 0.9), aim([0, 0, 0]), Attack(norm="linf", epsilon=1.0), as_many=limit
    )
    assert made.steps.tolist() == [0, 2, 5]


def test_a_batch_changes_nothing_but_the_last_digits():
    torch.manual_seed(1)
    before = torch.rand(5, 3, SIDE, SIDE)
    own = [0, 1, 0, 1, 0]
    whole = perturb(toy(), before, aim(own), Attack.usual(norm="linf"))
    for n in range(5):
        alone = perturb(toy(), before[n : n + 1], aim(own[n : n + 1]), Attack.usual(norm="linf"))
        assert torch.allclose(alone.pixels[0], whole.pixels[n], atol=1e-5)


def test_over_the_groups_alone_it_goes_the_same_way():
    was = torch.tensor([0])
    here = Aim(PROMPT, NOUNS, was, 1 - was, over="candidates")
    assert float(perturb(toy(), pictures(0.6), here, Attack.usual(norm="linf")).pixels[0, 0].mean()) < 0.6


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "other"}, "Unknown attack"),
        ({"norm": "l1"}, "Unknown norm"),
        ({"epsilon": 0}, "got epsilon 0"),
        ({"epsilon": 8}, "got epsilon 8"),
        ({"steps": 0}, "one step or more"),
        ({"stop_at": 0.3}, "from 0.5 to below 1"),
    ],
)
def test_what_cannot_be_is_refused(wrong, says):
    with pytest.raises(PortrayalError, match=says):
        Attack(**wrong)
