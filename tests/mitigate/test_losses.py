"""The losses of the mitigation methods, compared with losses computed from single logits."""

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
MASK_PROBABILITY = 0.5


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


def losses(network, task, n_captioned=4, step=0, sample=None):
    pairs = task.training_data.pairs
    sample = task.sample(pairs, 8, 0, step) if sample is None else sample
    return task.losses(network, pairs, sample, MASK_PROBABILITY, n_captioned)


def loss_values(*arguments, **options):
    return {name: float(loss.detach()) for name, loss in losses(*arguments, **options).items()}


def sample_of(training_data, image_index, step=0, **changes):
    """The sample of a step with these images."""
    import torch

    task = tiny.mitigation_task("vanilla", training_data)
    return replace(
        task.sample(training_data.pairs, len(image_index), 0, step),
        image_index=torch.tensor(image_index),
        **changes,
    )


# -- expected losses ------------------------------------------------------------------------------------------------


def counterpart_of(ids):
    """The counterpart of a text, and the group that the text names: 0, 1, or 2 for no single group."""
    group_words = {int(token_id) for token_id in ids} & {MAN, WOMAN}
    if len(group_words) != 1:
        return ids, 2
    opposite = {MAN: WOMAN, WOMAN: MAN}
    counterpart = ids.clone()
    for position, token_id in enumerate(ids.tolist()):
        counterpart[position] = opposite.get(token_id, token_id)
    return counterpart, 0 if group_words == {MAN} else 1


def log_probs(network, pixels, ids):
    """Log-probabilities (positions, words) of one text with one image."""
    import torch

    with torch.no_grad():
        hidden = network.cross_encode(network.encode_image(pixels[None]), ids[None], ids[None] != PAD)
        return network.word_logits(hidden)[0].double().log_softmax(dim=-1)


def counterfactual_images(network, source, training_data, sample, pixels, image_groups):
    """Counterfactual images: the images themselves, given images, or images attacked as CounterBias does."""
    import torch

    from portrayal.counterfactual.attack import Attack, AttackTarget, perturb
    from portrayal.counterfactual.concepts import BIAS_PROMPT
    from portrayal.models.masked_vlm import TorchMaskedVLM

    if source == "same":
        return pixels
    if source == "given":
        return training_data.counterfactuals[sample.image_index].permute(0, 3, 1, 2).float() / 255
    model = TorchMaskedVLM("m", network, tiny.tokenizer())
    counterfactuals = pixels.clone()
    for row, group in enumerate(image_groups):
        if group < 2:
            own_group = torch.tensor([group])
            target = AttackTarget(BIAS_PROMPT, ("man", "woman"), own_group, 1 - own_group)
            counterfactuals[row] = perturb(
                model, pixels[row : row + 1], target, Attack.default(norm="linf", steps=5)
            ).pixels[0]
    network.requires_grad_(True)
    return counterfactuals


def expected_losses(network, training_data, sample, n_captioned, image_source, swap, balanced=False):
    """(CE_f, CE_cf, KL) by name of the text, each a mean over masked positions. With the group-balanced word loss, both
    CE use logits that are adjusted for the text's group."""
    from portrayal.models.masked_vlm.training.losses import batch_pixels, mask_captions, mask_sentences

    pairs = training_data.pairs
    masked_texts = {"sentences": mask_sentences(pairs, sample, MASK_PROBABILITY)}
    if n_captioned:
        masked_texts["captions"] = mask_captions(pairs, sample, MASK_PROBABILITY, n_captioned)
    text_groups = {
        name: [counterpart_of(ids)[1] for ids in masked.ids] for name, masked in masked_texts.items()
    }
    image_groups = [
        group if group < 2 else text_groups["captions"][row] if row < n_captioned else 2
        for row, group in enumerate(text_groups["sentences"])
    ]
    pixels = batch_pixels(pairs, sample)
    counterfactuals = counterfactual_images(
        network, image_source, training_data, sample, pixels, image_groups
    )
    losses_by_text = {}
    for name, masked in masked_texts.items():
        factual, counterfactual, kl = [], [], []
        for row, (text, masked_ids, labels) in enumerate(
            zip(masked.ids, masked.masked_ids, masked.labels, strict=True)
        ):
            log_p = log_probs(network, pixels[row], masked_ids)
            counterpart, group = counterpart_of(text)
            masked_counterpart = counterpart.clone()
            masked_counterpart[labels != -100] = MASK
            log_q = log_probs(network, counterfactuals[row], masked_counterpart if swap else masked_ids)
            adjustment = training_data.logit_adjustment[group].double() * balanced
            adjusted_p, adjusted_q = (
                (log_probabilities + adjustment).log_softmax(dim=-1) for log_probabilities in (log_p, log_q)
            )
            for position, label in enumerate(labels.tolist()):
                if label == -100:
                    continue
                factual.append(-float(adjusted_p[position, label]))
                if group < 2 and group == image_groups[row] and label not in (MAN, WOMAN):
                    counterfactual.append(-float(adjusted_q[position, label]))
                    log_p_at, log_q_at = log_p[position], log_q[position]
                    kl.append(float((log_p_at.exp() * (log_p_at - log_q_at)).sum()))
        assert counterfactual, "the step has no word to compare"
        losses_by_text[name] = tuple(sum(values) / len(values) for values in (factual, counterfactual, kl))
    return losses_by_text


@pytest.mark.parametrize("n_captioned", [0, 4])
@pytest.mark.parametrize("weight", [0.5, 0.2])
@pytest.mark.parametrize(
    ("name", "image_source", "swap"),
    [
        ("fairvlp-l", "same", True),
        ("fairvlp-v", "attack", False),
        ("fairvlp", "attack", True),
        ("image-swap", "given", True),
    ],
)
def test_losses_equal_the_formula(network, training_data, name, image_source, swap, weight, n_captioned):
    """(1 - a) (CE_f + CE_cf) + a KL(P_f || P_cf), with the groups' words in CE_f only."""
    task = tiny.mitigation_task(name, training_data, weight=weight)
    sample = task.sample(training_data.pairs, 8, 0, 4)
    actual = loss_values(network, task, n_captioned, sample=sample)
    expected = expected_losses(network, training_data, sample, n_captioned, image_source, swap)
    for text, (factual, counterfactual, kl) in expected.items():
        assert actual[text] == pytest.approx((1 - weight) * factual, rel=1e-4)
        assert actual[f"{text}, counterfactual"] == pytest.approx((1 - weight) * counterfactual, rel=2e-3)
        assert actual[f"{text}, KL"] == pytest.approx(weight * kl, rel=5e-3, abs=1e-6)
        assert kl > 1e-5
    vanilla_losses = loss_values(
        network, tiny.mitigation_task("vanilla", training_data), n_captioned, sample=sample
    )
    for name in set(vanilla_losses) - set(expected):  # losses without counterfactuals are unchanged
        assert actual[name] == vanilla_losses[name]
    assert len(actual) == 3 * len(expected) + len(set(vanilla_losses) - set(expected))


def test_balanced_word_loss_adjusts_both_pairs(network, training_data):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import Hyperparameters, find_method

    method = find_method("fairvlp")
    sample = tiny.mitigation_task("fairvlp", training_data).sample(training_data.pairs, 8, 0, 4)
    balanced, unbalanced = (
        loss_values(
            network,
            MitigationTask(replace(method, balanced_word_loss=is_balanced), training_data, Hyperparameters()),
            sample=sample,
        )
        for is_balanced in (True, False)
    )
    for text, (factual, counterfactual, kl) in expected_losses(
        network, training_data, sample, 4, "attack", True, True
    ).items():
        assert balanced[text] == pytest.approx(0.5 * factual, rel=1e-4)
        assert balanced[f"{text}, counterfactual"] == pytest.approx(0.5 * counterfactual, rel=2e-3)
        assert balanced[f"{text}, KL"] == pytest.approx(0.5 * kl, rel=5e-3, abs=1e-6)
        assert balanced[f"{text}, counterfactual"] != pytest.approx(
            unbalanced[f"{text}, counterfactual"], rel=5e-3
        )
        assert balanced[f"{text}, KL"] == unbalanced[f"{text}, KL"]
    combined = find_method("fairvlp-balanced-word-loss")
    assert (combined.image, combined.swap, combined.consistency, combined.balanced_word_loss) == (
        "varied",
        True,
        True,
        True,
    )


def test_swapped_texts_have_the_same_weight_as_the_originals(network, training_data):
    task = tiny.mitigation_task("gender-swap", training_data)
    sample = task.sample(training_data.pairs, 8, 0, 2)
    actual = loss_values(network, task, sample=sample)
    for text, (factual, counterfactual, _) in expected_losses(
        network, training_data, sample, 4, "same", True
    ).items():
        assert actual[text] == pytest.approx(0.5 * factual, rel=1e-4)
        assert actual[f"{text}, counterfactual"] == pytest.approx(0.5 * counterfactual, rel=1e-4)
    assert not [name for name in actual if "KL" in name]


def test_vanilla_equals_plain_pretraining(network, training_data):
    from portrayal.models.masked_vlm.training.losses import BatchSample, PretrainingTask

    for step in range(3):
        sample = BatchSample.for_step(training_data.pairs, 8, 0, step)
        expected = PretrainingTask().losses(network, training_data.pairs, sample, MASK_PROBABILITY, 4)
        actual = loss_values(network, tiny.mitigation_task("vanilla", training_data), step=step)
        assert actual == {name: float(loss.detach()) for name, loss in expected.items()}


def test_balanced_word_loss_uses_adjusted_logits(torch, network, training_data):
    task = tiny.mitigation_task("balanced-word-loss", training_data)
    sample = task.sample(training_data.pairs, 8, 0, 1)
    from portrayal.models.masked_vlm.training.losses import batch_pixels, mask_sentences

    masked_texts, pixels = (
        mask_sentences(training_data.pairs, sample, MASK_PROBABILITY),
        batch_pixels(training_data.pairs, sample),
    )
    token_losses = []
    for row, (text, masked_ids, labels) in enumerate(
        zip(masked_texts.ids, masked_texts.masked_ids, masked_texts.labels, strict=True)
    ):
        group = counterpart_of(text)[1]
        adjusted = (
            log_probs(network, pixels[row], masked_ids) + training_data.logit_adjustment[group].double()
        ).log_softmax(dim=-1)
        token_losses += [
            -float(adjusted[position, label])
            for position, label in enumerate(labels.tolist())
            if label != -100
        ]
    actual = loss_values(network, task, sample=sample)
    assert actual["sentences"] == pytest.approx(sum(token_losses) / len(token_losses), rel=1e-4)
    assert (
        actual["sentences"]
        != loss_values(network, tiny.mitigation_task("vanilla", training_data), step=1)["sentences"]
    )
    assert training_data.logit_adjustment[:2].abs().max() > 0.05


# -- excluded words and texts ---------------------------------------------------------------------------------------


def mask_only(torch, training_data, position):
    """A sample that masks one position in every sentence: the position of the lowest draw is always masked."""
    # "the man is cooking", "the woman is skate"
    sample = sample_of(training_data, [0, 1, 4, 5], sentence_choice=torch.zeros(4))
    mask_draw = torch.ones_like(sample.sentence_mask_uniform)
    mask_draw[:, position] = 0.0
    return replace(sample, sentence_mask_uniform=mask_draw)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "gender-swap"])
def test_group_words_are_in_no_counterfactual_loss(torch, network, training_data, name):
    """Otherwise a network would be trained to ignore the group that an image shows."""
    actual = loss_values(
        network, tiny.mitigation_task(name, training_data), 0, sample=mask_only(torch, training_data, 2)
    )
    assert actual["sentences"] > 0.1
    assert actual["sentences, counterfactual"] == 0
    assert actual.get("sentences, KL", 0) == 0
    actual = loss_values(
        network, tiny.mitigation_task(name, training_data), 0, sample=mask_only(torch, training_data, 4)
    )  # "cooking"
    assert actual["sentences, counterfactual"] > 0.1


def test_texts_of_no_single_group_add_no_counterfactual_loss(torch, network, training_data):
    unnamed_sample = sample_of(training_data, [3, 7, 11, 3])
    actual = loss_values(network, tiny.mitigation_task("fairvlp", training_data), sample=unnamed_sample)
    for name in ("sentences", "captions"):
        assert actual[name] > 0
        assert actual[f"{name}, counterfactual"] == actual[f"{name}, KL"] == 0
    # They do not change the mean over the other texts either.
    named_images, all_images = [0, 1, 4, 5], [0, 1, 4, 5, 3, 7]
    full_sample = sample_of(training_data, all_images, sentence_choice=torch.zeros(6))
    named_sample = replace(
        full_sample, **{name: getattr(full_sample, name)[:4] for name in vars(full_sample)}
    )
    assert named_sample.image_index.tolist() == named_images
    for name in ("sentences, counterfactual", "sentences, KL"):
        named_loss, full_loss = (
            loss_values(network, tiny.mitigation_task("fairvlp-l", training_data), 0, sample=sample)[name]
            for sample in (named_sample, full_sample)
        )
        assert named_loss == pytest.approx(full_loss, rel=1e-5)


def test_a_caption_of_another_group_than_the_sentence_adds_no_counterfactual_loss(
    torch, network, training_data
):
    """The counterfactual image is made for the group of the sentence; for the caption's group it would be reversed."""
    reversed_group = torch.where(training_data.captions.group == 2, 2, 1 - training_data.captions.group)
    mismatched_data = replace(training_data, captions=replace(training_data.captions, group=reversed_group))
    sample = sample_of(training_data, [0, 1, 4, 5], sentence_choice=torch.zeros(4))
    mismatched, matched = (
        loss_values(network, tiny.mitigation_task("fairvlp", caption_data), sample=sample)
        for caption_data in (mismatched_data, training_data)
    )
    assert mismatched["captions, counterfactual"] == mismatched["captions, KL"] == 0
    assert matched["captions, counterfactual"] > 0
    assert mismatched["sentences, counterfactual"] == matched["sentences, counterfactual"] > 0


def test_identical_pairs_have_no_kl_loss(torch, network, training_data):
    from portrayal.mitigate.losses import MitigationTask
    from portrayal.mitigate.methods import GIVEN, Hyperparameters, Method

    method = Method("same", "", image=GIVEN, consistency=True)
    identical_data = replace(training_data, counterfactuals=training_data.pairs.images)
    actual = loss_values(network, MitigationTask(method, identical_data, Hyperparameters()))
    for name in ("sentences", "captions"):
        assert actual[f"{name}, KL"] == pytest.approx(0, abs=1e-6)
        assert (
            loss_values(network, MitigationTask(method, training_data, Hyperparameters()))[f"{name}, KL"]
            > 1e-4
        )


def test_an_image_without_a_counterfactual_adds_no_counterfactual_loss(torch, network, training_data):
    """If the woman has no counterfactual, the loss equals that of a batch with an image of nobody instead of her."""
    has_counterfactual = torch.arange(len(training_data.pairs)) != 1
    sample_with_nobody, sample_with_woman = (
        sample_of(training_data, image_index, sentence_choice=torch.zeros(len(image_index)))
        for image_index in ([0, 3], [0, 1])
    )
    actual = loss_values(
        network,
        tiny.mitigation_task("image-swap", replace(training_data, has_counterfactual=has_counterfactual)),
        sample=sample_with_woman,
    )
    expected = loss_values(
        network, tiny.mitigation_task("image-swap", training_data), sample=sample_with_nobody
    )
    complete = loss_values(
        network, tiny.mitigation_task("image-swap", training_data), sample=sample_with_woman
    )
    for name in ("sentences, counterfactual", "sentences, KL"):
        assert actual[name] == pytest.approx(expected[name], rel=1e-4)
        assert actual[name] != pytest.approx(complete[name], rel=1e-3)
    no_counterfactual = torch.zeros(len(training_data.pairs), dtype=torch.bool)
    without_counterfactuals = loss_values(
        network,
        tiny.mitigation_task("image-swap", replace(training_data, has_counterfactual=no_counterfactual)),
        sample=sample_with_woman,
    )
    assert (
        without_counterfactuals["sentences, counterfactual"] == without_counterfactuals["sentences, KL"] == 0
    )
    assert without_counterfactuals["sentences"] == complete["sentences"]


def record_mlm_calls(monkeypatch):
    import portrayal.mitigate.losses as losses_module

    calls = []
    original = losses_module.mlm_logits

    def mlm_logits(network, embeddings, masked_ids, pairs):
        logits = original(network, embeddings, masked_ids, pairs)
        if logits.requires_grad:
            logits.retain_grad()
        calls.append((embeddings.tokens, masked_ids, logits))
        return logits

    monkeypatch.setattr(losses_module, "mlm_logits", mlm_logits)
    return calls


@pytest.mark.parametrize(
    ("name", "changes_images", "changes_texts"), [("fairvlp-v", 1, 0), ("fairvlp-l", 0, 1), ("fairvlp", 1, 1)]
)
def test_which_inputs_a_method_changes(
    torch, monkeypatch, network, training_data, name, changes_images, changes_texts
):
    calls = record_mlm_calls(monkeypatch)
    loss_values(
        network, tiny.mitigation_task(name, training_data), 0, sample=sample_of(training_data, [0, 1, 4, 5])
    )
    (image_tokens, masked_ids, _), (counterfactual_tokens, counterfactual_ids, _) = calls
    assert torch.equal(masked_ids, counterfactual_ids) == (not changes_texts)
    assert torch.equal(image_tokens, counterfactual_tokens) == (not changes_images)


@pytest.mark.parametrize("name", ["fairvlp", "fairvlp-v", "fairvlp-l", "fairvlp-patches"])
def test_the_kl_loss_has_gradients_in_both_passes(monkeypatch, network, training_data, name):
    calls = record_mlm_calls(monkeypatch)
    actual = losses(
        network, tiny.mitigation_task(name, training_data), 0, sample=sample_of(training_data, [0, 1, 4, 5])
    )
    actual["sentences, KL"].backward()
    assert len(calls) == 2
    for _, _, logits in calls:
        assert logits.grad.abs().max() > 0
    network.zero_grad()


# -- as a task ------------------------------------------------------------------------------------------------------


def test_image_swap_needs_counterfactual_images():
    with pytest.raises(PortrayalError, match="'image-swap' needs counterfactual images"):
        tiny.mitigation_task("image-swap", tiny.training_data(counterfactuals=False))


def test_the_digest_depends_on_method_hyperparameters_and_texts(training_data):
    digest = tiny.mitigation_task("fairvlp", training_data).digest
    assert tiny.mitigation_task("fairvlp", training_data).to("cpu").digest == digest
    # A hyperparameter that the method does not use.
    assert tiny.mitigation_task("fairvlp", training_data, dropout=0.4).digest == digest
    swapped_sentences = replace(training_data.sentences, group=1 - training_data.sentences.group)
    tasks = [
        tiny.mitigation_task("fairvlp-l", training_data),
        tiny.mitigation_task("fairvlp", training_data, weight=0.4),
        tiny.mitigation_task("fairvlp", training_data, epsilon=0.1),
        tiny.mitigation_task("fairvlp", replace(training_data, sentences=swapped_sentences)),
        tiny.mitigation_task(
            "fairvlp", replace(training_data, prompt=replace(training_data.prompt, words=(WOMAN, MAN)))
        ),
    ]
    assert len({digest, *(task.digest for task in tasks)}) == 6


def test_gradient_accumulation_averages_the_parts(torch, training_data):
    from portrayal.models.masked_vlm.training import loop

    task, network = tiny.mitigation_task("fairvlp-l", training_data), tiny.network("dual")
    sample = task.sample(training_data.pairs, 8, 0, 3)
    halves = [replace(sample, **{name: getattr(sample, name)[rows] for name in vars(sample)}) for rows in (
        slice(0, 4), slice(4, 8))]  # fmt: skip
    expected = [loss_values(network, task, 0, sample=half) for half in halves]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    recipe = tiny.recipe(
        gradient_accumulation=2, n_captioned=0, mask_probability=MASK_PROBABILITY, max_grad_norm=1e9
    )
    actual = loop._step(network, training_data.pairs, recipe, optimizer, task, sample)
    assert set(actual) == {"sentences", "sentences, counterfactual", "sentences, KL"}
    for name, loss in actual.items():
        assert float(loss) == pytest.approx((expected[0][name] + expected[1][name]) / 2, rel=1e-5)
    gradients = [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]
    network.zero_grad()
    sum(sum(losses(network, task, 0, sample=half).values()) for half in halves).div(2).backward()
    expected_gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(gradients, expected_gradients, strict=True))


def test_retrieval_task_has_retrieval_losses_only(training_data):
    from portrayal.mitigate.losses import RetrievalTask

    task = RetrievalTask()
    sample = task.sample(training_data.pairs, 8, 0, 0)
    actual = task.losses(tiny.network("dual"), training_data.pairs, sample, MASK_PROBABILITY, 4)
    assert set(actual) == {"contrastive", "matching"}
    vanilla_losses = loss_values(tiny.network("dual"), tiny.mitigation_task("vanilla", training_data))
    for name, loss in actual.items():
        assert float(loss.detach()) == pytest.approx(vanilla_losses[name], rel=1e-5)
