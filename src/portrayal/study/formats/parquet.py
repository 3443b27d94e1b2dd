"""Parquet files and in-memory frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from portrayal.errors import InputError, Problem, Problems, shown
from portrayal.study.formats.raw_table import RawTable


def read(path: Path, problems: Problems) -> RawTable:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise problems.stop(path, "a Parquet file", shown(str(error).splitlines()[0])) from None
    return from_frame(frame, path)


def from_frame(frame: Any, path: Path) -> RawTable:
    """Convert a polars, pandas or Arrow table. `path` is its name in error messages."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        columns = frame.to_dict(as_series=False)
    elif hasattr(frame, "iloc"):  # pandas: its own Arrow interface needs pyarrow
        columns = _pandas_columns(frame)
    elif hasattr(frame, "__arrow_c_stream__"):
        frame = pl.DataFrame(frame)
        columns = frame.to_dict(as_series=False)
    else:
        raise InputError([Problem(str(path), "a polars, pandas or Arrow table", shown(frame))])
    return RawTable(path, "row", range(1, len(frame) + 1), columns)


def _pandas_columns(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a pandas frame; `isna` finds its missing values NaN, None and NA."""
    return {
        str(name): [
            None if missing is True else _plain(value)
            for value, missing in zip(frame[name].tolist(), frame[name].isna().tolist(), strict=True)
        ]
        for name in frame.columns
    }


def _plain(value: Any) -> Any:
    """Convert numpy scalars and arrays in object columns of pandas to Python values."""
    return value.tolist() if hasattr(value, "tolist") else value
