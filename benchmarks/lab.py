"""The lab: speed of making scenes, captions and images, and lexical diversity compared with real captions."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from portrayal.lab import make_scenes, make_study
from portrayal.lab.diversity import caption_diversity
from portrayal.lab.images import draw

SCENES, IMAGES, CAPTIONS = 40_000, 1_000, 10_000


def main() -> None:
    started = time.perf_counter()
    study = make_study(scenes=SCENES)
    seconds = time.perf_counter() - started
    n_captions = study.captions.height + study.references.height
    print(f"  {SCENES:,} scenes, {n_captions:,} captions: {seconds:.1f} s on one core")
    scenes = make_scenes(IMAGES)
    started = time.perf_counter()
    for scene in scenes:
        draw(scene)
    print(f"  {IMAGES:,} images of 96 pixels: {time.perf_counter() - started:.1f} s on one core")
    print(f"  first {CAPTIONS:,} captions: distinct words, type-token ratio, share of duplicates")
    _print_diversity("the lab's annotators", study.references["caption"].to_list())
    for system in study.systems:
        _print_diversity(f"the lab's {system}", study.select_systems([system]).captions["caption"].to_list())
    data = Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))
    if data.is_dir():
        rows = (data / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()
        _print_diversity(
            "human captions of COCO", [caption for row in rows for caption in json.loads(row)["captions"]]
        )
        for path in sorted((data / "captioners" / "val2014").glob("*.json")):
            _print_diversity(f"{path.stem} on COCO", [row["caption"] for row in json.loads(path.read_text())])


def _print_diversity(source: str, captions: list[str]) -> None:
    diversity = caption_diversity(captions[:CAPTIONS])
    print(
        f"    {source:32} {diversity.types:6,}  {diversity.type_token_ratio:.4f}  {diversity.duplicate_share:6.1%}"
    )
