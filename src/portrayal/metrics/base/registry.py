"""The registry of metrics: those of this package, found by walking it, and those of plug-ins."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from portrayal import plugins
from portrayal.errors import PortrayalError, find_name
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.function import plain_function
from portrayal.metrics.base.metric import Compute, Metric
from portrayal.questions import QUESTIONS
from portrayal.results import Results

PACKAGE = "portrayal.metrics"
THIS_PACKAGE = "portrayal"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

METRICS: dict[str, Metric] = {}
# Cards of the metrics of a study, and of those that measure a model on the images of a manifest.
CARDS: dict[str, Card] = {}
PACKAGES: dict[str, str] = {}  # card -> name and version of the package that it comes from
PROBLEMS: dict[str, str] = {}  # name of a plug-in that cannot be used -> a sentence that says why
_T = TypeVar("_T")


def metric(card: Card, **arguments: Any) -> Callable[[Compute], Callable[..., Results]]:
    """Register a metric: `compute(study, *, attribute, sources, seed, ...)` becomes the function that users call.

    Parameters
    ----------
    card
        Description of the metric.
    **arguments
        Those of `Metric`.
    """

    def register(compute: Compute) -> Callable[..., Results]:
        known = METRICS.get(card.name)
        if known is not None and _origin(known.compute) == _origin(
            compute
        ):  # a cell of a notebook that is run again
            del CARDS[card.name]
        register_card(card)
        registered = METRICS[card.name] = Metric(card, compute, **arguments)
        registered.function = plain_function(registered)
        return registered.function

    return register


def register_card(card: Card) -> Card:
    """Register the card of a measurement, so that lists, docs and gates know it."""
    if not _NAME.fullmatch(card.name):
        raise ValueError(f"'{card.name}' is no name of a metric: expected lower-case words with hyphens")
    if card.answers not in {question.name for question in QUESTIONS}:
        raise ValueError(f"the card of '{card.name}' answers the unknown question '{card.answers}'")
    if card.name in CARDS:
        raise ValueError(f"there is already a metric '{card.name}', of the package {PACKAGES[card.name]}")
    CARDS[card.name] = card
    PACKAGES[card.name] = THIS_PACKAGE
    return card


def find_metric(metric: str | Metric | Callable[..., Results]) -> Metric:
    """Return the metric of this name or function; an unknown name raises an error that suggests similar ones."""
    if isinstance(metric, str):
        if metric not in METRICS and metric in PROBLEMS:
            raise PortrayalError(PROBLEMS[metric])
        return METRICS[find_name("metric", metric, METRICS)]
    return metric if isinstance(metric, Metric) else metric.metric  # type: ignore[attr-defined]


def discover() -> None:
    """Import all metrics of this package and of plug-ins, and sort them by question and name."""
    for name in _metric_modules(PACKAGE):
        importlib.import_module(name)
    PROBLEMS.update({p.name: p.problem for p in _plugins_that_register() if p.problem is not None})
    order = {question.name: position for position, question in enumerate(QUESTIONS)}
    names = sorted(CARDS, key=lambda name: (order[CARDS[name].answers], name))
    _replace(CARDS, {name: CARDS[name] for name in names})
    _replace(METRICS, {name: METRICS[name] for name in names if name in METRICS})


def _plugins_that_register() -> Iterator[plugins.Plugin]:
    """Load the plug-ins. What one registers before it fails is removed."""
    metrics, cards = dict(METRICS), dict(CARDS)
    for plugin in plugins.load_plugins(plugins.METRICS):
        new = CARDS.keys() - cards.keys()
        if plugin.problem is None and not new and not _has_metric(plugin.value):
            plugin = plugin.failed("it registers no metric")
        if plugin.problem is None:
            PACKAGES.update(dict.fromkeys(new, plugin.package))
            metrics, cards = dict(METRICS), dict(CARDS)
        else:
            _replace(METRICS, metrics)
            _replace(CARDS, cards)
        yield plugin


def _has_metric(value: Any) -> bool:
    """Whether an object is a metric's function, or a module that has one: a package may name its metrics one by one."""
    functions = (value, *getattr(value, "__dict__", {}).values())
    return any(getattr(function, "metric", None) in METRICS.values() for function in functions)


def _origin(compute: Compute) -> tuple[str, str]:
    return compute.__module__, compute.__qualname__


def _metric_modules(package: str) -> Iterator[str]:
    """Yield the modules of metrics: the files of this folder, and `metric` of the folders in it."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.ispkg:
            yield from (name for name in _metric_modules(module.name) if name.endswith(".metric"))
        elif module.name.endswith(".metric") or package == PACKAGE:
            yield module.name


def _replace(registered: dict[str, _T], values: dict[str, _T]) -> None:
    registered.clear()
    registered.update(values)
