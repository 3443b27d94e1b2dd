"""Training: words are masked as specified, losses fall, and a resumed run equals an uninterrupted one."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest

from portrayal.errors import PortrayalError
from tests.models import tiny_masked

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
    reason="the extra 'neural' is not installed",
)

STREAMS = ["single", "dual"]


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.fixture(scope="module")
def pairs():
    """Images of one colour, whose sentence says which: the dark ones show a man, the light ones a woman."""
    import numpy as np

    from portrayal.models.masked_vlm.training import ImageTextPairs
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    words = WordTokenizer(tiny_masked.WORDS, max_length=12)
    images = np.stack([np.full((32, 32, 3), 40 + 160 * (n % 2), dtype=np.uint8) for n in range(16)])
    nouns = [("man", "woman")[n % 2] for n in range(16)]
    captions = [[f"the {noun} is cooking in the picture", f"a {noun} in the picture"] for noun in nouns]
    return ImageTextPairs.from_texts(
        images, captions, [[f"a {noun} is in the picture"] for noun in nouns], words
    )


def network(stream):
    import torch

    from portrayal.models.masked_vlm.single_stream import SingleNetwork

    model = tiny_masked.vilt(0) if stream == "single" else tiny_masked.dual(0, dropout=0.0)
    torch.manual_seed(0)
    return SingleNetwork(model, has_new_match_head=True, square=True) if stream == "single" else model


def config(**changes):
    from portrayal.models.masked_vlm.training import TrainingConfig

    return TrainingConfig(
        **{"steps": 6, "batch_size": 8, "n_captioned": 4, "warmup_steps": 2, "checkpoint_every": 2, **changes}
    )


def same_weights(torch, first, second) -> bool:
    first_weights, second_weights = first.state_dict(), second.state_dict()
    return list(first_weights) == list(second_weights) and all(
        torch.equal(first_weights[name], second_weights[name]) for name in first_weights
    )


# -- masking --------------------------------------------------------------------------------------------------------


def test_words_are_masked_by_their_random_number_and_at_least_one_per_text(torch, pairs):
    from portrayal.models.masked_vlm.training.losses import mask_tokens

    ids = torch.tensor([[2, 5, 6, 8, 3, 0], [2, 5, 7, 3, 0, 0]])  # a man is; a woman
    random_numbers = torch.tensor([[0.0, 0.3, 0.1, 0.9, 0.0, 0.0], [0.0, 0.95, 0.9, 0.0, 0.0, 0.0]])
    unweighted = replace(pairs, masking_weights=torch.ones(len(pairs.masking_weights)))
    masked_ids, labels = mask_tokens(ids, random_numbers, 0.4, unweighted)
    # The first text loses both words below 0.4; the second has none there and loses its lowest. Ends and filler stay.
    assert masked_ids.tolist() == [[2, 4, 4, 8, 3, 0], [2, 5, 4, 3, 0, 0]]
    assert labels.tolist() == [[-100, 5, 6, -100, -100, -100], [-100, -100, 7, -100, -100, -100]]
    # Where a text has no number for its end, its last one is a word.
    masked_ids, _ = mask_tokens(
        ids[:, :4],
        torch.tensor([[0.0, 0.9, 0.9, 0.1]]).repeat(2, 1),
        0.4,
        replace(unweighted, has_end_token=False),
    )
    assert masked_ids[0].tolist() == [2, 5, 6, 4]
    # A word that is everywhere (5, masked with a tenth of the weight) stays where a rarer one would go.
    masking_weights = torch.ones(len(pairs.masking_weights))
    masking_weights[5] = 0.1
    masked_ids, _ = mask_tokens(ids, random_numbers, 0.4, replace(pairs, masking_weights=masking_weights))
    assert masked_ids.tolist() == [[2, 5, 4, 8, 3, 0], [2, 5, 4, 3, 0, 0]]


def test_common_words_are_masked_less(pairs):
    words = dict(zip(tiny_masked.WORDS, pairs.masking_weights[5:].tolist(), strict=True))
    # "a" is one of 8 numbers of a sentence (ends counted), "cooking" one of 17 of captions, half of which have it.
    assert words["a"] == pytest.approx(0.03 / (1 / 8))
    assert words["cooking"] == pytest.approx(0.03 / (1 / 16))
    assert words["skate"] == 1.0
    assert words["man"] == pytest.approx(0.03 / (1 / 16))


def test_the_random_numbers_of_a_step_depend_on_seed_and_step_alone(torch, pairs):
    from portrayal.models.masked_vlm.training.losses import BatchSample

    sample, same_sample = (BatchSample.for_step(pairs, 8, 3, 11) for _ in range(2))
    assert torch.equal(sample.caption_mask_uniform, same_sample.caption_mask_uniform)
    assert not torch.equal(
        sample.caption_mask_uniform, BatchSample.for_step(pairs, 8, 3, 12).caption_mask_uniform
    )
    assert not torch.equal(
        sample.caption_mask_uniform, BatchSample.for_step(pairs, 8, 4, 11).caption_mask_uniform
    )


def test_a_random_negative_is_never_the_image_itself(torch):
    from portrayal.models.masked_vlm.training.losses import _random_negatives

    result = {
        (index, int(_random_negatives(torch.full((4,), number))[index]))
        for index in range(4)
        for number in range(9)
    }
    assert result == {
        (index, other_index) for index in range(4) for other_index in range(4) if index != other_index
    }
    assert _random_negatives(torch.tensor([5])).tolist() == [0]


def test_a_hard_negative_is_never_the_text_of_the_image(torch):
    from portrayal.models.masked_vlm.training.losses import _hard_negatives

    similarity = torch.tensor([[9.0, 5.0, -9.0], [0.0, 9.0, 9.0], [50.0, 0.0, 9.0]])
    for number in (0.0, 0.3, 0.7, 0.999999):
        result = _hard_negatives(similarity, torch.full((3, 1), number)).tolist()
        assert all(negative != index for index, negative in enumerate(result))
    assert _hard_negatives(similarity, torch.full((3, 1), 0.5)).tolist() == [1, 2, 0]  # by far the most alike


# -- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_a_network_learns_what_images_show(torch, pairs, stream):
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.training import train
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    trained = network(stream)
    train(trained, pairs, config(steps=100, learning_rate=4e-3, warmup_steps=10))
    model = TorchMaskedVLM("learner", trained, WordTokenizer(tiny_masked.WORDS, max_length=12))
    dark, light = torch.full((1, 3, 32, 32), 40 / 255), torch.full((1, 3, 32, 32), 200 / 255)
    probabilities = model.word_log_probs(
        torch.cat([dark, light]), "a [MASK] is in the picture", ["man", "woman"]
    ).exp()
    assert probabilities[0, 0] > 0.8
    assert probabilities[1, 1] > 0.8


@pytest.mark.parametrize("stream", STREAMS)
def test_a_resumed_training_equals_an_uninterrupted_one(torch, tmp_path, pairs, stream):
    from portrayal.models.masked_vlm.training import train

    uninterrupted, resumed = network(stream), network(stream)
    train(uninterrupted, pairs, config())
    file = tmp_path / "state.pt"

    import portrayal.models.masked_vlm.training.loop as loop

    save_state = loop._save_state

    def save_and_interrupt(*args):
        save_state(*args)
        raise KeyboardInterrupt

    loop._save_state = save_and_interrupt
    try:
        for _ in range(2):  # killed after step 2 and after step 4
            resumed = network(stream)
            with pytest.raises(KeyboardInterrupt):
                train(resumed, pairs, config(), file)
    finally:
        loop._save_state = save_state
    resumed = network(stream)
    train(resumed, pairs, config(), file)
    assert same_weights(torch, uninterrupted, resumed)
    assert not same_weights(torch, uninterrupted, network(stream))
    other_seed = network(stream)
    train(other_seed, pairs, config(seed=1))
    assert not same_weights(torch, uninterrupted, other_seed)


def test_a_state_of_another_training_is_refused(tmp_path, pairs):
    from portrayal.models.masked_vlm.training import train

    file = tmp_path / "state.pt"
    train(network("dual"), pairs, config(steps=2), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(network("dual"), pairs, config(steps=4), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(network("dual"), replace(pairs, images=pairs.images + 1), config(steps=2), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(tiny_masked.dual(), pairs, config(steps=2), file)
    for content in (b"", b"nothing", file.read_bytes()[:500]):
        file.write_bytes(content)
        with pytest.raises(PortrayalError, match="remove it to start again"):
            train(network("dual"), pairs, config(steps=2), file)


def test_training_with_dropout_is_reproducible(torch, tmp_path, pairs):
    from portrayal.models.masked_vlm.training import train

    def network_with_dropout():
        torch.manual_seed(0)
        return tiny_masked.dual(0, dropout=0.3)

    uninterrupted, interrupted = network_with_dropout(), network_with_dropout()
    train(uninterrupted, pairs, config())
    with pytest.raises(KeyboardInterrupt):
        train(
            interrupted, pairs, config(), tmp_path / "state.pt", report_progress=interrupt
        )  # after step 6 of 6, when all is kept
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["done"] == 6
    without_dropout = network("dual")
    train(without_dropout, pairs, config())
    assert not same_weights(torch, uninterrupted, without_dropout)
    torch.rand(5)  # the global random state does not matter
    repeated = network_with_dropout()
    train(repeated, pairs, config())
    assert same_weights(torch, uninterrupted, repeated)


def interrupt(done, of, losses):
    raise KeyboardInterrupt


def test_warm_up_steps_are_undone(torch, pairs):
    """A CUDA graph is warmed up on the network itself, whose state is restored; a CPU can test that."""
    from portrayal.models.masked_vlm.training import loop
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    warmed_up = network("dual")
    optimizer = torch.optim.AdamW(warmed_up.parameters(), fused=True)
    sample = BatchSample.for_step(pairs, 8, 0, 0)
    for before_steps in (0, 2):
        for _ in range(before_steps):
            loop._step(warmed_up, pairs, config(), optimizer, PretrainingTask(), sample)
        before = loop._clone_state(warmed_up.state_dict()), loop._clone_state(optimizer.state_dict())
        weights = loop._clone_state(before[0])
        for _ in range(3):
            loop._step(warmed_up, pairs, config(), optimizer, PretrainingTask(), sample)
        assert not all(torch.equal(weights[name], value) for name, value in warmed_up.state_dict().items())
        loop._restore_state(warmed_up, optimizer, *before)
        assert all(torch.equal(weights[name], value) for name, value in warmed_up.state_dict().items())
        for number, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                state_before = before[1]["state"].get(number)
                assert torch.equal(
                    value, torch.zeros_like(value) if state_before is None else state_before[name]
                )


def test_bad_settings_are_refused():
    for settings in (
        {"steps": 0},
        {"batch_size": 0},
        {"n_captioned": 1},
        {"n_captioned": -1},
        {"precision": "bf16"},
    ):
        with pytest.raises(PortrayalError):
            config(**settings)
    from portrayal.lab.model_training import TrainingSpec

    for settings in ({"scenes": 1}, {"stream": "triple"}, {"world": "flat"}):
        with pytest.raises(PortrayalError):
            TrainingSpec(**settings)


def test_a_loss_that_is_no_number_ends_the_training(torch, pairs):
    from portrayal.models.masked_vlm.training import train

    broken_network = network("dual")
    broken_network.itm_head.weight.data.fill_(torch.nan)
    with pytest.raises(PortrayalError, match="no longer a number"):
        train(broken_network, pairs, config())


def test_without_captions_there_are_sentences_alone(pairs):
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    losses = PretrainingTask().losses(network("dual"), pairs, BatchSample.for_step(pairs, 8, 0, 0), 0.4, 0)
    assert list(losses) == ["sentences"]
    losses = PretrainingTask().losses(network("dual"), pairs, BatchSample.for_step(pairs, 8, 0, 0), 0.4, 4)
    assert set(losses) == {"sentences", "contrastive", "captions", "matching"}


# -- the lab --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_training_a_lab_model_is_reproducible(tmp_path, stream):
    from portrayal.lab.model_training import TrainingSpec, recipe_for, train_lab_model
    from portrayal.models.masked_vlm import load_masked

    spec = TrainingSpec(stream, "half", scenes=40)
    short_recipe = recipe_for(stream, steps=3, batch_size=8, n_captioned=4, warmup_steps=1)
    cards = [
        train_lab_model(spec, tmp_path / name, short_recipe, evaluation_scenes=300) for name in ("one", "two")
    ]
    assert cards[0] == cards[1]
    assert (tmp_path / "one" / "model.safetensors").read_bytes() == (
        tmp_path / "two" / "model.safetensors"
    ).read_bytes()
    assert cards[0]["name"] == f"lab-{stream}-half"
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == [
        "card.json",
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]
    model = load_masked(str(tmp_path / "one"), "cpu")
    result = model.word_log_probs(
        model.gray_images(1), "a [MASK] is in the picture", ["woman", "man", "person"]
    )
    assert result.shape == (1, 3)


def test_plain_sentences_cover_the_prompts_of_the_models():
    from collections import Counter

    from portrayal.lab import World, make_scenes
    from portrayal.lab.sentences import plain_sentences

    scenes = make_scenes(3000, 5, World(data_bias=0.5))
    sentences = plain_sentences(scenes, 3, 5)
    assert plain_sentences(scenes, 3, 5) == sentences
    counts = Counter()
    for scene, scene_sentences in zip(scenes, sentences, strict=True):
        for text in scene_sentences:
            words = set(text.split())
            words_by_group = {
                "female": {"woman", "women", "girl", "girls"},
                "male": {"man", "men", "boy", "boys"},
            }
            named_groups = [group for group, group_words in words_by_group.items() if group_words & words]
            if (
                "shirt is" in text
                or "place" in text
                or (text.startswith("a photo of a ") and "who" not in text)
            ):
                continue
            true_group = scene.person["gender"]
            counts["none" if not named_groups else "right" if named_groups == [true_group] else "wrong"] += 1
    total = sum(counts.values())
    assert counts["none"] / total == pytest.approx(0.2, abs=0.02)
    assert counts["wrong"] / (counts["wrong"] + counts["right"]) == pytest.approx(0.03, abs=0.01)
    texts = {text for scene_sentences in sentences for text in scene_sentences}
    assert {"the woman is cooking", "a photo of a man who is fishing", "a person is in the picture"} <= texts
    assert any("women are in the picture" in text for text in texts)
