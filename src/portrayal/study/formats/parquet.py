"""Parquet files and frames that are already in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import RawTable


def read(path: Path, problems: Problems) -> RawTable:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise problems.stop(path, "a Parquet file", shown(str(error).splitlines()[0])) from None
    return of_frame(frame, path)


def of_frame(frame: Any, path: Path) -> RawTable:
    """A polars or pandas frame; `path` is the name that error sentences give it."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        columns = frame.to_dict(as_series=False)
    else:  # pandas: its missing values are NaN, None or NA, which its own isna knows
        columns = {
            str(name): [
                None if gone is True else _plain(value)
                for value, gone in zip(frame[name].tolist(), frame[name].isna().tolist(), strict=True)
            ]
            for name in frame.columns
        }
    return RawTable(path, "row", range(1, len(frame) + 1), columns)


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays, which a pandas column of objects may hold, as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value
