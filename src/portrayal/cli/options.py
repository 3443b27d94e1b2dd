"""Options that several commands share, and options made from a metric's own parameters."""

from __future__ import annotations

import inspect
import os
import types
import typing
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from portrayal.metrics import Metric
from portrayal.report import to_csv, to_markdown
from portrayal.results import Results
from portrayal.stats import RESAMPLES

F = TypeVar("F", bound=Callable[..., Any])

SHARED = ("skip_bad",)  # options of every score, which some metrics have a use for too
FORMATS: dict[str, Callable[[Results], str]] = {"json": Results.to_json, "csv": to_csv, "md": to_markdown}


class Number(click.ParamType[float]):
    """A number or a fraction: 0.03, 8/255."""

    name = "N|N/255"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(Fraction(value)) if isinstance(value, str) else float(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            return self.fail(f"expected a number such as 0.03 or 8/255, got {value!r}.", param, ctx)


def names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    found = [name.strip() for name in value.split(",") if name.strip()]
    if not found:
        raise click.BadParameter("expected names separated by commas.")
    return found


def numbers(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        found = tuple(int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter("expected whole numbers separated by commas.") from None
    if min(found) < 0 or len(set(found)) < len(found):
        raise click.BadParameter("expected different numbers of 0 or more.")
    return found


def study_argument(command: F) -> F:
    return click.argument("study", type=click.Path(path_type=Path))(command)


def systems_option(command: F) -> F:
    return click.option("--systems", callback=names, metavar="A,B", help="Only these systems.")(command)


def attribute_option(command: F) -> F:
    return click.option(
        "--attribute", metavar="NAME", help="The attribute whose groups are compared; by default every one."
    )(command)


def seed_option(command: F) -> F:
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
    )(command)


def bootstrap_option(command: F) -> F:
    return click.option(
        "--bootstrap",
        type=click.IntRange(min=20),
        default=RESAMPLES,
        show_default=True,
        help="Bootstrap draws behind intervals.",
    )(command)


def workers_option(command: F) -> F:
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=lambda: os.cpu_count() or 1,
        metavar="N",
        help="Processes; by default one per core.",
    )(command)


def skip_bad_option(command: F) -> F:
    return click.option("--skip-bad", is_flag=True, help="Leave bad rows out, and say how many.")(command)


def out_option(command: F) -> F:
    return click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        required=True,
        metavar="DIR",
        help="Where to write.",
    )(command)


def output_options(command: F) -> F:
    """--json FILE and --format, for commands whose outcome is results."""
    path = click.Path(path_type=Path, dir_okay=False)
    written = click.option(
        "--json", "json_file", type=path, metavar="FILE", help="Also write the results here."
    )
    styles = click.Choice(["table", *FORMATS])
    printed = click.option(
        "--format", "style", type=styles, default="table", show_default=True, help="What to print."
    )
    return written(printed(command))


def metric_options(metric: Metric) -> list[click.Option]:
    """One option per keyword of the metric: its type from the annotation, its help from the annotation's text.

    Not for those that every command has: --skip-bad is one word for rows and pictures.
    """
    return [_option(parameter) for name, parameter in metric.options.items() if name not in SHARED]


def _option(parameter: inspect.Parameter) -> click.Option:
    annotation, text = parameter.annotation, ""
    if get_origin(annotation) is typing.Annotated:
        annotation, text = get_args(annotation)[:2]
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    flag = f"--{parameter.name.replace('_', '-')}"
    kinds = get_args(annotation) if get_origin(annotation) is types.UnionType else (annotation,)
    if bool in kinds:
        shown = default is not None
        return click.Option([f"{flag}/--no-{flag[2:]}"], default=default, show_default=shown, help=text)
    several = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is tuple), None)
    if several is int:  # numbers stand in one text, names come one by one
        usual = None if default is None else ",".join(map(str, default))
        return click.Option(
            [flag], callback=numbers, metavar="N,N", default=usual, show_default=usual is not None, help=text
        )
    if several is not None:
        kind = _type(several)
        return click.Option([flag], type=kind, multiple=True, default=default, show_default=True, help=text)
    return click.Option(
        [flag], type=_type(annotation), default=default, show_default=default is not None, help=text
    )


def _type(annotation: Any) -> click.ParamType[Any]:
    if get_origin(annotation) is Literal:
        return click.Choice([str(choice) for choice in get_args(annotation)])
    if annotation in (int, float):
        return click.INT if annotation is int else click.FLOAT
    if get_origin(annotation) in (typing.Union, types.UnionType):  # "str | Lexicon | None": a user types text
        plain = [kind for kind in get_args(annotation) if kind in (int, float) or get_origin(kind) is Literal]
        return _type(plain[0]) if plain else click.STRING
    return click.STRING
