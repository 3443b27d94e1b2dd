"""`portrayal.toml` in a study's folder: the options that its audits take, general ones and those of single metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portrayal.documents import read_toml
from portrayal.errors import InputError, PortrayalError, shown, unknown_name
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.metrics.base.option_values import option_name, option_value
from portrayal.metrics.base.options import GENERAL

SETTINGS_FILE = "portrayal.toml"
ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class AuditSettings:
    """What an audit is asked for: an attribute, general options, and options of single metrics."""

    attribute: str | None = None
    general: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def over(self, other: AuditSettings) -> AuditSettings:
        """These settings, and the other ones where these say nothing.

        A general option also replaces what the other settings say of a single metric.
        """
        options: dict[str, dict[str, Any]] = {}
        for name, given in other.options.items():
            metric = find_metric(name)
            options[name] = {
                option: value
                for option, value in given.items()
                if not (option in self.general and metric.takes(option))
            }
        for name, given in self.options.items():
            options[name] = {**options.get(name, {}), **given}
        return AuditSettings(
            self.attribute or other.attribute, {**other.general, **self.general}, _filled(options)
        )


def read_settings(study: Path) -> AuditSettings:
    """The settings beside a study (its folder or its `study.toml`); empty where there is no such file."""
    path = (study if study.is_dir() else study.parent) / SETTINGS_FILE
    if not path.is_file():
        return AuditSettings()
    written = read_toml(path)
    general: dict[str, Any] = {}
    options: dict[str, dict[str, Any]] = {}
    attribute = None
    for key, value in written.items():
        try:
            if key == ATTRIBUTE:
                attribute = _text(key, value)
            elif isinstance(value, Mapping):
                metric = find_metric(key)
                options[metric.name] = _of_metric(metric, value, path.parent)
            else:
                name = key.replace("-", "_")
                if name not in GENERAL and key.casefold() in METRICS:
                    raise PortrayalError(
                        f"Expected a table [{key}] of its options. Got {shown(value)} instead."
                    )
                if name not in GENERAL:
                    raise unknown_name("key", key, [ATTRIBUTE, *map(spelled, GENERAL), *METRICS])
                general[name] = general_value(name, _beside(value, path.parent))
        except InputError:
            raise
        except PortrayalError as error:
            raise PortrayalError(f"{path}, key '{key}': {error}") from None
    return AuditSettings(attribute, general, _filled(options))


def general_value(name: str, written: object) -> Any:
    """The value of a general option, by the type that it has in the metrics that take it."""
    takers = [metric for metric in METRICS.values() if metric.takes(name)]
    return next(option_value(metric, name, written) for metric in takers)


def spelled(name: str) -> str:
    return name.replace("_", "-")


def _of_metric(metric: Metric, table: Mapping[str, object], folder: Path) -> dict[str, Any]:
    found = {}
    for key, value in table.items():
        name = option_name(metric, key)
        found[name] = option_value(metric, name, _beside(value, folder))
    return found


def _beside(value: object, folder: Path) -> object:
    """A file that lies in the study's folder is meant wherever the command runs."""
    if isinstance(value, str) and value and "\0" not in value and (folder / value).is_file():
        return str(folder / value)
    return value


def _filled(options: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: given for name, given in options.items() if given}


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise PortrayalError(f"Expected '{key}' as text. Got {shown(value)} instead.")
    return value
