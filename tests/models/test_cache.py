"""The cache of model outputs: queried once, resumed after an interruption, a file for each model."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from portrayal.errors import InputError, PortrayalError
from portrayal.models.cache import ResponseCache, default_cache_folder


class Model:
    """Returns the length and the letters of a text, records its batches and can be interrupted."""

    def __init__(self, interrupt_at: int | None = None):
        self.batches: list[list[str]] = []
        self.interrupt_at = interrupt_at

    def __call__(self, texts: list[str]):
        if len(self.batches) == self.interrupt_at:
            raise KeyboardInterrupt
        self.batches.append(texts)
        for text in texts:
            yield np.array([len(text) / 3]), np.array([[ord(letter) for letter in text]], dtype=np.int64)


def test_a_second_run_does_not_query_the_model(tmp_path):
    texts = ["b", "a", "", "b", "né 😀"]
    first, second = Model(), Model()
    first_results = ResponseCache(tmp_path, "one").get_or_compute(texts, first)
    cached_results = ResponseCache(tmp_path, "one").get_or_compute(texts, second)
    assert first.batches == [["", "a", "b", "né 😀"]]
    assert second.batches == []
    for text, expected, cached in zip(texts, first_results, cached_results, strict=True):
        assert expected[0].tolist() == [len(text) / 3]
        assert expected[1].tolist() == [[ord(letter) for letter in text]]
        for expected_array, cached_array in zip(expected, cached, strict=True):
            assert (expected_array.dtype, expected_array.shape, expected_array.tobytes()) == (
                cached_array.dtype,
                cached_array.shape,
                cached_array.tobytes(),
            )


def test_no_texts_make_no_file(tmp_path):
    assert ResponseCache(tmp_path / "new", "one").get_or_compute([], Model()) == []
    assert not (tmp_path / "new").exists()


def test_an_interrupted_run_resumes(tmp_path):
    texts = [f"text {number}" for number in range(9)]
    cache = ResponseCache(tmp_path, "one")
    with pytest.raises(KeyboardInterrupt):
        cache.get_or_compute(texts, Model(interrupt_at=2), chunk_size=3)
    assert sorted(cache.get(texts)) == texts[:6]
    remaining = Model()
    assert len(cache.get_or_compute(texts, remaining, chunk_size=3)) == 9
    assert remaining.batches == [texts[6:]]


def test_the_order_of_texts_does_not_matter_to_the_model(tmp_path):
    texts = [f"text {number}" for number in range(9)]
    model, other_model = Model(), Model()
    ResponseCache(tmp_path, "one").get_or_compute(texts, model, chunk_size=4)
    ResponseCache(tmp_path, "other").get_or_compute(texts[::-1], other_model, chunk_size=4)
    assert model.batches == other_model.batches


def test_models_do_not_share(tmp_path):
    ResponseCache(tmp_path, "one").put({"a": [np.array([1.0])]})
    assert ResponseCache(tmp_path, "other").get(["a"]) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["one.sqlite"]


def test_more_texts_than_a_statement_takes(tmp_path):
    cache = ResponseCache(tmp_path, "one")
    cache.put({str(number): [np.array([number])] for number in range(1_700)})
    result = cache.get(map(str, range(-5, 1_705)))
    assert {int(text): int(array[0]) for text, (array,) in result.items()} == {n: n for n in range(1_700)}


def test_a_cached_response_is_replaced_completely(tmp_path):
    cache = ResponseCache(tmp_path, "one")
    cache.put({"a": [np.array([1.0]), np.array([2.0])]})
    cache.put({"a": [np.array([3.0])]})
    assert [array.tolist() for array in cache.get(["a"])["a"]] == [[3.0]]


@given(
    st.text(),
    st.lists(
        arrays.arrays(
            st.sampled_from([np.float32, np.float64, np.int32, np.int64, ">f8"]),
            arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_every_digit_is_kept(tmp_path_factory, text, arrays_to_store):
    cache = ResponseCache(tmp_path_factory.mktemp("kept"), "one")
    cache.put({text: arrays_to_store})
    for stored, loaded in zip(arrays_to_store, cache.get([text])[text], strict=True):
        np.testing.assert_array_equal(stored.astype(stored.dtype.newbyteorder("=")), loaded, strict=True)
        loaded += 1  # an array like any other, which can be written to


def test_objects_are_not_kept(tmp_path):
    with pytest.raises(ValueError, match="object"):
        ResponseCache(tmp_path, "one").put({"a": [np.array([{}])]})


def test_a_model_that_returns_too_few_outputs_is_reported(tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        ResponseCache(tmp_path, "one").get_or_compute(["a", "b"], lambda texts: [[np.zeros(1)]])
    assert ResponseCache(tmp_path, "one").get(["a"]) == {}


def test_a_broken_file_is_named_and_left_as_it_is(tmp_path):
    path = tmp_path / "one.sqlite"
    path.write_bytes(b"something else altogether" * 100)
    before = path.read_bytes()
    cache = ResponseCache(tmp_path, "one")
    for access in (lambda: cache.get(["a"]), lambda: cache.put({"a": [np.zeros(1)]})):
        with pytest.raises(
            InputError, match=r"one\.sqlite: expected a cache of model outputs .*not a database"
        ):
            access()
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(tmp_path):
    with closing(sqlite3.connect(tmp_path / "one.sqlite")) as file:
        file.execute("CREATE TABLE theirs (value)")
    before = (tmp_path / "one.sqlite").read_bytes()
    with pytest.raises(InputError, match=r"one\.sqlite: expected .*found another database"):
        ResponseCache(tmp_path, "one").put({"a": [np.zeros(1)]})
    assert (tmp_path / "one.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("column", "value"), [("shape", "7"), ("shape", "x"), ("type", "|O"), ("content", b"123"), ("content", 7)]
)
def test_a_damaged_row_is_reported(tmp_path, column, value):
    cache = ResponseCache(tmp_path, "one")
    cache.put({"a": [np.zeros(3)]})
    with closing(sqlite3.connect(cache.path)) as file, file:
        file.execute(f"UPDATE said SET {column} = ?", [value])
    with pytest.raises(InputError, match=r"one\.sqlite: expected a cache of model outputs"):
        cache.get(["a"])


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PortrayalError, match=r"file/one\.sqlite.* cannot be used .*Set PORTRAYAL_CACHE"):
        ResponseCache(tmp_path / "file", "one").put({"a": [np.zeros(1)]})


def test_two_processes_write_at_once(tmp_path):
    code = """
import sys, numpy as np
from pathlib import Path
from portrayal.models.cache import ResponseCache
start = int(sys.argv[2])
texts = [str(number) for number in range(start, start + 60)]
ResponseCache(Path(sys.argv[1]), "one").get_or_compute(texts, lambda b: ([np.array([int(t)])] for t in b), chunk_size=5)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path, str(start)]) for start in (0, 30)]
    assert [process.wait() for process in processes] == [0, 0]
    result = ResponseCache(tmp_path, "one").get(map(str, range(90)))
    assert {int(text): int(array[0]) for text, (array,) in result.items()} == {n: n for n in range(90)}


def test_the_default_cache_folder(monkeypatch):
    monkeypatch.setenv("PORTRAYAL_CACHE", "/chosen")
    assert default_cache_folder() == Path("/chosen")
    monkeypatch.delenv("PORTRAYAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/usual")
    assert default_cache_folder() == Path("/usual/portrayal")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_cache_folder() == Path("/home/someone/.cache/portrayal")
