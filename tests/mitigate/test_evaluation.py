"""What a model is examined on: words that are hidden from every model, marks that are kept as they were."""

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


def marks(seed=0):
    from portrayal.counterfactual.prompts import Answers
    from portrayal.mitigate.evaluation import Filled, Marks
    from portrayal.models.masked_vlm.retrieval.recall import Standing

    random = np.random.default_rng(seed)

    def answers():
        # as they are kept, in 32 bits
        shapes = ((5, 4, 2, 2), (5, 2), (5, 2), (5, 2, 3), (5, 2))
        return Answers(*(np.float64(np.float32(random.random(shape))) for shape in shapes), seen={})

    def standing(many):
        return Standing(*(random.integers(0, 9, many) for _ in range(4)))

    return Marks(
        {"pgd": answers(), "exact": answers()},
        {when: (standing(3), standing(15)) for when in ("zero-shot", "fine-tuned")},
        {name: Filled(*(random.random(4) for _ in range(3))) for name in ("held out", "balanced")},
    )


def same(one, other, apart: float = 0.0) -> bool:
    """All of it; numbers that a network computes anew may differ in their last digits, by where they lie in memory."""

    def flat(some):
        parts = [(way, vars(answers)) for way, answers in some.answers.items()]
        parts += [((when, n), vars(both[n])) for when, both in some.searches.items() for n in (0, 1)]
        parts += [(name, vars(filled)) for name, filled in some.words.items()]
        return {(at, name): value for at, each in parts for name, value in each.items() if name != "seen"}

    mine, theirs = flat(one), flat(other)
    return list(mine) == list(theirs) and all(
        mine[at].dtype == theirs[at].dtype
        and mine[at].shape == theirs[at].shape
        and np.allclose(mine[at], theirs[at], rtol=apart, atol=apart, equal_nan=True)
        for at in mine
    )


def test_marks_are_kept_as_they_were(tmp_path):
    from portrayal.mitigate.evaluation import Marks

    before = marks()
    before.answers["pgd"].target[0] = np.nan
    before.save(tmp_path / "marks" / "one.npz")
    assert same(Marks.load(tmp_path / "marks" / "one.npz"), before)
    assert not same(Marks.load(tmp_path / "marks" / "one.npz"), marks(1))
    assert [file.name for file in (tmp_path / "marks").iterdir()] == ["one.npz"]
    Marks({}, {}, {}).save(tmp_path / "none.npz")
    assert same(Marks.load(tmp_path / "none.npz"), Marks({}, {}, {}))


class Knowing:
    """A network that is told all texts and says each word's number at its place, with a given share; but not
    the words it does not know."""

    side, patch, matching, square = 32, 8, True, True

    def __init__(self, texts, unknown, share=0.6):
        self.texts, self.unknown, self.share = texts, unknown, share

    def look(self, pictures):
        from portrayal.models.masked_vlm.network import Looked

        return Looked(pictures.mean(dim=(2, 3))[:, None])  # which picture it is can be told from its colour

    def fuse(self, looked, ids, there):
        import torch

        rest = len(tiny_masked.PIECES) - 1
        made = torch.full((*ids.shape, rest + 1), math.log((1 - self.share) / rest))
        for row, colour in enumerate(looked.tokens[:, 0, 0].tolist()):
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

    def words(self, hidden):
        return hidden


def test_words_found_and_lost_by_hand():
    """Of hidden words the network knows some, with .6; where it does not know, all of 18 words are as likely."""
    from portrayal.mitigate.evaluation import filled
    from portrayal.models.masked_vlm import MaskedModel
    from portrayal.models.masked_vlm.training import Pairs

    sentences = [
        ["the man is cooking", "a fish"],
        ["the woman is in the picture", "the skate"],
        ["a cook", "is in the"],
    ]
    pictures = np.stack([np.full((32, 32, 3), n, dtype=np.uint8) for n in range(3)])
    pairs = Pairs.made_from(pictures, sentences, sentences, tiny.reader())
    made = MaskedModel.__new__(MaskedModel)
    made.device = "cpu"
    made.network = Knowing(pairs.sentences.long(), unknown=set())
    known = filled(made, pairs)
    assert (known.asked >= 2).all()  # a word at least of each of two texts
    assert np.array_equal(known.right, known.asked)
    assert known.lost == pytest.approx(-math.log(0.6) * known.asked)
    made.network = Knowing(pairs.sentences.long(), unknown=set(range(18)))
    nothing = filled(made, pairs)
    assert np.array_equal(nothing.asked, known.asked)  # the same words are hidden from every model
    assert not nothing.right.any()
    assert nothing.lost == pytest.approx(math.log(18) * known.asked)
    # Words of the first picture alone are not known: only there is anything missed.
    made.network = Knowing(pairs.sentences.long(), unknown={tiny.MAN, tiny.COOKING, FISH})
    some = filled(made, pairs)
    missed = known.asked - some.right
    assert missed[0] > 0
    assert missed[1] == 0
    assert some.lost - known.lost == pytest.approx(missed * (math.log(0.6) + math.log(18)))


def exam():
    from PIL import Image

    from portrayal.counterfactual.concepts import usual_templates
    from portrayal.counterfactual.manifest import Instance
    from portrayal.counterfactual.prompts import Questions
    from portrayal.mitigate.evaluation import Exam
    from portrayal.models.masked_vlm.retrieval.search import Pool

    pairs = tiny.material().pairs
    drawn = {Path(f"{n}.png"): Image.fromarray(one) for n, one in enumerate(tiny.pictures())}
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
    questions = Questions(
        {"male": "man", "female": "woman"}, {"activity": ("cooking", "skate")}, usual_templates()[:1],
        control_prompt="the [MASK] is in the picture", control_words=("fish", "cook"),
    )  # fmt: skip
    captions = [caption for n in range(4) for caption in tiny.texts(n)[0]]
    pool = Pool(
        4, lambda some: [drawn[file] for file in files[:4][some]], captions, np.repeat(np.arange(4), 2)
    )
    return Exam(
        instances, drawn.__getitem__, questions, pool, tuple("0123"), {"held out": pairs}, {"held out": tuple("0123")}
    )  # fmt: skip


@pytest.mark.parametrize("stream", tiny.STREAMS)
def test_an_exam_asks_everything_and_the_same_each_time(stream):
    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import examine

    model, told = tiny.model(stream), []
    made = examine(model, model, exam(), Attack(steps=2), report_progress=lambda *given: told.append(given))
    assert list(made.answers) == ["pgd", "exact"]
    for answers in made.answers.values():
        assert answers.target.shape == (6, 1, 2, 2)
        assert answers.present.shape == answers.share.shape == (6, 2)
        assert np.isfinite(answers.target).all()
    moved = made.answers["pgd"].moved[:, 1]
    assert (moved <= 8 / 255).all()
    assert (made.answers["exact"].moved[:, 1] > 8 / 255).all()
    assert list(made.searches) == ["zero-shot", "fine-tuned"]
    for captions, pictures in made.searches.values():
        assert (len(captions.rank), len(pictures.rank)) == (4, 8)
    assert made.words["held out"].asked.shape == (tiny.MANY,)
    assert ("pgd", 6, 6) in told
    again = examine(model, model, exam(), Attack(steps=2))
    assert same(made, again, 1e-4)
    other = examine(tiny.model(stream, 0), None, exam(), Attack(steps=2))
    assert not np.array_equal(other.words["held out"].lost, made.words["held out"].lost)
    assert list(other.searches) == ["zero-shot"]


def test_without_people_or_a_pool_there_is_less_to_ask():
    from dataclasses import replace

    from portrayal.counterfactual.attack import Attack
    from portrayal.mitigate.evaluation import examine

    few = replace(exam(), instances=(), questions=None, pool=None)
    made = examine(tiny.model(), tiny.model(), few, Attack())
    assert (dict(made.answers), dict(made.searches), list(made.words)) == ({}, {}, ["held out"])
    one = exam()
    unsure = replace(one, instances=(*one.instances[:-1], replace(one.instances[-1], exact=None)))
    assert list(examine(tiny.model(), None, unsure, Attack(steps=1)).answers) == ["pgd"]
