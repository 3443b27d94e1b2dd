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
from portrayal.counterfactual.concepts import CONCEPTS_BY_KIND, CONTROL_WORDS
from portrayal.counterfactual.inference import query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Prompts
from portrayal.models.masked_vlm import TorchMaskedVLM
from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape
from portrayal.models.masked_vlm.vocabulary import WordTokenizer, split_words

SIDE = 256
BATCH = 256
PROMPTS = Prompts({"male": "man", "female": "woman"}, {"activity": CONCEPTS_BY_KIND["activity"]})
ATTACK = Attack.default(norm="linf", stop_at=1 - 1e-9)


def make_tokenizer() -> WordTokenizer:
    texts = [template.text for template in PROMPTS.templates]
    texts += [PROMPTS.bias_prompt, PROMPTS.control_prompt, "man woman"]
    vocabulary = {word for text in texts for word in split_words(text) if word != "group" and word[0] != "["}
    vocabulary |= {*CONTROL_WORDS, *CONCEPTS_BY_KIND["activity"]}
    return WordTokenizer(
        [*sorted(vocabulary), *(f"word{number}" for number in range(30522 - 5 - len(vocabulary)))], 30
    )


def images_per_second(
    model: TorchMaskedVLM, images: list[Image.Image], batch: int, placebo: bool = False
) -> float:
    """Return images per second."""
    model.batch_size = batch
    rows = [
        Instance(
            str(n), ("male", "female")[n % 2], CONCEPTS_BY_KIND["activity"][n % 52], "activity", Path(str(n))
        )
        for n in range(len(images))
    ]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    query_model(
        model, rows, PROMPTS, ATTACK, lambda path: images[int(path.name)], placebo=placebo, batch_size=batch
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
    rng = np.random.default_rng(0)
    images = [Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)) for _ in range(BATCH)]
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    network = DualNetwork(DualShape(image_size=SIDE, vocab_size=len(tokenizer)))
    model = TorchMaskedVLM("albef", network, tokenizer, "cuda", "bfloat16", BATCH)
    if compiled:
        model.network.visual_encoder = torch.compile(model.network.visual_encoder)  # type: ignore[assignment]
    repeated_images = images * 8
    begin = time.perf_counter()
    images_per_second(model, images, BATCH)
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; first batch {time.perf_counter() - begin:.1f} s"
    )
    torch.cuda.reset_peak_memory_stats()
    throughput = images_per_second(model, repeated_images[:1024], BATCH)
    memory_of_1024 = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    throughput = images_per_second(model, repeated_images, BATCH)
    print(f"{len(repeated_images):,} images, {BATCH} at once: {throughput:.0f} a second")
    print(
        f"memory: {memory_of_1024 / 2**30:.1f} GiB for 1,024 images, "
        f"{torch.cuda.max_memory_allocated() / 2**30:.1f} for 2,048"
    )
    if not compiled:
        with FlopCounterMode(display=False) as flop_counter:
            images_per_second(model, images[:16], 16)
        flops_per_image, peak = flop_counter.get_total_flops() / 16, matrix_rate()
        print(
            f"{flops_per_image / 1e12:.2f} TFLOP an image: "
            f"{flops_per_image * throughput / 1e12:.0f} of {peak / 1e12:.0f} TFLOP/s in products"
        )
        images_per_second(model, images, BATCH, True)
        print(
            f"with the placebo: {images_per_second(model, repeated_images[:1024], BATCH, True):.0f} a second"
        )
        images_per_second(model, images[:2], 1)
        unbatched_throughput = images_per_second(model, images[:24], 1)
        print(
            f"one at a time: {unbatched_throughput:.1f} a second, {throughput / unbatched_throughput:.0f} times less"
        )


if __name__ == "__main__":
    main("compile" in sys.argv[1:])
