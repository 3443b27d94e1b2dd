"""One mitigated model in a folder: an interrupted training resumes exactly, and a finished one is read."""

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


def plan(name="vanilla", data="tiny", hyperparameters=None, **more):
    from portrayal.mitigate.methods import Hyperparameters, find_method
    from portrayal.mitigate.training import TrainingPlan

    return TrainingPlan(
        "tiny 0",
        data,
        find_method(name),
        Hyperparameters(steps=2, **(hyperparameters or {})),
        tiny.recipe(**more),
    )


def train_mitigated(*given, **more):
    from portrayal.mitigate.training import train_mitigated

    return train_mitigated(*given, **more)


class Killed(BaseException):
    pass


def killing(monkeypatch, after: int):
    """The machine stops after so many steps."""
    from portrayal.models.masked_vlm.training import loop

    own, done = loop._step, [0]

    def step(*given):
        if done[0] == after:
            raise Killed
        done[0] += 1
        return own(*given)

    monkeypatch.setattr(loop, "_step", step)
    return done


def die(monkeypatch, after: int, *given) -> None:
    with monkeypatch.context() as here:
        killing(here, after)
        with pytest.raises(Killed):
            train_mitigated(*given)


@pytest.mark.parametrize("method", ["vanilla", "fairvlp", "fairvlp-patches", "dropout"])
def test_killed_at_any_step_it_ends_as_if_it_had_not_been(tmp_path, monkeypatch, training_data, method):
    start = tiny.model("dual", 0)
    train_mitigated(start, training_data, plan(method), tmp_path / "whole")
    want = (tmp_path / "whole" / WEIGHTS).read_bytes()
    for first, second in ((0, 3), (1, 1), (3, 2), (4, 0)):
        out = tmp_path / f"{first} {second}"
        for after in (first, second):
            die(monkeypatch, after, start, training_data, plan(method), out)
            assert not (out / "card.json").exists()
        with monkeypatch.context() as here:
            done = killing(here, 99)
            train_mitigated(start, training_data, plan(method), out)
        assert done[0] < 5 or first + second < 4  # what was kept was not done again
        assert (out / WEIGHTS).read_bytes() == want
        assert sorted(file.name for file in out.iterdir()) == [
            "card.json", "config.json", WEIGHTS, "vocab.txt",
        ]  # fmt: skip


def test_methods_end_in_models_of_their_own(tmp_path, training_data):
    from portrayal.mitigate.methods import METHODS

    made = set()
    start = tiny.model("dual", 0)
    before = [weight.clone() for weight in start.network.parameters()]
    for name in METHODS:
        train_mitigated(start, training_data, plan(name, steps=3), tmp_path / name)
        made.add((tmp_path / name / WEIGHTS).read_bytes())
        card = json.loads((tmp_path / name / "card.json").read_text())
        assert card["method"] == name
        assert card["texts"] == {"have a counterpart": 33, "name no single group": 15}
    assert len(made) == len(METHODS)
    assert all(one.equal(now) for one, now in zip(before, start.network.parameters(), strict=True))


def test_the_same_seed_gives_the_same_model_and_another_another(tmp_path, training_data):
    start = tiny.model("single", 0)
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        train_mitigated(start, training_data, plan("fairvlp-varied", steps=2, seed=seed), tmp_path / name)
    one, again, other = ((tmp_path / name / WEIGHTS).read_bytes() for name in ("one", "again", "other"))
    assert one == again != other


def test_what_is_finished_is_read_and_not_trained_again(torch, tmp_path, monkeypatch, training_data):
    start = tiny.model("dual", 0)
    first = train_mitigated(start, training_data, plan("fairvlp-l"), tmp_path / "made")
    with monkeypatch.context() as here:
        killing(here, 0)
        again = train_mitigated(start, training_data, plan("fairvlp-l"), tmp_path / "made")
        # Neither settings of the machine nor unused hyperparameters make it another model.
        for same in (
            plan("fairvlp-l", precision="bfloat16"),
            plan("fairvlp-l", hyperparameters={"dropout": 0.7}),
        ):
            train_mitigated(start, training_data, same, tmp_path / "made")
    pixels = torch.rand(2, 3, 32, 32)
    ask = "a [MASK] is in the picture"
    assert torch.allclose(first.log_probs(pixels, ask), again.log_probs(pixels, ask), atol=1e-5)


@pytest.mark.parametrize(
    "other",
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
def test_a_folder_of_other_settings_is_refused(tmp_path, training_data, other):
    start = tiny.model("dual", 0)
    usual = {"name": "fairvlp-l"}
    train_mitigated(start, training_data, plan(**usual), tmp_path / "made")
    with pytest.raises(PortrayalError, match="holds a model of other settings or data"):
        train_mitigated(start, training_data, plan(**{**usual, **other}), tmp_path / "made")


def test_a_training_of_other_texts_is_not_gone_on_with(tmp_path, monkeypatch, training_data):
    """Were only pictures and texts compared, another lexicon would go on where this one was."""
    start = tiny.model("dual", 0)
    die(monkeypatch, 3, start, training_data, plan("fairvlp-l"), tmp_path / "made")
    other = replace(
        training_data, sentences=replace(training_data.sentences, group=1 - training_data.sentences.group)
    )
    with pytest.raises(PortrayalError, match="checkpoint of a training with other settings"):
        train_mitigated(start, other, plan("fairvlp-l"), tmp_path / "made")


@pytest.mark.parametrize("file", ["thesis.txt", "config.json"])
def test_what_is_no_remedy_is_not_written_over(tmp_path, training_data, file):
    """Such as the folder of the model that it begins with."""
    (tmp_path / file).write_text("mine")
    with pytest.raises(PortrayalError, match="holds files that are not of a mitigated model"):
        train_mitigated(tiny.model("dual", 0), training_data, plan(), tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [file]
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(PortrayalError, match=r"card\.json: expected the card of a model"):
        train_mitigated(tiny.model("dual", 0), training_data, plan(), tmp_path)


def test_a_loss_that_is_no_number_is_a_sentence(torch, tmp_path, training_data):
    spoilt = tiny.model("dual", 0)
    spoilt.network.itm_head.weight.data.fill_(torch.nan)
    with pytest.raises(PortrayalError, match=r"at step 2: the loss '.*' is no longer a number"):
        train_mitigated(spoilt, training_data, plan("fairvlp"), tmp_path / "made")
    assert not (tmp_path / "made" / "card.json").exists()
    assert not (tmp_path / "made" / "training.pt").exists()


def test_a_batch_that_does_not_fit_is_a_sentence(torch, tmp_path, monkeypatch, training_data):
    def full(*given):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("portrayal.models.masked_vlm.training.loop._step", full)
    with pytest.raises(
        PortrayalError, match=r"A batch of 8 in 2 parts does not fit .* more gradient accumulation"
    ):
        train_mitigated(
            tiny.model("dual", 0), training_data, plan(gradient_accumulation=2), tmp_path / "made"
        )


@pytest.mark.parametrize("stream", tiny.STREAMS)
def test_more_is_dropped_wherever_a_network_drops_anything(torch, training_data, stream):
    from portrayal.mitigate.training import set_dropout

    network = tiny.network(stream, 0.2, dropout=0.1)
    task = tiny.mitigation_task("vanilla", training_data)
    sample = task.sample(training_data.pairs, 8, 0, 0)

    def lost(learning, share=None):
        if share is not None:
            set_dropout(network, share)
        network.train(learning)
        torch.manual_seed(0)
        return float(task.losses(network, training_data.pairs, sample, 0.4, 0)["sentences"].detach())

    plain = lost(False)
    before, after, none = lost(True), lost(True, 0.5), lost(True, 0.0)
    assert len({plain, before, after}) == 3
    assert none == pytest.approx(plain, rel=1e-4)  # so nothing is dropped that does not follow


def test_a_remedied_model_drops_what_it_did_before(tmp_path, training_data):
    made = train_mitigated(
        tiny.model("dual", 0, dropout=0.1), training_data, plan("dropout", steps=1), tmp_path / "made"
    )
    assert made.network.shape.dropout == 0.1
    assert json.loads((tmp_path / "made" / "card.json").read_text())["hyperparameters"] == {"dropout": 0.2}


def test_progress_is_told(tmp_path, training_data):
    told = []
    train_mitigated(
        tiny.model("dual", 0),
        training_data,
        plan(),
        tmp_path / "made",
        report_progress=lambda *given: told.append(given),
    )
    assert told[-1] == (5, 5)


def test_fitted_to_searching_is_a_copy(torch, training_data):
    from portrayal.mitigate.training import fine_tune_retrieval

    start = tiny.model("dual", 0)
    before = {name: value.clone() for name, value in start.network.state_dict().items()}
    made = fine_tune_retrieval(start, training_data.pairs, tiny.recipe(n_captioned=2, steps=2))
    now = start.network.state_dict()
    assert all(torch.equal(before[name], now[name]) for name in before)
    changed = {
        name for name, value in made.network.state_dict().items() if not torch.equal(before[name], value)
    }
    assert {"vision_proj.weight", "itm_head.weight"} <= changed
    assert "text_encoder.cls.predictions.transform.dense.weight" not in changed  # no words are asked for


# -- word pieces ----------------------------------------------------------------------------------------------------


def pieced(kind, folder):
    """A tiny ALBEF, or a ViLT as Transformers has it, with the word pieces of a small vocab.txt."""
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single import SingleNetwork
    from portrayal.models.masked_vlm.tokenizers import load_bert_tokenizer
    from portrayal.models.masked_vlm.vocabulary import AlbefTokenizer, TransformersTokenizer

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(tiny_masked.PIECES) + "\n")
    tokenizer = load_bert_tokenizer(str(folder))
    if kind == "albef":
        return TorchMaskedVLM("albef", tiny_masked.dual(), AlbefTokenizer(tokenizer, 20))
    return TorchMaskedVLM("vilt", SingleNetwork(tiny_masked.vilt()), TransformersTokenizer(tokenizer, 20))


@pytest.mark.parametrize("kind", ["albef", "vilt"])
def test_a_model_of_word_pieces_is_saved_and_opened_again(torch, tmp_path, kind):
    from portrayal.models.masked_vlm import load_masked
    from portrayal.models.masked_vlm.folder import load_model, save_model

    model = pieced(kind, tmp_path / "pieces")
    for weight in model.network.parameters():
        weight.data = weight.data.half().float()  # as they are kept
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
    found = load_masked(str(tmp_path / "saved"), "cpu")
    pixels = torch.rand(2, 3, 32, 32)
    ask, words = "the man is [MASK]", ["cooking", "skateboard"]  # one piece, and two
    found_now, now = (one.word_log_probs(pixels, ask, words) for one in (found, model))
    assert torch.allclose(found_now, now, atol=1e-5)


@pytest.mark.parametrize("kind", ["albef", "vilt"])
@pytest.mark.parametrize("method", ["fairvlp", "dropout"])
def test_a_model_of_word_pieces_is_remedied(tmp_path, kind, method):
    from portrayal.lexicon import load_lexicon
    from portrayal.mitigate.training_data import GroupPair, TrainingData
    from portrayal.models.masked_vlm import load_masked

    model = pieced(kind, tmp_path / "pieces")
    said = [tiny.texts(number) for number in range(tiny.MANY)]
    made = TrainingData.from_texts(
        tiny.images(), [one for one, _ in said], [one for _, one in said], model.tokenizer,
        GroupPair.of(load_lexicon("gender")),
    )  # fmt: skip
    assert made.counts["have a counterpart"] == 33
    after = train_mitigated(model, made, plan(method, steps=2), tmp_path / "made")
    assert after.word_log_probs(after.gray_images(1), "the man is [MASK]", ["cooking"]).isfinite().all()
    assert load_masked(str(tmp_path / "made"), "cpu").name == "made"
