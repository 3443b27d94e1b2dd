"""The lab: how fast scenes, captions and pictures are made, and how varied the captions are beside real ones."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from portrayal.lab import make_scenes, make_study
from portrayal.lab.diversity import variety
from portrayal.lab.images import draw

SCENES, PICTURES, CAPTIONS = 40_000, 1_000, 10_000


def main() -> None:
    started = time.perf_counter()
    study = make_study(scenes=SCENES)
    seconds = time.perf_counter() - started
    said = study.captions.height + study.references.height
    print(f"  {SCENES:,} scenes, {said:,} captions: {seconds:.1f} s on one core")
    scenes = make_scenes(PICTURES)
    started = time.perf_counter()
    for scene in scenes:
        draw(scene)
    print(f"  {PICTURES:,} pictures of 96 pixels: {time.perf_counter() - started:.1f} s on one core")
    print(
        f"  of the first {CAPTIONS:,} captions: distinct words, words for each distinct one, repeated captions"
    )
    _tell("the lab's annotators", study.references["caption"].to_list())
    for system in study.systems:
        _tell(f"the lab's {system}", study.only([system]).captions["caption"].to_list())
    data = Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))
    if data.is_dir():
        rows = (data / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()
        _tell("people on COCO", [caption for row in rows for caption in json.loads(row)["captions"]])
        for path in sorted((data / "captioners" / "val2014").glob("*.json")):
            _tell(f"{path.stem} on COCO", [row["caption"] for row in json.loads(path.read_text())])


def _tell(who: str, captions: list[str]) -> None:
    found = variety(captions[:CAPTIONS])
    print(f"    {who:32} {found.types:6,}  {found.type_token:.4f}  {found.duplicates:6.1%}")
