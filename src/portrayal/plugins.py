"""Plug-ins: metrics, models, importers and probes of other packages, found by their entry points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from portrayal.errors import PortrayalError

METRICS = "portrayal.metrics"
MODELS = "portrayal.models"
IMPORTERS = "portrayal.importers"
PROBES = "portrayal.probes"


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package, loaded; `problem` says in a sentence why it could not be."""

    name: str
    package: str  # name and version
    value: Any = None
    problem: str | None = None

    def failed(self, reason: str) -> Plugin:
        """Return the plug-in as one that cannot be used.

        >>> Plugin("politeness", "my-metrics 1.0").failed("it has no card").problem
        "The plug-in 'politeness' of the package my-metrics 1.0 cannot be used: it has no card."
        """
        sentence = (
            f"The plug-in '{self.name}' of the package {self.package} cannot be used: {reason.rstrip('.')}."
        )
        return Plugin(self.name, self.package, problem=sentence)


def load_plugins(group: str) -> Iterator[Plugin]:
    """Load the plug-ins of a group one by one, ordered by package and name. A broken one breaks no other.

    >>> list(load_plugins("portrayal.nothing"))
    []
    """
    yield from map(_load, _entry_points(group))


def find_plugin(group: str, name: str) -> Plugin | None:
    """Return the plug-in of a group with this name; a broken one is an error. No other plug-in is loaded."""
    for entry in _entry_points(group):
        if entry.name == name:
            plugin = _load(entry)
            if plugin.problem is not None:
                raise PortrayalError(plugin.problem)
            return plugin
    return None


def plugin_names(group: str) -> list[tuple[str, str]]:
    """Return name and package of the plug-ins of a group, without loading them."""
    return [(entry.name, _package(entry)) for entry in _entry_points(group)]


def _entry_points(group: str) -> list[metadata.EntryPoint]:
    return sorted(metadata.entry_points(group=group), key=lambda entry: (_package(entry), entry.name))


def _load(entry: metadata.EntryPoint) -> Plugin:
    plugin = Plugin(entry.name, _package(entry))
    try:
        return Plugin(plugin.name, plugin.package, entry.load())
    except (Exception, SystemExit) as error:  # the code of others may raise anything
        return plugin.failed(" ".join(f"{type(error).__name__}: {error}".split()))


def _package(entry: metadata.EntryPoint) -> str:
    return "unknown" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
