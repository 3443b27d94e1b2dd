"""All tables in the docs that use COCO's object labels, computed from the real data and printed as Markdown.

`python -m benchmarks.val2014_tables --out DIR [--images N] [PART ...]` computes the parts named (default: all) and
caches every finished task in DIR, so that the same command resumes. `python -m benchmarks val2014_tables` computes
the parts on 300 images, only to time them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import _val2014_layout as layout
from benchmarks.precision import data_folder
from portrayal import metrics
from portrayal.errors import Problems
from portrayal.mitigate.captions.mitigation import mitigate_captions
from portrayal.results import Results
from portrayal.study import Study, importers

SYSTEMS = {
    "liu17": "liu17",
    "shetty17": "shetty17",
    "vinyals17": "vinyals17",
    "baseline-ft": "snowboard_baseline_ft",
    "balanced": "snowboard_balanced",
    "equalizer": "snowboard_equalizer",
}
MITIGATED = ("sat", "oscar", "nic-plus", "nic-equalizer")
SOURCES = (*SYSTEMS, "human")
MeasurementRows = list[dict[str, Any]]


@dataclass(frozen=True)
class TaskCache:
    """Settings of the computation, and a cache of finished tasks in a folder."""

    out: Path
    images: int | None
    n_resamples: int
    permutations: int

    def task(self, name: str, compute: Callable[[], Results]) -> MeasurementRows:
        """Return the rows of a task: from the cache, else computed and cached."""
        path = self.out / f"{name}.json"
        if not path.is_file():
            started = time.perf_counter()
            rows = [m.as_dict() for m in compute().measurements]
            temporary = path.with_suffix(".part")
            temporary.write_text(json.dumps(rows), encoding="utf-8")
            temporary.replace(path)
            print(f"  {name}: {time.perf_counter() - started:.0f} s", flush=True)
        cached: MeasurementRows = json.loads(path.read_text(encoding="utf-8"))
        return cached


def captioners(images: int | None, sources: Iterable[str] = SYSTEMS) -> Study:
    """The val2014 captioners with references, instances, and gender and skin tone of the LIC data."""
    coco = data_folder() / "coco"
    attributes = lic_study(None, ("gender", "race")).attributes
    with tempfile.TemporaryDirectory() as folder:
        labels_file = Path(folder) / "attributes.csv"
        attributes.write_csv(labels_file)
        request = importers.ImportRequest(
            sources=[
                f"{name}={data_folder() / 'captioners' / 'val2014' / SYSTEMS[name]}.json" for name in sources
            ],
            references=coco / "human_captions_val2014.jsonl",
            objects=coco / "instance_labels_val2014.json",
            attributes=labels_file,
        )
        study = importers.run_importer("coco", request, Problems()).study
    return _first(study, images)


def lic_study(images: int | None, attributes: Sequence[str] = ("gender",)) -> Study:
    """The public LIC data with references and instances."""
    coco = data_folder() / "coco"
    request = importers.ImportRequest(
        sources=[str(data_folder() / "lic" / "bias_data")],
        references=coco / "human_captions_val2014.jsonl",
        objects=coco / "instance_labels_val2014.json",
        attribute_names=list(attributes),
    )
    return _first(importers.run_importer("lic", request, Problems()).study, images)


def _first(study: Study, images: int | None) -> Study:
    """The study on its first images whose person is labelled; all of it where no number is given."""
    if images is None:
        return study
    labelled = study.attributes["image_id"].head(images)
    tables = {
        table: getattr(study, table).filter(pl.col("image_id").is_in(labelled.implode()))
        for table in ("captions", "references", "attributes", "objects")
    }
    return replace(study, **tables)


def chair(cache: TaskCache) -> str:
    """docs/quality.md: six captioners."""
    study = captioners(cache.images)
    rows: MeasurementRows = []
    for source in SOURCES:
        for attribute in ("gender", "race"):
            rows += cache.task(
                f"quality.{attribute}.{source}",
                lambda source=source, attribute=attribute: metrics.quality(  # type: ignore[misc]
                    study, attribute=attribute, sources=[source], bootstrap=cache.n_resamples, evidence=1
                ),
            )
    return layout.quality(rows, SOURCES)


def chair_synonyms(cache: TaskCache) -> str:
    """docs/quality.md: with the synonyms that CHAIR was published with, by labels and references, and labels alone."""
    study = captioners(cache.images)
    counts = study.references.group_by("image_id").len()
    with_five_references = counts.filter(pl.col("len") >= 5)["image_id"]
    tables = {
        table: getattr(study, table).filter(pl.col("image_id").is_in(with_five_references.implode()))
        for table in ("captions", "references", "attributes", "objects")
    }
    study = replace(study, **tables)
    rows: MeasurementRows = []
    for source in SYSTEMS:
        for truth in ("both", "labels"):
            rows += cache.task(
                f"synonyms.{truth}.{source}",
                lambda source=source, truth=truth: metrics.quality(  # type: ignore[misc]
                    study,
                    attribute="gender",
                    sources=[source],
                    bootstrap=cache.n_resamples,
                    evidence=1,
                    truth=truth,
                    synonyms=str(data_folder() / "coco" / "object_synonyms.txt"),
                ),
            )
    return layout.synonyms(rows, tuple(SYSTEMS))


def leakage(cache: TaskCache) -> str:
    """docs/leakage.md: the table, and differences with other kinds of label noise."""
    study = captioners(cache.images)
    rows: MeasurementRows = []
    for source in SOURCES:
        for mistakes in ("label", "overall", "flip"):
            rows += cache.task(
                f"leakage.{mistakes}.{source}",
                lambda source=source, mistakes=mistakes: metrics.leakage(  # type: ignore[misc]
                    study,
                    attribute="gender",
                    sources=[source],
                    bootstrap=cache.n_resamples,
                    permutations=cache.permutations if mistakes == "label" else 0,
                    mistakes=mistakes,
                ),
            )
    return layout.leakage(rows, SOURCES)


def harms(cache: TaskCache) -> str:
    """docs/harms.md: six captioners compared with the paper, and identity words by axis."""
    study = captioners(cache.images)
    rows: MeasurementRows = []
    for source in SOURCES:
        stages = ("1", "3") if source == "human" else ("4", "4-without-3")
        for attribute in ("gender", "race"):
            rows += cache.task(
                f"harms.{attribute}.{source}",
                lambda source=source, attribute=attribute, stages=stages: metrics.harms(  # type: ignore[misc]
                    study,
                    attribute=attribute,
                    sources=[source],
                    bootstrap=cache.n_resamples,
                    stage=stages,
                    reference="each",
                ),
            )
    return layout.harms(rows, SOURCES)


def amplification(cache: TaskCache) -> str:
    """docs/quality.md: bias amplification, against images whose captions name one group and against all images."""
    study = captioners(cache.images)
    tables = []
    for images in ("named", "all"):
        rows: MeasurementRows = []
        for source in SOURCES:
            rows += cache.task(
                f"amplification.{images}.{source}",
                lambda source=source, images=images: metrics.amplification(  # type: ignore[misc]
                    study, attribute="gender", sources=[source], bootstrap=cache.n_resamples, images=images
                ),
            )
        tables.append(f"--images {images}:\n\n{layout.terms(rows, SOURCES)}")
    return "\n\n".join(tables)


def mitigation(cache: TaskCache) -> str:
    """docs/mitigation.md: four captioners before and after."""
    study = lic_study(cache.images)
    rows = cache.task(
        "mitigation",
        lambda: (
            mitigate_captions(
                study,
                systems=list(MITIGATED),
                permutations=40 if cache.permutations else 0,
                bootstrap=cache.n_resamples,
            ).results
        ),
    )
    return layout.mitigation(rows, MITIGATED)


PARTS = {
    "chair": chair,
    "chair-synonyms": chair_synonyms,
    "leakage": leakage,
    "amplification": amplification,
    "harms": harms,
    "mitigation": mitigation,
}


def run(parts: Sequence[str], cache: TaskCache) -> None:
    cache.out.mkdir(parents=True, exist_ok=True)
    for name in parts:
        started = time.perf_counter()
        table = PARTS[name](cache)
        print(f"\n## {name} ({time.perf_counter() - started:.0f} s)\n\n{table}\n", flush=True)


def main() -> None:
    if not data_folder().is_dir():
        print("  the real data is not available (set PORTRAYAL_SHARED)")
        return
    with tempfile.TemporaryDirectory() as folder:
        run([part for part in PARTS if part != "mitigation"], TaskCache(Path(folder), 300, 100, 0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int)
    parser.add_argument("--bootstrap", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=200)
    arguments = parser.parse_args()
    run(
        arguments.parts or list(PARTS),
        TaskCache(arguments.out, arguments.images, arguments.bootstrap, arguments.permutations),
    )
