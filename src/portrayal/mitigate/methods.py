"""The mitigation methods: how counterfactual images and texts are made, and which losses use them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from portrayal.errors import PortrayalError, unknown_name

# Kinds of counterfactual images.
SAME, ATTACK, VARIED, PATCHES, GIVEN = "same", "attack", "varied", "patches", "given"


@dataclass(frozen=True)
class Method:
    """A mitigation method: its counterfactual images and texts, and its losses."""

    name: str
    description: str
    image: str = SAME
    swap: bool = False  # counterfactual texts have the other group's words
    consistency: bool = False  # KL loss between the predictions for both pairs
    dropout: bool = False  # a higher dropout rate
    balanced_word_loss: bool = False  # logits are adjusted for the words' association with groups

    @property
    def has_counterfactual(self) -> bool:
        """Whether training uses a counterfactual pair of image and text."""
        return self.swap or self.image != SAME


METHODS = {
    method.name: method
    for method in (
        Method("vanilla", "continued training without mitigation"),
        Method("gender-swap", "every text also with the other group's words", swap=True),
        Method("dropout", "a higher dropout rate in training", dropout=True),
        Method("fairvlp-v", "FairVLP with counterfactual images only", image=ATTACK, consistency=True),
        Method("fairvlp-l", "FairVLP with counterfactual texts only", swap=True, consistency=True),
        Method("fairvlp", "FairVLP: counterfactual images (attack) and texts (swapped words) with a KL loss",
               image=ATTACK, swap=True, consistency=True),
        Method("fairvlp-varied", "FairVLP with attacks of many sizes, up to four times as large",
               image=VARIED, swap=True, consistency=True),
        Method("fairvlp-patches", "FairVLP with image patches of a person of the other group instead of an attack",
               image=PATCHES, swap=True, consistency=True),
        Method("balanced-word-loss", "word loss balanced between groups by logit adjustment", balanced_word_loss=True),
        Method("fairvlp-balanced-word-loss", "FairVLP with attacks of many sizes and a group-balanced word loss",
               image=VARIED, swap=True, consistency=True, balanced_word_loss=True),
        Method("image-swap", "FairVLP with given counterfactual images", image=GIVEN, swap=True, consistency=True),
    )
}  # fmt: skip


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters of the methods. The paper gives neither the weight of its losses nor its attack's settings.

    Parameters
    ----------
    weight
        Weight of the KL loss; the loss on masked words has the rest.
    epsilon
        Largest change of a pixel by an attack, for pixels from 0 to 1.
    steps, step_size
        Number and size of the attack's steps.
    stop_at
        Stop attacking an image once the other group has this share of the two groups' probability.
    dropout
        Dropout rate of the method `dropout`.
    patches
        Largest share of an image that patches of another image replace.
    """

    weight: float = 0.5
    epsilon: float = 8 / 255
    steps: int = 5
    step_size: float = 2 / 255
    stop_at: float = 0.9
    dropout: float = 0.2
    patches: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise PortrayalError(f"The weight of the KL loss is from 0 to below 1, got {self.weight:g}.")
        if not 0 < self.epsilon <= 1 or not 0 < self.step_size <= 1 or self.steps < 1:
            raise PortrayalError(
                f"An attack has one step or more, and step size and epsilon above 0 and at most 1, got {self.steps} "
                f"steps of {self.step_size:g} up to {self.epsilon:g}."
            )
        if not 0.5 <= self.stop_at < 1:
            raise PortrayalError(f"An attack stops at a share from 0.5 to below 1, got {self.stop_at:g}.")
        if not 0 <= self.dropout < 1:
            raise PortrayalError(f"A dropout rate is from 0 to below 1, got {self.dropout:g}.")
        if not 0 < self.patches <= 1:
            raise PortrayalError(
                f"Patches replace a share of an image above 0 and at most 1, got {self.patches:g}."
            )

    def used_by(self, method: Method) -> dict[str, float]:
        """Return the hyperparameters that a method uses, by name."""
        used = {
            "weight": method.consistency,
            "epsilon": method.image in (ATTACK, VARIED),
            "steps": method.image in (ATTACK, VARIED),
            "step_size": method.image in (ATTACK, VARIED),
            "stop_at": method.image in (ATTACK, VARIED),
            "dropout": method.dropout,
            "patches": method.image == PATCHES,
        }
        return {name: value for name, value in asdict(self).items() if used[name]}
