"""How often captions hedge ("seems to be a doctor"): less certainty about some people than about others."""

from collections.abc import Sequence

import polars as pl

from portrayal import Study, metrics

HEDGES = r"(?i)\b(appears?|apparently|maybe|might|perhaps|possibly|probably|seems?|seemingly)\b"

CARD = metrics.Card(
    name="hedging",
    answers="names",
    title="Hedged captions",
    question="How often do captions hedge, and is that so for every group?",
    formula="Captions with a hedging word / all captions.",
    range="0 to 1; the gap from 0 to 1.",
    needs=("captions", "attributes"),
    paper="Lakoff, Hedges: a study in meaning criteria and the logic of fuzzy concepts, 1973.",
    caveats=("The list of words is short, and some of them do not always hedge.",),
    terms=(
        metrics.Term("hedging", "captions with a hedging word", "share"),
        metrics.Term("hedging-gap", "largest difference between two groups", "share", "lower", 0.0),
    ),
    statements=(
        metrics.Statement(
            "hedging",
            metrics.GROUPS,
            "{system} hedges more often about {group} than about {other}",
            "{system} hedges more often about one {attribute}",
            worse="higher",
            smallest=0.02,
        ),
    ),
)


@metrics.metric(CARD)
def hedging(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: metrics.Bootstrap = metrics.RESAMPLES,
) -> metrics.ResultBuilder:
    """Share of captions with a hedging word, of all images and by group."""
    metrics.preconditions_met()
    builder = metrics.ResultBuilder(CARD, attribute, {})
    for source in sources:
        hedged = pl.col("caption").str.contains(HEDGES)
        captions = study.captions_of(source).select("image_id", "caption", hedged=hedged, captions=1)
        terms = {"hedging": metrics.Share("hedged", "captions")}
        metrics.measure_by_group(
            builder, study, captions, terms, source=source, seed=seed, bootstrap=bootstrap
        )
    return builder
