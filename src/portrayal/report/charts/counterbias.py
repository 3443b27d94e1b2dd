"""Charts of what changes when only the person changes: which there are, how to read them, and their main numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from portrayal.report.charts import counterbias_specs as draw
from portrayal.report.charts.counterbias_data import BOTH, TEXT, Concepts, agreeing, concepts, sides, ties
from portrayal.report.charts.counterbias_parts import (
    TIED,
    UNKNOWN,
    left_out,
    only_some,
    ordered,
    tie_scale,
)
from portrayal.report.charts.counterbias_scatters import exact_pictures, visual_language
from portrayal.report.charts.panel import Chart, Panel
from portrayal.results import Results


@dataclass(frozen=True)
class Part:
    """The charts about one kind of concepts."""

    heading: str
    charts: tuple[Chart, ...]


def charts(results: Results) -> list[Part]:
    """By attribute and kind of concepts; a chart is left out where its data are not there."""
    found, tied = concepts(results), ties(results)
    made = []
    for attribute, kind in dict.fromkeys((one.attribute, one.kind) for one in found):
        here = [one for one in found if (one.attribute, one.kind) == (attribute, kind)]
        attacks = dict.fromkeys(one.attack for one in here if one.values(BOTH))
        drawn: list[Chart] = []
        for attack in attacks:
            models = [one for one in here if one.attack == attack]
            about = f" ({attack})" if len(attacks) > 1 else ""
            drawn += [*_per_concept(models, tied, about), *_strips(models, tied, about)]
            drawn += visual_language(models, tied, about)
        drawn += [*_text_alone(here), *exact_pictures(here, tied)]
        if drawn:
            made.append(Part(" · ".join(filter(None, (kind, attribute))) or "concepts", tuple(drawn)))
    return made


def _per_concept(models: Sequence[Concepts], tied: Mapping[str, str], about: str) -> Iterable[Chart]:
    models = [one for one in models if one.values(BOTH)]
    if not models:
        return
    colours = tie_scale(models, tied, BOTH)
    rows: dict[str, list[dict[str, Any]]] = {
        one.system: [
            {"concept": concept, "value": value, "by": tied.get(concept, UNKNOWN)}
            | {"low": one.rows[BOTH][concept].low, "high": one.rows[BOTH][concept].high}
            for concept, value in ordered(one.values(BOTH))
        ]
        for one in models
    }
    values = [row["value"] for each in rows.values() for row in each]
    ends = [
        row[end] for each in rows.values() for row in each for end in ("low", "high") if row[end] is not None
    ]
    # No single interval squeezes the rest.
    reach = min(draw.widest([*values, *ends]), 2 * draw.widest(values))
    panels = []
    for one in models:
        positive, negative = sides(one.groups)
        mine, every = rows[one.system], list(one.values(BOTH).values())
        clear = [m for m in one.rows[BOTH].values() if m.low is not None and m.low * (m.high or 0) > 0]
        told = (
            f"{one.system}: {sum(value > 0 for value in every)} concepts lean to {positive}, "
            f"{sum(value < 0 for value in every)} to {negative}; "
            f"{len(clear)} intervals of {len(every)} leave out 0. "
            f"Farthest: {mine[0]['concept']} {mine[0]['value']:.1f}, {mine[-1]['concept']} {mine[-1]['value']:.1f}. "
            f"Mean size {one.mean(BOTH) or 0:.1f} percent."
        )
        title = draw.axis_title(f"{BOTH}, percent", (positive, negative))
        spec = draw.dots(mine, title, reach, colours, TIED)
        panels.append(Panel(one.system, told, spec))
    most = max(len(one.values(BOTH)) for one in models)
    positive, negative = sides(models[0].groups)
    reading = (
        f"Each dot is a concept and its line the interval: right of 0 the model ties it to {positive}, left of 0 to "
        f"{negative}, and the colour is whom raters tie it to."
    )
    yield Chart(
        f"Bias of each concept{about}", reading + left_out(models, BOTH) + only_some(most), tuple(panels)
    )


def _strips(models: Sequence[Concepts], tied: Mapping[str, str], about: str) -> Iterable[Chart]:
    """Only where raters say something about one of the concepts."""
    models = [one for one in models if agreeing([one.values(BOTH)], tied, one.groups)[1]]
    if not models:
        return
    rows: list[dict[str, Any]] = [
        {"system": one.system, "concept": concept, "value": value, "by": tied.get(concept, UNKNOWN)}
        for one in models
        for concept, value in one.values(BOTH).items()
    ]
    told = []
    for one in models:
        same, of = agreeing([one.values(BOTH)], tied, one.groups)
        told.append(f"{one.system} leans as raters do in {same} of {of} concepts ({100 * same / of:.0f} %).")
    toward = sides(models[0].groups)
    spec = draw.strips(
        rows, draw.axis_title(f"{BOTH}, percent", toward), draw.widest([row["value"] for row in rows]),
        tie_scale(models, tied, BOTH), TIED,
    )  # fmt: skip
    reading = (
        f"A strip is a model and a dot a concept: where models lean as raters do, dots that raters tie to {toward[0]} "
        f"are right of 0 and those of {toward[1]} left."
    )
    title = f"Do models lean the way raters do?{about}"
    yield Chart(title, reading + left_out(models, BOTH), (Panel("", " ".join(told), spec),))


def _text_alone(models: Sequence[Concepts]) -> Iterable[Chart]:
    """No picture is involved, so a model counts once however its pictures were changed."""
    first: dict[str, Concepts] = {}
    for one in models:
        if one.values(TEXT):
            first.setdefault(one.system, one)
    models = list(first.values())
    if len(models) < 2:
        return
    colours = draw.scale(list(first))
    means: list[dict[str, Any]] = [
        {"system": name, "value": one.mean(TEXT) or 0.0} for name, one in first.items()
    ]
    means = [{**row, "told": f"{row['value']:.2f}"} for row in means]
    told = "Mean size over concepts: " + ", ".join(f"{row['system']} {row['told']}" for row in means) + "."
    names = list(dict.fromkeys(concept for one in models for concept in one.values(TEXT)))
    middle = {
        name: fmean([one.values(TEXT)[name] for one in models if name in one.values(TEXT)]) for name in names
    }
    order = ordered(middle)
    rows: list[dict[str, Any]] = [
        {"concept": concept, "value": one.values(TEXT)[concept], "low": None, "high": None, "by": one.system}
        for concept, _ in order
        for one in models
        if concept in one.values(TEXT)
    ]
    toward = sides(models[0].groups)
    reach = draw.widest([row["value"] for row in rows])
    title = draw.axis_title(f"{TEXT}, difference of log-probabilities", toward)
    most = f"By the mean of the models the farthest are {order[0][0]} {order[0][1]:.2f} and {order[-1][0]} "
    panels = (
        Panel("Mean over concepts", told, draw.bars(means, f"mean size of {TEXT}", colours)),
        Panel(
            "Each concept",
            f"{most}{order[-1][1]:.2f}, of {len(names)} concepts.",
            draw.dots(rows, title, reach, colours, "model"),
        ),
    )
    reading = (
        f"What the words alone carry, with no picture: a mark is what one model says of a concept, right of 0 where it "
        f"ties it to {toward[0]}, left to {toward[1]}, so that models with and without pictures stand side by side."
    )
    yield Chart("The text alone", reading + left_out(models, TEXT) + only_some(len(names)), panels)
