"""Evaluation of a model: the same words are masked for every model, and scores are saved exactly."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from tests.mitigate import tiny
from tests.models import tiny_masked

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)

FISH = 15


def evaluation_scores(seed=0):
    from portrayal.counterfactual.prompts import ModelOutputs
    from portrayal.mitigate.evaluation import EvaluationScores, MaskedWordScores
    from portrayal.models.masked_vlm.retrieval.recall import RankPositions

    rng = np.random.default_rng(seed)

    def model_outputs():
        # as they are saved, in 32 bits
        shapes = ((5, 4, 2, 2), (5, 2), (5, 2), (5, 2, 3), (5, 2))
        return ModelOutputs(*(np.float64(np.float32(rng.random(shape))) for shape in shapes), images={})

    def rank_positions(n_queries):
        return RankPositions(*(rng.integers(0, 9, n_queries) for _ in range(4)))

    return EvaluationScores(
        {"pgd": model_outputs(), "exact": model_outputs()},
        {stage: (rank_positions(3), rank_positions(15)) for stage in ("zero-shot", "fine-tuned")},
        {name: MaskedWordScores(*(rng.random(4) for _ in range(3))) for name in ("held out", "balanced")},
    )


def scores_equal(first, second, tolerance: float = 0.0) -> bool:
    """Whether all arrays are equal. Numbers computed again may differ in the last digits (memory alignment)."""

    def arrays_by_key(scores):
        fields = [(kind, vars(outputs)) for kind, outputs in scores.outputs.items()]
        fields += [
            ((stage, direction), vars(ranks[direction]))
            for stage, ranks in scores.retrieval.items()
            for direction in (0, 1)
        ]
        fields += [(name, vars(word_scores)) for name, word_scores in scores.masked_words.items()]
        return {
            (key, name): array for key, arrays in fields for name, array in arrays.items() if name != "images"
        }

    first_arrays, second_arrays = arrays_by_key(first), arrays_by_key(second)
    return list(first_arrays) == list(second_arrays) and all(
        first_arrays[key].dtype == second_arrays[key].dtype
        and first_arrays[key].shape == second_arrays[key].shape
        and np.allclose(first_arrays[key], second_arrays[key], rtol=tolerance, atol=tolerance, equal_nan=True)
        for key in first_arrays
    )


def test_scores_are_loaded_as_saved(tmp_path):
    from portrayal.mitigate.evaluation import EvaluationScores

    saved = evaluation_scores()
    saved.outputs["pgd"].concept_probs[0] = np.nan
    saved.save(tmp_path / "scores" / "one.npz")
    assert scores_equal(EvaluationScores.load(tmp_path / "scores" / "one.npz"), saved)
    assert not scores_equal(EvaluationScores.load(tmp_path / "scores" / "one.npz"), evaluation_scores(1))
    assert [file.name for file in (tmp_path / "scores").iterdir()] == ["one.npz"]
    EvaluationScores({}, {}, {}).save(tmp_path / "none.npz")
    assert scores_equal(EvaluationScores.load(tmp_path / "none.npz"), EvaluationScores({}, {}, {}))


class FakeNetwork:
    """A network that knows all texts and predicts each word of a text with a given probability, except unknown
    words."""

    image_size, patch_size, has_match_head, square = 32, 8, True, True

    def __init__(self, texts, unknown, probability=0.6):
        self.texts, self.unknown, self.probability = texts, unknown, probability

    def encode_image(self, pixels):
        from portrayal.models.masked_vlm.network import ImageEmbeddings

        return ImageEmbeddings(pixels.mean(dim=(2, 3))[:, None])  # the colour identifies the image

    def cross_encode(self, images, ids, attention_mask):
        import torch

        n_other_words = len(tiny_masked.PIECES) - 1
        logits = torch.full((*ids.shape, n_other_words + 1), math.log((1 - self.probability) / n_other_words))
        for row, colour in enumerate(images.tokens[:, 0, 0].tolist()):
            text = self._text(round(colour * 255), ids[row])
            for position, word in enumerate(text.tolist()):
                if word not in self.unknown:
                    logits[row, position, word] = math.log(self.probability)
        return logits

    def _text(self, image, masked_ids):
        (matching_text,) = (
            text
            for text in self.texts[image]
            if all(
                masked_id == token_id or masked_id == tiny.MASK
                for masked_id, token_id in zip(masked_ids.tolist(), text.tolist(), strict=True)
            )
        )
        return matching_text

    def word_logits(self, hidden):
        return hidden


def test_masked_word_scores_by_hand():
    """Known masked words are predicted with probability 0.6; for unknown words all 18 words are equally probable."""
    from portrayal.mitigate.evaluation import score_masked_words
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.training import ImageTextPairs

    sentences = [
        ["the man is cooking", "a fish"],
        ["the woman is in the picture", "the skate"],
        ["a cook", "is in the"],
    ]
    images = np.stack([np.full((32, 32, 3), level, dtype=np.uint8) for level in range(3)])
    pairs = ImageTextPairs.from_texts(images, sentences, sentences, tiny.tokenizer())
    model = TorchMaskedVLM.__new__(TorchMaskedVLM)
    model.device = "cpu"
    model.network = FakeNetwork(pairs.sentences.long(), unknown=set())
    all_known = score_masked_words(model, pairs)
    assert (all_known.n_masked >= 2).all()  # at least one word of each of two texts
    assert np.array_equal(all_known.n_correct, all_known.n_masked)
    assert all_known.loss == pytest.approx(-math.log(0.6) * all_known.n_masked)
    model.network = FakeNetwork(pairs.sentences.long(), unknown=set(range(18)))
    none_known = score_masked_words(model, pairs)
    # The same words are masked for every model.
    assert np.array_equal(none_known.n_masked, all_known.n_masked)
    assert not none_known.n_correct.any()
    assert none_known.loss == pytest.approx(math.log(18) * all_known.n_masked)
    # Only words of the first image are unknown, so only words of that image are missed.
    model.network = FakeNetwork(pairs.sentences.long(), unknown={tiny.MAN, tiny.COOKING, FISH})
    some_known = score_masked_words(model, pairs)
    n_missed = all_known.n_masked - some_known.n_correct
    assert n_missed[0] > 0
    assert n_missed[1] == 0
    assert some_known.loss - all_known.loss == pytest.approx(n_missed * (math.log(0.6) + math.log(18)))


def evaluation_set():
    from PIL import Image

    from portrayal.counterfactual.concepts import default_templates
    from portrayal.counterfactual.manifest import Instance
    from portrayal.counterfactual.prompts import Prompts
    from portrayal.mitigate.evaluation import EvaluationSet
    from portrayal.models.masked_vlm.retrieval.search import RetrievalPool

    pairs = tiny.training_data().pairs
    image_by_file = {Path(f"{n}.png"): Image.fromarray(pixels) for n, pixels in enumerate(tiny.images())}
    files = list(image_by_file)
    instances = tuple(
        Instance(
            f"{n}",
            ("male", "female")[n % 2],
            ("cooking", "skate")[n % 3 % 2],
            "activity",
            files[n],
            files[n ^ 1],
        )
        for n in range(6)
    )
    prompts = Prompts(
        {"male": "man", "female": "woman"}, {"activity": ("cooking", "skate")}, default_templates()[:1],
        control_prompt="the [MASK] is in the picture", control_words=("fish", "cook"),
    )  # fmt: skip
    captions = [caption for n in range(4) for caption in tiny.texts(n)[0]]
    pool = RetrievalPool(
        4,
        lambda indices: [image_by_file[file] for file in files[:4][indices]],
        captions,
        np.repeat(np.arange(4), 2),
    )
    return EvaluationSet(
        instances, image_by_file.__getitem__, prompts, pool, tuple("0123"),
        {"held out": pairs}, {"held out": tuple("0123")},
    )  # fmt: skip


@pytest.mark.parametrize("stream", tiny.STREAMS)
def test_evaluation_is_complete_and_repeatable(stream):
    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import evaluate

    model, progress_calls = tiny.model(stream), []
    scores = evaluate(
        model,
        model,
        evaluation_set(),
        Attack(steps=2),
        report_progress=lambda *arguments: progress_calls.append(arguments),
    )
    assert list(scores.outputs) == ["pgd", "exact"]
    for outputs in scores.outputs.values():
        assert outputs.concept_probs.shape == (6, 1, 2, 2)
        assert outputs.group_probs.shape == outputs.other_group_share.shape == (6, 2)
        assert np.isfinite(outputs.concept_probs).all()
    pixel_change = scores.outputs["pgd"].pixel_change[:, 1]
    assert (pixel_change <= 8 / 255).all()
    assert (scores.outputs["exact"].pixel_change[:, 1] > 8 / 255).all()
    assert list(scores.retrieval) == ["zero-shot", "fine-tuned"]
    for image_queries, caption_queries in scores.retrieval.values():
        assert (len(image_queries.rank), len(caption_queries.rank)) == (4, 8)
    assert scores.masked_words["held out"].n_masked.shape == (tiny.N_IMAGES,)
    assert ("pgd", 6, 6) in progress_calls
    repeated = evaluate(model, model, evaluation_set(), Attack(steps=2))
    assert scores_equal(scores, repeated, 1e-4)
    untrained_scores = evaluate(tiny.model(stream, 0), None, evaluation_set(), Attack(steps=2))
    assert not np.array_equal(
        untrained_scores.masked_words["held out"].loss, scores.masked_words["held out"].loss
    )
    assert list(untrained_scores.retrieval) == ["zero-shot"]


def test_evaluation_without_people_or_a_pool():
    from dataclasses import replace

    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import evaluate

    reduced_set = replace(evaluation_set(), instances=(), prompts=None, pool=None)
    scores = evaluate(tiny.model(), tiny.model(), reduced_set, Attack())
    assert (dict(scores.outputs), dict(scores.retrieval), list(scores.masked_words)) == ({}, {}, ["held out"])
    full_set = evaluation_set()
    incomplete_set = replace(
        full_set, instances=(*full_set.instances[:-1], replace(full_set.instances[-1], counterfactual=None))
    )
    assert list(evaluate(tiny.model(), None, incomplete_set, Attack(steps=1)).outputs) == ["pgd"]
