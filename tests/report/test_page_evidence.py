"""Captions in a page: as many as fit, evenly sampled, each stored once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import accumulate, pairwise

import polars as pl
import pytest

import portrayal
from portrayal.lab import make_study
from portrayal.report.page import evidence as page_evidence
from portrayal.report.page import page
from portrayal.report.page.embedded import unpack_json
from portrayal.report.page.evidence import CAPTION_LIMITS, encode, pack_evidence, sample_evenly
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results
from tests.report.evidence_reader import element, rows_behind


@pytest.fixture(scope="module")
def audit_results() -> Results:
    return portrayal.audit(make_study(scenes=300), quick=True)


def results_with_details(details: list[str | None], **columns: str) -> Results:
    """Results with one number and these details behind it."""
    m = Measurement("m", "t", system="s", value=1.0)
    rows = [
        {
            "id": m.id,
            "image_id": str(n),
            "system": "s",
            "caption": f"caption {n}",
            "detail": detail,
            **columns,
        }
        for n, detail in enumerate(details)
    ]
    return Results((m,), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA))


def facts(details: list[str | None]) -> list[dict[str, object]]:
    results = results_with_details(details)
    data = unpack_json(pack_evidence(results, [results.measurements[0].id], 10**6))
    ((_, rows),) = rows_behind(data).items()
    assert [row["caption"] for row in rows] == [f"caption {n}" for n in range(len(details))]
    return [row["facts"] for row in rows]


@pytest.mark.parametrize("count", [1, 19, 20, 21, 39, 40, 199, 1000, 5431])
@pytest.mark.parametrize("limit", CAPTION_LIMITS)
def test_captions_are_spread_evenly(count, limit):
    frame = pl.DataFrame({"id": ["a"] * count + ["b"] * 3, "position": [*range(count), *range(3)]})
    sample = sample_evenly(frame, limit)
    positions = sample.filter(pl.col("id") == "a")["position"].to_list()
    assert len(positions) == min(count, limit)
    assert sample.filter(pl.col("id") == "b").height == 3
    assert positions[0] == 0
    gaps = {after - before for before, after in zip(positions, [*positions[1:], count], strict=True)}
    assert max(gaps) - min(gaps) <= 1


def test_smaller_samples_are_subsets_of_larger_ones():
    frame = pl.DataFrame({"id": ["a"] * 5431, "position": range(5431)})
    assert (
        set(sample_evenly(frame, 20)["position"])
        < set(sample_evenly(frame, 100)["position"])
        < set(sample_evenly(frame, 200)["position"])
    )


def test_page_has_the_captions_of_every_number(audit_results):
    """The decoded rows equal the evidence, up to digits that the page does not show."""
    html = page.render(audit_results)
    data = element(html, "data")
    shown = rows_behind(data)
    assert shown.keys() == set(re.findall(r'<button type="button" data-id="([^"]+)"', html))
    totals = dict(audit_results.evidence.group_by("id").len().iter_rows())
    for identifier, rows in shown.items():
        assert len(rows) == min(totals[identifier], CAPTION_LIMITS[0])
        assert data["totals"].get(identifier, len(rows)) == totals[identifier]
    for identifier in sorted(shown)[::50]:
        evidence = audit_results.evidence.filter(pl.col("id") == identifier)
        expected = list(
            sample_evenly(evidence, CAPTION_LIMITS[0]).select("image_id", "caption", "detail").iter_rows()
        )
        assert [(row["image"], row["caption"]) for row in shown[identifier]] == [row[:2] for row in expected]
        for row, (*_, detail) in zip(shown[identifier], expected, strict=True):
            details = {k: v for k, v in json.loads(detail).items() if k not in ("effect", "by pairs")}
            assert row["facts"].keys() == details.keys()
            for key, value in details.items():
                if isinstance(value, float):
                    assert row["facts"][key] == pytest.approx(value, rel=1e-3)
                elif key == "parts" and isinstance(value, list):
                    assert [word for word, _ in row["facts"][key]] == [word for word, _ in value]
                    assert [contribution for _, contribution in row["facts"][key]] == pytest.approx(
                        [contribution for _, contribution in value], abs=0.0051
                    )
                elif not isinstance(value, dict):
                    assert row["facts"][key] == value


def test_every_caption_is_stored_once(audit_results):
    data = element(page.render(audit_results), "data")
    for name in ("images", "systems", "texts"):
        assert len(set(data[name])) == len(data[name])
    caption_keys = [tuple(key) for key in zip(*map(accumulate, data["captions"]), strict=True)]
    assert len(set(caption_keys)) == len(caption_keys)
    used_indices = {index for kind in data["kinds"] for index in accumulate(kind["captions"])}
    assert used_indices == set(range(len(caption_keys)))


def test_human_captions_keep_their_source_under_a_number_of_a_system():
    study = make_study(200, 3).select_systems(["faithful"])
    results = portrayal.metrics.lic(
        study, attribute="gender", permutations=5, folds=3, seeds=(0, 1), bootstrap=50
    )
    rows = rows_behind(element(page.render(results), "data"))
    by_term = {
        m.term: rows[m.id]
        for m in results.measurements
        if m.id in rows and m.group is None and m.item is None
    }
    assert {row["source"] for row in by_term["lic_m"]} == {"faithful"}
    assert {row["source"] for row in by_term["lic_d"]} == {"human"}
    assert {row["source"] for row in by_term["null_d"]} == {"human"}


def test_prompts_of_a_model_have_no_source():
    results = results_with_details(["{}"])
    measurement = replace(results.measurements[0], metric="bias")
    provenance = {"cards": {"bias": {"layout": "concepts"}}}
    results = replace(results, measurements=(measurement,), provenance=provenance)
    data = unpack_json(pack_evidence(results, [measurement.id], 10**6))
    assert data["systems"] == [""]


def test_captions_are_sampled_to_fit_the_page(audit_results):
    ids = [m.id for m in audit_results.measurements if m.metric in ("error", "quality", "lic")]
    evidence = page_evidence._evidence_with_sources(audit_results, ids)
    sizes = {limit: len(packed_evidence_at(evidence, limit)) for limit in CAPTION_LIMITS}
    assert sorted(sizes.values(), reverse=True) == list(sizes.values())
    for limit, next_limit in pairwise(CAPTION_LIMITS):
        rows_by_id = rows_behind(unpack_json(pack_evidence(audit_results, ids, sizes[limit] - 2000)))
        assert max(map(len, rows_by_id.values())) <= next_limit
    rows_by_id = rows_behind(
        unpack_json(pack_evidence(audit_results, ids, 0))
    )  # a minimum is kept whatever the limit is
    assert max(map(len, rows_by_id.values())) == CAPTION_LIMITS[-1]


def packed_evidence_at(evidence, limit):
    return page_evidence.pack_json(encode(sample_evenly(evidence, limit)))


def test_limit_applies_to_the_whole_page(audit_results, monkeypatch):
    n_bytes = len(page.render(audit_results).encode())
    assert n_bytes <= page_evidence.PAGE_BYTES
    monkeypatch.setattr(page, "PAGE_BYTES", n_bytes - 10_000)
    smaller_page = page.render(audit_results)
    assert len(smaller_page.encode()) <= n_bytes - 10_000
    assert max(map(len, rows_behind(element(smaller_page, "data")).values())) < CAPTION_LIMITS[0]


def test_malformed_details():
    """A detail that is a JSON object is shown as facts, any other as it is."""
    nested = "[" * 5000 + "]" * 5000
    details = [
        '{"a": 1.23456789, "b": 9.0, "c": [0.333333], "d": {"e": 1e-9}, "f": true, "g": null}',
        "not JSON", "[1, 2]", '"text"', None, "", '{"a": NaN}', '{"a": Infinity}', '{"a": "\\ud800"}', nested,
        '{"parts": "none"}', '{"parts": [["a"]]}', '{"parts": [["a", 1e300]]}', '{"people": [1, null]}',
        '{"__proto__": {"x": 1}}', '{"effect": [1], "by pairs": 2}',
    ]  # fmt: skip
    assert facts(details) == [
        {"a": 1.235, "b": 9, "c": [0.3333], "d": {"e": 1e-9}, "f": True, "g": None},
        {"detail": "not JSON"}, {"detail": "[1, 2]"}, {"detail": '"text"'}, {}, {}, {"a": "nan"}, {"a": "inf"},
        {"detail": '{"a": "\\ud800"}'}, {"detail": nested},
        {"parts": "none"}, {"parts": [["a"]]}, {"parts": [["a", 1e300]]}, {"people": [1, None]},
        {"__proto__": {"x": 1}}, {},
    ]  # fmt: skip


def test_lists_of_many_rows_are_stored_once():
    human_captions = ["a man rides a horse on a wide beach", "somebody on a horse near the water"]
    details = [json.dumps({"people": human_captions, "n": n}) for n in range(50)]
    assert facts(details) == [{"people": human_captions, "n": n} for n in range(50)]
    results = results_with_details(details)
    data = unpack_json(pack_evidence(results, [results.measurements[0].id], 10**6))
    assert len(data["lists"]) == 1
    assert sum(text in human_captions for text in data["texts"]) == 2


def test_a_page_without_evidence():
    assert rows_behind(element(page.render(Results((Measurement("m", "t", value=0.5),))), "data")) == {}


def test_large_numbers_keep_their_digits():
    detail = {"small": 0.123456, "large": 12345.6, "larger": 1234567.0, "whole": 10**18 + 1, "below": -4321.5}
    expected = {"small": 0.1235, "large": 12346, "larger": 1234567, "whole": 10**18 + 1, "below": -4322}
    assert facts([json.dumps(detail)]) == [expected]


@pytest.mark.parametrize("side_by_side", [["a", ["b"]], ["a"], [], "ab", {"a": 1}, None])
def test_malformed_card(side_by_side):
    results = replace(
        results_with_details([None]), provenance={"cards": {"m": {"side_by_side": side_by_side}}}
    )
    assert "caption 0" in str(element(page.render(results), "data"))
