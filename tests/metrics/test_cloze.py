"""The last word of a caption, and a group: cases worked by hand."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.study import Study
from tests.metrics.fakes import FakeEncoder, FakeLanguageModel, use_fake_models

MAN, WOMAN = "there is a man", "there is a woman"


@pytest.fixture
def study(monkeypatch) -> Study:
    similarities = {
        ("novels and drama", MAN): 0.0,
        ("novels and drama", WOMAN): 0.6,
        ("a man skis", MAN): 0.6,
    }
    similarities |= {("a photo", "it is a man"): 0.6}
    use_fake_models(
        monkeypatch,
        FakeLanguageModel({"novels and drama": 0.25, "a man skis": 0.25}),
        FakeEncoder(similarities),
    )
    captions = ["novels and drama", "a man skis", "a photo", "no object"]
    return Study.from_frames(
        captions=pl.DataFrame({"image_id": range(4), "system": ["s"] * 4, "caption": captions}),
        objects=pl.DataFrame(
            {"image_id": range(3), "label": ["x"] * 3, "source": ["m"] * 3, "confidence": [0.5] * 3}
        ),
    )


def rows(results, term, item=None, **settings):
    return {
        m.group: m
        for m in results.measurements
        if m.term == term and m.item == item and settings.items() <= m.settings.items()
    }


def test_a_case_worked_by_hand(study):
    results = portrayal.metrics.cloze(study, attribute="gender", bootstrap=50)
    # similarity 0.6 and confidence 0.5: alpha = 0.25 ** 0.5, so 0.25 becomes 0.5; similarity 0 leaves 0.25, and 0.5
    assert rows(results, "score")["male"].value == pytest.approx((0.25 + 0.5 + 0.5) / 3)
    assert rows(results, "score")["female"].value == pytest.approx((0.5 + 0.25 + 0.5) / 3)
    assert {group: m.value for group, m in rows(results, "predicted").items()} == {
        None: 2,
        "male": 1,
        "female": 1,
    }
    assert rows(results, "undecided")[None].value == 1
    assert rows(results, "unscored")[None].value == 1
    assert {g: m.value for g, m in rows(results, "predicted", "caption: male").items()} == {
        "male": 1,
        "female": 0,
    }


def test_several_templates_stand_side_by_side(study):
    results = portrayal.metrics.cloze(
        study, attribute="gender", bootstrap=50, template=("there is a {}", "it is a {}")
    )
    first = rows(results, "predicted", template="there is a {}")
    second = rows(results, "predicted", template="it is a {}")
    assert (first["female"].value, second["female"].value, second["male"].value) == (1, 0, 1)


def test_a_template_needs_a_placeholder(study):
    for template in ("no place", "{} and {}"):
        with pytest.raises(PortrayalError, match=r"A template must contain \{\} once"):
            portrayal.metrics.cloze(study, attribute="gender", template=(template,))


def test_the_language_model_scores_the_last_word(monkeypatch):
    """Belief revision starts from the probability of the last word, not of the whole caption."""

    class LastWordModel(FakeLanguageModel):
        def last_words(self, images, texts):
            return self.hypotheses(images, [text.split()[-1] for text in texts], "mean")

    use_fake_models(monkeypatch, LastWordModel({"dog": 0.125}), FakeEncoder({}))
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": [1], "system": ["s"], "caption": ["a big dog"]}),
        objects=pl.DataFrame({"image_id": [1], "label": ["x"], "source": ["m"], "confidence": [0.5]}),
    )
    results = portrayal.metrics.cloze(study, attribute="gender", bootstrap=50)
    assert rows(results, "score")["male"].value == pytest.approx(0.125)
