"""Charts of biases toward concepts: how a model's predictions change if only the person in the image changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from portrayal.report.charts.concept_biases import (
    BOTH,
    EXACT,
    LANGUAGE,
    TEXT,
    VISUAL,
    ConceptBiases,
    concept_biases,
    count_agreement,
    directions,
    pearson,
    quadrant_shares,
    rater_associations,
)
from portrayal.report.charts.concept_specs import (
    axis_title,
    bar_chart,
    concept_scatter,
    dot_plot,
    strip_plot,
)
from portrayal.report.charts.panel import Chart, Panel
from portrayal.report.charts.vega import Spec, color_scale, symmetric_limit
from portrayal.results import Results

MAX_CONCEPTS = 80  # drawn in one chart; those farthest from 0
UNKNOWN = "not known"  # in place of the group that raters associate with a concept
LEGEND_TITLE = "raters associate with"


@dataclass(frozen=True)
class ChartGroup:
    """The charts of one attribute and kind of concepts."""

    heading: str
    charts: tuple[Chart, ...]


def concept_charts(results: Results) -> list[ChartGroup]:
    """The charts of each attribute and kind of concepts that has data."""
    all_biases, associations = concept_biases(results), rater_associations(results)
    groups = []
    for attribute, kind in dict.fromkeys((biases.attribute, biases.kind) for biases in all_biases):
        kind_biases = [
            biases for biases in all_biases if (biases.attribute, biases.kind) == (attribute, kind)
        ]
        attacks = dict.fromkeys(biases.attack for biases in kind_biases if biases.values(BOTH))
        charts: list[Chart] = []
        for attack in attacks:
            attack_biases = [biases for biases in kind_biases if biases.attack == attack]
            suffix = f" ({attack})" if len(attacks) > 1 else ""
            charts += [
                *_bias_charts(attack_biases, associations, suffix),
                *_agreement_charts(attack_biases, associations, suffix),
            ]
            charts += _visual_language_charts(attack_biases, associations, suffix)
        charts += [*_text_only_charts(kind_biases), *_exact_image_charts(kind_biases, associations)]
        if charts:
            groups.append(
                ChartGroup(" · ".join(filter(None, (kind, attribute))) or "concepts", tuple(charts))
            )
    return groups


def _bias_charts(
    models: Sequence[ConceptBiases], associations: Mapping[str, str], suffix: str
) -> Iterable[Chart]:
    """Yield the chart of each concept's bias with a panel for each model, if any model has biases."""
    models = [biases for biases in models if biases.values(BOTH)]
    if not models:
        return
    colors = _group_colors(models, associations, BOTH)
    rows_by_system: dict[str, list[dict[str, Any]]] = {
        biases.system: [
            {"concept": concept, "value": value, "by": associations.get(concept, UNKNOWN)}
            | {"low": biases.rows[BOTH][concept].low, "high": biases.rows[BOTH][concept].high}
            for concept, value in _sorted_concepts(biases.values(BOTH))
        ]
        for biases in models
    }
    values = [
        concept_row["value"] for concept_rows in rows_by_system.values() for concept_row in concept_rows
    ]
    interval_ends = [
        concept_row[bound]
        for concept_rows in rows_by_system.values()
        for concept_row in concept_rows
        for bound in ("low", "high")
        if concept_row[bound] is not None
    ]
    # The limit keeps a single long interval from compressing the rest.
    axis_limit = min(symmetric_limit([*values, *interval_ends]), 2 * symmetric_limit(values))
    panels = []
    for biases in models:
        positive, negative = directions(biases.groups)
        system_rows, system_values = rows_by_system[biases.system], list(biases.values(BOTH).values())
        excluding_zero = [
            m for m in biases.rows[BOTH].values() if m.low is not None and m.low * (m.high or 0) > 0
        ]
        highest, lowest = system_rows[0], system_rows[-1]
        summary = (
            f"{biases.system}: {sum(value > 0 for value in system_values)} concepts lean to {positive}, "
            f"{sum(value < 0 for value in system_values)} to {negative}; "
            f"the 95 % CIs of {len(excluding_zero)} of {len(system_values)} exclude 0. "
            f"Farthest: {highest['concept']} {highest['value']:.1f}, {lowest['concept']} {lowest['value']:.1f}. "
            f"Mean size {biases.mean_magnitude(BOTH) or 0:.1f} percent."
        )
        title = axis_title(f"{BOTH}, percent", (positive, negative))
        spec = dot_plot(system_rows, title, axis_limit, colors, LEGEND_TITLE)
        panels.append(Panel(biases.system, summary, spec))
    max_concepts = max(len(biases.values(BOTH)) for biases in models)
    positive, negative = directions(models[0].groups)
    explanation = (
        f"Each dot is a concept and its line the 95 % CI: right of 0 the model associates it with {positive}, left "
        f"of 0 with {negative}, and the color is the group that raters associate it with."
    )
    yield Chart(
        f"Bias of each concept{suffix}",
        explanation + _undefined_note(models, BOTH) + _truncation_note(max_concepts),
        tuple(panels),
    )


def _agreement_charts(
    models: Sequence[ConceptBiases], associations: Mapping[str, str], suffix: str
) -> Iterable[Chart]:
    """Yield the chart of models' agreement with raters, if raters associate any concept with a group."""
    models = [
        biases for biases in models if count_agreement([biases.values(BOTH)], associations, biases.groups)[1]
    ]
    if not models:
        return
    concept_rows: list[dict[str, Any]] = [
        {
            "system": biases.system,
            "concept": concept,
            "value": value,
            "by": associations.get(concept, UNKNOWN),
        }
        for biases in models
        for concept, value in biases.values(BOTH).items()
    ]
    summaries = []
    for biases in models:
        n_agreeing, n_known = count_agreement([biases.values(BOTH)], associations, biases.groups)
        summaries.append(
            f"{biases.system} leans as raters do in {n_agreeing} of {n_known} concepts "
            f"({100 * n_agreeing / n_known:.0f} %)."
        )
    groups = directions(models[0].groups)
    spec = strip_plot(
        concept_rows, axis_title(f"{BOTH}, percent", groups),
        symmetric_limit([concept_row["value"] for concept_row in concept_rows]),
        _group_colors(models, associations, BOTH), LEGEND_TITLE,
    )  # fmt: skip
    explanation = (
        f"A strip is a model and a dot a concept: where models lean as raters do, dots that raters associate with "
        f"{groups[0]} are right of 0 and those of {groups[1]} left."
    )
    title = f"Do models lean the way raters do?{suffix}"
    yield Chart(title, explanation + _undefined_note(models, BOTH), (Panel("", " ".join(summaries), spec),))


def _text_only_charts(models: Sequence[ConceptBiases]) -> Iterable[Chart]:
    """Yield the chart of biases of texts without an image, if at least two models have them.

    These biases do not depend on the attack. The first of each model is used.
    """
    biases_by_system: dict[str, ConceptBiases] = {}
    for biases in models:
        if biases.values(TEXT):
            biases_by_system.setdefault(biases.system, biases)
    models = list(biases_by_system.values())
    if len(models) < 2:
        return
    colors = color_scale(list(biases_by_system))
    mean_rows: list[dict[str, Any]] = [
        {"system": system, "value": biases.mean_magnitude(TEXT) or 0.0}
        for system, biases in biases_by_system.items()
    ]
    mean_rows = [{**row, "label": f"{row['value']:.2f}"} for row in mean_rows]
    summary = (
        "Mean size over concepts: " + ", ".join(f"{row['system']} {row['label']}" for row in mean_rows) + "."
    )
    concepts = list(dict.fromkeys(concept for biases in models for concept in biases.values(TEXT)))
    mean_by_concept = {
        concept: fmean([biases.values(TEXT)[concept] for biases in models if concept in biases.values(TEXT)])
        for concept in concepts
    }
    sorted_means = _sorted_concepts(mean_by_concept)
    rows: list[dict[str, Any]] = [
        {
            "concept": concept,
            "value": biases.values(TEXT)[concept],
            "low": None,
            "high": None,
            "by": biases.system,
        }
        for concept, _ in sorted_means
        for biases in models
        if concept in biases.values(TEXT)
    ]
    groups = directions(models[0].groups)
    limit = symmetric_limit([row["value"] for row in rows])
    title = axis_title(f"{TEXT}, difference of log-probabilities", groups)
    farthest = (
        f"By the mean of the models the farthest are {sorted_means[0][0]} {sorted_means[0][1]:.2f} "
        f"and {sorted_means[-1][0]} "
    )
    panels = (
        Panel("Mean over concepts", summary, bar_chart(mean_rows, f"mean size of {TEXT}", colors)),
        Panel(
            "Each concept",
            f"{farthest}{sorted_means[-1][1]:.2f}, of {len(concepts)} concepts.",
            dot_plot(rows, title, limit, colors, "model"),
        ),
    )
    explanation = (
        f"The bias of the words alone, without an image: a mark is one model and concept, right of 0 where the model "
        f"associates it with {groups[0]}, left of 0 with {groups[1]}. Models with and without images can be compared."
    )
    yield Chart(
        "The text alone",
        explanation + _undefined_note(models, TEXT) + _truncation_note(len(concepts)),
        panels,
    )


def _visual_language_charts(
    models: Sequence[ConceptBiases], associations: Mapping[str, str], suffix: str
) -> Iterable[Chart]:
    """Yield the chart of each concept's visual bias against its language bias, with a panel for each model."""
    models = [biases for biases in models if set(biases.values(VISUAL)) & set(biases.values(LANGUAGE))]
    if not models:
        return
    colors = _group_colors(models, associations, VISUAL, LANGUAGE)
    rows_by_system = {
        biases.system: _scatter_rows(biases.values(VISUAL), biases.values(LANGUAGE), associations)
        for biases in models
    }
    axis_limits = tuple(
        1.15 * symmetric_limit([point[axis] for rows in rows_by_system.values() for point in rows])
        for axis in ("x", "y")
    )
    panels = []
    for biases in models:
        x, y = biases.values(VISUAL), biases.values(LANGUAGE)
        groups = directions(biases.groups)
        shares = quadrant_shares(x, y)
        summary = (
            f"{biases.system}, {len(rows_by_system[biases.system])} concepts: image and text both to {groups[0]} "
            f"{shares[1, 1]:.0f} %, both to {groups[1]} {shares[-1, -1]:.0f} %, image to {groups[0]} and text to "
            f"{groups[1]} {shares[1, -1]:.0f} %, the other way round {shares[-1, 1]:.0f} %."
        )
        n_agreeing, n_known = count_agreement([x, y], associations, biases.groups)
        if n_known:
            summary += (
                f" As raters say in both: {n_agreeing} of {n_known} ({100 * n_agreeing / n_known:.0f} %)."
            )
        titles = tuple(axis_title(f"{term}, percent", groups) for term in (VISUAL, LANGUAGE))
        corners = {corner: f"{share:.0f} %" for corner, share in shares.items()}
        spec = concept_scatter(
            rows_by_system[biases.system],
            (titles[0], titles[1]),
            colors,
            corners,
            (axis_limits[0], axis_limits[1]),
            LEGEND_TITLE,
        )
        panels.append(Panel(biases.system, summary, spec))
    explanation = (
        f"A dot is a concept: across what changing the image does ({VISUAL}), upward what changing the text does "
        f"({LANGUAGE}); each corner has its share of the concepts."
    )
    yield Chart(
        f"From the image, or from the text?{suffix}",
        explanation + _undefined_note(models, VISUAL, LANGUAGE),
        tuple(panels),
    )


def _exact_image_charts(models: Sequence[ConceptBiases], associations: Mapping[str, str]) -> Iterable[Chart]:
    """Yield the chart of biases with an attack against biases with exact counterfactual images of the same model."""
    exact_by_system = {biases.system: biases for biases in models if biases.attack == EXACT}
    panels, drawn_terms = [], []
    for biases in models:
        exact = exact_by_system.get(biases.system)
        if exact is None or biases is exact:
            continue
        for term in (BOTH, VISUAL):
            x, y = exact.values(term), biases.values(term)
            rows = _scatter_rows(x, y, associations)
            if not rows:
                continue
            drawn_terms += [(exact, term), (biases, term)]
            r = pearson(x, y)
            r_text = "too few or all equal" if r is None else f"r = {r:.2f}"
            titles = tuple(
                axis_title(f"{term}, percent, {attack}", directions(biases.groups))
                for attack in (EXACT, biases.attack)
            )
            axis_limit = 1.15 * symmetric_limit([point[axis] for point in rows for axis in ("x", "y")])
            spec = concept_scatter(
                rows, (titles[0], titles[1]), _group_colors([biases], associations, term),
                {(-1, 1): r_text if r is not None else ""}, (axis_limit, axis_limit), LEGEND_TITLE, diagonal=True,
            )  # fmt: skip
            summary = (
                f"{biases.system}, {term}, {biases.attack} against exact over {len(rows)} concepts: {r_text}."
            )
            panels.append(Panel(f"{biases.system}, {term}, {biases.attack}", summary, spec))
    if panels:
        explanation = (
            "A dot is a concept: across its bias with the exact counterfactual image, upward with that of an attack; "
            "on the dashed line both are equal, and r is Pearson's correlation over concepts."
        )
        undefined = _undefined_sentence(
            [(biases.system, biases.attack, term, biases.undefined(term)) for biases, term in drawn_terms]
        )
        yield Chart("Does the attack agree with exact images?", explanation + undefined, tuple(panels))


def _scatter_rows(
    x: Mapping[str, float], y: Mapping[str, float], associations: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A row for each concept that has both biases."""
    return [
        {"concept": concept, "x": x[concept], "y": y[concept], "by": associations.get(concept, UNKNOWN)}
        for concept in x
        if concept in y
    ]


def _group_colors(
    models: Sequence[ConceptBiases], associations: Mapping[str, str], *terms: str
) -> tuple[Spec, Spec]:
    """The color and shape scales of the groups that are shown, with the same color for a group in every chart."""
    shown = {
        associations.get(concept, UNKNOWN)
        for model in models
        for term in terms
        for concept in model.values(term)
    }
    groups = [*models[0].groups, *sorted(set(associations.values()) - set(models[0].groups))]
    color, shape = color_scale([*groups, UNKNOWN], neutral=UNKNOWN)
    shown_indices = [index for index, group in enumerate([*groups, UNKNOWN]) if group in shown]
    shown_scales = [
        {key: [values[index] for index in shown_indices] for key, values in scale.items()}
        for scale in (color, shape)
    ]
    return shown_scales[0], shown_scales[1]


def _sorted_concepts(values: Mapping[str, float]) -> list[tuple[str, float]]:
    """Concepts and biases in descending sorted_means of bias; the `MAX_CONCEPTS` farthest from 0 if there are more."""
    farthest = sorted(values.items(), key=lambda concept_bias: -abs(concept_bias[1]))[:MAX_CONCEPTS]
    return sorted(farthest, key=lambda concept_bias: -concept_bias[1])


def _undefined_note(models: Sequence[ConceptBiases], *terms: str) -> str:
    """A sentence about concepts that are undefined in one of these terms; empty if there are none."""
    return _undefined_sentence([(biases.system, "", "", biases.undefined(*terms)) for biases in models])


def _truncation_note(n_concepts: int) -> str:
    """A sentence about concepts that are not drawn; empty if all are drawn."""
    return (
        f" Of {n_concepts} concepts those {MAX_CONCEPTS} farthest from 0 are drawn."
        if n_concepts > MAX_CONCEPTS
        else ""
    )


def _undefined_sentence(undefined_concepts: Iterable[tuple[str, str, str, Sequence[str]]]) -> str:
    """A sentence with the number of undefined concepts of each system, attack and term; empty if there are none."""
    count_texts = [
        f"{len(concepts)} of " + " ".join(filter(None, (system, attack, term)))
        for system, attack, term, concepts in undefined_concepts
        if concepts
    ]
    return f" Left out because undefined: {', '.join(dict.fromkeys(count_texts))}." if count_texts else ""
