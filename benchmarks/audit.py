"""Run time of an audit with every metric, on one core and on all; on the real gender study if it is available."""

from __future__ import annotations

import os
import time
from pathlib import Path

import portrayal
from portrayal.errors import Problems
from portrayal.lab import make_study
from portrayal.study import Study, importers

SYSTEMS = ["nic-th10", "sat", "oscar", "nic-plus", "nic-equalizer"]


def real_study() -> Study | None:
    """Return the public LIC gender data with references and objects, if PORTRAYAL_SHARED or ../shared/data has it."""
    data = Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))
    if not data.is_dir():
        return None
    request = importers.ImportRequest(
        sources=[str(data / "lic" / "bias_data")],
        references=data / "coco" / "human_captions_val2014.jsonl",
        objects=data / "coco" / "instance_labels_val2014.json",
        attribute_names=["gender"],
    )
    return importers.run_importer("lic", request, Problems()).study.select_systems(SYSTEMS)


def main() -> None:
    study = real_study()
    study_name = "the real gender study" if study else "a study of the lab"
    study = study or make_study(scenes=10_000)
    images, captions = study.image_ids.len(), study.captions.height + study.references.height
    print(
        f"  {study_name}: {len(study.systems)} systems, {images:,} images, {captions:,} captions, 1,000 resamples"
    )
    seconds = {}
    for workers in sorted({1, os.cpu_count() or 1}):
        started = time.perf_counter()
        results = portrayal.audit(study, workers=workers)
        seconds[workers] = time.perf_counter() - started
        print(f"  {workers} worker(s): {seconds[workers]:.1f} s, {len(results.measurements):,} measurements")
    slowest, quickest = seconds[1], min(seconds.values())
    print(f"  ratio: {slowest / quickest:.2f}")
