"""Truncation of long captions. The cost of a measurement grows with caption length, so it is limited."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from portrayal.results import HUMAN
from portrayal.study.study import Study

MAX_CHARACTERS = 10_000  # per caption; the longest model descriptions have about 3,000
MAX_WORDS = 2_000
_WORD = re.compile(r"\S+")


def truncate_captions(study: Study) -> Study:
    """The study with long captions truncated, and their number by source in `truncated`."""
    captions, system_counts = _truncate_column(study.captions, pl.col("system"))
    references, human_counts = _truncate_column(study.references, pl.lit(HUMAN))
    if not system_counts and not human_counts:
        return study
    counts = {**study.truncated, **system_counts, **human_counts}
    return replace(study, captions=captions, references=references, truncated=counts)


def truncate(caption: str) -> str:
    """The caption up to the last whole word within the limits; a single long word is truncated by characters.

    >>> truncate("a man and a dog"), len(truncate("dog " * 3000).split()), len(truncate("x" * 20000))
    ('a man and a dog', 2000, 10000)
    """
    end = 0
    for words, word in enumerate(_WORD.finditer(caption), start=1):
        if words > MAX_WORDS or word.end() > MAX_CHARACTERS:
            return caption[: end or MAX_CHARACTERS]
        end = word.end()
    return caption[:MAX_CHARACTERS]


def _truncate_column(frame: pl.DataFrame, source: pl.Expr) -> tuple[pl.DataFrame, dict[str, int]]:
    # Words are separated by spaces, so a shorter caption cannot exceed either limit.
    suspects = frame.with_row_index("row").filter(pl.col("caption").str.len_bytes() >= 2 * MAX_WORDS)
    if not suspects.height:
        return frame, {}
    suspects = suspects.with_columns(
        source=source, cut=pl.col("caption").map_elements(truncate, return_dtype=pl.String)
    ).filter(pl.col("cut") != pl.col("caption"))
    counts = suspects.group_by("source", maintain_order=True).len()
    texts = frame["caption"].to_list()
    for row, text in suspects.select("row", "cut").iter_rows():
        texts[row] = text
    return frame.with_columns(caption=pl.Series(texts, dtype=pl.String)), dict(counts.iter_rows())


def truncation_notes(study: Study) -> dict[str, str]:
    """A sentence for each source with truncated captions."""
    return {
        source: f"{f'1 caption of {source} is' if n == 1 else f'{n:,} captions of {source} are'} longer than "
        f"{MAX_CHARACTERS:,} characters or {MAX_WORDS:,} words; only the beginning is read, up to that length."
        for source, n in study.truncated.items()
    }
