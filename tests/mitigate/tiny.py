"""Tiny models, texts and images for mitigation: dark images of men, light images of women, some of nobody."""

from __future__ import annotations

from dataclasses import replace

from tests.models import tiny_masked

PAD, UNK, CLS, SEP, MASK = range(5)
A, MAN, WOMAN, IS, THE, IN, PICTURE, COOKING = range(5, 13)
STREAMS = ["single", "dual"]
N_IMAGES = 12


def tokenizer():
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    return WordTokenizer(tiny_masked.WORDS, max_length=12)


def network(stream: str = "dual", size: float = 0.2, dropout: float = 0.0):
    """An untrained network if `size` is 0; else one with large weights, so that every word affects predictions."""
    import torch

    from portrayal.models.masked_vlm.single_stream import SingleNetwork

    dropout_rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    inner = (
        tiny_masked.dual(size, dropout=dropout)
        if stream == "dual"
        else tiny_masked.vilt(size, **dropout_rates)
    )
    with torch.no_grad():
        for name, weight in inner.named_parameters():
            if size and weight.ndim == 1 and name.endswith("weight"):
                weight.fill_(1.0)  # the weight of a norm
    torch.manual_seed(0)
    return inner if stream == "dual" else SingleNetwork(inner, has_new_match_head=True, square=True).eval()


def model(stream: str = "dual", size: float = 0.2, dropout: float = 0.0):
    from portrayal.models.masked_vlm import TorchMaskedVLM

    return TorchMaskedVLM("tiny", network(stream, size, dropout), tokenizer())


def texts(index: int) -> tuple[list[str], list[str]]:
    """Two captions and two sentences. Men cook, women skate. Texts of every fourth image name no single group."""
    if index % 4 == 3:
        return ["in the picture", "a man is cooking the woman is in the picture"], [
            "the picture",
            "is cooking",
        ]
    person, activity = (("man", "cooking"), ("woman", "skate"))[index % 2]
    return (
        [f"the {person} is {activity} in the picture", f"a {person} is a {person}"],
        [
            f"the {person} is {activity}",
            "cooking in the picture" if index % 3 == 0 else f"a {person} is in the picture",
        ],
    )


def images():
    import numpy as np

    rng = np.random.default_rng(0)
    brightness = np.array([60, 190] * (N_IMAGES // 2))[:, None, None, None]
    return (brightness + rng.integers(-60, 60, (N_IMAGES, 32, 32, 3))).astype(np.uint8)


def training_data(counterfactuals: bool = True, **changes):
    """The counterfactual of each image is the next one, which shows the other group."""
    import numpy as np

    from portrayal.lexicon import load_lexicon
    from portrayal.mitigate.training_data import GroupPair, TrainingData

    pixels = images()
    image_texts = [texts(index) for index in range(N_IMAGES)]
    data = TrainingData.from_texts(
        pixels,
        [captions for captions, _ in image_texts],
        [sentences for _, sentences in image_texts],
        tokenizer(),
        GroupPair.of(load_lexicon("gender")),
        np.roll(pixels, 1, axis=0) if counterfactuals else None,
    )
    return replace(data, **changes)


def mitigation_task(name: str, data=None, **hyperparameters):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import Hyperparameters, find_method

    return MitigationTask(find_method(name), data or training_data(), Hyperparameters(**hyperparameters))


def recipe(**options):
    from portrayal.models.masked_vlm.training import TrainingConfig

    defaults = {
        "steps": 5,
        "batch_size": 8,
        "n_captioned": 4,
        "warmup_steps": 2,
        "checkpoint_every": 2,
        "learning_rate": 1e-3,
    }
    return TrainingConfig(**{**defaults, **options})
