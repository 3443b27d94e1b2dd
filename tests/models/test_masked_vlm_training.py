"""Training: words are hidden as told, losses fall, and a run that was killed ends where an unbroken one does."""

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
    captions = [[f"the {item} is cooking in the picture", f"a {item} in the picture"] for item in nouns]
    return ImageTextPairs.from_texts(
        images, captions, [[f"a {item} is in the picture"] for item in nouns], words
    )


def network(stream):
    import torch

    from portrayal.models.masked_vlm.single import SingleNetwork

    built = tiny_masked.vilt(0) if stream == "single" else tiny_masked.dual(0, dropout=0.0)
    torch.manual_seed(0)
    return SingleNetwork(built, matching=True, square=True) if stream == "single" else built


def config(**more):
    from portrayal.models.masked_vlm.training import TrainingConfig

    return TrainingConfig(
        **{"steps": 6, "batch_size": 8, "n_captioned": 4, "warmup_steps": 2, "checkpoint_every": 2, **more}
    )


def same(torch, item, other) -> bool:
    mine, theirs = item.state_dict(), other.state_dict()
    return list(mine) == list(theirs) and all(torch.equal(mine[name], theirs[name]) for name in mine)


# -- hiding ---------------------------------------------------------------------------------------------------------


def test_words_are_hidden_by_their_draw_and_at_least_one(torch, pairs):
    from portrayal.models.masked_vlm.training.losses import mask_tokens

    ids = torch.tensor([[2, 5, 6, 8, 3, 0], [2, 5, 7, 3, 0, 0]])  # a man is; a woman
    chance = torch.tensor([[0.0, 0.3, 0.1, 0.9, 0.0, 0.0], [0.0, 0.95, 0.9, 0.0, 0.0, 0.0]])
    plain = replace(pairs, masking_weights=torch.ones(len(pairs.masking_weights)))
    hidden, queries = mask_tokens(ids, chance, 0.4, plain)
    # The first text loses both words below 0.4; the second has none there and loses its lowest. Ends and filler stay.
    assert hidden.tolist() == [[2, 4, 4, 8, 3, 0], [2, 5, 4, 3, 0, 0]]
    assert queries.tolist() == [[-100, 5, 6, -100, -100, -100], [-100, -100, 7, -100, -100, -100]]
    # Where a text has no number for its end, its last one is a word.
    hidden, _ = mask_tokens(
        ids[:, :4],
        torch.tensor([[0.0, 0.9, 0.9, 0.1]]).repeat(2, 1),
        0.4,
        replace(plain, has_end_token=False),
    )
    assert hidden[0].tolist() == [2, 5, 6, 4]
    # A word that is everywhere (5, hidden a tenth as willingly) stays where a rarer one would go.
    shy = torch.ones(len(pairs.masking_weights))
    shy[5] = 0.1
    hidden, _ = mask_tokens(ids, chance, 0.4, replace(pairs, masking_weights=shy))
    assert hidden.tolist() == [[2, 5, 4, 8, 3, 0], [2, 5, 4, 3, 0, 0]]


def test_common_words_are_hidden_less(pairs):
    words = dict(zip(tiny_masked.WORDS, pairs.masking_weights[5:].tolist(), strict=True))
    # "a" is one of 8 numbers of a sentence (ends counted), "cooking" one of 17 of captions, half of which have it.
    assert words["a"] == pytest.approx(0.03 / (1 / 8))
    assert words["cooking"] == pytest.approx(0.03 / (1 / 16))
    assert words["skate"] == 1.0
    assert words["man"] == pytest.approx(0.03 / (1 / 16))


def test_the_draws_of_a_step_depend_on_seed_and_step_alone(torch, pairs):
    from portrayal.models.masked_vlm.training.losses import BatchSample

    item, again = (BatchSample.for_step(pairs, 8, 3, 11) for _ in range(2))
    assert torch.equal(item.caption_mask_draw, again.caption_mask_draw)
    assert not torch.equal(item.caption_mask_draw, BatchSample.for_step(pairs, 8, 3, 12).caption_mask_draw)
    assert not torch.equal(item.caption_mask_draw, BatchSample.for_step(pairs, 8, 4, 11).caption_mask_draw)


def test_any_other_is_never_oneself(torch):
    from portrayal.models.masked_vlm.training.losses import _random_negatives

    result = {
        (own, int(_random_negatives(torch.full((4,), draw))[own])) for own in range(4) for draw in range(9)
    }
    assert result == {(own, other) for own in range(4) for other in range(4) if own != other}
    assert _random_negatives(torch.tensor([5])).tolist() == [0]


def test_the_text_of_another_image_is_taken_and_never_its_own(torch):
    from portrayal.models.masked_vlm.training.losses import _hard_negatives

    similarity = torch.tensor([[9.0, 5.0, -9.0], [0.0, 9.0, 9.0], [50.0, 0.0, 9.0]])
    for draw in (0.0, 0.3, 0.7, 0.999999):
        result = _hard_negatives(similarity, torch.full((3, 1), draw)).tolist()
        assert all(other != own for own, other in enumerate(result))
    assert _hard_negatives(similarity, torch.full((3, 1), 0.5)).tolist() == [1, 2, 0]  # by far the most alike


# -- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_a_network_learns_what_images_show(torch, pairs, stream):
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.training import train
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    learner = network(stream)
    train(learner, pairs, config(steps=100, learning_rate=4e-3, warmup_steps=10))
    model = TorchMaskedVLM("learner", learner, WordTokenizer(tiny_masked.WORDS, max_length=12))
    dark, light = torch.full((1, 3, 32, 32), 40 / 255), torch.full((1, 3, 32, 32), 200 / 255)
    chosen = model.word_log_probs(
        torch.cat([dark, light]), "a [MASK] is in the picture", ["man", "woman"]
    ).exp()
    assert chosen[0, 0] > 0.8
    assert chosen[1, 1] > 0.8


@pytest.mark.parametrize("stream", STREAMS)
def test_killed_and_resumed_equals_unbroken(torch, tmp_path, pairs, stream):
    from portrayal.models.masked_vlm.training import train

    full, broken = network(stream), network(stream)
    train(full, pairs, config())
    file = tmp_path / "state.pt"

    import portrayal.models.masked_vlm.training.loop as loop

    cached = loop._save_state

    def keep_and_die(*given):
        cached(*given)
        raise KeyboardInterrupt

    loop._save_state = keep_and_die
    try:
        for _ in range(2):  # killed after step 2 and after step 4
            broken = network(stream)
            with pytest.raises(KeyboardInterrupt):
                train(broken, pairs, config(), file)
    finally:
        loop._save_state = cached
    broken = network(stream)
    train(broken, pairs, config(), file)
    assert same(torch, full, broken)
    assert not same(torch, full, network(stream))
    again = network(stream)
    train(again, pairs, config(seed=1))
    assert not same(torch, full, again)


def test_a_state_of_anything_else_is_refused(tmp_path, pairs):
    from portrayal.models.masked_vlm.training import train

    file = tmp_path / "state.pt"
    train(network("dual"), pairs, config(steps=2), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(network("dual"), pairs, config(steps=4), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(network("dual"), replace(pairs, images=pairs.images + 1), config(steps=2), file)
    with pytest.raises(PortrayalError, match="other settings"):
        train(tiny_masked.dual(), pairs, config(steps=2), file)
    for broken in (b"", b"nothing", file.read_bytes()[:500]):
        file.write_bytes(broken)
        with pytest.raises(PortrayalError, match="remove it to start again"):
            train(network("dual"), pairs, config(steps=2), file)


def test_dropped_at_random_it_still_resumes_exactly(torch, tmp_path, pairs):
    from portrayal.models.masked_vlm.training import train

    def dropping():
        torch.manual_seed(0)
        return tiny_masked.dual(0, dropout=0.3)

    full, broken = dropping(), dropping()
    train(full, pairs, config())
    with pytest.raises(KeyboardInterrupt):
        train(
            broken, pairs, config(), tmp_path / "state.pt", report_progress=interrupt
        )  # after step 6 of 6, when all is kept
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["done"] == 6
    plain = network("dual")
    train(plain, pairs, config())
    assert not same(torch, full, plain)
    torch.rand(5)  # what was drawn elsewhere does not matter
    again = dropping()
    train(again, pairs, config())
    assert same(torch, full, again)


def interrupt(done, of, losses):
    raise KeyboardInterrupt


def test_what_warms_a_device_up_is_undone(torch, pairs):
    """A recorded step is tried on the network itself, which must be as before; a processor can show that."""
    from portrayal.models.masked_vlm.training import loop
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    learner = network("dual")
    optimizer = torch.optim.AdamW(learner.parameters(), fused=True)
    sample = BatchSample.for_step(pairs, 8, 0, 0)
    for before_steps in (0, 2):
        for _ in range(before_steps):
            loop._step(learner, pairs, config(), optimizer, PretrainingTask(), sample)
        before = loop._clone_state(learner.state_dict()), loop._clone_state(optimizer.state_dict())
        cached = loop._clone_state(before[0])
        for _ in range(3):
            loop._step(learner, pairs, config(), optimizer, PretrainingTask(), sample)
        assert not all(torch.equal(cached[name], value) for name, value in learner.state_dict().items())
        loop._restore_state(learner, optimizer, *before)
        assert all(torch.equal(cached[name], value) for name, value in learner.state_dict().items())
        for number, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                known = before[1]["state"].get(number)
                assert torch.equal(value, torch.zeros_like(value) if known is None else known[name])


def test_a_recipe_that_makes_no_sense_is_refused():
    for odd in (
        {"steps": 0},
        {"batch_size": 0},
        {"n_captioned": 1},
        {"n_captioned": -1},
        {"precision": "bf16"},
    ):
        with pytest.raises(PortrayalError):
            config(**odd)
    from portrayal.lab.model_training import TrainingSpec

    for odd in ({"scenes": 1}, {"stream": "triple"}, {"world": "flat"}):
        with pytest.raises(PortrayalError):
            TrainingSpec(**odd)


def test_a_loss_that_is_no_number_ends_the_training(torch, pairs):
    from portrayal.models.masked_vlm.training import train

    spoilt = network("dual")
    spoilt.itm_head.weight.data.fill_(torch.nan)
    with pytest.raises(PortrayalError, match="no longer a number"):
        train(spoilt, pairs, config())


def test_without_captions_there_are_sentences_alone(pairs):
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    losses = PretrainingTask().losses(network("dual"), pairs, BatchSample.for_step(pairs, 8, 0, 0), 0.4, 0)
    assert list(losses) == ["sentences"]
    losses = PretrainingTask().losses(network("dual"), pairs, BatchSample.for_step(pairs, 8, 0, 0), 0.4, 4)
    assert set(losses) == {"sentences", "contrastive", "captions", "matching"}


# -- the lab --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_the_labs_models_are_made_by_one_call_and_come_out_the_same(tmp_path, stream):
    from portrayal.lab.model_training import TrainingSpec, recipe_for, train_lab_model
    from portrayal.models.masked_vlm import load_masked

    lesson = TrainingSpec(stream, "half", scenes=40)
    short = recipe_for(stream, steps=3, batch_size=8, n_captioned=4, warmup_steps=1)
    cards = [
        train_lab_model(lesson, tmp_path / name, short, evaluation_scenes=300) for name in ("one", "two")
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


def test_plain_sentences_ask_what_models_are_asked():
    from collections import Counter

    from portrayal.lab import World, make_scenes
    from portrayal.lab.sentences import plain_sentences

    scenes = make_scenes(3000, 5, World(data_bias=0.5))
    stated = plain_sentences(scenes, 3, 5)
    assert plain_sentences(scenes, 3, 5) == stated
    named = Counter()
    for scene, batch in zip(scenes, stated, strict=True):
        for text in batch:
            words = set(text.split())
            output = {"female": {"woman", "women", "girl", "girls"}, "male": {"man", "men", "boy", "boys"}}
            result = [group for group, own in output.items() if own & words]
            if (
                "shirt is" in text
                or "place" in text
                or (text.startswith("a photo of a ") and "who" not in text)
            ):
                continue
            right = scene.person["gender"]
            named["none" if not result else "right" if result == [right] else "wrong"] += 1
    total = sum(named.values())
    assert named["none"] / total == pytest.approx(0.2, abs=0.02)
    assert named["wrong"] / (named["wrong"] + named["right"]) == pytest.approx(0.03, abs=0.01)
    flat = {text for batch in stated for text in batch}
    assert {"the woman is cooking", "a photo of a man who is fishing", "a person is in the picture"} <= flat
    assert any("women are in the picture" in text for text in flat)
