"""The methods: how the other picture and the other text are made, and what is asked of a model about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from portrayal.errors import PortrayalError, unknown_name

# How the other picture is made.
SAME, ATTACK, VARIED, PATCHES, GIVEN = "same", "attack", "varied", "patches", "given"


@dataclass(frozen=True)
class Method:
    name: str
    about: str
    picture: str = SAME
    swap: bool = False  # the other text has the other group's words
    agree: bool = False  # what is said of both pairs should be the same (KL)
    dropout: bool = False  # more is dropped at random
    even: bool = False  # words that lean to a group are learnt as if they did not

    @property
    def doubles(self) -> bool:
        """Whether there is another pair at all."""
        return self.swap or self.picture != SAME


METHODS = {
    one.name: one
    for one in (
        Method("vanilla", "trained on as before"),
        Method("gender-swap", "every text also with the other group's words", swap=True),
        Method("dropout", "more is dropped at random in training", dropout=True),
        Method("fairvlp-v", "FairVLP with other pictures only", picture=ATTACK, agree=True),
        Method("fairvlp-l", "FairVLP with other texts only", swap=True, agree=True),
        Method("fairvlp", "FairVLP: other pictures by attack, other texts by word, and both told the same",
               picture=ATTACK, swap=True, agree=True),
        Method("fairvlp-varied", "FairVLP with attacks of many sizes, up to four times as large",
               picture=VARIED, swap=True, agree=True),
        Method("fairvlp-patches", "FairVLP with patches of somebody of the other group in place of an attack",
               picture=PATCHES, swap=True, agree=True),
        Method("even-words", "words are learnt as if each were said of both groups as often", even=True),
        Method("fairvlp-even", "FairVLP with attacks of many sizes, and even words",
               picture=VARIED, swap=True, agree=True, even=True),
        Method("image-swap", "FairVLP with other pictures that are given", picture=GIVEN, swap=True, agree=True),
    )
}  # fmt: skip


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


@dataclass(frozen=True)
class Dose:
    """How much of a method. The paper says neither how its losses are weighed nor how large its attack is."""

    weight: float = 0.5  # of telling both the same, the rest of hidden words
    epsilon: float = 8 / 255  # of an attack on pixels from 0 to 1, none of which moves further
    steps: int = 5
    step_size: float = 2 / 255
    stop_at: float = 0.9  # a picture is left alone once the other group has this share of both
    dropout: float = 0.2
    patches: float = 0.25  # the share of a picture that another's patches take, at most

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise PortrayalError(
                f"The weight of telling both the same is from 0 to below 1, got {self.weight:g}."
            )
        if not 0 < self.epsilon <= 1 or not 0 < self.step_size <= 1 or self.steps < 1:
            raise PortrayalError(
                f"An attack takes one step or more, and pixels from 0 to 1 move by more than 0, got {self.steps} steps "
                f"of {self.step_size:g} up to {self.epsilon:g}."
            )
        if not 0.5 <= self.stop_at < 1:
            raise PortrayalError(f"An attack stops at a share from 0.5 to below 1, got {self.stop_at:g}.")
        if not 0 <= self.dropout < 1:
            raise PortrayalError(f"What is dropped is a share from 0 to below 1, got {self.dropout:g}.")
        if not 0 < self.patches <= 1:
            raise PortrayalError(
                f"Patches take a share of a picture from above 0 to 1, got {self.patches:g}."
            )

    def told(self, method: Method) -> dict[str, float]:
        """What of it a method uses."""
        used = {
            "weight": method.agree,
            "epsilon": method.picture in (ATTACK, VARIED),
            "steps": method.picture in (ATTACK, VARIED),
            "step": method.picture in (ATTACK, VARIED),
            "stop_at": method.picture in (ATTACK, VARIED),
            "dropout": method.dropout,
            "patches": method.picture == PATCHES,
        }
        return {name: value for name, value in asdict(self).items() if used[name]}
