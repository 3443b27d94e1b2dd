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


def scores(seed=0):
    from portrayal.counterfactual.prompts import ModelOutputs
    from portrayal.mitigate.evaluation import EvaluationScores, MaskedWordScores
    from portrayal.models.masked_vlm.retrieval.recall import RankPositions

    random = np.random.default_rng(seed)

    def answers():
        # as they are kept, in 32 bits
        shapes = ((5, 4, 2, 2), (5, 2), (5, 2), (5, 2, 3), (5, 2))
        return ModelOutputs(*(np.float64(np.float32(random.random(shape))) for shape in shapes), images={})

    def standing(many):
        return RankPositions(*(random.integers(0, 9, many) for _ in range(4)))

    return EvaluationScores(
        {"pgd": answers(), "exact": answers()},
        {when: (standing(3), standing(15)) for when in ("zero-shot", "fine-tuned")},
        {name: MaskedWordScores(*(random.random(4) for _ in range(3))) for name in ("held out", "balanced")},
    )


def same(one, other, apart: float = 0.0) -> bool:
    """All of it; numbers that a network computes anew may differ in their last digits, by where they lie in memory."""

    def flat(some):
        parts = [(way, vars(answers)) for way, answers in some.outputs.items()]
        parts += [((when, n), vars(both[n])) for when, both in some.retrieval.items() for n in (0, 1)]
        parts += [(name, vars(filled)) for name, filled in some.masked_words.items()]
        return {(at, name): value for at, each in parts for name, value in each.items() if name != "images"}

    mine, theirs = flat(one), flat(other)
    return list(mine) == list(theirs) and all(
        mine[at].dtype == theirs[at].dtype
        and mine[at].shape == theirs[at].shape
        and np.allclose(mine[at], theirs[at], rtol=apart, atol=apart, equal_nan=True)
        for at in mine
    )


def test_scores_are_loaded_as_saved(tmp_path):
    from portrayal.mitigate.evaluation import EvaluationScores

    before = scores()
    before.outputs["pgd"].target[0] = np.nan
    before.save(tmp_path / "scores" / "one.npz")
    assert same(EvaluationScores.load(tmp_path / "scores" / "one.npz"), before)
    assert not same(EvaluationScores.load(tmp_path / "scores" / "one.npz"), scores(1))
    assert [file.name for file in (tmp_path / "scores").iterdir()] == ["one.npz"]
    EvaluationScores({}, {}, {}).save(tmp_path / "none.npz")
    assert same(EvaluationScores.load(tmp_path / "none.npz"), EvaluationScores({}, {}, {}))


class Knowing:
    """A network that is told all texts and says each word's number at its place, with a given share; but not
    the words it does not know."""

    side, patch, matching, square = 32, 8, True, True

    def __init__(self, texts, unknown, share=0.6):
        self.texts, self.unknown, self.share = texts, unknown, share

    def encode_image(self, pictures):
        from portrayal.models.masked_vlm.network import ImageEmbeddings

        return ImageEmbeddings(
            pictures.mean(dim=(2, 3))[:, None]
        )  # which picture it is can be told from its colour

    def cross_encode(self, embeddings, ids, there):
        import torch

        rest = len(tiny_masked.PIECES) - 1
        made = torch.full((*ids.shape, rest + 1), math.log((1 - self.share) / rest))
        for row, colour in enumerate(embeddings.tokens[:, 0, 0].tolist()):
            text = self._text(round(colour * 255), ids[row])
            for place, word in enumerate(text.tolist()):
                if word not in self.unknown:
                    made[row, place, word] = math.log(self.share)
        return made

    def _text(self, picture, hidden):
        (found,) = (
            text
            for text in self.texts[picture]
            if all(a == b or a == tiny.MASK for a, b in zip(hidden.tolist(), text.tolist(), strict=True))
        )
        return found

    def word_logits(self, hidden):
        return hidden


def test_words_found_and_lost_by_hand():
    """Of hidden words the network knows some, with .6; where it does not know, all of 18 words are as likely."""
    from portrayal.mitigate.evaluation import score_masked_words
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.training import ImageTextPairs

    sentences = [
        ["the man is cooking", "a fish"],
        ["the woman is in the picture", "the skate"],
        ["a cook", "is in the"],
    ]
    pictures = np.stack([np.full((32, 32, 3), n, dtype=np.uint8) for n in range(3)])
    pairs = ImageTextPairs.from_texts(pictures, sentences, sentences, tiny.tokenizer())
    made = TorchMaskedVLM.__new__(TorchMaskedVLM)
    made.device = "cpu"
    made.network = Knowing(pairs.sentences.long(), unknown=set())
    known = score_masked_words(made, pairs)
    assert (known.n_masked >= 2).all()  # a word at least of each of two texts
    assert np.array_equal(known.n_correct, known.n_masked)
    assert known.loss == pytest.approx(-math.log(0.6) * known.n_masked)
    made.network = Knowing(pairs.sentences.long(), unknown=set(range(18)))
    nothing = score_masked_words(made, pairs)
    assert np.array_equal(nothing.n_masked, known.n_masked)  # the same words are hidden from every model
    assert not nothing.n_correct.any()
    assert nothing.loss == pytest.approx(math.log(18) * known.n_masked)
    # Words of the first picture alone are not known: only there is anything missed.
    made.network = Knowing(pairs.sentences.long(), unknown={tiny.MAN, tiny.COOKING, FISH})
    some = score_masked_words(made, pairs)
    missed = known.n_masked - some.n_correct
    assert missed[0] > 0
    assert missed[1] == 0
    assert some.loss - known.loss == pytest.approx(missed * (math.log(0.6) + math.log(18)))


def evaluation_set():
    from PIL import Image

    from portrayal.counterfactual.concepts import default_templates
    from portrayal.counterfactual.manifest import Instance
    from portrayal.counterfactual.prompts import Prompts
    from portrayal.mitigate.evaluation import EvaluationSet
    from portrayal.models.masked_vlm.retrieval.search import RetrievalPool

    pairs = tiny.training_data().pairs
    drawn = {Path(f"{n}.png"): Image.fromarray(one) for n, one in enumerate(tiny.images())}
    files = list(drawn)
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
    questions = Prompts(
        {"male": "man", "female": "woman"}, {"activity": ("cooking", "skate")}, default_templates()[:1],
        control_prompt="the [MASK] is in the picture", control_words=("fish", "cook"),
    )  # fmt: skip
    captions = [caption for n in range(4) for caption in tiny.texts(n)[0]]
    pool = RetrievalPool(
        4, lambda some: [drawn[file] for file in files[:4][some]], captions, np.repeat(np.arange(4), 2)
    )
    return EvaluationSet(
        instances, drawn.__getitem__, questions, pool, tuple("0123"), {"held out": pairs}, {"held out": tuple("0123")}
    )  # fmt: skip


@pytest.mark.parametrize("stream", tiny.STREAMS)
def test_an_exam_asks_everything_and_the_same_each_time(stream):
    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import evaluate

    model, told = tiny.model(stream), []
    made = evaluate(
        model, model, evaluation_set(), Attack(steps=2), report_progress=lambda *given: told.append(given)
    )
    assert list(made.outputs) == ["pgd", "exact"]
    for answers in made.outputs.values():
        assert answers.target.shape == (6, 1, 2, 2)
        assert answers.present.shape == answers.share.shape == (6, 2)
        assert np.isfinite(answers.target).all()
    moved = made.outputs["pgd"].moved[:, 1]
    assert (moved <= 8 / 255).all()
    assert (made.outputs["exact"].moved[:, 1] > 8 / 255).all()
    assert list(made.retrieval) == ["zero-shot", "fine-tuned"]
    for captions, pictures in made.retrieval.values():
        assert (len(captions.rank), len(pictures.rank)) == (4, 8)
    assert made.masked_words["held out"].n_masked.shape == (tiny.MANY,)
    assert ("pgd", 6, 6) in told
    again = evaluate(model, model, evaluation_set(), Attack(steps=2))
    assert same(made, again, 1e-4)
    other = evaluate(tiny.model(stream, 0), None, evaluation_set(), Attack(steps=2))
    assert not np.array_equal(other.masked_words["held out"].loss, made.masked_words["held out"].loss)
    assert list(other.retrieval) == ["zero-shot"]


def test_without_people_or_a_pool_there_is_less_to_ask():
    from dataclasses import replace

    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import evaluate

    few = replace(evaluation_set(), instances=(), prompts=None, pool=None)
    made = evaluate(tiny.model(), tiny.model(), few, Attack())
    assert (dict(made.outputs), dict(made.retrieval), list(made.masked_words)) == ({}, {}, ["held out"])
    one = evaluation_set()
    unsure = replace(one, instances=(*one.instances[:-1], replace(one.instances[-1], counterfactual=None)))
    assert list(evaluate(tiny.model(), None, unsure, Attack(steps=1)).outputs) == ["pgd"]
