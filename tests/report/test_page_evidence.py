"""The captions that a page carries: as many as fit, evenly spread, each stored once."""

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
def audited() -> Results:
    return portrayal.audit(make_study(scenes=300), quick=True)


def of_one(details: list[str | None], **columns: str) -> Results:
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
    results = of_one(details)
    data = unpack_json(pack_evidence(results, [results.measurements[0].id], 10**6))
    ((_, rows),) = rows_behind(data).items()
    assert [row["caption"] for row in rows] == [f"caption {n}" for n in range(len(details))]
    return [row["facts"] for row in rows]


@pytest.mark.parametrize("count", [1, 19, 20, 21, 39, 40, 199, 1000, 5431])
@pytest.mark.parametrize("most", CAPTION_LIMITS)
def test_captions_are_spread_evenly(count, most):
    frame = pl.DataFrame({"id": ["a"] * count + ["b"] * 3, "place": [*range(count), *range(3)]})
    picked = sample_evenly(frame, most)
    places = picked.filter(pl.col("id") == "a")["place"].to_list()
    assert len(places) == min(count, most)
    assert picked.filter(pl.col("id") == "b").height == 3
    assert places[0] == 0
    gaps = {after - before for before, after in zip(places, [*places[1:], count], strict=True)}
    assert max(gaps) - min(gaps) <= 1


def test_fewer_captions_are_some_of_the_more():
    frame = pl.DataFrame({"id": ["a"] * 5431, "place": range(5431)})
    assert (
        set(sample_evenly(frame, 20)["place"])
        < set(sample_evenly(frame, 100)["place"])
        < set(sample_evenly(frame, 200)["place"])
    )


def test_a_page_carries_the_captions_of_every_number_on_it(audited):
    """What is read back is what the evidence says, but for digits that nobody is shown."""
    html = page.render(audited)
    data = element(html, "data")
    shown = rows_behind(data)
    assert shown.keys() == set(re.findall(r'<button type="button" data-id="([^"]+)"', html))
    totals = dict(audited.evidence.group_by("id").len().iter_rows())
    for identifier, rows in shown.items():
        assert len(rows) == min(totals[identifier], CAPTION_LIMITS[0])
        assert data["totals"].get(identifier, len(rows)) == totals[identifier]
    for identifier in sorted(shown)[::50]:
        mine = audited.evidence.filter(pl.col("id") == identifier)
        expected = list(
            sample_evenly(mine, CAPTION_LIMITS[0]).select("image_id", "caption", "detail").iter_rows()
        )
        assert [(row["image"], row["caption"]) for row in shown[identifier]] == [row[:2] for row in expected]
        for row, (*_, detail) in zip(shown[identifier], expected, strict=True):
            about = {k: v for k, v in json.loads(detail).items() if k not in ("effect", "by pairs")}
            assert row["facts"].keys() == about.keys()
            for key, value in about.items():
                if isinstance(value, float):
                    assert row["facts"][key] == pytest.approx(value, rel=1e-3)
                elif key == "parts" and isinstance(value, list):
                    assert [word for word, _ in row["facts"][key]] == [word for word, _ in value]
                    assert [add for _, add in row["facts"][key]] == pytest.approx(
                        [add for _, add in value], abs=0.0051
                    )
                elif not isinstance(value, dict):
                    assert row["facts"][key] == value


def test_every_caption_is_stored_once(audited):
    data = element(page.render(audited), "data")
    for name in ("images", "systems", "texts"):
        assert len(set(data[name])) == len(data[name])
    said = [tuple(one) for one in zip(*map(accumulate, data["captions"]), strict=True)]
    assert len(set(said)) == len(said)
    used = {place for kind in data["kinds"] for place in accumulate(kind["captions"])}
    assert used == set(range(len(said)))


def test_what_people_say_is_theirs_also_behind_the_number_of_a_system():
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


def test_nobody_says_what_a_model_was_asked():
    results = of_one(["{}"])
    asked = replace(results.measurements[0], metric="counterbias")
    data = unpack_json(pack_evidence(replace(results, measurements=(asked,)), [asked.id], 10**6))
    assert data["systems"] == [""]


def test_captions_are_fewer_where_they_would_not_fit(audited):
    ids = [m.id for m in audited.measurements if m.metric in ("error", "quality", "lic")]
    told = page_evidence._evidence_with_sources(audited, ids)
    sizes = {most: len(packed_evidence_at(told, most)) for most in CAPTION_LIMITS}
    assert sorted(sizes.values(), reverse=True) == list(sizes.values())
    for most, less in pairwise(CAPTION_LIMITS):
        found = rows_behind(unpack_json(pack_evidence(audited, ids, sizes[most] - 2000)))
        assert max(map(len, found.values())) <= less
    found = rows_behind(unpack_json(pack_evidence(audited, ids, 0)))  # some are there whatever the budget is
    assert max(map(len, found.values())) == CAPTION_LIMITS[-1]


def packed_evidence_at(told, most):
    return page_evidence.pack_json(encode(sample_evenly(told, most)))


def test_the_whole_page_is_what_must_fit(audited, monkeypatch):
    whole = len(page.render(audited).encode())
    assert whole <= page_evidence.PAGE_BYTES
    monkeypatch.setattr(page, "PAGE_BYTES", whole - 10_000)
    smaller = page.render(audited)
    assert len(smaller.encode()) <= whole - 10_000
    assert max(map(len, rows_behind(element(smaller, "data")).values())) < CAPTION_LIMITS[0]


def test_details_from_elsewhere():
    """None of them stops a page, and each is shown: as facts where it has some, else as it is."""
    deep = "[" * 5000 + "]" * 5000
    given = [
        '{"a": 1.23456789, "b": 9.0, "c": [0.333333], "d": {"e": 1e-9}, "f": true, "g": null}',
        "not JSON", "[1, 2]", '"text"', None, "", '{"a": NaN}', '{"a": Infinity}', '{"a": "\\ud800"}', deep,
        '{"parts": "none"}', '{"parts": [["a"]]}', '{"parts": [["a", 1e300]]}', '{"people": [1, null]}',
        '{"__proto__": {"x": 1}}', '{"effect": [1], "by pairs": 2}',
    ]  # fmt: skip
    assert facts(given) == [
        {"a": 1.235, "b": 9, "c": [0.3333], "d": {"e": 1e-9}, "f": True, "g": None},
        {"detail": "not JSON"}, {"detail": "[1, 2]"}, {"detail": '"text"'}, {}, {}, {"a": "nan"}, {"a": "inf"},
        {"detail": '{"a": "\\ud800"}'}, {"detail": deep},
        {"parts": "none"}, {"parts": [["a"]]}, {"parts": [["a", 1e300]]}, {"people": [1, None]},
        {"__proto__": {"x": 1}}, {},
    ]  # fmt: skip


def test_lists_that_many_rows_have_are_stored_once():
    long = ["a man rides a horse on a wide beach", "somebody on a horse near the water"]
    given = [json.dumps({"people": long, "n": n}) for n in range(50)]
    assert facts(given) == [{"people": long, "n": n} for n in range(50)]
    results = of_one(given)
    data = unpack_json(pack_evidence(results, [results.measurements[0].id], 10**6))
    assert len(data["lists"]) == 1
    assert sum(text in long for text in data["texts"]) == 2


def test_a_page_without_evidence():
    assert rows_behind(element(page.render(Results((Measurement("m", "t", value=0.5),))), "data")) == {}


def test_large_numbers_keep_their_digits():
    told = {"small": 0.123456, "large": 12345.6, "larger": 1234567.0, "whole": 10**18 + 1, "below": -4321.5}
    expected = {"small": 0.1235, "large": 12346, "larger": 1234567, "whole": 10**18 + 1, "below": -4322}
    assert facts([json.dumps(told)]) == [expected]


@pytest.mark.parametrize("beside", [["a", ["b"]], ["a"], [], "ab", {"a": 1}, None])
def test_a_card_may_say_anything(beside):
    results = replace(of_one([None]), provenance={"cards": {"m": {"side_by_side": beside}}})
    assert "caption 0" in str(element(page.render(results), "data"))
