"""Batched inference gives the same probabilities as inference for each text and image alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from portrayal.counterfactual.inference import query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Prompts
from portrayal.models.masked_vlm import load_masked

CONCEPTS = {"activity": ["cooking", "fishing", "reading"], "occupation": ["chef", "engineer", "nurse"]}
PROMPTS = Prompts({"male": "man", "female": "woman"}, CONCEPTS)
# The first image has texts with "a" and with "an", the second only with "a": their numbers of texts differ.
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
def test_every_text_is_queried_with_its_own_image(name, batch):
    model = load_masked(name, batch_size=batch)
    instances = [
        Instance(image, group, concept, kind, Path(image), Path(f"{image} with somebody else"))
        for image, group, concept, kind in ROWS
    ]
    outputs = query_model(model, instances, PROMPTS, None, load, batch_size=batch)
    unbatched_model = load_masked(name)
    for row, instance in enumerate(instances):
        for template_index, template in enumerate(PROMPTS.templates):
            for kind, path in enumerate((instance.path, instance.counterfactual)):
                pixels = unbatched_model.preprocess([load(path)])
                for is_other in (0, 1):
                    group = PROMPTS.other_group(instance.group) if is_other else instance.group
                    text = template.fill(PROMPTS.words[group], instance.kind, instance.concept)
                    expected = float(unbatched_model.word_log_probs(pixels, text, [instance.concept]).exp())
                    assert outputs.concept_probs[row, template_index, kind, is_other] == pytest.approx(
                        expected, rel=1e-3, abs=1e-6
                    )
