"""How much of one caption is read. What a measurement costs grows with its captions, so none may be without end."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from portrayal.results import HUMAN
from portrayal.study.study import Study

MOST_CHARACTERS = 10_000  # of a caption; the longest descriptions of models have some 3,000
MOST_WORDS = 2_000
_WORD = re.compile(r"\S+")


def shortened(study: Study) -> Study:
    """The study with captions cut where they are too long, and in `shortened` how many of each source were."""
    captions, of_systems = _cut(study.captions, pl.col("system"))
    references, of_people = _cut(study.references, pl.lit(HUMAN))
    if not of_systems and not of_people:
        return study
    counts = {**study.shortened, **of_systems, **of_people}
    return replace(study, captions=captions, references=references, shortened=counts)


def cut(caption: str) -> str:
    """Whole words from the beginning, as many as are read; of one word without end its first characters.

    >>> cut("a man and a dog"), len(cut("dog " * 3000).split()), len(cut("x" * 20000))
    ('a man and a dog', 2000, 10000)
    """
    end = 0
    for words, word in enumerate(_WORD.finditer(caption), start=1):
        if words > MOST_WORDS or word.end() > MOST_CHARACTERS:
            return caption[: end or MOST_CHARACTERS]
        end = word.end()
    return caption[:MOST_CHARACTERS]


def _cut(frame: pl.DataFrame, source: pl.Expr) -> tuple[pl.DataFrame, dict[str, int]]:
    # Words have a space between them: nothing shorter than this can be too long.
    suspects = frame.with_row_index("row").filter(pl.col("caption").str.len_bytes() >= 2 * MOST_WORDS)
    if not suspects.height:
        return frame, {}
    suspects = suspects.with_columns(
        source=source, cut=pl.col("caption").map_elements(cut, return_dtype=pl.String)
    ).filter(pl.col("cut") != pl.col("caption"))
    counts = suspects.group_by("source", maintain_order=True).len()
    texts = frame["caption"].to_list()
    for row, text in suspects.select("row", "cut").iter_rows():
        texts[row] = text
    return frame.with_columns(caption=pl.Series(texts, dtype=pl.String)), dict(counts.iter_rows())


def shortenings(study: Study) -> dict[str, str]:
    """Whose captions were too long to be read whole: source -> sentence."""
    return {
        source: f"{f'1 caption of {source} is' if n == 1 else f'{n:,} captions of {source} are'} longer than "
        f"{MOST_CHARACTERS:,} characters or {MOST_WORDS:,} words; only the beginning is read, up to that length."
        for source, n in study.shortened.items()
    }
