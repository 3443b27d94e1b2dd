"""CounterBias with a packaged model on a thousand lab images: attack, placebo and intervals.

`_counterbias_gpu.py` measures ALBEF's architecture on a GPU.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from portrayal.counterfactual.manifest import read_manifest
from portrayal.lab import World
from portrayal.lab.folder import MANIFEST_FILE, LabRecipe, write_lab
from portrayal.metrics import counterbias

N_IMAGES = 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = Path(folder) / "lab"
        world = World(several=0.0, androgynous=0.0, occupations=0.0)
        write_lab(LabRecipe(scenes=N_IMAGES, image_size=64, counterfactuals=True, world=world), lab)
        manifest = read_manifest(lab / MANIFEST_FILE)
        print(f"  {torch.get_num_threads()} threads, {len(manifest.instances):,} images, without drawing")
        for name in ("lab-dual", "lab-single"):
            seconds = {}
            for attack in ("pgd", "exact"):
                begin = time.perf_counter()
                counterbias(manifest, name, attack=attack)
                seconds[attack] = time.perf_counter() - begin
            print(f"  {name}: attack {seconds['pgd']:.0f} s, given images {seconds['exact']:.0f} s")
