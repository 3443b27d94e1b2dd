"""What methods ask of a network, worked out again from its own logits."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest

from portrayal.errors import PortrayalError
from tests.mitigate import tiny
from tests.mitigate.tiny import MAN, MASK, PAD, STREAMS, WOMAN

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)
HIDDEN = 0.5  # a share of words


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.fixture(scope="module")
def training_data():
    return tiny.training_data()


@pytest.fixture(scope="module", params=STREAMS)
def network(request):
    return tiny.network(request.param)


def losses(network, task, captioned=4, step=0, sample=None):
    pairs = task.training_data.pairs
    sample = task.sample(pairs, 8, 0, step) if sample is None else sample
    return task.losses(network, pairs, sample, HIDDEN, captioned)


def numbers(*given, **more):
    return {name: float(value.detach()) for name, value in losses(*given, **more).items()}


def drawn(training_data, chosen, step=0, **more):
    """The draws of a step, of these pictures."""
    import torch

    task = tiny.mitigation_task("vanilla", training_data)
    return replace(
        task.sample(training_data.pairs, len(chosen), 0, step), image_index=torch.tensor(chosen), **more
    )


# -- worked out again -----------------------------------------------------------------------------------------------


def swapped(ids):
    """The other text, and whom the text names: 0, 1, or nobody alone."""
    named = {int(one) for one in ids} & {MAN, WOMAN}
    if len(named) != 1:
        return ids, 2
    other = {MAN: WOMAN, WOMAN: MAN}
    made = ids.clone()
    for place, one in enumerate(ids.tolist()):
        made[place] = other.get(one, one)
    return made, 0 if named == {MAN} else 1


def says(network, pixels, ids):
    """(places, words): log-probabilities, one text with one picture."""
    import torch

    with torch.no_grad():
        hidden = network.cross_encode(network.encode_image(pixels[None]), ids[None], ids[None] != PAD)
        return network.word_logits(hidden)[0].double().log_softmax(dim=-1)


def counterparts(network, how, training_data, draws, pixels, group):
    """Other pictures: given, or by the attack that CounterBias measures with."""
    import torch

    from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.models.masked_vlm import TorchMaskedVLM

    if how == "same":
        return pixels
    if how == "given":
        return training_data.counterfactuals[draws.image_index].permute(0, 3, 1, 2).float() / 255
    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    made = pixels.clone()
    for row, whom in enumerate(group):
        if whom < 2:
            was = torch.tensor([whom])
            aim = AttackTarget(BIAS_PROMPT, ("man", "woman"), was, 1 - was)
            made[row] = perturb(
                model, pixels[row : row + 1], aim, Attack.default(norm="linf", steps=5)
            ).pixels[0]
    network.requires_grad_(True)
    return made


def worked_out(network, training_data, draws, captioned, picture, swap, even=False):
    """By name of text: (CE_f, CE_cf, KL), each a mean over its places; where words are learnt evenly, both CE are of
    what the own group's leaning leaves to be learnt."""
    from portrayal.models.masked_vlm.training.losses import batch_pixels, mask_captions, mask_sentences

    pairs = training_data.pairs
    asked = {"sentences": mask_sentences(pairs, draws, HIDDEN)}
    if captioned:
        asked["captions"] = mask_captions(pairs, draws, HIDDEN, captioned)
    whom = {name: [swapped(ids)[1] for ids in one.ids] for name, one in asked.items()}
    group = [
        told if told < 2 else whom["captions"][row] if row < captioned else 2
        for row, told in enumerate(whom["sentences"])
    ]
    pixels = batch_pixels(pairs, draws)
    others = counterparts(network, picture, training_data, draws, pixels, group)
    found = {}
    for name, one in asked.items():
        facts, crossed, apart = [], [], []
        for row, (text, hidden, words) in enumerate(zip(one.ids, one.masked_ids, one.labels, strict=True)):
            first = says(network, pixels[row], hidden)
            twin, told = swapped(text)
            other = twin.clone()
            other[words != -100] = MASK
            second = says(network, others[row], other if swap else hidden)
            lean = training_data.logit_adjustment[told].double() * even
            learnt, crossing = ((one + lean).log_softmax(dim=-1) for one in (first, second))
            for place, word in enumerate(words.tolist()):
                if word == -100:
                    continue
                facts.append(-float(learnt[place, word]))
                if told < 2 and told == group[row] and word not in (MAN, WOMAN):
                    crossed.append(-float(crossing[place, word]))
                    p, q = first[place], second[place]
                    apart.append(float((p.exp() * (p - q)).sum()))
        assert crossed, "a step that shows nothing"
        found[name] = tuple(sum(some) / len(some) for some in (facts, crossed, apart))
    return found


@pytest.mark.parametrize("captioned", [0, 4])
@pytest.mark.parametrize("weight", [0.5, 0.2])
@pytest.mark.parametrize(
    ("name", "picture", "swap"),
    [
        ("fairvlp-l", "same", True),
        ("fairvlp-v", "attack", False),
        ("fairvlp", "attack", True),
        ("image-swap", "given", True),
    ],
)
def test_both_are_told_the_same_by_the_formula(
    network, training_data, name, picture, swap, weight, captioned
):
    """(1 - a) (CE_f + CE_cf) + a KL(P_f || P_cf), groups' words in the first alone."""
    task = tiny.mitigation_task(name, training_data, weight=weight)
    draws = task.sample(training_data.pairs, 8, 0, 4)
    made = numbers(network, task, captioned, sample=draws)
    want = worked_out(network, training_data, draws, captioned, picture, swap)
    for text, (fact, crossed, apart) in want.items():
        assert made[text] == pytest.approx((1 - weight) * fact, rel=1e-4)
        assert made[f"{text}, counterfactual"] == pytest.approx((1 - weight) * crossed, rel=2e-3)
        assert made[f"{text}, KL"] == pytest.approx(weight * apart, rel=5e-3, abs=1e-6)
        assert apart > 1e-5
    usual = numbers(network, tiny.mitigation_task("vanilla", training_data), captioned, sample=draws)
    for name in set(usual) - set(want):  # whose captions are is asked as ever
        assert made[name] == usual[name]
    assert len(made) == 3 * len(want) + len(set(usual) - set(want))


def test_both_pairs_are_learnt_evenly(network, training_data):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import Hyperparameters, find_method

    method = find_method("fairvlp")
    draws = tiny.mitigation_task("fairvlp", training_data).sample(training_data.pairs, 8, 0, 4)
    made, plain = (
        numbers(
            network,
            MitigationTask(replace(method, balanced_word_loss=even), training_data, Hyperparameters()),
            sample=draws,
        )
        for even in (True, False)
    )
    for text, (fact, crossed, apart) in worked_out(
        network, training_data, draws, 4, "attack", True, True
    ).items():
        assert made[text] == pytest.approx(0.5 * fact, rel=1e-4)
        assert made[f"{text}, counterfactual"] == pytest.approx(0.5 * crossed, rel=2e-3)
        assert made[f"{text}, KL"] == pytest.approx(0.5 * apart, rel=5e-3, abs=1e-6)
        assert made[f"{text}, counterfactual"] != pytest.approx(plain[f"{text}, counterfactual"], rel=5e-3)
        assert made[f"{text}, KL"] == plain[f"{text}, KL"]
    ours = find_method("fairvlp-balanced-word-loss")
    assert (ours.image, ours.swap, ours.consistency, ours.balanced_word_loss) == ("varied", True, True, True)


def test_swapped_words_count_as_much_as_those_that_were_said(network, training_data):
    task = tiny.mitigation_task("gender-swap", training_data)
    draws = task.sample(training_data.pairs, 8, 0, 2)
    made = numbers(network, task, sample=draws)
    for text, (fact, crossed, _) in worked_out(network, training_data, draws, 4, "same", True).items():
        assert made[text] == pytest.approx(0.5 * fact, rel=1e-4)
        assert made[f"{text}, counterfactual"] == pytest.approx(0.5 * crossed, rel=1e-4)
    assert not [name for name in made if "KL" in name]


def test_vanilla_is_what_training_was_before(network, training_data):
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    for step in range(3):
        before = BatchSample.for_step(training_data.pairs, 8, 0, step)
        usual = PretrainingTask().losses(network, training_data.pairs, before, HIDDEN, 4)
        made = numbers(network, tiny.mitigation_task("vanilla", training_data), step=step)
        assert made == {name: float(value.detach()) for name, value in usual.items()}


def test_words_that_lean_are_learnt_as_if_they_did_not(torch, network, training_data):
    task = tiny.mitigation_task("balanced-word-loss", training_data)
    draws = task.sample(training_data.pairs, 8, 0, 1)
    from portrayal.models.masked_vlm.training.losses import batch_pixels, mask_sentences

    asked, pixels = (
        mask_sentences(training_data.pairs, draws, HIDDEN),
        batch_pixels(training_data.pairs, draws),
    )
    lost = []
    for row, (text, hidden, words) in enumerate(zip(asked.ids, asked.masked_ids, asked.labels, strict=True)):
        group = swapped(text)[1]
        evened = (
            says(network, pixels[row], hidden) + training_data.logit_adjustment[group].double()
        ).log_softmax(dim=-1)
        lost += [-float(evened[place, word]) for place, word in enumerate(words.tolist()) if word != -100]
    made = numbers(network, task, sample=draws)
    assert made["sentences"] == pytest.approx(sum(lost) / len(lost), rel=1e-4)
    assert (
        made["sentences"]
        != numbers(network, tiny.mitigation_task("vanilla", training_data), step=1)["sentences"]
    )
    assert training_data.logit_adjustment[:2].abs().max() > 0.05


# -- what stays out -------------------------------------------------------------------------------------------------


def hiding(torch, training_data, place):
    """Draws by which one place alone is hidden in every sentence: that of the lowest draw is hidden anyway."""
    draws = drawn(
        training_data, [0, 1, 4, 5], sentence_choice=torch.zeros(4)
    )  # "the man is cooking", "the woman is skate"
    chance = torch.ones_like(draws.sentence_mask_draw)
    chance[:, place] = 0.0
    return replace(draws, sentence_mask_draw=chance)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "gender-swap"])
def test_the_groups_words_are_in_neither(torch, network, training_data, name):
    """With them in, a network would learn not to see whom a picture shows."""
    made = numbers(
        network, tiny.mitigation_task(name, training_data), 0, sample=hiding(torch, training_data, 2)
    )
    assert made["sentences"] > 0.1
    assert made["sentences, counterfactual"] == 0
    assert made.get("sentences, KL", 0) == 0
    made = numbers(
        network, tiny.mitigation_task(name, training_data), 0, sample=hiding(torch, training_data, 4)
    )  # "cooking"
    assert made["sentences, counterfactual"] > 0.1


def test_texts_that_name_nobody_alone_teach_nothing_more(torch, network, training_data):
    nobody = drawn(training_data, [3, 7, 11, 3])
    made = numbers(network, tiny.mitigation_task("fairvlp", training_data), sample=nobody)
    for name in ("sentences", "captions"):
        assert made[name] > 0
        assert made[f"{name}, counterfactual"] == made[f"{name}, KL"] == 0
    # Beside others they do not thin out a mean either.
    some, more = [0, 1, 4, 5], [0, 1, 4, 5, 3, 7]
    both = drawn(training_data, more, sentence_choice=torch.zeros(6))
    alone = replace(both, **{name: getattr(both, name)[:4] for name in vars(both)})
    assert alone.image_index.tolist() == some
    for name in ("sentences, counterfactual", "sentences, KL"):
        few, many = (
            numbers(network, tiny.mitigation_task("fairvlp-l", training_data), 0, sample=one)[name]
            for one in (alone, both)
        )
        assert few == pytest.approx(many, rel=1e-5)


def test_a_caption_that_names_another_than_the_sentence_teaches_nothing_more(torch, network, training_data):
    """The other picture is made for whom the sentence names; told of the caption's, it would be the wrong way round."""
    wrong = torch.where(training_data.captions.group == 2, 2, 1 - training_data.captions.group)
    unlike = replace(training_data, captions=replace(training_data.captions, group=wrong))
    draws = drawn(training_data, [0, 1, 4, 5], sentence_choice=torch.zeros(4))
    made, usual = (
        numbers(network, tiny.mitigation_task("fairvlp", one), sample=draws)
        for one in (unlike, training_data)
    )
    assert made["captions, counterfactual"] == made["captions, KL"] == 0
    assert usual["captions, counterfactual"] > 0
    assert made["sentences, counterfactual"] == usual["sentences, counterfactual"] > 0


def test_the_same_pair_is_told_the_same(torch, network, training_data):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import GIVEN, Hyperparameters, Method

    method = Method("same", "", image=GIVEN, consistency=True)
    same = replace(training_data, counterfactuals=training_data.pairs.images)
    made = numbers(network, MitigationTask(method, same, Hyperparameters()))
    for name in ("sentences", "captions"):
        assert made[f"{name}, KL"] == pytest.approx(0, abs=1e-6)
        assert (
            numbers(network, MitigationTask(method, training_data, Hyperparameters()))[f"{name}, KL"] > 1e-4
        )


def test_a_picture_that_lacks_another_is_not_asked_about(torch, network, training_data):
    """Of pictures of a man and a woman, the woman's was not made: what is lost is what is lost beside one of nobody."""
    lacking = torch.arange(len(training_data.pairs)) != 1
    one, both = (
        drawn(training_data, some, sentence_choice=torch.zeros(len(some))) for some in ([0, 3], [0, 1])
    )
    some = numbers(
        network,
        tiny.mitigation_task("image-swap", replace(training_data, has_counterfactual=lacking)),
        sample=both,
    )
    alone = numbers(network, tiny.mitigation_task("image-swap", training_data), sample=one)
    whole = numbers(network, tiny.mitigation_task("image-swap", training_data), sample=both)
    for name in ("sentences, counterfactual", "sentences, KL"):
        assert some[name] == pytest.approx(alone[name], rel=1e-4)
        assert some[name] != pytest.approx(whole[name], rel=1e-3)
    nobody = torch.zeros(len(training_data.pairs), dtype=torch.bool)
    none = numbers(
        network,
        tiny.mitigation_task("image-swap", replace(training_data, has_counterfactual=nobody)),
        sample=both,
    )
    assert none["sentences, counterfactual"] == none["sentences, KL"] == 0
    assert none["sentences"] == whole["sentences"]


def spied(monkeypatch):
    import portrayal.mitigate.losses as task

    calls = []
    own = task.mlm_logits

    def logits(network, embeddings, hidden, pairs):
        made = own(network, embeddings, hidden, pairs)
        if made.requires_grad:
            made.retain_grad()
        calls.append((embeddings.tokens, hidden, made))
        return made

    monkeypatch.setattr(task, "mlm_logits", logits)
    return calls


@pytest.mark.parametrize(
    ("name", "pictures", "texts"), [("fairvlp-v", 1, 0), ("fairvlp-l", 0, 1), ("fairvlp", 1, 1)]
)
def test_what_a_method_changes_and_what_it_keeps(
    torch, monkeypatch, network, training_data, name, pictures, texts
):
    calls = spied(monkeypatch)
    numbers(network, tiny.mitigation_task(name, training_data), 0, sample=drawn(training_data, [0, 1, 4, 5]))
    (seen, read, _), (other, again, _) = calls
    assert torch.equal(read, again) == (not texts)
    assert torch.equal(seen, other) == (not pictures)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "fairvlp-patches"])
def test_both_passes_learn_from_the_difference(monkeypatch, network, training_data, name):
    calls = spied(monkeypatch)
    made = losses(
        network, tiny.mitigation_task(name, training_data), 0, sample=drawn(training_data, [0, 1, 4, 5])
    )
    made["sentences, KL"].backward()
    assert len(calls) == 2
    for _, _, scores in calls:
        assert scores.grad.abs().max() > 0
    network.zero_grad()


# -- as a task ------------------------------------------------------------------------------------------------------


def test_given_pictures_must_be_given():
    with pytest.raises(PortrayalError, match="'image-swap' needs counterfactual images"):
        tiny.mitigation_task("image-swap", tiny.training_data(counterfactuals=False))


def test_the_digest_tells_methods_doses_and_texts_apart(training_data):
    usual = tiny.mitigation_task("fairvlp", training_data).digest
    assert tiny.mitigation_task("fairvlp", training_data).to("cpu").digest == usual
    assert (
        tiny.mitigation_task("fairvlp", training_data, dropout=0.4).digest == usual
    )  # which it has no use for
    others = replace(training_data.sentences, group=1 - training_data.sentences.group)
    different = [
        tiny.mitigation_task("fairvlp-l", training_data),
        tiny.mitigation_task("fairvlp", training_data, weight=0.4),
        tiny.mitigation_task("fairvlp", training_data, epsilon=0.1),
        tiny.mitigation_task("fairvlp", replace(training_data, sentences=others)),
        tiny.mitigation_task(
            "fairvlp", replace(training_data, prompt=replace(training_data.prompt, words=(WOMAN, MAN)))
        ),
    ]
    assert len({usual, *(one.digest for one in different)}) == 6


def test_a_batch_in_parts_is_gone_through_as_a_whole(torch, training_data):
    from portrayal.models.masked_vlm.training import loop

    task, network = tiny.mitigation_task("fairvlp-l", training_data), tiny.network("dual")
    draws = task.sample(training_data.pairs, 8, 0, 3)
    halves = [replace(draws, **{name: getattr(draws, name)[half] for name in vars(draws)}) for half in (
        slice(0, 4), slice(4, 8))]  # fmt: skip
    want = [numbers(network, task, 0, sample=half) for half in halves]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    recipe = tiny.recipe(gradient_accumulation=2, n_captioned=0, mask_probability=HIDDEN, max_grad_norm=1e9)
    made = loop._step(network, training_data.pairs, recipe, optimizer, task, draws)
    assert set(made) == {"sentences", "sentences, counterfactual", "sentences, KL"}
    for name, value in made.items():
        assert float(value) == pytest.approx((want[0][name] + want[1][name]) / 2, rel=1e-5)
    slopes = [part.grad.clone() for part in network.parameters() if part.grad is not None]
    network.zero_grad()
    sum(sum(losses(network, task, 0, sample=half).values()) for half in halves).div(2).backward()
    again = [part.grad for part in network.parameters() if part.grad is not None]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(slopes, again, strict=True))


def test_fitting_to_searching_asks_for_nothing_else(training_data):
    from portrayal.mitigate.losses import RetrievalTask

    task = RetrievalTask()
    draws = task.sample(training_data.pairs, 8, 0, 0)
    made = task.losses(tiny.network("dual"), training_data.pairs, draws, HIDDEN, 4)
    assert set(made) == {"contrastive", "matching"}
    usual = numbers(tiny.network("dual"), tiny.mitigation_task("vanilla", training_data))
    for name, value in made.items():
        assert float(value.detach()) == pytest.approx(usual[name], rel=1e-5)
