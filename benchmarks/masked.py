"""Inference time of the lab's small models on a thousand lab images with the four templates of CounterBias."""

from __future__ import annotations

import time

import torch

from portrayal.lab import World
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.world import DRAWN_ACTIVITIES
from portrayal.models.masked_vlm import load_masked

N_IMAGES = 1000
TEMPLATES = (
    "the woman is [MASK]",
    "the woman in the photo is [MASK]",
    "a woman who is [MASK]",
    "a photo of a woman who is [MASK]",
)


def main() -> None:
    scenes = held_out(N_IMAGES * 2, World())[:N_IMAGES]
    print(
        f"  {torch.get_num_threads()} threads, {N_IMAGES:,} images, {len(TEMPLATES)} templates, without drawing"
    )
    for name in ("lab-single", "lab-dual"):
        model = load_masked(name, "cpu", batch_size=128)
        images = [draw(scene, model.network.image_size) for scene in scenes]
        with torch.inference_mode():
            begin = time.perf_counter()
            embeddings = model.encode_images(model.preprocess(images))
            for template in TEMPLATES:
                model.word_log_probs(embeddings, template, DRAWN_ACTIVITIES)
            seconds_reused = time.perf_counter() - begin
            begin = time.perf_counter()
            for template in TEMPLATES:
                model.word_log_probs(model.preprocess(images), template, DRAWN_ACTIVITIES)
            seconds_repeated = time.perf_counter() - begin
        print(
            f"  {name}: {seconds_reused:.1f} s; encoding again for each template "
            f"{seconds_repeated / seconds_reused:.1f} times that"
        )
