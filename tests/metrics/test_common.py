"""Properties that every metric must have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import portrayal
from portrayal.errors import Undefined
from portrayal.lab import make_study
from portrayal.lexicon import lexicon_for
from portrayal.metrics import METRICS, Metric
from portrayal.results import Results
from portrayal.study import Study

ROOT = Path(__file__).parent.parent.parent
RESAMPLES = 60  # few: the tests do not depend on them
BY_CAPTIONS_ALONE = ("self-identification.identity-words", "demeaning.words", "erasure.too-vague")
ALL = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
# Metrics of models have tests of their own, with a model.
OF_STUDIES = {name: metric for name, metric in METRICS.items() if "model" not in metric.card.needs}
EVERY = pytest.mark.parametrize("metric", OF_STUDIES.values(), ids=OF_STUDIES)


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(scenes=120, seed=3)


def values(results: Results) -> dict[tuple, float | None]:
    return {(m.term, m.system, m.group, m.item, m.unit): m.value for m in results.measurements}


def assert_same_values(first: Results, second: Results) -> None:
    left, right = values(first), values(second)
    assert left.keys() == right.keys()
    for key, value in left.items():
        assert value == pytest.approx(right[key], abs=1e-9), key


@EVERY
def test_it_measures_something(metric: Metric, study):
    results = metric(study, attribute="gender", bootstrap=RESAMPLES)
    assert any(m.value is not None for m in results.measurements)
    assert {m.metric for m in results.measurements} == {metric.name}


@EVERY
def test_the_same_call_gives_the_same_results(metric: Metric, study):
    first, second = (
        metric(study, attribute="gender", bootstrap=RESAMPLES, seed=5),
        metric(study, attribute="gender", bootstrap=RESAMPLES, seed=5),
    )
    assert first.measurements == second.measurements
    assert first.evidence.equals(second.evidence)


@EVERY
def test_row_order_does_not_matter(metric: Metric, study):
    shuffled = replace(
        study,
        **{
            table: getattr(study, table).sample(fraction=1, shuffle=True, seed=1)
            for table in ("captions", "attributes", "objects", "rankings")
        },
        # the order of an image's references is kept: it is part of the data
        references=study.references.sort("image_id", descending=True, maintain_order=True),
    )
    assert_same_values(
        metric(study, attribute="gender", bootstrap=RESAMPLES),
        metric(shuffled, attribute="gender", bootstrap=RESAMPLES),
    )


def _renamed(item: str | None, names: dict[str, str]) -> str | None:
    """An item may be about a group ("caption: female")."""
    about, colon, group = (item or "").partition(": ")
    return f"{about}{colon}{names[group]}" if group in names else item


@EVERY
def test_renamed_groups_change_names_only(metric: Metric, study):
    names = {"female": "zeta", "male": "alpha"}
    gender = lexicon_for("gender")
    renamed = replace(study, attributes=study.attributes.with_columns(pl.col("gender").replace(names)))
    lexicon = replace(gender, groups={names[group]: words for group, words in gender.groups.items()})
    before = {
        # The items of harms are words of captions, which do not change ("gender: female").
        (
            term,
            system,
            names.get(group, group),
            item if metric.name == "harms" else _renamed(item, names),
            unit,
        ): value
        for (term, system, group, item, unit), value in values(
            metric(study, attribute="gender", bootstrap=RESAMPLES)
        ).items()
    }
    words = {"lexicon": lexicon} if "lexicon" in metric.options else {}
    after = values(metric(renamed, attribute="gender", bootstrap=RESAMPLES, **words))
    assert before.keys() == after.keys()
    tolerance = 1e-3 if metric.card.fits_model else 1e-9  # a classifier is fitted up to a tolerance
    for key, value in before.items():
        assert after[key] == pytest.approx(value, abs=tolerance), key


@EVERY
def test_a_study_twice_over_gives_the_same_shares(metric: Metric, study):
    copies = {
        table: getattr(study, table).with_columns(pl.col("image_id") + "-again")
        for table in ("captions", "references", "attributes", "objects")
    }
    doubled = replace(
        study, **{table: pl.concat([getattr(study, table), frame]) for table, frame in copies.items()}
    )
    once, twice = (
        metric(study, attribute="gender", bootstrap=RESAMPLES),
        metric(doubled, attribute="gender", bootstrap=RESAMPLES),
    )
    doubled_rows = {(m.term, m.system, m.group, m.item, m.unit): m for m in twice.measurements}
    for m in once.measurements:
        doubled_row = doubled_rows.get((m.term, m.system, m.group, m.item, m.unit))
        if doubled_row is None and metric.name == "harms":
            continue  # which words are common enough to be listed changes with the size of a study
        if m.n_unit == "image" and doubled_row.value is not None:
            assert doubled_row.n == 2 * m.n
        # Values of common sets of objects, or of noise, may change with the size of a study.
        steady = not m.term.startswith(
            ("multi", "stereotyping", "erasure.misnaming", "erasure.ignoring", "repeated")
        )
        steady = steady and not metric.card.fits_model
        if m.unit in ("share", "ratio") and steady:
            assert doubled_row.value == pytest.approx(m.value, abs=1e-9)


@ALL
def test_an_empty_study_is_undefined(metric: Metric):
    with pytest.raises(Undefined, match=f"The metric '{metric.name}' cannot run: the study has no "):
        metric(Study())


@EVERY
def test_a_single_group(metric: Metric, study):
    women = replace(study, attributes=study.attributes.filter(pl.col("gender") == "female"))
    compared = metric.name in ("amplification", "word-odds", "lic", "leakage", "retrieval-skew")
    if compared:
        with pytest.raises(Undefined, match="group"):
            metric(women, attribute="gender", bootstrap=RESAMPLES)
        return
    results = metric(women, attribute="gender", bootstrap=RESAMPLES)
    assert all(m.value is not None or m.reason for m in results.measurements)


@EVERY
def test_no_images_labelled(metric: Metric, study):
    unlabelled = replace(
        study, attributes=study.attributes.with_columns(pl.lit(None, pl.String).alias("gender"))
    )
    if "attributes" in metric.card.needs:
        with pytest.raises(Undefined, match="group"):
            metric(unlabelled, attribute="gender", bootstrap=RESAMPLES)
    else:
        with_labels = values(metric(study, attribute="gender", bootstrap=RESAMPLES))
        without = values(metric(unlabelled, attribute="gender", bootstrap=RESAMPLES))
        # Labels add rows, or numbers to rows without one.
        added_keys = with_labels.keys() - without.keys()
        assert all(
            group or "label" in (item or "") or metric.every_attribute for _, _, group, item, _ in added_keys
        )
        same_rows = {key: value for key, value in without.items() if value is not None}
        if metric.name == "harms":  # labels also show that there is a person
            same_rows = {key: v for key, v in same_rows.items() if key[0] in BY_CAPTIONS_ALONE}
        assert same_rows
        assert same_rows == {key: with_labels[key] for key in same_rows}


@EVERY
def test_rows_are_unique_and_have_a_headline(metric: Metric, study):
    results = metric(study, attribute="gender", bootstrap=RESAMPLES)
    keys = [(m.system, m.term, m.group, m.item, m.unit, str(m.settings)) for m in results.measurements]
    assert len(keys) == len(set(keys))
    assert len({m.id for m in results.measurements}) == len(keys)
    for system in {m.system for m in results.measurements}:
        headlines = [
            m for m in results.measurements if m.system == system and m.group is None and m.item is None
        ]
        assert headlines


@EVERY
def test_every_number_opens_its_evidence(metric: Metric, study):
    results = metric(study, attribute="gender", bootstrap=RESAMPLES)
    evidence_ids = set(results.evidence["id"])
    for m in results.measurements:
        # A share, ratio or count of 0 has no evidence.
        assert m.value is None or m.value == 0 or m.id in evidence_ids, (m.term, m.system, m.group, m.item)


@EVERY
def test_evidence_belongs_to_a_measurement(metric: Metric, study):
    results = metric(study, attribute="gender", bootstrap=RESAMPLES)
    assert set(results.evidence["id"]) <= {m.id for m in results.measurements}
    by_id = {m.id: m for m in results.measurements}
    for identifier, system in results.evidence.select("id", "system").unique().iter_rows():
        assert by_id[identifier].system == system


@EVERY
def test_selected_systems_are_measured_as_in_the_whole(metric: Metric, study):
    whole = values(metric(study, attribute="gender", bootstrap=RESAMPLES))
    selected = values(metric(study, attribute="gender", bootstrap=RESAMPLES, systems=["cautious"]))
    assert selected
    assert {key: whole[key] for key in selected} == pytest.approx(selected)
    assert {key[1] for key in selected} <= {"cautious", "human"}


@EVERY
def test_intervals_contain_their_value(metric: Metric, study):
    for m in metric(study, attribute="gender", bootstrap=200).measurements:
        if m.low is not None:
            assert m.low - 1e-9 <= m.value <= m.high + 1e-9, (m.term, m.system, m.group, m.item)
            assert m.se_data is None or m.se_data >= 0


@EVERY
def test_another_seed_moves_intervals_only(metric: Metric, study):
    first = metric(study, attribute="gender", bootstrap=RESAMPLES, seed=1)
    second = metric(study, attribute="gender", bootstrap=RESAMPLES, seed=2)
    for m, n in zip(first.measurements, second.measurements, strict=True):
        assert m.id == n.id
        # Values that depend on noise; and the number of p values below 5 %.
        noisy = ("multi-floor", "multi-excess", "stereotyping.distributions", "stereotyping.amplification")
        if not m.term.startswith(noisy) and not metric.card.fits_model:
            assert m.value == n.value
    assert any(
        m.low != n.low or m.se_data != n.se_data
        for m, n in zip(first.measurements, second.measurements, strict=True)
    )


@EVERY
def test_terms_are_those_of_the_card(metric: Metric, study):
    terms = {m.term for m in metric(study, attribute="gender", bootstrap=RESAMPLES).measurements}
    assert terms <= {term.name for term in metric.card.terms}


@ALL
def test_every_metric_has_a_card_a_test_and_a_docs_entry(metric: Metric):
    card = metric.card
    module = metric.name.replace("-", "_")
    for text in (card.title, card.question, card.formula, card.range, card.paper):
        assert text.strip()
    assert card.needs
    assert card.caveats
    assert any((ROOT / "tests" / "metrics").rglob(f"test_{module}.py"))
    assert f"\n## {metric.name}\n" in (ROOT / "docs" / "metrics.md").read_text()
    folder = metric.compute.__module__.removeprefix("portrayal.metrics.").removesuffix(".metric")
    assert folder.replace(".", "_") == module
    assert getattr(portrayal.metrics, module) is metric.function
