"""The captions that a page carries: as many behind each number as its budget allows, each stored once.

`portrayal view` shows all of them; a page is sent around, so that it holds a spread of each number's captions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import polars as pl

from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.page.embedded import packed
from portrayal.report.page.side_by_side import compared_terms
from portrayal.results import HUMAN, Results

PAGE = 6_000_000  # bytes of a page: the captions may take what everything else leaves of them
MOST = (200, 100, 50, 20)  # captions behind a number: the first of these with which all fit, else the last
SHRINKS = 30  # times, at most: what would not fit even then is not packed to see

_ROW = ("image_id", "system", "caption", "detail")
_UNSHOWN = ("effect", "by pairs")  # for comparisons, not for readers
_WHOLE = 1000  # numbers from here on are shown without a fraction, and smaller ones with four digits
_LONG = 40  # letters; lists of texts that are longer are stored apart, since many rows have the same ones


def packed_evidence(results: Results, ids: Collection[str], budget: int) -> str:
    """The captions behind these numbers, in so many letters if that can be."""
    found = _told(results, ids)
    totals = dict(found.group_by("id", maintain_order=True).len().iter_rows())
    text = ""
    for most in MOST:
        rows = spread(found, most)
        if most != MOST[-1] and _length(rows) > SHRINKS * budget:
            continue
        more = {identifier: total for identifier, total in totals.items() if total > most}
        text = packed({**encoded(rows), "totals": more})
        if len(text) <= budget:
            break
    return text


def _length(rows: pl.DataFrame) -> int:
    lengths = rows.select(_ROW).unique().select(pl.sum_horizontal(pl.col(_ROW).str.len_bytes()).sum())
    return int(lengths.item())


def spread(evidence: pl.DataFrame, most: int) -> pl.DataFrame:
    """Of each number's captions so many, at even distances; all where there are no more."""
    place, count = pl.int_range(pl.len()).over("id"), pl.len().over("id").cast(pl.Int64)
    # The first at or after each of `most` even steps. Fewer steps that divide more steps give some of the same.
    return evidence.filter((place * most // count != (place - 1) * most // count) | (count <= most))


def _told(results: Results, ids: Collection[str]) -> pl.DataFrame:
    """The evidence with its sources: people where a system's number is about what people say, and nobody where a
    model was asked. Which terms are about people, a metric's card says.
    """
    found = results.evidence.filter(pl.col("id").is_in(list(ids))).with_columns(pl.col(_ROW).fill_null(""))
    asked = [m.id for m in results.measurements if m.metric == COUNTERBIAS]
    pairs = {(metric, term) for metric, (_, term) in compared_terms(results).items()}
    theirs = [m.id for m in results.measurements if (m.metric, m.term) in pairs]
    by_people = found.filter(pl.col("id").is_in(theirs)).select(_ROW).unique()
    by_people = by_people.with_columns(source=pl.lit(HUMAN))
    system = pl.when(pl.col("id").is_in(asked)).then(pl.lit("")).otherwise(pl.coalesce("source", "system"))
    return found.join(by_people, on=_ROW, how="left", maintain_order="left").with_columns(system=system)


def encoded(evidence: pl.DataFrame) -> dict[str, Any]:
    """Every caption once, and for each number which of them stand behind it: many stand behind several.

    What is alike stands together, since that is compressed best: rows by the facts they have, each fact a column.
    Numbers that rise are stored as the steps between them. templates/evidence_data.js reads it.
    """
    facts = {detail: _facts(detail) for detail in evidence["detail"].unique(maintain_order=True)}
    kinds: dict[tuple[str, ...], int] = {}
    kind = {detail: kinds.setdefault(tuple(about), len(kinds)) for detail, about in facts.items()}
    rows = evidence.select(_ROW).unique()
    rows = rows.with_columns(kind=pl.col("detail").replace_strict(kind, return_dtype=pl.Int64))
    rows = rows.sort("kind", *_ROW).with_row_index("row")
    said = rows.select(_ROW[:3]).unique().sort(_ROW[:3]).with_row_index("said")
    rows = rows.join(said, on=_ROW[:3], how="left", maintain_order="left")
    behind = (
        evidence.select("id", *_ROW)
        .join(rows, on=_ROW, how="left", maintain_order="left")
        .group_by("id", maintain_order=True)
        .agg("row")
    )
    images, systems, texts, lists, runs = (_Places() for _ in range(5))
    numbers = {identifier: runs[tuple(places)] for identifier, places in behind.iter_rows()}
    captions = [
        steps(names[text] for text in said[column])
        for column, names in (("image_id", images), ("system", systems), ("caption", texts))
    ]
    made = []
    for keys, number in kinds.items():
        mine = rows.filter(pl.col("kind") == number)
        told = [facts[detail] for detail in mine["detail"]]
        columns = [_column(key, [about[key] for about in told], texts, lists) for key in keys]
        made.append({"keys": keys, "said": steps(mine["said"]), "columns": columns})
    return {
        "images": list(images),
        "systems": list(systems),
        "texts": list(texts),
        "lists": list(lists),
        "said": captions,
        "kinds": made,
        "behind": numbers,
        "runs": [steps(places) for places in runs],
    }


def steps(numbers: Iterable[int]) -> list[int]:
    """
    >>> steps([5, 7, 8, 3])
    [5, 2, 1, -5]
    """
    made, before = [], 0
    for number in numbers:
        made.append(number - before)
        before = number
    return made


class _Places(dict[Any, int]):
    """What was asked for, each with its place in the order in which it came."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def _facts(detail: str) -> dict[str, Any]:
    """What a row tells, in the digits that a page shows; what comes from elsewhere may be shown as it is."""
    if not detail:
        return {}
    try:
        about = json.loads(detail)
        if "\\ud" in detail.lower():  # half of a character, which JSON can name, cannot be written
            json.dumps(about, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        return {"detail": detail}
    try:
        return {key: _short(value) for key, value in about.items() if key not in _UNSHOWN}
    except RecursionError:
        return {"detail": detail}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        value = value if abs(value) >= _WHOLE else float(f"{value:.4g}")
        return round(value) if value.is_integer() or abs(value) >= _WHOLE else value
    if isinstance(value, list):
        return [_short(one) for one in value]
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return value


def _column(key: str, values: Sequence[Any], texts: _Places, lists: _Places) -> Any:
    """One fact of all rows of a kind: its values; or words and what each adds, in hundredths; or lists stored apart."""
    if key == "parts" and all(_is_parts(value) for value in values):
        return {
            "words": [[word for word, _ in value] for value in values],
            "adds": [[round(100 * part) for _, part in value] for value in values],
        }
    are_texts = all(
        isinstance(value, list) and all(isinstance(one, str) for one in value) for value in values
    )
    if are_texts and sum(len(one) for value in values for one in value) > _LONG * len(values):
        return {"lists": [lists[tuple(texts[one] for one in value)] for value in values]}
    return values


def _is_parts(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) == 2
        and isinstance(one[0], str)
        and isinstance(one[1], int | float)
        and abs(one[1]) < 1e6
        for one in value
    )
