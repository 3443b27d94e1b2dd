"""`portrayal fill-mask` and `portrayal lab train`, as a newcomer would run them, with a model trained for two steps."""

from __future__ import annotations

import csv
import importlib.util
import json

import pytest
from PIL import Image

from portrayal.cli.main import run

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
        reason="the extra 'neural' is not installed",
    ),
]

PROMPT = "a [MASK] is in the picture"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """As `portrayal lab train` makes it."""
    folder = tmp_path_factory.mktemp("trained") / "model"
    arguments = (
        "lab",
        "train",
        "dual",
        "half",
        "--out",
        folder,
        "--scenes",
        "20",
        "--batch-size",
        "16",
        "--steps",
        "2",
        "--device",
        "cpu",
    )
    assert run([str(argument) for argument in arguments]) == 0
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number in range(3):
        Image.new("RGB", (60, 40), (80 * number, 90, 200)).save(folder / f"{number}.png")
    return folder


def call(*arguments) -> int:
    return run([str(argument) for argument in arguments])


def rows(file) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_training_writes_a_model_and_its_card(model, tmp_path, capsys):
    card = json.loads((model / "card.json").read_text())
    assert card["name"] == "lab-dual-half"
    assert card["training_spec"]["scenes"] == 20
    assert card["recipe"]["steps"] == 2
    assert {"group", "activity, full", "prior, absent"} <= set(card["held out"])
    assert call("lab", "train", "dual", "half", "--out", model, "--steps", "2") == 2
    assert "holds files already" in capsys.readouterr().err


def test_candidate_words(model, images, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    other_prompt = "the person is [MASK]"
    assert call("fill-mask", "--model", model, "--images", images, "--text", PROMPT, "--text", other_prompt,
                "--words", "woman,man", "--normalize-over", "candidates", "--out", out) == 0  # fmt: skip
    predictions = rows(out)
    assert [(row["image_id"], row["text"], row["word"]) for row in predictions] == [
        (f"{number}.png", text, word)
        for number in range(3)
        for text in (PROMPT, other_prompt)
        for word in ("woman", "man")
    ]
    for first, second in zip(predictions[::2], predictions[1::2], strict=True):
        assert float(first["probability"]) + float(second["probability"]) == pytest.approx(1, abs=1e-5)
    stdout = capsys.readouterr().out
    assert "12 predictions for 3 images" in stdout


def test_without_words_the_most_probable_are_written(model, images, tmp_path):
    out = tmp_path / "answers.jsonl"
    assert call("fill-mask", "--model", model, "--images", images, "--text", PROMPT, "--out", out) == 0
    predictions = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(predictions) == 15
    probabilities = [row["probability"] for row in predictions[:5]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len({row["word"] for row in predictions[:5]}) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "nobody is here"], "at least one: found 0"),
        (["--text", PROMPT, "--words", "woman,zebra"], "'zebra' is not in the model's vocabulary"),
        (["--text", PROMPT, "--normalize-over", "candidates"], "needs candidate words"),
    ],
)
def test_bad_prompts_are_refused_before_anything_is_written(
    model, images, tmp_path, capsys, arguments, message
):
    out = tmp_path / "answers.csv"
    assert call("fill-mask", "--model", model, "--images", images, "--out", out, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_unreadable_images_are_listed_or_skipped(model, images, tmp_path, capsys):
    folder = tmp_path / "mixed"
    folder.mkdir()
    for file in images.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "broken.jpg").write_text("no picture")
    (folder / "empty.png").touch()
    arguments = [
        "fill-mask",
        "--model",
        model,
        "--images",
        folder,
        "--text",
        PROMPT,
        "--words",
        "man",
        "--out",
    ]
    assert call(*arguments, tmp_path / "a.csv") == 2
    stderr = capsys.readouterr().err
    assert "broken.jpg" in stderr
    assert "empty.png" in stderr
    assert call(*arguments, tmp_path / "b.csv", "--skip-bad") == 0
    assert "2 images were left out" in capsys.readouterr().err
    assert len(rows(tmp_path / "b.csv")) == 3


def test_models_are_listed(capsys):
    assert call("list", "models") == 0
    assert "masked" in capsys.readouterr().out
