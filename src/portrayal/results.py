"""The results of an audit: one long table of measurements, their evidence, and their provenance.

Reports, charts, gates and comparisons read this and nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import polars as pl

from portrayal.documents import read_json, unwritable_part
from portrayal.errors import InputError, PortrayalError, Problem, Problems, counted, listed, need, shown
from portrayal.files import replacing, write_text
from portrayal.provenance_schema import provenance_problem
from portrayal.selection import headline_rows, select_rows, selection_texts

if TYPE_CHECKING:
    import pandas
    from altair.typing import ChartType

SCHEMA = "portrayal.results/1"
RESULTS_FILE = "results.json"
EVIDENCE_FILE = "evidence.parquet"
REPLICATES_FILE = "replicates.parquet"
THUMBNAILS_FILE = "thumbnails.parquet"
HUMAN = "human"  # the system of rows about human captions
TOO_FEW = 30  # images; rows with fewer are marked as too few and not ranked
TOO_FEW_REASON = "too few"  # start of the reason of such a row
NOTHING_DIFFERS = "nothing differs"  # start of the reason of a comparison without anything to test

EVIDENCE_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(),
    "image_id": pl.String(),
    "system": pl.String(),
    "caption": pl.String(),
    "detail": pl.String(),  # a JSON object: why this caption counted
}

# The bootstrap replicates behind an interval, kept so that two audits of the same images can be compared in pairs.
# `sample` is equal where resample k contains an image equally often in both.
REPLICATES_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(),
    "sample": pl.String(),
    "replicates": pl.List(pl.Float64()),
}

# Thumbnails of the images in the evidence, where the study has images.
THUMBNAILS_SCHEMA: dict[str, pl.DataType] = {"image_id": pl.String(), "image": pl.Binary()}

# The frames beside a results file: name, file and columns.
_FRAMES = {
    "evidence": (EVIDENCE_FILE, EVIDENCE_SCHEMA),
    "replicates": (REPLICATES_FILE, REPLICATES_SCHEMA),
    "thumbnails": (THUMBNAILS_FILE, THUMBNAILS_SCHEMA),
}

_IDENTITY = ("metric", "attribute", "system", "term", "group", "item", "unit", "settings")
_TEXT = (
    "metric",
    "term",
    "system",
    "attribute",
    "group",
    "item",
    "n_unit",
    "better",
    "unit",
    "reason",
    "caution",
    "id",
)
_NUMBERS = ("value", "low", "high", "std_seed", "se_data", "p", "q", "ideal")


_BETWEEN_CAUTIONS = "  "  # two spaces, which no single sentence contains


def join_cautions(sentences: Iterable[str | None]) -> str | None:
    """Several cautions of one number as one text, each once; None if there is none."""
    return _BETWEEN_CAUTIONS.join(dict.fromkeys(filter(None, sentences))) or None


def single_spaced(sentence: str) -> str:
    """A caution without repeated spaces (names in it may have some), so that it can be joined with others."""
    return " ".join(sentence.split())


def split_cautions(text: str | None) -> list[str]:
    """The single cautions of a joined text.

    >>> split_cautions(join_cautions(["Few images.", None, "Long captions."]))
    ['Few images.', 'Long captions.']
    """
    return text.split(_BETWEEN_CAUTIONS) if text else []


@dataclass(frozen=True)
class Measurement:
    """One number: what it is about, its uncertainty, and the settings it was computed with.

    `value` None means undefined, and `reason` says why. `group` None means all people, `item` None all words, objects
    or concepts. `better` is the direction that is better: "lower", "higher", "closer" (to `ideal`), or None. `caution`
    is a sentence that must be shown beside the number.
    """

    metric: str
    term: str
    system: str | None = None
    attribute: str | None = None
    group: str | None = None
    item: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    std_seed: float | None = None
    se_data: float | None = None
    n: int | None = None
    n_unit: str | None = None
    p: float | None = None
    q: float | None = None
    ideal: float | None = None
    better: str | None = None
    unit: str | None = None
    reason: str | None = None
    caution: str | None = None
    id: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(
                    f"{self.metric}:{self.term} has {name} = {number}; an undefined number is None."
                )
        if not self.id:
            object.__setattr__(self, "id", self.digest())

    def digest(self) -> str:
        """Digest of the fields that make this row unique; equal in every run with the same settings."""
        identity = {name: getattr(self, name) for name in _IDENTITY}
        text = json.dumps(identity, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(f.name for f in dataclasses.fields(Measurement))


@dataclass(frozen=True)
class Results:
    """Measurements with their evidence and provenance. Immutable; `Results.join` concatenates several."""

    measurements: tuple[Measurement, ...]
    evidence: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EVIDENCE_SCHEMA))
    replicates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REPLICATES_SCHEMA))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    thumbnails: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=THUMBNAILS_SCHEMA))

    def to_polars(self) -> pl.DataFrame:
        """The measurements as a polars frame; `settings` is JSON text so that the frame stays flat."""
        rows = [
            m.as_dict() | {"settings": json.dumps(m.settings, sort_keys=True, ensure_ascii=False)}
            for m in self.measurements
        ]
        return pl.DataFrame(rows, schema=_frame_schema())

    def to_pandas(self) -> pandas.DataFrame:
        """The measurements as a pandas frame; needs pandas."""
        library = need("pandas", "dev", "Results.to_pandas()")
        frame: pandas.DataFrame = library.DataFrame(self.to_polars().to_dict(as_series=False))
        return frame

    def filter(self, **fields: Any) -> Results:
        """The measurements whose fields have these values, with their evidence and replicates.

        A selection states no findings: these are corrected for all comparisons of an audit.

        Parameters
        ----------
        **fields
            A field of a measurement (metric, term, system, attribute, group, item, ...) or a setting (split, stage,
            k, ...), with one value or a list of values. `group=None` selects rows about all people, `item=None` those
            about all words or objects.

        Returns
        -------
        Results

        Raises
        ------
        PortrayalError
            If a field is unknown, or no measurement has the value.

        Examples
        --------
        >>> rows = [Measurement("error", "error", group=group, value=0.1) for group in (None, "female", "male")]
        >>> [m.group for m in Results(tuple(rows)).filter(group=[None, "male"]).measurements]
        [None, 'male']
        """
        return self._selection(select_rows(self.measurements, _FIELDS, fields), selection_texts(fields))

    def headline(self) -> Results:
        """One measurement about all people for each metric, attribute and system.

        Its term is the first of these that was measured: the one named like its metric, those that the metric's card
        makes statements about, those with a direction, any other. Undefined measurements are kept with their reason.

        Returns
        -------
        Results

        Examples
        --------
        >>> rows = [Measurement("error", term, system="oscar", value=0.1) for term in ("right", "wrong", "error")]
        >>> [m.term for m in Results(tuple(rows)).headline().measurements]
        ['error']
        """
        rows = headline_rows(self.measurements, self.provenance.get("cards"))
        return self._selection(rows, ["headlines"])

    def plot(
        self,
        metric: str | Sequence[str] | None = None,
        term: str | Sequence[str] | None = None,
        **fields: Any,
    ) -> ChartType:
        """A forest plot: a panel for each term, with a point and a 95 % CI for each number.

        Parameters
        ----------
        metric, term : str or sequence of str, optional
            The metrics and terms to draw. By default all; if these are too many for a chart, the headlines.
        **fields
            Further fields, as in `filter`.

        Returns
        -------
        altair.LayerChart or altair.ConcatChart
            The charts of the page; `.save("chart.svg")` writes a file.

        Raises
        ------
        PortrayalError
            If the selection has no term with at least two numbers, one of them with an interval.
        """
        named = {name: value for name, value in (("metric", metric), ("term", term)) if value is not None}
        chart: ChartType = _notebook().forest_chart(
            self.filter(**named, **fields) if named or fields else self
        )
        return chart

    def to_html(self, path: Path | str) -> Path:
        """Write the page.

        Parameters
        ----------
        path : Path or str
            A file that ends in `.html`, or a folder in which to write `index.html`.

        Returns
        -------
        Path
            The file.
        """
        written: Path = _notebook().write_html(self, Path(path))
        return written

    def __repr__(self) -> str:
        study = self.provenance.get("study")
        name = study.get("name") if isinstance(study, Mapping) else None
        count = counted(len(self.measurements), "measurement")
        if self.measurements:
            count += f" of {counted(len({m.metric for m in self.measurements}), 'metric')}"
        systems = listed(dict.fromkeys(m.system for m in self.measurements if m.system))
        return f"<Results{f' of {shown(name)}' if name else ''}: {'; '.join(filter(None, (count, systems)))}>"

    def _repr_html_(self) -> str:
        html: str = _notebook().results_html(self)
        return html

    def _selection(self, measurements: Sequence[Measurement], conditions: Sequence[str]) -> Results:
        """These measurements with their evidence and replicates; the provenance records the conditions."""
        if not conditions:
            return self
        ids = [m.id for m in measurements]
        return dataclasses.replace(
            self,
            measurements=tuple(measurements),
            evidence=self.evidence.filter(pl.col("id").is_in(ids)),
            replicates=self.replicates.filter(pl.col("id").is_in(ids)),
            provenance={**self.provenance, "selection": [*self.conditions, *conditions]},
        )

    @property
    def conditions(self) -> list[str]:
        """The conditions of the selection that these results are; empty if they are complete."""
        recorded = self.provenance.get("selection")
        return list(recorded) if isinstance(recorded, list | tuple) else []

    def evidence_of(self, measurement: Measurement) -> pl.DataFrame:
        """The evidence (captions) of one measurement."""
        return self.evidence.filter(pl.col("id") == measurement.id)

    def as_dict(self, **files: str | None) -> dict[str, Any]:
        """The content of a results file; `files` names the files of its frames."""
        return {
            "schema": SCHEMA,
            "provenance": dict(self.provenance),
            "measurements": [m.as_dict() for m in self.measurements],
            **{what: files.get(what) for what in _FRAMES},
        }

    def save(self, target: Path | str) -> Path:
        """Write the results into a folder, or as a `.json` file, with evidence and replicates beside it.

        The frames are written first, so that a results file never lacks them.
        """
        target = Path(target)
        path = target if target.suffix == ".json" else target / RESULTS_FILE
        prefix = f"{target.stem}." if target.suffix == ".json" else ""
        names: dict[str, str | None] = {}
        for what, (name, _) in _FRAMES.items():
            frame: pl.DataFrame = getattr(self, what)
            if what == "thumbnails" and not frame.height:  # most studies have no images
                (path.parent / (prefix + name)).unlink(missing_ok=True)
                continue
            names[what] = prefix + name
            with replacing(path.parent / (prefix + name)) as temporary:
                frame.rechunk().write_parquet(
                    temporary
                )  # in one chunk, so that equal frames give equal bytes
        write_text(path, self.to_json(**names))
        return path

    def to_json(self, **files: str | None) -> str:
        data = self.as_dict(**files)
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: Path | str) -> Results:
        """Read a results file, or the folder that holds one."""
        return _load(Path(path))

    @classmethod
    def join(cls, parts: Iterable[Results], provenance: Mapping[str, Any]) -> Results:
        """All measurements of several results, with their evidence, replicates and images."""
        parts = list(parts)
        measurements = tuple(m for part in parts for m in part.measurements)
        repeated = len(measurements) - len({m.id for m in measurements})
        if repeated:
            raise ValueError(f"{repeated} measurements have the same id as another one.")
        evidence = pl.concat([pl.DataFrame(schema=EVIDENCE_SCHEMA), *(part.evidence for part in parts)])
        replicates = pl.concat([pl.DataFrame(schema=REPLICATES_SCHEMA), *(part.replicates for part in parts)])
        thumbnails = pl.concat([pl.DataFrame(schema=THUMBNAILS_SCHEMA), *(part.thumbnails for part in parts)])
        thumbnails = thumbnails.unique("image_id", keep="first", maintain_order=True)
        return cls(measurements, evidence, replicates, provenance, thumbnails)


def load_results(path: Path | str) -> Results:
    """Read results that were saved.

    Parameters
    ----------
    path : Path or str
        A results file, or the folder that holds `results.json`.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Results((Measurement("error", "error", value=0.1),)).save(folder)
    ...     load_results(folder)
    <Results: 1 measurement of 1 metric>
    """
    return Results.load(path)


def _notebook() -> ModuleType:
    """Return the views of results, imported when one is shown: reports read results, and results import no report."""
    return importlib.import_module("portrayal.report.notebook")


def _frame_schema() -> dict[str, pl.DataType]:
    types: dict[str, pl.DataType] = {name: pl.String() for name in _FIELDS}
    types |= {name: pl.Float64() for name in _NUMBERS}
    return types | {"n": pl.Int64()}


@dataclass(frozen=True)
class ResultsFile:
    """The content of a results file; the frames beside it, which may be large, are named but not read."""

    path: Path
    measurements: tuple[Measurement, ...]
    provenance: Mapping[str, Any]
    files: Mapping[str, Path]

    def scan(self, frame_name: str) -> pl.LazyFrame:
        """A lazy frame beside the file, such as "evidence"; empty if there is none."""
        schema = _FRAMES[frame_name][1]
        path = self.files.get(frame_name)
        return pl.LazyFrame(schema=schema) if path is None or not path.exists() else _scan(path, schema)


def open_results(path: Path) -> ResultsFile:
    """Read a results file, or the one in a folder, without the frames beside it."""
    if path.is_dir():
        path = path / RESULTS_FILE
    try:
        data = read_json(path)
    except FileNotFoundError:
        raise PortrayalError(f"There is no results file at {path}.") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = shown(data.get("schema")) if isinstance(data, dict) else type(data).__name__
        raise InputError([Problem(str(path), f"a results file with schema {SCHEMA!r}", found)])
    problems = Problems()
    measurements = _load_measurements(path, data.get("measurements"), problems)
    origin = data.get("provenance") or {}
    problem = provenance_problem(origin)
    if problem:
        problems.note(path, *problem)
    files = {}
    for what in _FRAMES:
        name = data.get(what)
        if isinstance(name, str) and Path(name).name == name:
            files[what] = path.parent / name
        elif name is not None:
            problems.note(path, f"{what} as the name of a file beside it", shown(name))
    problems.settle()
    return ResultsFile(path, tuple(measurements), origin, files)


def _load(path: Path) -> Results:
    opened = open_results(path)
    frames = {what: _load_frame(beside, _FRAMES[what][1]) for what, beside in opened.files.items()}
    return Results(opened.measurements, provenance=opened.provenance, **frames)


def _load_measurements(path: Path, rows: object, problems: Problems) -> list[Measurement]:
    if not isinstance(rows, list):
        raise problems.stop(path, "a list of measurements", shown(rows))
    measurements: dict[str, Measurement] = {}
    for number, row in enumerate(rows, start=1):
        problem = _field_problem(row)
        if problem:
            problems.note(path, problem[0], problem[1], f"measurement {number}")
            continue
        known = {name: row[name] for name in _FIELDS if row.get(name) is not None}
        if row.get("value") is None:
            known.setdefault("reason", "no reason was recorded")
        measurement = Measurement(**known)
        if measurement.id in measurements:
            problems.note(path, "each id once", f"{measurement.id!r} again", f"measurement {number}")
        measurements[measurement.id] = measurement
    return list(measurements.values())


def _field_problem(row: object) -> tuple[str, str] | None:
    """(expected, found) of the first problem in a measurement of a file, or None if it is valid."""
    if not isinstance(row, dict):
        return "an object", shown(row)
    for name in ("metric", "term"):
        if not row.get(name):
            return f"a {name}", "none"
    for name in _TEXT:
        if not isinstance(row.get(name), str | None):
            return f"{name} as text", shown(row[name])
    for name in _NUMBERS:
        number = row.get(name)
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            return f"{name} as a number", shown(number)
        if number is not None and not abs(number) < sys.float_info.max:  # also false for nan
            return f"{name} as a finite number or null", shown(number)
    n = row.get("n")
    if isinstance(n, bool) or not isinstance(n, int | None) or not 0 <= (n or 0) < 2**63:
        return "n as a whole number", shown(n)
    if not isinstance(row.get("settings"), dict | None):
        return "settings as an object", shown(row["settings"])
    fault = unwritable_part(row.get("settings"))
    return ("settings of text and finite numbers", fault) if fault else None


def _load_frame(path: Path, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    if not path.exists():
        return pl.DataFrame(schema=schema)  # results may be shared without their frames
    try:
        return _scan(path, schema).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError([Problem(str(path), "a Parquet file", shown(str(error)))]) from None


def _scan(path: Path, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    try:
        columns = pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError([Problem(str(path), "a Parquet file", shown(str(error)))]) from None
    mismatched = [name for name, kind in schema.items() if columns.get(name) != kind]
    if mismatched:
        expected = f"a column {mismatched[0]!r} of type {schema[mismatched[0]]}"
        raise InputError([Problem(str(path), expected, f"the columns {dict(columns)}")])
    return pl.scan_parquet(path, glob=False).select(list(schema))
