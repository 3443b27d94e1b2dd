"""The results of an audit: one long table of measurements, the evidence behind them, and where they come from.

Every report, chart, gate and comparison reads this and nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from portrayal import __version__
from portrayal.documents import read_json, unwritable, writable
from portrayal.errors import InputError, PortrayalError, Problem, Problems, need, shown
from portrayal.files import replacing, write_text
from portrayal.provenance_schema import wrong_provenance

if TYPE_CHECKING:
    import pandas

SCHEMA = "portrayal.results/1"
RESULTS_FILE = "results.json"
EVIDENCE_FILE = "evidence.parquet"
REPLICATES_FILE = "replicates.parquet"
PICTURES_FILE = "pictures.parquet"
HUMAN = "human"  # the system of rows about people's captions
TOO_FEW = 30  # images; what rests on fewer is shown with its n and said to be too few, and is not ranked
TOO_FEW_REASON = "too few"  # how the reason of such a row begins
NOTHING_DIFFERS = "nothing differs"  # how the reason of a comparison begins in which there is nothing to test

EVIDENCE_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(),
    "image_id": pl.String(),
    "system": pl.String(),
    "caption": pl.String(),
    "detail": pl.String(),  # a JSON object: what about this caption made it count
}

# The bootstrap draws behind an interval, kept so that two audits of the same images can be compared in pairs.
# `sample` is equal where draw k takes an image as often in both.
REPLICATES_SCHEMA: dict[str, pl.DataType] = {
    "id": pl.String(),
    "sample": pl.String(),
    "draws": pl.List(pl.Float64()),
}

# Small copies of the pictures that the evidence is about, where the study has pictures.
PICTURES_SCHEMA: dict[str, pl.DataType] = {"image_id": pl.String(), "picture": pl.Binary()}

# What lies beside a results file: the name of its frame, the file and the columns.
_BESIDE = {
    "evidence": (EVIDENCE_FILE, EVIDENCE_SCHEMA),
    "replicates": (REPLICATES_FILE, REPLICATES_SCHEMA),
    "pictures": (PICTURES_FILE, PICTURES_SCHEMA),
}

_PACKAGES = ("numpy", "scipy", "polars", "scikit-learn", "torch", "transformers")
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


_BETWEEN_CAUTIONS = "  "  # two spaces, which no sentence has inside it


def join_cautions(sentences: Iterable[str | None]) -> str | None:
    """Several cautions of one number as one text, each once; None where there is none."""
    return _BETWEEN_CAUTIONS.join(dict.fromkeys(filter(None, sentences))) or None


def one_spaced(sentence: str) -> str:
    """A caution as it may be joined with others: names in it may have several spaces in a row."""
    return " ".join(sentence.split())


def split_cautions(text: str | None) -> list[str]:
    """The cautions that were joined.

    >>> split_cautions(join_cautions(["Few images.", None, "Long captions."]))
    ['Few images.', 'Long captions.']
    """
    return text.split(_BETWEEN_CAUTIONS) if text else []


@dataclass(frozen=True)
class Measurement:
    """One number, what it is about, how sure it is, and the settings that gave it.

    `value` None is "undefined", and then `reason` says why. `group` None means all people, `item` None
    means all words, objects or concepts. `better` says which way is better: "lower", "higher", "closer"
    (to `ideal`), or None where neither end is good in itself. `caution` is a sentence that must be read beside the
    number, wherever it is shown.
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
        """A short name for what makes this row unique, the same in every run with the same settings."""
        identity = {name: getattr(self, name) for name in _IDENTITY}
        text = json.dumps(identity, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(f.name for f in dataclasses.fields(Measurement))


@dataclass(frozen=True)
class Results:
    """Measurements with their evidence and provenance. Immutable; `Results.join` puts several together."""

    measurements: tuple[Measurement, ...]
    evidence: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EVIDENCE_SCHEMA))
    replicates: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REPLICATES_SCHEMA))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    pictures: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PICTURES_SCHEMA))

    def frame(self) -> pl.DataFrame:
        """The measurements as a polars frame; `settings` is JSON text so that the frame stays flat."""
        rows = [
            m.as_dict() | {"settings": json.dumps(m.settings, sort_keys=True, ensure_ascii=False)}
            for m in self.measurements
        ]
        return pl.DataFrame(rows, schema=_frame_schema())

    def pandas(self) -> pandas.DataFrame:
        """The measurements as a pandas frame, for those who have pandas."""
        library = need("pandas", "dev", "Results.pandas()")
        made: pandas.DataFrame = library.DataFrame(self.frame().to_dict(as_series=False))
        return made

    def evidence_of(self, measurement: Measurement) -> pl.DataFrame:
        """The captions behind one number."""
        return self.evidence.filter(pl.col("id") == measurement.id)

    def as_dict(self, **beside: str | None) -> dict[str, Any]:
        """What a results file holds; `beside` names the files of its frames."""
        return {
            "schema": SCHEMA,
            "provenance": dict(self.provenance),
            "measurements": [m.as_dict() for m in self.measurements],
            **{what: beside.get(what) for what in _BESIDE},
        }

    def save(self, target: Path | str) -> Path:
        """Write the results into a folder, or as a `.json` file, with evidence and draws beside them.

        What lies behind the numbers is written first, so that a results file never lacks it.
        """
        target = Path(target)
        path = target if target.suffix == ".json" else target / RESULTS_FILE
        prefix = f"{target.stem}." if target.suffix == ".json" else ""
        names: dict[str, str | None] = {}
        for what, (name, _) in _BESIDE.items():
            frame: pl.DataFrame = getattr(self, what)
            if what == "pictures" and not frame.height:  # most studies have none
                (path.parent / (prefix + name)).unlink(missing_ok=True)
                continue
            names[what] = prefix + name
            with replacing(path.parent / (prefix + name)) as temporary:
                frame.rechunk().write_parquet(temporary)  # in one piece: equal frames, equal bytes
        write_text(path, self.to_json(**names))
        return path

    def to_json(self, **beside: str | None) -> str:
        data = self.as_dict(**beside)
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: Path | str) -> Results:
        """Read a results file, or the folder that holds one."""
        return _load(Path(path))

    @classmethod
    def join(cls, parts: Iterable[Results], provenance: Mapping[str, Any]) -> Results:
        parts = list(parts)
        measurements = tuple(m for part in parts for m in part.measurements)
        repeated = len(measurements) - len({m.id for m in measurements})
        if repeated:
            raise ValueError(f"{repeated} measurements have the same id as another one.")
        evidence = pl.concat([pl.DataFrame(schema=EVIDENCE_SCHEMA), *(part.evidence for part in parts)])
        replicates = pl.concat([pl.DataFrame(schema=REPLICATES_SCHEMA), *(part.replicates for part in parts)])
        return cls(measurements, evidence, replicates, provenance)


def provenance(
    *, command: str, seed: int | None, started: float, study: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Where numbers come from: enough to run them again. `started` is a `time.time()`."""
    return {
        "version": __version__,
        "command": command,
        "seed": seed,
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 3),
        "study": dict(study),
        "python": platform.python_version(),
        "packages": dict(_package_versions()),
        "git_commit": _git_commit(),
        **more,
    }


def command_line() -> str:
    """This process as the user typed it, without the folder of the program."""
    return writable(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))


@cache  # reading them takes as long as measuring a small study
def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _git_commit() -> str | None:
    """The commit of the folder the user works in, so that a result can be tied to their code."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None


def _frame_schema() -> dict[str, pl.DataType]:
    types: dict[str, pl.DataType] = {name: pl.String() for name in _FIELDS}
    types |= {name: pl.Float64() for name in _NUMBERS}
    return types | {"n": pl.Int64()}


@dataclass(frozen=True)
class ResultsFile:
    """What a results file itself holds; the frames beside it, which may be large, are named and not read."""

    path: Path
    measurements: tuple[Measurement, ...]
    provenance: Mapping[str, Any]
    beside: Mapping[str, Path]

    def scan(self, what: str) -> pl.LazyFrame:
        """A frame beside the file ("evidence", "pictures"), read where it is used; empty where there is none."""
        schema = _BESIDE[what][1]
        path = self.beside.get(what)
        return pl.LazyFrame(schema=schema) if path is None or not path.exists() else _scan(path, schema)


def open_results(path: Path) -> ResultsFile:
    """Read a results file, or the one in a folder, and nothing that lies beside it."""
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
    wrong = wrong_provenance(origin)
    if wrong:
        problems.note(path, *wrong)
    beside = {}
    for what in _BESIDE:
        name = data.get(what)
        if isinstance(name, str) and Path(name).name == name:
            beside[what] = path.parent / name
        elif name is not None:
            problems.note(path, f"{what} as the name of a file beside it", shown(name))
    problems.settle()
    return ResultsFile(path, tuple(measurements), origin, beside)


def _load(path: Path) -> Results:
    opened = open_results(path)
    frames = {what: _load_frame(beside, _BESIDE[what][1]) for what, beside in opened.beside.items()}
    return Results(opened.measurements, provenance=opened.provenance, **frames)


def _load_measurements(path: Path, rows: object, problems: Problems) -> list[Measurement]:
    if not isinstance(rows, list):
        raise problems.stop(path, "a list of measurements", shown(rows))
    measurements: dict[str, Measurement] = {}
    for number, row in enumerate(rows, start=1):
        wrong = _wrong_field(row)
        if wrong:
            problems.note(path, wrong[0], wrong[1], f"measurement {number}")
            continue
        known = {name: row[name] for name in _FIELDS if row.get(name) is not None}
        if row.get("value") is None:
            known.setdefault("reason", "no reason was recorded")
        measurement = Measurement(**known)
        if measurement.id in measurements:
            problems.note(path, "each id once", f"{measurement.id!r} again", f"measurement {number}")
        measurements[measurement.id] = measurement
    return list(measurements.values())


def _wrong_field(row: object) -> tuple[str, str] | None:
    """What a measurement in a file should have held and what it held, or None when it is sound."""
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
        if number is not None and not abs(number) < sys.float_info.max:  # nan is not below anything
            return f"{name} as a finite number or null", shown(number)
    n = row.get("n")
    if isinstance(n, bool) or not isinstance(n, int | None) or not 0 <= (n or 0) < 2**63:
        return "n as a whole number", shown(n)
    if not isinstance(row.get("settings"), dict | None):
        return "settings as an object", shown(row["settings"])
    fault = unwritable(row.get("settings"))
    return ("settings of text and finite numbers", fault) if fault else None


def _load_frame(path: Path, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    if not path.exists():
        return pl.DataFrame(schema=schema)  # results may travel without what lies behind them
    try:
        return _scan(path, schema).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError([Problem(str(path), "a Parquet file", shown(str(error)))]) from None


def _scan(path: Path, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    try:
        found = pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError([Problem(str(path), "a Parquet file", shown(str(error)))]) from None
    wrong = [name for name, kind in schema.items() if found.get(name) != kind]
    if wrong:
        expected = f"a column {wrong[0]!r} of type {schema[wrong[0]]}"
        raise InputError([Problem(str(path), expected, f"the columns {dict(found)}")])
    return pl.scan_parquet(path, glob=False).select(list(schema))
