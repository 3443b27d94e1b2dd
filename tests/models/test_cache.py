"""What models said, kept on disk: asked once, continued after a break, one file a model, broken files reported."""

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
    """Makes the length of a text and its letters; notes what it was asked, and can break down."""

    def __init__(self, breaks_at: int | None = None):
        self.asked: list[list[str]] = []
        self.breaks_at = breaks_at

    def __call__(self, texts: list[str]):
        if len(self.asked) == self.breaks_at:
            raise KeyboardInterrupt
        self.asked.append(texts)
        for text in texts:
            yield np.array([len(text) / 3]), np.array([[ord(letter) for letter in text]], dtype=np.int64)


def test_a_second_run_asks_nothing(tmp_path):
    texts = ["b", "a", "", "b", "né 😀"]
    first, second = Model(), Model()
    result = ResponseCache(tmp_path, "one").get_or_compute(texts, first)
    again = ResponseCache(tmp_path, "one").get_or_compute(texts, second)
    assert first.asked == [["", "a", "b", "né 😀"]]
    assert second.asked == []
    for text, built, cached in zip(texts, result, again, strict=True):
        assert built[0].tolist() == [len(text) / 3]
        assert built[1].tolist() == [[ord(letter) for letter in text]]
        for item, other in zip(built, cached, strict=True):
            assert (item.dtype, item.shape, item.tobytes()) == (other.dtype, other.shape, other.tobytes())


def test_nothing_asked_makes_no_file(tmp_path):
    assert ResponseCache(tmp_path / "new", "one").get_or_compute([], Model()) == []
    assert not (tmp_path / "new").exists()


def test_a_run_that_broke_off_goes_on(tmp_path):
    texts = [f"text {number}" for number in range(9)]
    cached = ResponseCache(tmp_path, "one")
    with pytest.raises(KeyboardInterrupt):
        cached.get_or_compute(texts, Model(breaks_at=2), chunk=3)
    assert sorted(cached.get(texts)) == texts[:6]
    rest = Model()
    assert len(cached.get_or_compute(texts, rest, chunk=3)) == 9
    assert rest.asked == [texts[6:]]


def test_the_order_of_texts_does_not_matter_to_the_model(tmp_path):
    texts = [f"text {number}" for number in range(9)]
    item, other = Model(), Model()
    ResponseCache(tmp_path, "one").get_or_compute(texts, item, chunk=4)
    ResponseCache(tmp_path, "other").get_or_compute(texts[::-1], other, chunk=4)
    assert item.asked == other.asked


def test_models_do_not_share(tmp_path):
    ResponseCache(tmp_path, "one").put({"a": [np.array([1.0])]})
    assert ResponseCache(tmp_path, "other").get(["a"]) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["one.sqlite"]


def test_more_texts_than_one_statement_takes(tmp_path):
    cached = ResponseCache(tmp_path, "one")
    cached.put({str(number): [np.array([number])] for number in range(1_700)})
    result = cached.get(map(str, range(-5, 1_705)))
    assert {int(text): int(item[0]) for text, (item,) in result.items()} == {n: n for n in range(1_700)}


def test_what_was_known_is_replaced_as_a_whole(tmp_path):
    cached = ResponseCache(tmp_path, "one")
    cached.put({"a": [np.array([1.0]), np.array([2.0])]})
    cached.put({"a": [np.array([3.0])]})
    assert [item.tolist() for item in cached.get(["a"])["a"]] == [[3.0]]


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
def test_every_digit_is_kept(tmp_path_factory, text, built):
    cached = ResponseCache(tmp_path_factory.mktemp("kept"), "one")
    cached.put({text: built})
    for item, other in zip(built, cached.get([text])[text], strict=True):
        np.testing.assert_array_equal(item.astype(item.dtype.newbyteorder("=")), other, strict=True)
        other += 1  # an array like any other, which can be written to


def test_objects_are_not_kept(tmp_path):
    with pytest.raises(ValueError, match="object"):
        ResponseCache(tmp_path, "one").put({"a": [np.array([{}])]})


def test_a_model_that_answers_too_little_is_noticed(tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        ResponseCache(tmp_path, "one").get_or_compute(["a", "b"], lambda texts: [[np.zeros(1)]])
    assert ResponseCache(tmp_path, "one").get(["a"]) == {}


def test_a_broken_file_is_named_and_left_as_it_is(tmp_path):
    path = tmp_path / "one.sqlite"
    path.write_bytes(b"something else altogether" * 100)
    before = path.read_bytes()
    cached = ResponseCache(tmp_path, "one")
    for use in (lambda: cached.get(["a"]), lambda: cached.put({"a": [np.zeros(1)]})):
        with pytest.raises(
            InputError, match=r"one\.sqlite: expected a cache of model outputs .*not a database"
        ):
            use()
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
    cached = ResponseCache(tmp_path, "one")
    cached.put({"a": [np.zeros(3)]})
    with closing(sqlite3.connect(cached.path)) as file, file:
        file.execute(f"UPDATE said SET {column} = ?", [value])
    with pytest.raises(InputError, match=r"one\.sqlite: expected a cache of model outputs"):
        cached.get(["a"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
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
ResponseCache(Path(sys.argv[1]), "one").get_or_compute(texts, lambda b: ([np.array([int(t)])] for t in b), chunk=5)
"""
    started = [subprocess.Popen([sys.executable, "-c", code, tmp_path, str(start)]) for start in (0, 30)]
    assert [process.wait() for process in started] == [0, 0]
    result = ResponseCache(tmp_path, "one").get(map(str, range(90)))
    assert {int(text): int(item[0]) for text, (item,) in result.items()} == {n: n for n in range(90)}


def test_where_things_are_kept(monkeypatch):
    monkeypatch.setenv("PORTRAYAL_CACHE", "/chosen")
    assert default_cache_folder() == Path("/chosen")
    monkeypatch.delenv("PORTRAYAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/usual")
    assert default_cache_folder() == Path("/usual/portrayal")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_cache_folder() == Path("/home/someone/.cache/portrayal")
