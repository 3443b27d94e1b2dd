"""Curves on disk: a page, a chart for each, and every number as CSV and JSON."""

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
from portrayal.lab.curves.curve import Curve, Point, Power, Reaction, Share
from portrayal.lab.curves.tables import SUMMARY, details, findings, long_csv, summary

SCHEMA = "portrayal.curves/1"
PAGE = "index.html"
CURVES_FILE = "curves.json"


def write_curves(curves: Sequence[Curve], folder: Path) -> Path:
    """Write everything about these curves; the page is what to open."""
    charts = {curve.name: svg(curve) for curve in curves}
    for curve in curves:
        write_text(folder / "charts" / chart_file(curve), charts[curve.name])
    write_text(folder / "curves.csv", long_csv(curves))
    made = {"schema": SCHEMA, "curves": [asdict(curve) for curve in curves]}
    write_text(folder / CURVES_FILE, json.dumps(made, indent=1) + "\n")
    template = resources.files("portrayal.lab").joinpath("curves/page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    shown_curves = [
        {
            "name": curve.name,
            "dial": curve.dial,
            "chart": Markup(charts[curve.name]),  # drawn here from numbers and our own names
            "findings": findings(curve),
            "tables": details(curve),
        }
        for curve in curves
    ]
    write_text(folder / PAGE, page.render(columns=SUMMARY, rows=summary(curves), curves=shown_curves))
    return folder / PAGE


def read_curves(path: Path) -> list[Curve]:
    """The curves of a `curves.json`."""
    try:
        made = read_json(path)
        if made["schema"] != SCHEMA:
            raise ValueError(f"a schema other than {SCHEMA!r}")
        return [_curve(one) for one in made["curves"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError([Problem(str(path), "curves of the lab", shown(str(error)))]) from None


def chart_file(curve: Curve) -> str:
    return f"{curve.metric}.{curve.term.replace('@', '-').replace(' ', '-')}.svg"


def _curve(made: dict[str, Any]) -> Curve:
    shares = ("false_alarms", "coverage_at_zero", "coverage")
    made |= {name: _share(made[name]) for name in shares}
    made["points"] = tuple(Point(**point) for point in made["points"])
    made["power"] = tuple(Power(**{**one, "share": _share(one["share"])}) for one in made["power"])
    alarms = ("alarms_before", "alarms")
    made["reactions"] = tuple(
        Reaction(**{**one, **{name: _share(one[name]) for name in alarms}}) for one in made["reactions"]
    )
    return Curve(**made)


def _share(made: dict[str, Any] | None) -> Share | None:
    return None if made is None else Share(**made)
