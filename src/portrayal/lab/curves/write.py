"""Write and read response curves: a page, a chart for each curve, and all numbers as CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from portrayal.documents import read_json
from portrayal.errors import InputError, Problem, shown
from portrayal.files import write_text
from portrayal.lab.curves.charts import svg
from portrayal.lab.curves.curve import Curve, CurvePoint, PowerEstimate, Reaction, StudyShare
from portrayal.lab.curves.tables import SUMMARY, details, findings, long_csv, summary

SCHEMA = "portrayal.curves/1"
PAGE = "index.html"
CURVES_FILE = "curves.json"


def write_curves(curves: Sequence[Curve], folder: Path) -> Path:
    """Write the page, the charts and the numbers of curves to a folder; return the path of the page."""
    charts = {curve.name: svg(curve) for curve in curves}
    for curve in curves:
        write_text(folder / "charts" / chart_file(curve), charts[curve.name])
    write_text(folder / "curves.csv", long_csv(curves))
    data = {"schema": SCHEMA, "curves": [asdict(curve) for curve in curves]}
    write_text(folder / CURVES_FILE, json.dumps(data, indent=1) + "\n")
    template = resources.files("portrayal.lab").joinpath("curves/page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    shown_curves = [
        {
            "name": curve.name,
            "dial": curve.dial,
            # Safe: the chart is made here from numbers and our own names.
            "chart": Markup(charts[curve.name]),
            "findings": findings(curve),
            "tables": details(curve),
        }
        for curve in curves
    ]
    write_text(folder / PAGE, page.render(columns=SUMMARY, rows=summary(curves), curves=shown_curves))
    return folder / PAGE


def read_curves(path: Path) -> list[Curve]:
    """Read the curves of a `curves.json`."""
    try:
        data = read_json(path)
        if data["schema"] != SCHEMA:
            raise ValueError(f"a schema other than {SCHEMA!r}")
        return [_curve_from(curve) for curve in data["curves"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError([Problem(str(path), "curves of the lab", shown(str(error)))]) from None


def chart_file(curve: Curve) -> str:
    return f"{curve.metric}.{curve.term.replace('@', '-').replace(' ', '-')}.svg"


def _curve_from(data: dict[str, Any]) -> Curve:
    shares = ("false_positive_rate", "coverage_at_zero", "coverage")
    data |= {name: _share_from(data[name]) for name in shares}
    data["points"] = tuple(CurvePoint(**point) for point in data["points"])
    data["power"] = tuple(
        PowerEstimate(**{**item, "share": _share_from(item["share"])}) for item in data["power"]
    )
    rates = ("false_positive_rate_before", "false_positive_rate")
    data["reactions"] = tuple(
        Reaction(**{**item, **{name: _share_from(item[name]) for name in rates}})
        for item in data["reactions"]
    )
    return Curve(**data)


def _share_from(data: dict[str, Any] | None) -> StudyShare | None:
    return None if data is None else StudyShare(**data)
