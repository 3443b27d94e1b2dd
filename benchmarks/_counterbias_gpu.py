"""CounterBias with ALBEF's architecture on a GPU: `PYTHONPATH=src python benchmarks/_counterbias_gpu.py [compile]`.

Random weights, images of 256 x 256 pixels, ten steps of PGD without early stopping, four templates in both
groups' words. Measured from images in memory to probabilities; the same with one image at a time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.concepts import CONTROL_WORDS, KINDS
from portrayal.counterfactual.inference import query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Prompts
from portrayal.models.masked_vlm import TorchMaskedVLM
from portrayal.models.masked_vlm.dual import DualNetwork, DualShape
from portrayal.models.masked_vlm.vocabulary import WordTokenizer, split_words

SIDE = 256
BATCH = 256
QUESTIONS = Prompts({"male": "man", "female": "woman"}, {"activity": KINDS["activity"]})
ATTACK = Attack.default(norm="linf", stop_at=1 - 1e-9)


def words() -> WordTokenizer:
    texts = [template.text for template in QUESTIONS.templates]
    texts += [QUESTIONS.bias_prompt, QUESTIONS.control_prompt, "man woman"]
    known = {word for text in texts for word in split_words(text) if word != "group" and word[0] != "["}
    known |= {*CONTROL_WORDS, *KINDS["activity"]}
    return WordTokenizer([*sorted(known), *(f"word{number}" for number in range(30522 - 5 - len(known)))], 30)


def rate(model: TorchMaskedVLM, images: list[Image.Image], batch: int, placebo: bool = False) -> float:
    """Return images per second."""
    model.batch_size = batch
    rows = [
        Instance(str(n), ("male", "female")[n % 2], KINDS["activity"][n % 52], "activity", Path(str(n)))
        for n in range(len(images))
    ]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    query_model(
        model, rows, QUESTIONS, ATTACK, lambda path: images[int(path.name)], placebo=placebo, batch=batch
    )
    torch.cuda.synchronize()
    return len(images) / (time.perf_counter() - begin)


def matrix_rate() -> float:
    """Return floating-point operations per second in a product of large 16-bit matrices."""
    left = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        left @ left
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(20):
        left @ left
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - begin)


def main(compiled: bool) -> None:
    random = np.random.default_rng(0)
    images = [Image.fromarray(random.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)) for _ in range(BATCH)]
    torch.manual_seed(0)
    tokenizer = words()
    network = DualNetwork(DualShape(side=SIDE, words=len(tokenizer)))
    model = TorchMaskedVLM("albef", network, tokenizer, "cuda", "bfloat16", BATCH)
    if compiled:
        model.network.visual_encoder = torch.compile(model.network.visual_encoder)  # type: ignore[assignment]
    n = images * 8
    begin = time.perf_counter()
    rate(model, images, BATCH)
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; first batch {time.perf_counter() - begin:.1f} s"
    )
    torch.cuda.reset_peak_memory_stats()
    here = rate(model, n[:1024], BATCH)
    small = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    here = rate(model, n, BATCH)
    print(f"{len(n):,} pictures, {BATCH} at once: {here:.0f} a second")
    print(
        f"memory: {small / 2**30:.1f} GiB for 1,024 pictures, {torch.cuda.max_memory_allocated() / 2**30:.1f} for 2,048"
    )
    if not compiled:
        with FlopCounterMode(display=False) as counted:
            rate(model, images[:16], 16)
        each, peak = counted.get_total_flops() / 16, matrix_rate()
        print(
            f"{each / 1e12:.2f} TFLOP a picture: {each * here / 1e12:.0f} of {peak / 1e12:.0f} TFLOP/s in products"
        )
        rate(model, images, BATCH, True)
        print(f"with the placebo: {rate(model, n[:1024], BATCH, True):.0f} a second")
        rate(model, images[:2], 1)
        alone = rate(model, images[:24], 1)
        print(f"one at a time: {alone:.1f} a second, {here / alone:.0f} times less")


if __name__ == "__main__":
    main("compile" in sys.argv[1:])
