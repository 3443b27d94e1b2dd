"""What is asked together is answered as if each text were asked of its picture alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from portrayal.counterfactual.inference import ask
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Questions
from portrayal.models.masked_vlm import load_masked

CONCEPTS = {"activity": ["cooking", "fishing", "reading"], "occupation": ["chef", "engineer", "nurse"]}
QUESTIONS = Questions({"male": "man", "female": "woman"}, CONCEPTS)
# The first picture has texts with "a" and with "an", the second only with "a": they have not as many texts.
ROWS = [
    ("one", "male", "chef", "occupation"),
    ("two", "female", "nurse", "occupation"),
    ("one", "male", "engineer", "occupation"),
    ("three", "male", "cooking", "activity"),
    ("two", "female", "reading", "activity"),
    ("two", "female", "cooking", "activity"),
]


def load(path: Path) -> Image.Image:
    random = np.random.default_rng(sum(map(ord, path.name)))
    return Image.fromarray(random.integers(0, 256, (64, 64, 3), dtype=np.uint8))


@pytest.mark.parametrize("name", ["lab-dual", "lab-single"])
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_every_text_is_asked_of_its_own_picture(name, batch):
    model = load_masked(name, batch=batch)
    instances = [
        Instance(image, group, concept, kind, Path(image), Path(f"{image} with somebody else"))
        for image, group, concept, kind in ROWS
    ]
    answers = ask(model, instances, QUESTIONS, None, load, batch=batch)
    alone = load_masked(name)
    for row, one in enumerate(instances):
        for number, template in enumerate(QUESTIONS.templates):
            for seen, path in enumerate((one.path, one.exact)):
                pixels = alone.pixels([load(path)])
                for other in (0, 1):
                    group = QUESTIONS.other(one.group) if other else one.group
                    text = template.of(QUESTIONS.words[group], one.kind, one.concept)
                    expected = float(alone.word_log_probs(pixels, text, [one.concept]).exp())
                    assert answers.target[row, number, seen, other] == pytest.approx(
                        expected, rel=1e-3, abs=1e-6
                    )
