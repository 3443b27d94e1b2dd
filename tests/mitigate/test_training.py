"""One mitigated model in a folder: an interrupted training resumes exactly, and a finished one is loaded."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import pytest

from portrayal.errors import PortrayalError
from tests.mitigate import tiny
from tests.models import tiny_masked

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
    reason="the extra 'neural' is not installed",
)
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.fixture(scope="module")
def training_data():
    return tiny.training_data()


def plan(name="vanilla", data="tiny", hyperparameters=None, **options):
    from portrayal.mitigate.methods import Hyperparameters, find_method
    from portrayal.mitigate.training import TrainingPlan

    return TrainingPlan(
        "tiny 0",
        data,
        find_method(name),
        Hyperparameters(steps=2, **(hyperparameters or {})),
        tiny.recipe(**options),
    )


def train_mitigated(*arguments, **options):
    from portrayal.mitigate.training import train_mitigated

    return train_mitigated(*arguments, **options)


class Killed(BaseException):
    pass


def kill_after(monkeypatch, after: int):
    """Raise `Killed` after so many training steps; return the counter of steps."""
    from portrayal.models.masked_vlm.training import loop

    original_step, n_steps = loop._step, [0]

    def step(*arguments):
        if n_steps[0] == after:
            raise Killed
        n_steps[0] += 1
        return original_step(*arguments)

    monkeypatch.setattr(loop, "_step", step)
    return n_steps


def train_until_killed(monkeypatch, after: int, *arguments) -> None:
    with monkeypatch.context() as context:
        kill_after(context, after)
        with pytest.raises(Killed):
            train_mitigated(*arguments)


@pytest.mark.parametrize("method", ["vanilla", "fairvlp", "fairvlp-patches", "dropout"])
def test_training_killed_at_any_step_resumes_to_the_same_weights(
    tmp_path, monkeypatch, training_data, method
):
    start = tiny.model("dual", 0)
    train_mitigated(start, training_data, plan(method), tmp_path / "whole")
    expected = (tmp_path / "whole" / WEIGHTS).read_bytes()
    for first, second in ((0, 3), (1, 1), (3, 2), (4, 0)):
        out = tmp_path / f"{first} {second}"
        for after in (first, second):
            train_until_killed(monkeypatch, after, start, training_data, plan(method), out)
            assert not (out / "card.json").exists()
        with monkeypatch.context() as context:
            n_steps = kill_after(context, 99)
            train_mitigated(start, training_data, plan(method), out)
        assert n_steps[0] < 5 or first + second < 4  # checkpointed steps were not repeated
        assert (out / WEIGHTS).read_bytes() == expected
        assert sorted(file.name for file in out.iterdir()) == [
            "card.json", "config.json", WEIGHTS, "vocab.txt",
        ]  # fmt: skip


def test_each_method_trains_a_different_model(tmp_path, training_data):
    from portrayal.mitigate.methods import METHODS

    saved_weights = set()
    start = tiny.model("dual", 0)
    initial_weights = [weight.clone() for weight in start.network.parameters()]
    for name in METHODS:
        train_mitigated(start, training_data, plan(name, steps=3), tmp_path / name)
        saved_weights.add((tmp_path / name / WEIGHTS).read_bytes())
        card = json.loads((tmp_path / name / "card.json").read_text())
        assert card["method"] == name
        assert card["texts"] == {"have a counterpart": 33, "name no single group": 15}
    assert len(saved_weights) == len(METHODS)
    assert all(
        initial.equal(current)
        for initial, current in zip(initial_weights, start.network.parameters(), strict=True)
    )


def test_the_seed_determines_the_model(tmp_path, training_data):
    start = tiny.model("single", 0)
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        train_mitigated(start, training_data, plan("fairvlp-varied", steps=2, seed=seed), tmp_path / name)
    weights, repeated_weights, other_weights = (
        (tmp_path / name / WEIGHTS).read_bytes() for name in ("one", "again", "other")
    )
    assert weights == repeated_weights != other_weights


def test_a_finished_model_is_loaded_and_not_trained_again(torch, tmp_path, monkeypatch, training_data):
    start = tiny.model("dual", 0)
    trained = train_mitigated(start, training_data, plan("fairvlp-l"), tmp_path / "made")
    with monkeypatch.context() as context:
        kill_after(context, 0)
        loaded = train_mitigated(start, training_data, plan("fairvlp-l"), tmp_path / "made")
        # Neither settings of the machine nor unused hyperparameters make it another model.
        for equivalent_plan in (
            plan("fairvlp-l", precision="bfloat16"),
            plan("fairvlp-l", hyperparameters={"dropout": 0.7}),
        ):
            train_mitigated(start, training_data, equivalent_plan, tmp_path / "made")
    pixels = torch.rand(2, 3, 32, 32)
    prompt = "a [MASK] is in the picture"
    assert torch.allclose(trained.log_probs(pixels, prompt), loaded.log_probs(pixels, prompt), atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "gender-swap"},
        {"data": "other"},
        {"hyperparameters": {"weight": 0.3}},
        {"steps": 6},
        {"seed": 1},
        {"batch_size": 6},
        {"learning_rate": 2e-3},
    ],
)
def test_a_folder_of_other_settings_is_refused(tmp_path, training_data, change):
    start = tiny.model("dual", 0)
    settings = {"name": "fairvlp-l"}
    train_mitigated(start, training_data, plan(**settings), tmp_path / "made")
    with pytest.raises(PortrayalError, match="holds a model of other settings or data"):
        train_mitigated(start, training_data, plan(**{**settings, **change}), tmp_path / "made")


def test_a_training_with_other_texts_is_not_resumed(tmp_path, monkeypatch, training_data):
    """Images and texts are the same; the groups differ, as with another lexicon."""
    start = tiny.model("dual", 0)
    train_until_killed(monkeypatch, 3, start, training_data, plan("fairvlp-l"), tmp_path / "made")
    other_data = replace(
        training_data, sentences=replace(training_data.sentences, group=1 - training_data.sentences.group)
    )
    with pytest.raises(PortrayalError, match="checkpoint of a training with other settings"):
        train_mitigated(start, other_data, plan("fairvlp-l"), tmp_path / "made")


@pytest.mark.parametrize("file", ["thesis.txt", "config.json"])
def test_folders_without_a_mitigated_model_are_not_overwritten(tmp_path, training_data, file):
    """For example the folder of the model that training starts from."""
    (tmp_path / file).write_text("mine")
    with pytest.raises(PortrayalError, match="holds files that are not of a mitigated model"):
        train_mitigated(tiny.model("dual", 0), training_data, plan(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(PortrayalError, match=r"card\.json: expected the card of a model"):
        train_mitigated(tiny.model("dual", 0), training_data, plan(), tmp_path)


def test_a_nan_loss_raises_a_clear_error(torch, tmp_path, training_data):
    nan_model = tiny.model("dual", 0)
    nan_model.network.itm_head.weight.data.fill_(torch.nan)
    with pytest.raises(PortrayalError, match=r"at step 2: the loss '.*' is no longer a number"):
        train_mitigated(nan_model, training_data, plan("fairvlp"), tmp_path / "made")
    assert not (tmp_path / "made" / "card.json").exists()
    assert not (tmp_path / "made" / "training.pt").exists()


def test_a_batch_that_does_not_fit_raises_a_clear_error(torch, tmp_path, monkeypatch, training_data):
    def raise_out_of_memory(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("portrayal.models.masked_vlm.training.loop._step", raise_out_of_memory)
    with pytest.raises(
        PortrayalError, match=r"A batch of 8 in 2 parts does not fit .* more gradient accumulation"
    ):
        train_mitigated(
            tiny.model("dual", 0), training_data, plan(gradient_accumulation=2), tmp_path / "made"
        )


@pytest.mark.parametrize("stream", tiny.STREAMS)
def test_set_dropout_changes_every_dropout_layer(torch, training_data, stream):
    from portrayal.mitigate.training import set_dropout

    network = tiny.network(stream, 0.2, dropout=0.1)
    task = tiny.mitigation_task("vanilla", training_data)
    sample = task.sample(training_data.pairs, 8, 0, 0)

    def sentence_loss(training, dropout=None):
        if dropout is not None:
            set_dropout(network, dropout)
        network.train(training)
        torch.manual_seed(0)
        return float(task.losses(network, training_data.pairs, sample, 0.4, 0)["sentences"].detach())

    evaluation_loss = sentence_loss(False)
    original_loss, changed_loss, loss_without_dropout = (
        sentence_loss(True),
        sentence_loss(True, 0.5),
        sentence_loss(True, 0.0),
    )
    assert len({evaluation_loss, original_loss, changed_loss}) == 3
    assert loss_without_dropout == pytest.approx(evaluation_loss, rel=1e-4)  # so no dropout layer is left out


def test_a_mitigated_model_keeps_its_original_dropout(tmp_path, training_data):
    mitigated = train_mitigated(
        tiny.model("dual", 0, dropout=0.1), training_data, plan("dropout", steps=1), tmp_path / "made"
    )
    assert mitigated.network.shape.dropout == 0.1
    assert json.loads((tmp_path / "made" / "card.json").read_text())["hyperparameters"] == {"dropout": 0.2}


def test_progress_is_reported(tmp_path, training_data):
    progress_calls = []
    train_mitigated(
        tiny.model("dual", 0),
        training_data,
        plan(),
        tmp_path / "made",
        report_progress=lambda *progress: progress_calls.append(progress),
    )
    assert progress_calls[-1] == (5, 5)


def test_fine_tuning_for_retrieval_returns_a_copy(torch, training_data):
    from portrayal.mitigate.training import fine_tune_retrieval

    start = tiny.model("dual", 0)
    before = {name: weight.clone() for name, weight in start.network.state_dict().items()}
    fine_tuned = fine_tune_retrieval(start, training_data.pairs, tiny.recipe(n_captioned=2, steps=2))
    now = start.network.state_dict()
    assert all(torch.equal(before[name], now[name]) for name in before)
    changed = {
        name
        for name, weight in fine_tuned.network.state_dict().items()
        if not torch.equal(before[name], weight)
    }
    assert {"vision_proj.weight", "itm_head.weight"} <= changed
    # Retrieval does not train the prediction of masked words.
    assert "text_encoder.cls.predictions.transform.dense.weight" not in changed


# -- word pieces ----------------------------------------------------------------------------------------------------


def word_piece_model(kind, folder):
    """A tiny ALBEF, or a ViLT as in Transformers, with the word pieces of a small vocab.txt."""
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single_stream import SingleNetwork
    from portrayal.models.masked_vlm.tokenizers import load_bert_tokenizer
    from portrayal.models.masked_vlm.vocabulary import AlbefTokenizer, TransformersTokenizer

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(tiny_masked.PIECES) + "\n")
    tokenizer = load_bert_tokenizer(str(folder))
    if kind == "albef":
        return TorchMaskedVLM("albef", tiny_masked.dual(), AlbefTokenizer(tokenizer, 20))
    return TorchMaskedVLM("vilt", SingleNetwork(tiny_masked.vilt()), TransformersTokenizer(tokenizer, 20))


@pytest.mark.parametrize("kind", ["albef", "vilt"])
def test_a_model_of_word_pieces_is_saved_and_loaded(torch, tmp_path, kind):
    from portrayal.models.masked_vlm import load_masked
    from portrayal.models.masked_vlm.folder import load_model, save_model

    model = word_piece_model(kind, tmp_path / "pieces")
    for weight in model.network.parameters():
        weight.data = weight.data.half().float()  # as they are saved
    save_model(tmp_path / "saved", model.network, model.tokenizer)
    network, tokenizer = load_model(tmp_path / "saved")
    assert type(tokenizer) is type(model.tokenizer)
    assert (tokenizer.max_length, tokenizer.has_end_token, len(tokenizer)) == (
        20,
        kind == "vilt",
        len(tiny_masked.PIECES),
    )
    for text in ("A man is cooking.", "a skateboard, in the [MASK]", "the woman's fish!"):
        assert tokenizer.encode(text) == model.tokenizer.encode(text)
    assert (network.has_match_head, network.square) == (model.network.has_match_head, model.network.square)
    loaded = load_masked(str(tmp_path / "saved"), "cpu")
    pixels = torch.rand(2, 3, 32, 32)
    prompt, words = "the man is [MASK]", ["cooking", "skateboard"]  # one piece, and two
    loaded_log_probs, expected_log_probs = (
        masked_model.word_log_probs(pixels, prompt, words) for masked_model in (loaded, model)
    )
    assert torch.allclose(loaded_log_probs, expected_log_probs, atol=1e-5)


@pytest.mark.parametrize("kind", ["albef", "vilt"])
@pytest.mark.parametrize("method", ["fairvlp", "dropout"])
def test_a_model_of_word_pieces_is_mitigated(tmp_path, kind, method):
    from portrayal.lexicon import load_lexicon
    from portrayal.mitigate.training_data import GroupPair, TrainingData
    from portrayal.models.masked_vlm import load_masked

    model = word_piece_model(kind, tmp_path / "pieces")
    image_texts = [tiny.texts(index) for index in range(tiny.N_IMAGES)]
    training_data = TrainingData.from_texts(
        tiny.images(), [captions for captions, _ in image_texts], [sentences for _, sentences in image_texts],
        model.tokenizer, GroupPair.of(load_lexicon("gender")),
    )  # fmt: skip
    assert training_data.counts["have a counterpart"] == 33
    mitigated = train_mitigated(model, training_data, plan(method, steps=2), tmp_path / "made")
    assert (
        mitigated.word_log_probs(mitigated.gray_images(1), "the man is [MASK]", ["cooking"]).isfinite().all()
    )
    assert load_masked(str(tmp_path / "made"), "cpu").name == "made"
