"""Response times of `portrayal view` with 1,000,000 rows of evidence: of 2,000 measurements, and of a single one."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from portrayal.report.live import Routes
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results, open_results

ROWS = 1_000_000
SIZE = 50
WORDS = (
    "a man woman person dog rides stands holds kitchen street bicycle racket phone young old with in on the near bus"
).split()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for measurements, mixed in ((2_000, False), (2_000, True), (1, False)):
            _measure(Path(folder), measurements, mixed)


def _measure(folder: Path, measurements: int, mixed: bool) -> None:
    rows = tuple(Measurement("m", "t", item=str(n), value=0.5) for n in range(measurements))
    Results(rows, _evidence([m.id for m in rows], mixed)).save(folder)
    started = time.perf_counter()
    routes = Routes(open_results(folder))
    seconds_ready = time.perf_counter() - started
    routes.evidence.presort_thread.join()
    sorted_after = time.perf_counter() - started
    order = "their rows mixed" if mixed else "each in one piece"
    print(
        f"  {ROWS:,} rows, {measurements:,} measurements, {order}: ready in {seconds_ready:.2f} s, "
        f"long ones sorted after {sorted_after:.2f} s"
    )
    identifier = rows[measurements // 2].id
    last = -(-ROWS // measurements // SIZE)
    middle = (last + 1) // 2
    for name, query in (
        ("first page", ""),
        ("middle page", f"&page={middle}"),
        ("last page", f"&page={last}"),
        ("search", "&search=man+rides"),
        ("search, its second page", "&search=man+rides&page=2"),
        ("search for nothing there", "&search=zebra"),
        ("one system", "&system=s1"),
        ("by caption, first page", "&sort=caption"),
        ("by caption, middle page", f"&sort=caption&page={middle}"),
        ("by caption, middle page again", f"&sort=caption&page={middle}"),
        ("by image, last page", f"&sort=image&page={last}"),
    ):
        started = time.perf_counter()  # once: a second identical query is cached
        routes.respond(f"/api/evidence?id={identifier}&size={SIZE}{query}")
        print(f"    {name:32} {1000 * (time.perf_counter() - started):7.1f} ms")
    started = time.perf_counter()
    routes.respond("/api/measurements?search=m&sort=value")
    print(f"    {'list of measurements':32} {1000 * (time.perf_counter() - started):7.1f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"    peak memory of the process so far, with making the rows: {peak:,.0f} MB")


def _evidence(ids: list[str], mixed: bool) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    captions = [" ".join(words) for words in np.array(WORDS)[rng.integers(0, len(WORDS), (ROWS, 10))]]
    rows_per_id = ROWS // len(ids)
    columns = {
        "id": ids * rows_per_id if mixed else [identifier for identifier in ids for _ in range(rows_per_id)],
        "image_id": [f"image {n:07}" for n in rng.permutation(ROWS)],
        "system": [f"s{n}" for n in rng.integers(0, 3, ROWS)],
        "caption": captions,
        "detail": [f'{{"named": ["male"], "words": ["man"], "row": {n}}}' for n in range(ROWS)],
    }
    return pl.DataFrame(columns, schema=EVIDENCE_SCHEMA)
