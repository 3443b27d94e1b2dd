"""The evidence in a page: a sample of the captions behind each number, as large as the page's size limit allows.

A page is sent around, so its size is limited. `portrayal view` shows all captions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import polars as pl

from portrayal.report.cards import prompt_ids
from portrayal.report.page.embedded import pack_json
from portrayal.report.page.side_by_side import compared_terms
from portrayal.results import HUMAN, Results

PAGE_BYTES = 6_000_000  # size limit of a page; evidence takes what the rest leaves
# Captions per number: the first limit with which the evidence fits, else the last one.
CAPTION_LIMITS = (200, 100, 50, 20)
MAX_COMPRESSION = 30  # the best compression ratio to expect; larger evidence is not compressed to try

_ROW_COLUMNS = ("image_id", "system", "caption", "detail")
_HIDDEN_KEYS = ("effect", "by pairs")  # used by `portrayal compare`, not shown
_INTEGER_FROM = 1000  # larger numbers are rounded to integers, smaller ones to four digits
_LONG_LIST = 40  # letters; longer lists of texts are stored once, since many rows share them


def pack_evidence(results: Results, ids: Collection[str], budget: int) -> str:
    """The evidence of these numbers, compressed, with at most `budget` characters if the lowest limit allows it."""
    evidence = _evidence_with_sources(results, ids)
    totals = dict(evidence.group_by("id", maintain_order=True).len().iter_rows())
    text = ""
    for limit in CAPTION_LIMITS:
        rows = sample_evenly(evidence, limit)
        if limit != CAPTION_LIMITS[-1] and _uncompressed_size(rows) > MAX_COMPRESSION * budget:
            continue
        truncated = {identifier: total for identifier, total in totals.items() if total > limit}
        text = pack_json({**encode(rows), "totals": truncated})
        if len(text) <= budget:
            break
    return text


def _uncompressed_size(rows: pl.DataFrame) -> int:
    lengths = (
        rows.select(_ROW_COLUMNS)
        .unique()
        .select(pl.sum_horizontal(pl.col(_ROW_COLUMNS).str.len_bytes()).sum())
    )
    return int(lengths.item())


def sample_evenly(evidence: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most `limit` rows for each id, evenly spaced."""
    index, count = pl.int_range(pl.len()).over("id"), pl.len().over("id").cast(pl.Int64)
    # The first row at or after each of `limit` even steps. If one limit divides another, its sample is a subset.
    return evidence.filter((index * limit // count != (index - 1) * limit // count) | (count <= limit))


def _evidence_with_sources(results: Results, ids: Collection[str]) -> pl.DataFrame:
    """The evidence of these ids with its source as `system`: the system, `human`, or "" for a model's prompts.

    A row is human if a term that a metric's card declares to be about human captions has it.
    """
    evidence = results.evidence.filter(pl.col("id").is_in(list(ids))).with_columns(
        pl.col(_ROW_COLUMNS).fill_null("")
    )
    pairs = {(metric, term) for metric, (_, term) in compared_terms(results).items()}
    human_ids = [m.id for m in results.measurements if (m.metric, m.term) in pairs]
    human_rows = evidence.filter(pl.col("id").is_in(human_ids)).select(_ROW_COLUMNS).unique()
    human_rows = human_rows.with_columns(source=pl.lit(HUMAN))
    system = (
        pl.when(pl.col("id").is_in(prompt_ids(results)))
        .then(pl.lit(""))
        .otherwise(pl.coalesce("source", "system"))
    )
    return evidence.join(human_rows, on=_ROW_COLUMNS, how="left", maintain_order="left").with_columns(
        system=system
    )


def encode(evidence: pl.DataFrame) -> dict[str, Any]:
    """Each caption once, and for each number the rows behind it, as templates/evidence_data.js decodes it.

    Similar values stand together, which compresses best: rows are grouped by the facts that they have, with a column
    for each fact. Ascending numbers are stored as differences.
    """
    facts = {detail: _facts(detail) for detail in evidence["detail"].unique(maintain_order=True)}
    kinds: dict[tuple[str, ...], int] = {}
    kind = {detail: kinds.setdefault(tuple(about), len(kinds)) for detail, about in facts.items()}
    rows = evidence.select(_ROW_COLUMNS).unique()
    rows = rows.with_columns(kind=pl.col("detail").replace_strict(kind, return_dtype=pl.Int64))
    rows = rows.sort("kind", *_ROW_COLUMNS).with_row_index("row")
    captions = rows.select(_ROW_COLUMNS[:3]).unique().sort(_ROW_COLUMNS[:3]).with_row_index("caption_index")
    rows = rows.join(captions, on=_ROW_COLUMNS[:3], how="left", maintain_order="left")
    rows_by_id = (
        evidence.select("id", *_ROW_COLUMNS)
        .join(rows, on=_ROW_COLUMNS, how="left", maintain_order="left")
        .group_by("id", maintain_order=True)
        .agg("row")
    )
    images, systems, texts, lists, row_lists = (_Indices() for _ in range(5))
    by_id = {identifier: row_lists[tuple(positions)] for identifier, positions in rows_by_id.iter_rows()}
    caption_columns = [
        deltas(names[text] for text in captions[column])
        for column, names in (("image_id", images), ("system", systems), ("caption", texts))
    ]
    kinds_encoded = []
    for keys, index in kinds.items():
        own = rows.filter(pl.col("kind") == index)
        row_facts = [facts[detail] for detail in own["detail"]]
        columns = [_column(key, [about[key] for about in row_facts], texts, lists) for key in keys]
        kinds_encoded.append({"keys": keys, "captions": deltas(own["caption_index"]), "columns": columns})
    return {
        "images": list(images),
        "systems": list(systems),
        "texts": list(texts),
        "lists": list(lists),
        "captions": caption_columns,
        "kinds": kinds_encoded,
        "by_id": by_id,
        "row_lists": [deltas(positions) for positions in row_lists],
    }


def deltas(numbers: Iterable[int]) -> list[int]:
    """The differences of consecutive numbers, from 0.

    >>> deltas([5, 7, 8, 3])
    [5, 2, 1, -5]
    """
    differences, previous = [], 0
    for number in numbers:
        differences.append(number - previous)
        previous = number
    return differences


class _Indices(dict[Any, int]):
    """A dictionary that gives each new key the next index."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def _facts(detail: str) -> dict[str, Any]:
    """The facts of a row with rounded numbers; text that is not a JSON object is kept as one fact."""
    if not detail:
        return {}
    try:
        values = json.loads(detail)
        if "\\ud" in detail.lower():  # JSON may name a lone surrogate, which UTF-8 cannot hold
            json.dumps(values, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return {"detail": detail}
    try:
        return {key: _rounded(value) for key, value in values.items() if key not in _HIDDEN_KEYS}
    except RecursionError:
        return {"detail": detail}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        value = value if abs(value) >= _INTEGER_FROM else float(f"{value:.4g}")
        return round(value) if value.is_integer() or abs(value) >= _INTEGER_FROM else value
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def _column(key: str, values: Sequence[Any], texts: _Indices, lists: _Indices) -> Any:
    """The values of a fact; contributions of words are stored in hundredths, long lists of texts as indices."""
    if key == "parts" and all(_is_parts(value) for value in values):
        return {
            "words": [[word for word, _ in value] for value in values],
            "contributions": [[round(100 * part) for _, part in value] for value in values],
        }
    are_texts = all(
        isinstance(value, list) and all(isinstance(item, str) for item in value) for value in values
    )
    if are_texts and sum(len(item) for value in values for item in value) > _LONG_LIST * len(values):
        return {"lists": [lists[tuple(texts[item] for item in value)] for value in values]}
    return values


def _is_parts(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and isinstance(item[1], int | float)
        and abs(item[1]) < 1e6
        for item in value
    )
