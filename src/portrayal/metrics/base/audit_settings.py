"""Settings of audits from `portrayal.toml` in the study's folder: general options and options of single metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portrayal.documents import read_toml
from portrayal.errors import InputError, PortrayalError, shown, unknown_name
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.metrics.base.option_values import option_name, option_value
from portrayal.metrics.base.options import GENERAL_OPTIONS

SETTINGS_FILE = "portrayal.toml"
ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class AuditSettings:
    """Settings of an audit: an attribute, general options, and options of single metrics."""

    attribute: str | None = None
    general: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_defaults(self, defaults: AuditSettings) -> AuditSettings:
        """These settings, completed with defaults.

        A general option also replaces the default option of a single metric.
        """
        options: dict[str, dict[str, Any]] = {}
        for name, metric_options in defaults.options.items():
            metric = find_metric(name)
            options[name] = {
                option: value
                for option, value in metric_options.items()
                if not (option in self.general and metric.takes(option))
            }
        for name, metric_options in self.options.items():
            options[name] = {**options.get(name, {}), **metric_options}
        return AuditSettings(
            self.attribute or defaults.attribute,
            {**defaults.general, **self.general},
            _without_empty(options),
        )


def read_settings(study: Path) -> AuditSettings:
    """The settings from the folder of a study (given as folder or `study.toml`); empty where there is no file."""
    path = (study if study.is_dir() else study.parent) / SETTINGS_FILE
    if not path.is_file():
        return AuditSettings()
    document = read_toml(path)
    general: dict[str, Any] = {}
    options: dict[str, dict[str, Any]] = {}
    attribute = None
    for key, value in document.items():
        try:
            if key == ATTRIBUTE:
                attribute = _attribute_name(key, value)
            elif isinstance(value, Mapping):
                metric = find_metric(key)
                options[metric.name] = _metric_options(metric, value, path.parent)
            else:
                name = key.replace("-", "_")
                if name not in GENERAL_OPTIONS and key.casefold() in METRICS:
                    raise PortrayalError(
                        f"Expected a table [{key}] of its options. Got {shown(value)} instead."
                    )
                if name not in GENERAL_OPTIONS:
                    raise unknown_name("key", key, [ATTRIBUTE, *map(hyphenated, GENERAL_OPTIONS), *METRICS])
                general[name] = general_value(name, _resolve_path(value, path.parent))
        except InputError:
            raise
        except PortrayalError as error:
            raise PortrayalError(f"{path}, key '{key}': {error}") from None
    return AuditSettings(attribute, general, _without_empty(options))


def general_value(name: str, raw: object) -> Any:
    """The value of a general option, converted to its type in the metrics that take it."""
    metrics = [metric for metric in METRICS.values() if metric.takes(name)]
    return next(option_value(metric, name, raw) for metric in metrics)


def hyphenated(name: str) -> str:
    return name.replace("_", "-")


def _metric_options(metric: Metric, table: Mapping[str, object], folder: Path) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        name = option_name(metric, key)
        values[name] = option_value(metric, name, _resolve_path(value, folder))
    return values


def _resolve_path(value: object, folder: Path) -> object:
    """The path of a file in the study's folder, so that it does not depend on the working directory."""
    if isinstance(value, str) and value and "\0" not in value and (folder / value).is_file():
        return str(folder / value)
    return value


def _without_empty(options: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: values for name, values in options.items() if values}


def _attribute_name(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise PortrayalError(f"Expected '{key}' as text. Got {shown(value)} instead.")
    return value
