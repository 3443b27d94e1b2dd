"""Options that decide what an audit measures, shared by `audit` and `check-study`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from portrayal.cli.options import F, attribute_option
from portrayal.metrics import find_metric
from portrayal.metrics.base.audit_settings import (
    SETTINGS_FILE,
    AuditSettings,
    general_value,
    hyphenated,
    read_settings,
)
from portrayal.metrics.base.option_values import option_name, option_value
from portrayal.metrics.base.options import GENERAL_OPTIONS


def audit_options(command: F) -> F:
    """Add --attribute, the general options, and --set."""
    command = click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="METRIC.OPTION=VALUE",
        help="Set an option of one metric, such as lic.split=paper (repeatable). `portrayal score METRIC --help` "
        f"lists a metric's options; {SETTINGS_FILE} in the study's folder can set them too.",
    )(command)
    for name, text in reversed(GENERAL_OPTIONS.items()):
        if name == "mask":
            command = click.option("--mask/--no-mask", default=None, help=text)(command)
        else:
            metavar = "N" if name == "confidence" else "NAME"
            command = click.option(f"--{hyphenated(name)}", name, metavar=metavar, help=text)(command)
    return attribute_option(command)


def resolve_settings(
    study: Path, attribute: str | None, assignments: Sequence[str], general: Mapping[str, Any]
) -> AuditSettings:
    """Return the audit's settings: the command line's over those of the study's settings file."""
    general_values = {
        name: general_value(name, value) for name, value in general.items() if value is not None
    }
    settings = AuditSettings(attribute, general_values, _parse_assignments(assignments))
    return settings.with_defaults(read_settings(study))


def _parse_assignments(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return metric options from METRIC.OPTION=VALUE texts; an option with several values collects them."""
    texts: dict[tuple[str, str], list[str]] = {}
    for assignment in assignments:
        left, equals, value = assignment.partition("=")
        metric, dot, option = left.strip().partition(".")
        if not (equals and dot and metric and option):
            raise click.BadParameter(
                f"expected METRIC.OPTION=VALUE such as lic.split=paper, got {assignment!r}.",
                param_hint="--set",
            )
        resolved = find_metric(metric)
        texts.setdefault((resolved.name, option_name(resolved, option)), []).append(value)
    options: dict[str, dict[str, Any]] = {}
    for (metric, option), values in texts.items():
        parsed = [option_value(find_metric(metric), option, value) for value in values]
        if len(parsed) > 1 and not isinstance(parsed[0], tuple):
            raise click.BadParameter(
                f"{metric}.{hyphenated(option)} takes one value; it is set twice.", param_hint="--set"
            )
        merged = (
            tuple(dict.fromkeys(item for part in parsed for item in part)) if len(parsed) > 1 else parsed[0]
        )
        options.setdefault(metric, {})[option] = merged
    return options
