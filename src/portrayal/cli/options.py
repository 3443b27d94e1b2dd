"""Options shared by several commands, and options generated from a metric's parameters."""

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

SHARED_OPTIONS = ("skip_bad",)  # options of every `score` command that some metrics also take as a parameter
FORMATS: dict[str, Callable[[Results], str]] = {"json": Results.to_json, "csv": to_csv, "md": to_markdown}


class Number(click.ParamType[float]):
    """Parse a number or a fraction: 0.03, 8/255."""

    name = "N|N/255"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(Fraction(value)) if isinstance(value, str) else float(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            return self.fail(f"expected a number such as 0.03 or 8/255, got {value!r}.", param, ctx)


def comma_separated(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    items = [name.strip() for name in value.split(",") if name.strip()]
    if not items:
        raise click.BadParameter("expected names separated by commas.")
    return items


def comma_separated_integers(
    _: click.Context, __: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        integers = tuple(int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter("expected whole numbers separated by commas.") from None
    if min(integers) < 0 or len(set(integers)) < len(integers):
        raise click.BadParameter("expected different numbers of 0 or more.")
    return integers


def study_argument(command: F) -> F:
    return click.argument("study", type=click.Path(path_type=Path))(command)


def systems_option(command: F) -> F:
    return click.option(
        "--systems",
        callback=comma_separated,
        metavar="A,B",
        help="Only these systems, separated by commas. [default: all]",
    )(command)


def attribute_option(command: F) -> F:
    return click.option(
        "--attribute",
        metavar="NAME",
        help="Attribute whose groups are compared, such as gender. [default: every attribute of the study]",
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
        help="Number of bootstrap resamples for confidence intervals.",
    )(command)


def workers_option(command: F) -> F:
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=lambda: os.cpu_count() or 1,
        metavar="N",
        help="Number of worker processes. [default: one per CPU core]",
    )(command)


def skip_bad_option(command: F) -> F:
    return click.option(
        "--skip-bad",
        is_flag=True,
        help="Skip invalid rows and report how many were skipped, instead of stopping.",
    )(command)


def out_option(command: F) -> F:
    return click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        required=True,
        metavar="DIR",
        help="Output folder.",
    )(command)


def output_options(command: F) -> F:
    """Add --json FILE and --format, for commands that produce results."""
    path = click.Path(path_type=Path, dir_okay=False)
    json_option = click.option(
        "--json", "json_file", type=path, metavar="FILE", help="Also save the results to this JSON file."
    )
    formats = click.Choice(["table", *FORMATS])
    format_option = click.option(
        "--format",
        "style",
        type=formats,
        default="table",
        show_default=True,
        help="Output format on the terminal.",
    )
    return json_option(format_option(command))


def metric_options(metric: Metric) -> list[click.Option]:
    """Return one option per keyword of the metric; type and help come from the parameter's annotation.

    Options that every command has are left out: one --skip-bad serves rows and images.
    """
    return [_option(parameter) for name, parameter in metric.options.items() if name not in SHARED_OPTIONS]


def _option(parameter: inspect.Parameter) -> click.Option:
    annotation, text = parameter.annotation, ""
    if get_origin(annotation) is typing.Annotated:
        annotation, text = get_args(annotation)[:2]
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    # The explicit name keeps its case: click would pass --C as `c`.
    name, flag = parameter.name, f"--{parameter.name.replace('_', '-')}"
    kinds = get_args(annotation) if get_origin(annotation) is types.UnionType else (annotation,)
    if bool in kinds:
        show_default = default is not None
        return click.Option(
            [f"{flag}/--no-{flag[2:]}", name], default=default, show_default=show_default, help=text
        )
    element = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is tuple), None)
    if element is int:  # integers are one comma-separated text, names repeat the option
        default_text = None if default is None else ",".join(map(str, default))
        return click.Option(
            [flag, name],
            callback=comma_separated_integers,
            metavar="N,N",
            default=default_text,
            show_default=default_text is not None,
            help=text,
        )
    if element is not None:
        element_type = _click_type(element)
        return click.Option(
            [flag, name], type=element_type, multiple=True, default=default, show_default=True, help=text
        )
    return click.Option(
        [flag, name],
        type=_click_type(annotation),
        default=default,
        show_default=default is not None,
        help=text,
    )


def _click_type(annotation: Any) -> click.ParamType[Any]:
    if get_origin(annotation) is Literal:
        return click.Choice([str(choice) for choice in get_args(annotation)])
    if annotation in (int, float):
        return click.INT if annotation is int else click.FLOAT
    if get_origin(annotation) in (typing.Union, types.UnionType):  # "str | Lexicon | None": a user types text
        plain = [kind for kind in get_args(annotation) if kind in (int, float) or get_origin(kind) is Literal]
        return _click_type(plain[0]) if plain else click.STRING
    return click.STRING
