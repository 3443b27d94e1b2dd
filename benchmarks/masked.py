"""A thousand pictures of the lab and the four templates of CounterBias, through each of the lab's small models."""

from __future__ import annotations

import time

import torch

from portrayal.lab import World
from portrayal.lab.grades import held_out
from portrayal.lab.learners import lab_network, lab_vocabulary
from portrayal.lab.pictures import draw
from portrayal.lab.world import DRAWN_ACTIVITIES
from portrayal.models.masked import MaskedModel

PICTURES = 1000
TEMPLATES = (
    "the woman is [MASK]",
    "the woman in the photo is [MASK]",
    "a woman who is [MASK]",
    "a photo of a woman who is [MASK]",
)


def main() -> None:
    scenes = held_out(PICTURES * 2, World())[:PICTURES]
    words = lab_vocabulary()
    print(
        f"  {torch.get_num_threads()} threads, {PICTURES:,} pictures, {len(TEMPLATES)} templates, drawing left out"
    )
    for stream in ("single", "dual"):  # how long it takes does not depend on what was learnt
        model = MaskedModel(stream, lab_network(stream, len(words)), words, batch=128)
        pictures = [draw(scene, model.network.side) for scene in scenes]
        with torch.inference_mode():
            begin = time.perf_counter()
            looked = model.encode(model.pixels(pictures))
            for template in TEMPLATES:
                model.word_log_probs(looked, template, DRAWN_ACTIVITIES)
            reused = time.perf_counter() - begin
            begin = time.perf_counter()
            for template in TEMPLATES:
                model.word_log_probs(model.pixels(pictures), template, DRAWN_ACTIVITIES)
            anew = time.perf_counter() - begin
        print(
            f"  lab-{stream}: {reused:.1f} s; looking anew for each template {anew / reused:.1f} times that"
        )
