"""Results: the schema, the file, the ids."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import PortrayalError
from portrayal.lab import make_study
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results

SCHEMA = json.loads((resources.files("portrayal") / "results.schema.json").read_text())


@pytest.fixture(scope="module")
def results() -> Results:
    return portrayal.audit(make_study(scenes=60), quick=True)


def test_results_follow_the_shipped_schema(results):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(results.to_json()), SCHEMA)


def test_the_schema_rejects_bad_documents(results):
    for break_document in (
        lambda document: document.pop("schema"),
        lambda document: document["measurements"][0].pop("id"),
        lambda document: document["measurements"][0].update(value=None, reason=None),
        lambda document: document["measurements"][0].update(better="bigger"),
        lambda document: document["measurements"][0].update(extra=1),
    ):
        document = json.loads(results.to_json())
        break_document(document)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, SCHEMA)


def test_saved_and_loaded_results_are_the_same(results, tmp_path):
    path = results.save(tmp_path / "out")
    for source in (path, tmp_path / "out"):
        loaded = Results.load(source)
        assert loaded.measurements == results.measurements
        assert loaded.evidence.equals(results.evidence)
        assert loaded.provenance == json.loads(json.dumps(results.provenance))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "evidence.parquet",
        "replicates.parquet",
        "results.json",
    ]


def test_provenance_says_what_is_needed_to_run_it_again(results):
    origin = results.provenance
    assert origin["version"] == portrayal.__version__
    assert origin["study"]["digest"] == make_study(scenes=60).digest
    assert origin["study"]["groups"]["gender"].keys() == {"female", "male"}
    assert {"numpy", "polars"} <= origin["packages"].keys()
    assert origin["seed"] == 0
    (skip,) = [skip for skip in origin["skipped"] if skip["metric"] == "retrieval-recall"]
    assert "--model NAME" in skip["reason"] or "no images" in skip["reason"]


def test_a_failed_write_leaves_the_old_file(results, tmp_path, monkeypatch):
    results.save(tmp_path)
    before = (tmp_path / "results.json").read_bytes()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(Results, "to_json", fail)
    with pytest.raises(OSError, match="disk full"):
        results.save(tmp_path)
    assert (tmp_path / "results.json").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "evidence.parquet",
        "replicates.parquet",
        "results.json",
    ]


def test_frames(results):
    frame = results.to_polars()
    assert frame.height == len(results.measurements)
    assert frame.schema["value"] == pl.Float64
    assert json.loads(frame["settings"][0])["lexicon"].startswith("gender@lic-2022@")
    assert results.to_pandas().shape == frame.shape


def test_evidence_columns(results):
    assert results.evidence.columns == list(EVIDENCE_SCHEMA)


TEXTS = st.one_of(st.none(), st.text(max_size=5))


@given(TEXTS, TEXTS, TEXTS, st.dictionaries(st.text(max_size=3), st.integers()))
def test_ids_depend_on_what_makes_a_row_unique_and_on_nothing_else(system, group, item, settings):
    def make(**more):
        return Measurement("m", "t", system=system, group=group, item=item, settings=settings, **more)

    assert make(value=1.0, n=3).id == make(value=2.0, low=1.0, reason="x").id
    assert make(unit="share").id != make(unit="count").id
    assert make(attribute="age").id != make().id


def test_ids_are_the_same_in_every_process():
    measurement = Measurement(
        "lic", "lic_m", system="oscar", attribute="gender", unit="percent", settings={"b": 1, "a": [0, 12]}
    )
    assert (
        measurement.id
        == Measurement(
            "lic",
            "lic_m",
            system="oscar",
            attribute="gender",
            unit="percent",
            settings={"a": [0, 12], "b": 1},
        ).id
    )
    assert measurement.id == "0ff08e8b1afd4284"  # kept: others refer to rows by it


def test_numbers_are_finite_or_none():
    with pytest.raises(ValueError, match=r"an undefined number is None"):
        Measurement("m", "t", value=float("nan"))


def test_duplicate_ids_are_refused():
    results = Results((Measurement("m", "t", value=1.0),))
    with pytest.raises(ValueError, match="same id"):
        Results.join([results, results], {})


BAD = {
    "not JSON": ("{", "line 1: expected JSON"),
    "another schema": (
        '{"schema": "x"}',
        "expected a results file with schema 'portrayal.results/1', found 'x'",
    ),
    "a list": ("[]", "expected a results file"),
    "no measurements": ('{"schema": "portrayal.results/1"}', "expected a list of measurements, found None"),
    "a row without a term": (
        '{"schema": "portrayal.results/1", "measurements": [{"metric": "m"}]}',
        "measurement 1: expected a term, found none",
    ),
    "a value that is text": (
        '{"schema": "portrayal.results/1", "measurements": [{"metric": "m", "term": "t", "value": "1"}]}',
        "measurement 1: expected value as a number, found '1'",
    ),
    "NaN": (
        '{"schema": "portrayal.results/1", "measurements": [{"metric": "m", "term": "t", "value": NaN}]}',
        "expected value as a finite number or null, found nan",
    ),
    "a fraction of an image": (
        '{"schema": "portrayal.results/1", "measurements": [{"metric": "m", "term": "t", "value": 1, "n": 2.5}]}',
        "expected n as a whole number, found 2.5",
    ),
    "a number too large": (
        '{"schema": "portrayal.results/1", "measurements": [{"metric": "m", "term": "t", "value": 1'
        + "0" * 400
        + "}]}",
        "expected value as a finite number or null",
    ),
    "an id twice": (
        '{"schema": "portrayal.results/1", "measurements": '
        '[{"metric": "m", "term": "t", "value": 1, "id": "x"}, {"metric": "m", "term": "t", "value": 2, "id": "x"}]}',
        "measurement 2: expected each id once, found 'x' again",
    ),
    "provenance as a list": (
        '{"schema": "portrayal.results/1", "measurements": [], "provenance": [1]}',
        "expected provenance as an object",
    ),
    "evidence elsewhere": (
        '{"schema": "portrayal.results/1", "measurements": [], "evidence": "../../secret.parquet"}',
        "expected evidence as the name of a file beside it",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    text, sentence = BAD[name]
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(PortrayalError, match=sentence):
        Results.load(tmp_path)


def test_results_saved_as_a_file_keep_their_evidence(results, tmp_path):
    results.save(tmp_path / "mine.json")
    names = ["mine.evidence.parquet", "mine.json", "mine.replicates.parquet"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    loaded = Results.load(tmp_path / "mine.json")
    assert loaded.evidence.equals(results.evidence)
    assert loaded.replicates.equals(results.replicates)


def test_a_file_written_by_hand_may_leave_things_out(tmp_path):
    text = '{"schema": "portrayal.results/1", "measurements": [{"metric": "m", "term": "t", "value": 0.5, "id": "x"}]}'
    (tmp_path / "r.json").write_text(text)
    (row,) = Results.load(tmp_path / "r.json").measurements
    assert (row.value, row.id, row.settings) == (0.5, "x", {})
