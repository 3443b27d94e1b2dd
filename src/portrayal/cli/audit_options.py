"""The options of an audit that decide what is measured, shared by `audit` and `check-study`."""

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
    read_settings,
    spelled,
)
from portrayal.metrics.base.option_values import option_name, option_value
from portrayal.metrics.base.options import GENERAL


def audit_options(command: F) -> F:
    """--attribute, the general options, and --set."""
    command = click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="METRIC.OPTION=VALUE",
        help="An option of one metric, such as lic.split=paper (repeatable); `portrayal score METRIC --help` lists "
        f"them. {SETTINGS_FILE} in the study's folder can hold them too.",
    )(command)
    for name, text in reversed(GENERAL.items()):
        if name == "mask":
            command = click.option("--mask/--no-mask", default=None, help=text)(command)
        else:
            kind = "N" if name == "confidence" else "NAME"
            command = click.option(f"--{spelled(name)}", name, metavar=kind, help=text)(command)
    return attribute_option(command)


def asked_settings(
    study: Path, attribute: str | None, assignments: Sequence[str], general: Mapping[str, Any]
) -> AuditSettings:
    """What the command line says, over what the study's settings file says."""
    given = {name: general_value(name, value) for name, value in general.items() if value is not None}
    asked = AuditSettings(attribute, given, _assigned(assignments))
    return asked.over(read_settings(study))


def _assigned(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options of metrics from METRIC.OPTION=VALUE; an option that takes several values adds them up."""
    written: dict[tuple[str, str], list[str]] = {}
    for assignment in assignments:
        left, equals, value = assignment.partition("=")
        metric, dot, option = left.strip().partition(".")
        if not (equals and dot and metric and option):
            raise click.BadParameter(
                f"expected METRIC.OPTION=VALUE such as lic.split=paper, got {assignment!r}.",
                param_hint="--set",
            )
        found = find_metric(metric)
        written.setdefault((found.name, option_name(found, option)), []).append(value)
    options: dict[str, dict[str, Any]] = {}
    for (metric, option), values in written.items():
        read = [option_value(find_metric(metric), option, value) for value in values]
        if len(read) > 1 and not isinstance(read[0], tuple):
            raise click.BadParameter(
                f"{metric}.{spelled(option)} takes one value; it is set twice.", param_hint="--set"
            )
        several = tuple(dict.fromkeys(one for part in read for one in part)) if len(read) > 1 else read[0]
        options.setdefault(metric, {})[option] = several
    return options
