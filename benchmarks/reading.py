"""Run time of reading a COCO results file of 40,504 captions, one per image of val2014."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks._timing import best
from portrayal.errors import Problems
from portrayal.lab import make_study
from portrayal.study import tables
from portrayal.study.formats import read_raw

ROWS = 40_504


def main() -> None:
    captions = make_study(scenes=ROWS // 5 + 1, captioners=[]).references["caption"].to_list()[:ROWS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.json"
        path.write_text(
            json.dumps([{"image_id": n, "caption": caption} for n, caption in enumerate(captions)])
        )
        seconds = best(lambda: tables.parse_captions(read_raw(path, Problems()), None, Problems()))
        print(f"  {ROWS:,} rows, {path.stat().st_size / 1e6:.1f} MB: {seconds:.2f} s")
