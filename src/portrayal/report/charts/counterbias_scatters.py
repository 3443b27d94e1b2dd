"""Two biases of every concept against each other: picture and text, and an attack and the exact other picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from portrayal.report.charts.counterbias_data import (
    BOTH,
    EXACT,
    LANGUAGE,
    VISUAL,
    Concepts,
    agreeing,
    correlation,
    quadrants,
    sides,
)
from portrayal.report.charts.counterbias_parts import TIED, UNKNOWN, left_out, tie_scale, told_left_out
from portrayal.report.charts.counterbias_specs import axis_title, widest
from portrayal.report.charts.panel import Chart, Panel
from portrayal.report.charts.scatter import scatter


def visual_language(models: Sequence[Concepts], tied: Mapping[str, str], about: str) -> Iterable[Chart]:
    models = [one for one in models if set(one.values(VISUAL)) & set(one.values(LANGUAGE))]
    if not models:
        return
    colours = tie_scale(models, tied, VISUAL, LANGUAGE)
    points = {one.system: _pairs(one.values(VISUAL), one.values(LANGUAGE), tied) for one in models}
    reach = tuple(1.15 * widest([row[end] for each in points.values() for row in each]) for end in ("x", "y"))
    panels = []
    for one in models:
        x, y = one.values(VISUAL), one.values(LANGUAGE)
        toward = sides(one.groups)
        shares = quadrants(x, y)
        told = (
            f"{one.system}, {len(points[one.system])} concepts: picture and text both to {toward[0]} "
            f"{shares[1, 1]:.0f} %, both to {toward[1]} {shares[-1, -1]:.0f} %, picture to {toward[0]} and text to "
            f"{toward[1]} {shares[1, -1]:.0f} %, the other way round {shares[-1, 1]:.0f} %."
        )
        same, of = agreeing([x, y], tied, one.groups)
        if of:
            told += f" As raters say in both: {same} of {of} ({100 * same / of:.0f} %)."
        titles = tuple(axis_title(f"{term}, percent", toward) for term in (VISUAL, LANGUAGE))
        corners = {place: f"{share:.0f} %" for place, share in shares.items()}
        spec = scatter(
            points[one.system], (titles[0], titles[1]), colours, corners, (reach[0], reach[1]), TIED
        )
        panels.append(Panel(one.system, told, spec))
    reading = (
        f"A dot is a concept: across what changing the picture does ({VISUAL}), upward what changing the text does "
        f"({LANGUAGE}); each corner has its share of the concepts."
    )
    yield Chart(
        f"From the picture, or from the text?{about}",
        reading + left_out(models, VISUAL, LANGUAGE),
        tuple(panels),
    )


def exact_pictures(models: Sequence[Concepts], tied: Mapping[str, str]) -> Iterable[Chart]:
    """Where the same model was measured with given pictures too: whether an attack tells the same."""
    given = {one.system: one for one in models if one.attack == EXACT}
    panels, used = [], []
    for one in models:
        exact = given.get(one.system)
        if exact is None or one is exact:
            continue
        for term in (BOTH, VISUAL):
            x, y = exact.values(term), one.values(term)
            points = _pairs(x, y, tied)
            if not points:
                continue
            used += [(exact, term), (one, term)]
            r = correlation(x, y)
            told = "too few or all equal" if r is None else f"r = {r:.2f}"
            titles = tuple(
                axis_title(f"{term}, percent, {way}", sides(one.groups)) for way in (EXACT, one.attack)
            )
            reach = 1.15 * widest([row[end] for row in points for end in ("x", "y")])
            spec = scatter(
                points, (titles[0], titles[1]), tie_scale([one], tied, term),
                {(-1, 1): told if r is not None else ""}, (reach, reach), TIED, diagonal=True,
            )  # fmt: skip
            about = f"{one.system}, {term}, {one.attack} against exact over {len(points)} concepts: {told}."
            panels.append(Panel(f"{one.system}, {term}, {one.attack}", about, spec))
    if panels:
        reading = (
            "A dot is a concept: across its bias with the exact other picture, upward with the one an attack made; on "
            "the dashed line both say the same, and r is Pearson's correlation over concepts."
        )
        gone = told_left_out([(one.system, one.attack, term, one.undefined(term)) for one, term in used])
        yield Chart("Does the attack say what exact pictures say?", reading + gone, tuple(panels))


def _pairs(x: Mapping[str, float], y: Mapping[str, float], tied: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"concept": one, "x": x[one], "y": y[one], "by": tied.get(one, UNKNOWN)} for one in x if one in y]
