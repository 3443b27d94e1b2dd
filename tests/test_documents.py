"""Documents from unknown sources: every problem is reported in a sentence, never with a traceback."""

from __future__ import annotations

import json
import os
import sys

import polars as pl
import pytest

from portrayal.comparing import compare
from portrayal.documents import MAX_DEPTH, DocumentError, json_object, parse_json, parse_toml
from portrayal.errors import InputError
from portrayal.lexicon.harms.loading import _parse
from portrayal.lexicon.lexicon import parse_lexicon
from portrayal.metrics import METRICS
from portrayal.provenance_schema import provenance_problem
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results, open_results
from portrayal.study import read_study

DEEP = "[" * 100_000 + "]" * 100_000
RATHER_DEEP = "[" * 200 + "]" * 200  # Python reads it, and cannot do much else with it
LONG = "9" * 5_000
HALF_CHARACTER = "\\ud800"
HEAD = '{"schema": "portrayal.results/1", '
ROW = '"metric": "m", "term": "t", "value": 1'


@pytest.mark.parametrize("text", [DEEP, LONG, "{", '{"a": }', ""])
def test_unreadable_json_raises_a_document_error(text):
    with pytest.raises(DocumentError):
        parse_json(text)
    assert json_object(text) is None


@pytest.mark.parametrize("text", [f"a = {DEEP}", f"a = {LONG}", "a = "])
def test_unreadable_toml_raises_an_input_error(text):
    with pytest.raises(DocumentError):
        parse_toml(text)
    with pytest.raises(InputError, match=r"x\.toml: expected TOML"):
        parse_lexicon(text, "x.toml")
    with pytest.raises(InputError, match=r"x\.toml: expected TOML"):
        _parse(text, "x.toml", set(), lambda checked: checked)


RESULTS = {
    "nested without end": (DEEP, "nested too deeply"),
    "a number without end": (f'{HEAD}"measurements": {LONG}}}', "expected JSON, found Exceeds the limit"),
    "settings rather deep": (
        f'{HEAD}"measurements": [{{{ROW}, "settings": {{"a": {RATHER_DEEP}}}}}]}}',
        f"more than {MAX_DEPTH} deep",
    ),
    "settings with NaN": (
        f'{HEAD}"measurements": [{{{ROW}, "settings": {{"a": NaN}}}}]}}',
        "no finite number",
    ),
    "half a character as a metric": (
        f'{HEAD}"measurements": [{{"metric": "{HALF_CHARACTER}", "term": "t", "value": 1}}]}}',
        "expected text in Unicode, found half of a character",
    ),
    "more images than there can be": (
        f'{HEAD}"measurements": [{{{ROW}, "n": 1{"0" * 30}}}]}}',
        "expected n as a whole number",
    ),
    "provenance with NaN": (
        f'{HEAD}"measurements": [], "provenance": {{"seconds": NaN}}}}',
        "no finite number",
    ),
    "provenance rather deep": (
        f'{HEAD}"measurements": [], "provenance": {{"odd": {RATHER_DEEP}}}}}',
        f"more than {MAX_DEPTH} deep",
    ),
    "images as text": (
        f'{HEAD}"measurements": [], "provenance": {{"study": {{"groups": {{}}, "images": "many"}}}}}}',
        r"expected provenance\.study\.images as a whole number, found 'many'",
    ),
    "a study that is a number": (
        f'{HEAD}"measurements": [], "provenance": {{"study": 3}}}}',
        r"expected provenance\.study as an object, found 3",
    ),
    "cards with numbers for terms": (
        f'{HEAD}"measurements": [], "provenance": {{"cards": {{"m": {{"terms": 3}}}}}}}}',
        r"expected provenance\.cards\.m\.terms as a list, found 3",
    ),
    "skipped as a number": (
        f'{HEAD}"measurements": [], "provenance": {{"skipped": 3}}}}',
        r"expected provenance\.skipped as a list, found 3",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_command_that_reads_results_says_what_is_wrong(name, tmp_path, command):
    text, sentence = RESULTS[name]
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=sentence):
        open_results(tmp_path)
    for arguments in (
        ("report", tmp_path, "--out", tmp_path / "page"),
        ("compare", tmp_path, tmp_path),
        ("gate", tmp_path, "m:t <= 1"),
        ("view", tmp_path, "--no-open"),
    ):
        code, _, stderr = command(*arguments)
        assert code == 2, arguments
        assert "results.json" in stderr


def test_the_cards_of_all_metrics_are_sound():
    cards = {name: metric.card.as_dict() for name, metric in METRICS.items()}
    assert provenance_problem(json.loads(json.dumps({"cards": cards}))) is None


def test_evidence_of_another_program_does_not_fail(tmp_path):
    """A comparison that rests on evidence does without it where it was written by another program."""
    row = Measurement("lic", "lic_m", "s", value=50.0, n=1, unit="percent")
    for detail in ("{", DEEP, "3", '{"labelled": 1, "mean score": [], "effect": 0, "by pairs": 3}'):
        results = Results((row,), evidence_of(row, detail))
        assert compare(results, results).measurements


def evidence_of(row: Measurement, detail: str) -> pl.DataFrame:
    return pl.DataFrame([(row.id, "1", "s", "a man", detail)], schema=EVIDENCE_SCHEMA, orient="row")


TABLES = {
    "nested without end": f'[{{"image_id": 1, "caption": {DEEP}}}]',
    "rather deep": f'[{{"image_id": 1, "caption": {RATHER_DEEP}}}]',
    "a number without end": f'[{{"image_id": {LONG}, "caption": "a man"}}]',
    "half a character": f'[{{"image_id": 1, "caption": "{HALF_CHARACTER}"}}]',
}


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_a_study(name, ending, tmp_path, command):
    text = TABLES[name]
    (tmp_path / f"captions{ending}").write_text(text if ending == ".json" else text[1:-1])
    (tmp_path / "study.toml").write_text(f'captions = "captions{ending}"')
    code, _, stderr = command("check-study", tmp_path)
    assert code == 2
    assert f"captions{ending}" in stderr


def test_columns_have_names_that_can_be_written(tmp_path, command):
    (tmp_path / "captions.jsonl").write_text('{"image_id": 1, "caption": "a man"}')
    (tmp_path / "labels.jsonl").write_text(f'{{"image_id": 1, "{HALF_CHARACTER}": "male"}}')
    (tmp_path / "study.toml").write_text('captions = "captions.jsonl"\nattributes = "labels.jsonl"')
    code, _, stderr = command("audit", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    assert "expected names of columns in Unicode" in stderr


@pytest.mark.parametrize("words", [DEEP, f"[{LONG}]", f'["{HALF_CHARACTER}"]', "[1]", "{}"])
def test_vocabularies(words, tmp_path, command):
    (tmp_path / "captions.jsonl").write_text('{"image_id": 1, "caption": "a man", "system": "s"}')
    (tmp_path / "words.json").write_text(words)
    (tmp_path / "study.toml").write_text('captions = "captions.jsonl"\n[vocabularies]\ns = "words.json"')
    code, _, stderr = command("audit", tmp_path, "--out", tmp_path / "out")
    assert code == 2
    assert "words.json" in stderr


@pytest.mark.parametrize(
    "settings", [f"name = {DEEP}", f"left_out = {LONG}", "left_out = -1", "left_out = true"]
)
def test_study_files(settings, tmp_path):
    (tmp_path / "study.toml").write_text(settings)
    with pytest.raises(InputError, match=r"study\.toml: expected"):
        read_study(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file names")
def test_names_that_are_no_unicode(tmp_path, command):
    bad = os.fsdecode(b"caf\xe9")
    code, _, stderr = command("check-study", tmp_path / bad)
    assert code == 2
    assert "Expected names in Unicode" in stderr
    folder = tmp_path / "captions"
    folder.mkdir()
    (folder / f"{bad}.jsonl").write_text('{"image_id": 1, "caption": "a man"}')
    code, _, stderr = command("import", "table", folder, "--out", tmp_path / "study")
    assert code == 2
    assert "expected a file with a name in Unicode" in stderr
    (tmp_path / bad).mkdir()
    (tmp_path / bad / "captions.jsonl").write_text('{"image_id": 1, "caption": "a man"}')
    (tmp_path / bad / "study.toml").write_text('captions = "captions.jsonl"')
    assert read_study(tmp_path / bad).digest
    assert json.dumps(read_study(tmp_path / bad).name, ensure_ascii=False).encode()
