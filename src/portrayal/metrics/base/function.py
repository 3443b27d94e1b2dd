"""The plain function of a metric: its signature, and a docstring made from its card and its options."""

from __future__ import annotations

import inspect
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_origin

from portrayal.metrics.base.card import Card
from portrayal.metrics.base.metric import Metric
from portrayal.results import Results
from portrayal.study import Study

_PROMPT = ">>> "
_WIDTH = 100


class Parameter(NamedTuple):
    """A parameter of a metric's function: name, type, default, and what it does."""

    name: str
    annotation: Any
    default: object
    description: str


_SHARED = (
    Parameter(
        "attribute",
        str | None,
        None,
        "Attribute whose groups are compared. By default every one of the study.",
    ),
    Parameter("systems", Sequence[str] | None, None, "Keep only these systems of the study. By default all."),
    Parameter(
        "sources",
        Sequence[str] | None,
        None,
        "Measure only these systems, or `human` for the human captions, and keep the others in the study.",
    ),
    Parameter("seed", int, 0, "Seed of resampling and permutations."),
)


def plain_function(metric: Metric) -> Callable[..., Results]:
    """Return the function that users call: `NAME(study, *, attribute=None, ..., options) -> Results`."""

    def measure(study: Study, **options: Any) -> Results:
        return metric(study, **options)

    compute = metric.compute
    measure.__name__ = measure.__qualname__ = compute.__name__
    measure.__module__ = compute.__module__
    measure.__doc__ = docstring(metric.card, parameters(metric), compute.__doc__ or "")
    measure.__signature__ = signature(parameters(metric))  # type: ignore[attr-defined]
    measure.metric = metric  # type: ignore[attr-defined]
    return measure


def parameters(metric: Metric) -> list[Parameter]:
    """Return the keyword parameters of a metric's function: those of all metrics, then its options."""
    options = (_option(name, option) for name, option in metric.options.items())
    return [*_SHARED, *options]


def signature(keywords: Sequence[Parameter]) -> inspect.Signature:
    """Return the signature of a metric's function."""
    study = inspect.Parameter("study", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Study)
    others = [
        inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=p.annotation)
        for p in keywords
    ]
    return inspect.Signature([study, *others], return_annotation=Results)


def docstring(card: Card, keywords: Sequence[Parameter], description: str) -> str:
    """Return a numpydoc docstring; the description ends with an example."""
    text, _, example = inspect.cleandoc(description).partition(_PROMPT)
    parameter_texts = [f"study : Study\n{_indented('The study to measure.')}"]
    parameter_texts += [
        f"{p.name} : {type_name(p.annotation)}, default {p.default!r}\n{_indented(p.description)}"
        for p in keywords
    ]
    terms = "\n".join(f"- {term.name}: {term.meaning}" for term in card.terms)
    sections = {
        "Parameters": "\n".join(parameter_texts),
        "Returns": f"Results\n{_indented('A row per system, group and term, with evidence and provenance.')}",
        "Notes": f"{_wrapped(card.formula)}\n\n{_wrapped(f'Range: {card.range}')}\n\n{terms}",
        "References": _wrapped(card.paper),
    }
    if example:
        sections["Examples"] = f"{_PROMPT}{example}".rstrip()
    blocks = [f"{title}\n{'-' * len(title)}\n{section}" for title, section in sections.items()]
    return "\n\n".join([text.strip() or card.question, *blocks]) + "\n"


def type_name(annotation: Any) -> str:
    """Return a type as one reads it.

    >>> type_name(str | None), type_name(tuple[typing.Literal["a", "b"], ...])
    ('str or None', "sequence of {'a', 'b'}")
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "None"
    if origin is typing.Literal:
        return "{" + ", ".join(map(repr, arguments)) + "}"
    if origin is None:
        return str(getattr(annotation, "__name__", annotation))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {' to '.join(map(type_name, arguments))}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"sequence of {type_name(arguments[0])}"
    return " or ".join(map(type_name, arguments))


def _option(name: str, option: inspect.Parameter) -> Parameter:
    annotation, description = option.annotation, ""
    if get_origin(annotation) is typing.Annotated:
        annotation, description = get_args(annotation)[:2]
    return Parameter(name, annotation, option.default, description)


def _indented(text: str) -> str:
    return textwrap.indent(_wrapped(text), "    ")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
