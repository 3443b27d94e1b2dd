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
def material():
    return tiny.material()


@pytest.fixture(scope="module", params=STREAMS)
def network(request):
    return tiny.network(request.param)


def losses(network, task, captioned=4, step=0, draws=None):
    pairs = task.material.pairs
    draws = task.draws(pairs, 8, 0, step) if draws is None else draws
    return task.losses(network, pairs, draws, HIDDEN, captioned)


def numbers(*given, **more):
    return {name: float(value.detach()) for name, value in losses(*given, **more).items()}


def drawn(material, chosen, step=0, **more):
    """The draws of a step, of these pictures."""
    import torch

    task = tiny.remedy("vanilla", material)
    return replace(task.draws(material.pairs, len(chosen), 0, step), chosen=torch.tensor(chosen), **more)


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
        hidden = network.fuse(network.look(pixels[None]), ids[None], ids[None] != PAD)
        return network.words(hidden)[0].double().log_softmax(dim=-1)


def counterparts(network, how, material, draws, pixels, group):
    """Other pictures: given, or by the attack that CounterBias measures with."""
    import torch

    from portrayal.counterfactual.attack import Aim, Attack, perturb
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.models.masked_vlm import MaskedModel

    if how == "same":
        return pixels
    if how == "given":
        return material.counterfactuals[draws.chosen].permute(0, 3, 1, 2).float() / 255
    model = MaskedModel("m", network, tiny.reader())
    made = pixels.clone()
    for row, whom in enumerate(group):
        if whom < 2:
            was = torch.tensor([whom])
            aim = Aim(BIAS_PROMPT, ("man", "woman"), was, 1 - was)
            made[row] = perturb(model, pixels[row : row + 1], aim, Attack.usual(norm="linf", steps=5)).pixels[
                0
            ]
    network.requires_grad_(True)
    return made


def worked_out(network, material, draws, captioned, picture, swap, even=False):
    """By name of text: (CE_f, CE_cf, KL), each a mean over its places; where words are learnt evenly, both CE are of
    what the own group's leaning leaves to be learnt."""
    from portrayal.models.masked_vlm.training.losses import captions_of, seen, sentences_of

    pairs = material.pairs
    asked = {"sentences": sentences_of(pairs, draws, HIDDEN)}
    if captioned:
        asked["captions"] = captions_of(pairs, draws, HIDDEN, captioned)
    whom = {name: [swapped(ids)[1] for ids in one.texts] for name, one in asked.items()}
    group = [
        told if told < 2 else whom["captions"][row] if row < captioned else 2
        for row, told in enumerate(whom["sentences"])
    ]
    pixels = seen(pairs, draws)
    others = counterparts(network, picture, material, draws, pixels, group)
    found = {}
    for name, one in asked.items():
        facts, crossed, apart = [], [], []
        for row, (text, hidden, words) in enumerate(zip(one.texts, one.hidden, one.words, strict=True)):
            first = says(network, pixels[row], hidden)
            twin, told = swapped(text)
            other = twin.clone()
            other[words != -100] = MASK
            second = says(network, others[row], other if swap else hidden)
            lean = material.leaning[told].double() * even
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
def test_both_are_told_the_same_by_the_formula(network, material, name, picture, swap, weight, captioned):
    """(1 - a) (CE_f + CE_cf) + a KL(P_f || P_cf), groups' words in the first alone."""
    task = tiny.remedy(name, material, weight=weight)
    draws = task.draws(material.pairs, 8, 0, 4)
    made = numbers(network, task, captioned, draws=draws)
    want = worked_out(network, material, draws, captioned, picture, swap)
    for text, (fact, crossed, apart) in want.items():
        assert made[text] == pytest.approx((1 - weight) * fact, rel=1e-4)
        assert made[f"{text}, other"] == pytest.approx((1 - weight) * crossed, rel=2e-3)
        assert made[f"{text}, apart"] == pytest.approx(weight * apart, rel=5e-3, abs=1e-6)
        assert apart > 1e-5
    usual = numbers(network, tiny.remedy("vanilla", material), captioned, draws=draws)
    for name in set(usual) - set(want):  # whose captions are is asked as ever
        assert made[name] == usual[name]
    assert len(made) == 3 * len(want) + len(set(usual) - set(want))


def test_both_pairs_are_learnt_evenly(network, material):
    from portrayal.mitigate.methods import Dose, method_named
    from portrayal.mitigate.objective import Remedy

    method = method_named("fairvlp")
    draws = tiny.remedy("fairvlp", material).draws(material.pairs, 8, 0, 4)
    made, plain = (
        numbers(network, Remedy(replace(method, even=even), material, Dose()), draws=draws)
        for even in (True, False)
    )
    for text, (fact, crossed, apart) in worked_out(network, material, draws, 4, "attack", True, True).items():
        assert made[text] == pytest.approx(0.5 * fact, rel=1e-4)
        assert made[f"{text}, other"] == pytest.approx(0.5 * crossed, rel=2e-3)
        assert made[f"{text}, apart"] == pytest.approx(0.5 * apart, rel=5e-3, abs=1e-6)
        assert made[f"{text}, other"] != pytest.approx(plain[f"{text}, other"], rel=5e-3)
        assert made[f"{text}, apart"] == plain[f"{text}, apart"]
    ours = method_named("fairvlp-even")
    assert (ours.picture, ours.swap, ours.agree, ours.even) == ("varied", True, True, True)


def test_swapped_words_count_as_much_as_those_that_were_said(network, material):
    task = tiny.remedy("gender-swap", material)
    draws = task.draws(material.pairs, 8, 0, 2)
    made = numbers(network, task, draws=draws)
    for text, (fact, crossed, _) in worked_out(network, material, draws, 4, "same", True).items():
        assert made[text] == pytest.approx(0.5 * fact, rel=1e-4)
        assert made[f"{text}, other"] == pytest.approx(0.5 * crossed, rel=1e-4)
    assert not [name for name in made if "apart" in name]


def test_vanilla_is_what_training_was_before(network, material):
    from portrayal.models.masked_vlm.training.losses import Draws, Usual

    for step in range(3):
        before = Draws.of_step(material.pairs, 8, 0, step)
        usual = Usual().losses(network, material.pairs, before, HIDDEN, 4)
        made = numbers(network, tiny.remedy("vanilla", material), step=step)
        assert made == {name: float(value.detach()) for name, value in usual.items()}


def test_words_that_lean_are_learnt_as_if_they_did_not(torch, network, material):
    task = tiny.remedy("even-words", material)
    draws = task.draws(material.pairs, 8, 0, 1)
    from portrayal.models.masked_vlm.training.losses import seen, sentences_of

    asked, pixels = sentences_of(material.pairs, draws, HIDDEN), seen(material.pairs, draws)
    lost = []
    for row, (text, hidden, words) in enumerate(zip(asked.texts, asked.hidden, asked.words, strict=True)):
        group = swapped(text)[1]
        evened = (says(network, pixels[row], hidden) + material.leaning[group].double()).log_softmax(dim=-1)
        lost += [-float(evened[place, word]) for place, word in enumerate(words.tolist()) if word != -100]
    made = numbers(network, task, draws=draws)
    assert made["sentences"] == pytest.approx(sum(lost) / len(lost), rel=1e-4)
    assert made["sentences"] != numbers(network, tiny.remedy("vanilla", material), step=1)["sentences"]
    assert material.leaning[:2].abs().max() > 0.05


# -- what stays out -------------------------------------------------------------------------------------------------


def hiding(torch, material, place):
    """Draws by which one place alone is hidden in every sentence: that of the lowest draw is hidden anyway."""
    draws = drawn(
        material, [0, 1, 4, 5], sentence=torch.zeros(4)
    )  # "the man is cooking", "the woman is skate"
    chance = torch.ones_like(draws.hide_sentence)
    chance[:, place] = 0.0
    return replace(draws, hide_sentence=chance)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "gender-swap"])
def test_the_groups_words_are_in_neither(torch, network, material, name):
    """With them in, a network would learn not to see whom a picture shows."""
    made = numbers(network, tiny.remedy(name, material), 0, draws=hiding(torch, material, 2))
    assert made["sentences"] > 0.1
    assert made["sentences, other"] == 0
    assert made.get("sentences, apart", 0) == 0
    made = numbers(network, tiny.remedy(name, material), 0, draws=hiding(torch, material, 4))  # "cooking"
    assert made["sentences, other"] > 0.1


def test_texts_that_name_nobody_alone_teach_nothing_more(torch, network, material):
    nobody = drawn(material, [3, 7, 11, 3])
    made = numbers(network, tiny.remedy("fairvlp", material), draws=nobody)
    for name in ("sentences", "captions"):
        assert made[name] > 0
        assert made[f"{name}, other"] == made[f"{name}, apart"] == 0
    # Beside others they do not thin out a mean either.
    some, more = [0, 1, 4, 5], [0, 1, 4, 5, 3, 7]
    both = drawn(material, more, sentence=torch.zeros(6))
    alone = replace(both, **{name: getattr(both, name)[:4] for name in vars(both)})
    assert alone.chosen.tolist() == some
    for name in ("sentences, other", "sentences, apart"):
        few, many = (
            numbers(network, tiny.remedy("fairvlp-l", material), 0, draws=one)[name] for one in (alone, both)
        )
        assert few == pytest.approx(many, rel=1e-5)


def test_a_caption_that_names_another_than_the_sentence_teaches_nothing_more(torch, network, material):
    """The other picture is made for whom the sentence names; told of the caption's, it would be the wrong way round."""
    wrong = torch.where(material.captions.group == 2, 2, 1 - material.captions.group)
    unlike = replace(material, captions=replace(material.captions, group=wrong))
    draws = drawn(material, [0, 1, 4, 5], sentence=torch.zeros(4))
    made, usual = (numbers(network, tiny.remedy("fairvlp", one), draws=draws) for one in (unlike, material))
    assert made["captions, other"] == made["captions, apart"] == 0
    assert usual["captions, other"] > 0
    assert made["sentences, other"] == usual["sentences, other"] > 0


def test_the_same_pair_is_told_the_same(torch, network, material):
    from portrayal.mitigate.methods import GIVEN, Dose, Method
    from portrayal.mitigate.objective import Remedy

    method = Method("same", "", picture=GIVEN, agree=True)
    same = replace(material, counterfactuals=material.pairs.pictures)
    made = numbers(network, Remedy(method, same, Dose()))
    for name in ("sentences", "captions"):
        assert made[f"{name}, apart"] == pytest.approx(0, abs=1e-6)
        assert numbers(network, Remedy(method, material, Dose()))[f"{name}, apart"] > 1e-4


def test_a_picture_that_lacks_another_is_not_asked_about(torch, network, material):
    """Of pictures of a man and a woman, the woman's was not made: what is lost is what is lost beside one of nobody."""
    lacking = torch.arange(len(material.pairs)) != 1
    one, both = (drawn(material, some, sentence=torch.zeros(len(some))) for some in ([0, 3], [0, 1]))
    some = numbers(network, tiny.remedy("image-swap", replace(material, swapped=lacking)), draws=both)
    alone = numbers(network, tiny.remedy("image-swap", material), draws=one)
    whole = numbers(network, tiny.remedy("image-swap", material), draws=both)
    for name in ("sentences, other", "sentences, apart"):
        assert some[name] == pytest.approx(alone[name], rel=1e-4)
        assert some[name] != pytest.approx(whole[name], rel=1e-3)
    nobody = torch.zeros(len(material.pairs), dtype=torch.bool)
    none = numbers(network, tiny.remedy("image-swap", replace(material, swapped=nobody)), draws=both)
    assert none["sentences, other"] == none["sentences, apart"] == 0
    assert none["sentences"] == whole["sentences"]


def spied(monkeypatch):
    import portrayal.mitigate.objective as task

    calls = []
    own = task.fill

    def fill(network, looked, hidden, pairs):
        made = own(network, looked, hidden, pairs)
        if made.requires_grad:
            made.retain_grad()
        calls.append((looked.tokens, hidden, made))
        return made

    monkeypatch.setattr(task, "fill", fill)
    return calls


@pytest.mark.parametrize(
    ("name", "pictures", "texts"), [("fairvlp-v", 1, 0), ("fairvlp-l", 0, 1), ("fairvlp", 1, 1)]
)
def test_what_a_method_changes_and_what_it_keeps(
    torch, monkeypatch, network, material, name, pictures, texts
):
    calls = spied(monkeypatch)
    numbers(network, tiny.remedy(name, material), 0, draws=drawn(material, [0, 1, 4, 5]))
    (seen, read, _), (other, again, _) = calls
    assert torch.equal(read, again) == (not texts)
    assert torch.equal(seen, other) == (not pictures)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "fairvlp-patches"])
def test_both_passes_learn_from_the_difference(monkeypatch, network, material, name):
    calls = spied(monkeypatch)
    made = losses(network, tiny.remedy(name, material), 0, draws=drawn(material, [0, 1, 4, 5]))
    made["sentences, apart"].backward()
    assert len(calls) == 2
    for _, _, scores in calls:
        assert scores.grad.abs().max() > 0
    network.zero_grad()


# -- as a task ------------------------------------------------------------------------------------------------------


def test_given_pictures_must_be_given():
    with pytest.raises(
        PortrayalError, match="'image-swap' needs the pictures with somebody of the other group"
    ):
        tiny.remedy("image-swap", tiny.material(others=False))


def test_the_digest_tells_methods_doses_and_texts_apart(material):
    usual = tiny.remedy("fairvlp", material).digest
    assert tiny.remedy("fairvlp", material).on("cpu").digest == usual
    assert tiny.remedy("fairvlp", material, dropout=0.4).digest == usual  # which it has no use for
    others = replace(material.sentences, group=1 - material.sentences.group)
    different = [
        tiny.remedy("fairvlp-l", material),
        tiny.remedy("fairvlp", material, weight=0.4),
        tiny.remedy("fairvlp", material, epsilon=0.1),
        tiny.remedy("fairvlp", replace(material, sentences=others)),
        tiny.remedy("fairvlp", replace(material, prompt=replace(material.prompt, words=(WOMAN, MAN)))),
    ]
    assert len({usual, *(one.digest for one in different)}) == 6


def test_a_batch_in_parts_is_gone_through_as_a_whole(torch, material):
    from portrayal.models.masked_vlm.training import loop

    task, network = tiny.remedy("fairvlp-l", material), tiny.network("dual")
    draws = task.draws(material.pairs, 8, 0, 3)
    halves = [replace(draws, **{name: getattr(draws, name)[half] for name in vars(draws)}) for half in (
        slice(0, 4), slice(4, 8))]  # fmt: skip
    want = [numbers(network, task, 0, draws=half) for half in halves]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    recipe = tiny.recipe(accumulate=2, captioned=0, masked=HIDDEN, clip=1e9)
    made = loop._step(network, material.pairs, recipe, optimizer, task, draws)
    assert set(made) == {"sentences", "sentences, other", "sentences, apart"}
    for name, value in made.items():
        assert float(value) == pytest.approx((want[0][name] + want[1][name]) / 2, rel=1e-5)
    slopes = [part.grad.clone() for part in network.parameters() if part.grad is not None]
    network.zero_grad()
    sum(sum(losses(network, task, 0, draws=half).values()) for half in halves).div(2).backward()
    again = [part.grad for part in network.parameters() if part.grad is not None]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(slopes, again, strict=True))


def test_fitting_to_searching_asks_for_nothing_else(material):
    from portrayal.mitigate.objective import Retrieval

    task = Retrieval()
    draws = task.draws(material.pairs, 8, 0, 0)
    made = task.losses(tiny.network("dual"), material.pairs, draws, HIDDEN, 4)
    assert set(made) == {"compared", "matched"}
    usual = numbers(tiny.network("dual"), tiny.remedy("vanilla", material))
    for name, value in made.items():
        assert float(value.detach()) == pytest.approx(usual[name], rel=1e-5)
