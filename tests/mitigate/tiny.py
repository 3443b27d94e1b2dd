"""A small world to be remedied: dark pictures of men, light ones of women, and some of nobody."""

from __future__ import annotations

from dataclasses import replace

from tests.models import tiny_masked

PAD, UNKNOWN, FIRST, LAST, MASK = range(5)
A, MAN, WOMAN, IS, THE, IN, PICTURE, COOKING = range(5, 13)
STREAMS = ["single", "dual"]
MANY = 12


def reader():
    from portrayal.models.masked_vlm.vocabulary import Vocabulary

    return Vocabulary(tiny_masked.WORDS, longest=12)


def network(stream: str = "dual", size: float = 0.2, dropout: float = 0.0):
    """With a size of 0, as training starts; else loud enough that every word changes what is said of others."""
    import torch

    from portrayal.models.masked_vlm.single import SingleNetwork

    drops = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    made = tiny_masked.dual(size, dropout=dropout) if stream == "dual" else tiny_masked.vilt(size, **drops)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if size and weight.ndim == 1 and name.endswith("weight"):
                weight.fill_(1.0)  # of a norm
    torch.manual_seed(0)
    return made if stream == "dual" else SingleNetwork(made, matching=True, square=True).eval()


def model(stream: str = "dual", size: float = 0.2, dropout: float = 0.0):
    from portrayal.models.masked_vlm import MaskedModel

    return MaskedModel("tiny", network(stream, size, dropout), reader())


def texts(number: int) -> tuple[list[str], list[str]]:
    """Two captions and two sentences. Men cook and women skate; of four pictures the last shows nobody that a text
    names alone."""
    if number % 4 == 3:
        return ["in the picture", "a man is cooking the woman is in the picture"], [
            "the picture",
            "is cooking",
        ]
    who, does = (("man", "cooking"), ("woman", "skate"))[number % 2]
    return (
        [f"the {who} is {does} in the picture", f"a {who} is a {who}"],
        [
            f"the {who} is {does}",
            "cooking in the picture" if number % 3 == 0 else f"a {who} is in the picture",
        ],
    )


def pictures():
    import numpy as np

    random = np.random.default_rng(0)
    light = np.array([60, 190] * (MANY // 2))[:, None, None, None]
    return (light + random.integers(-60, 60, (MANY, 32, 32, 3))).astype(np.uint8)


def material(others: bool = True, **more):
    """The other picture of each is the next one, which shows the other group."""
    import numpy as np

    from portrayal.lexicon import load_lexicon
    from portrayal.mitigate.training_data import Material, Whom

    seen = pictures()
    said = [texts(number) for number in range(MANY)]
    made = Material.made_from(
        seen,
        [captions for captions, _ in said],
        [sentences for _, sentences in said],
        reader(),
        Whom.of(load_lexicon("gender")),
        np.roll(seen, 1, axis=0) if others else None,
    )
    return replace(made, **more)


def remedy(name: str, made=None, **dose):
    from portrayal.mitigate.methods import Dose, method_named
    from portrayal.mitigate.objective import Remedy

    return Remedy(method_named(name), made or material(), Dose(**dose))


def recipe(**more):
    from portrayal.models.masked_vlm.training import Recipe

    usual = {"steps": 5, "batch": 8, "captioned": 4, "warmup": 2, "keep_every": 2, "rate": 1e-3}
    return Recipe(**{**usual, **more})
