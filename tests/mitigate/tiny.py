"""A small world for mitigation: dark images of men, light images of women, and some of nobody."""

from __future__ import annotations

from dataclasses import replace

from tests.models import tiny_masked

PAD, UNKNOWN, FIRST, LAST, MASK = range(5)
A, MAN, WOMAN, IS, THE, IN, PICTURE, COOKING = range(5, 13)
STREAMS = ["single", "dual"]
MANY = 12


def tokenizer():
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    return WordTokenizer(tiny_masked.WORDS, max_length=12)


def network(stream: str = "dual", size: float = 0.2, dropout: float = 0.0):
    """With a size of 0, an untrained network; else large weights, so that every word affects the predictions."""
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
    from portrayal.models.masked_vlm import TorchMaskedVLM

    return TorchMaskedVLM("tiny", network(stream, size, dropout), tokenizer())


def texts(number: int) -> tuple[list[str], list[str]]:
    """Two captions and two sentences. Men cook, women skate; texts of every fourth image name no single group."""
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


def images():
    import numpy as np

    random = np.random.default_rng(0)
    light = np.array([60, 190] * (MANY // 2))[:, None, None, None]
    return (light + random.integers(-60, 60, (MANY, 32, 32, 3))).astype(np.uint8)


def training_data(counterfactuals: bool = True, **more):
    """The counterfactual of each image is the next one, which shows the other group."""
    import numpy as np

    from portrayal.lexicon import load_lexicon
    from portrayal.mitigate.training_data import GroupPair, TrainingData

    pixels = images()
    image_texts = [texts(number) for number in range(MANY)]
    data = TrainingData.from_texts(
        pixels,
        [captions for captions, _ in image_texts],
        [sentences for _, sentences in image_texts],
        tokenizer(),
        GroupPair.of(load_lexicon("gender")),
        np.roll(pixels, 1, axis=0) if counterfactuals else None,
    )
    return replace(data, **more)


def mitigation_task(name: str, data=None, **hyperparameters):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import Hyperparameters, find_method

    return MitigationTask(find_method(name), data or training_data(), Hyperparameters(**hyperparameters))


def recipe(**more):
    from portrayal.models.masked_vlm.training import TrainingConfig

    usual = {
        "steps": 5,
        "batch_size": 8,
        "n_captioned": 4,
        "warmup_steps": 2,
        "checkpoint_every": 2,
        "learning_rate": 1e-3,
    }
    return TrainingConfig(**{**usual, **more})
