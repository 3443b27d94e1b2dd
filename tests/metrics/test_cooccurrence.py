"""Co-occurrence: by hand, against a second implementation, and against the paper's counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

import portrayal
from portrayal.cli.main import run
from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import Captioner, World, make_study
from portrayal.metrics.cooccurrence import cooccurrence
from portrayal.study import Study

CAPTIONS = [
    ("1", "a man with a bat"),
    ("2", "a man"),
    ("3", "a woman with a bat"),
    ("4", "a man and a woman"),
    ("5", "a dog"),
    ("6", "a woman"),
]
OBJECTS = [("1", "bat"), ("2", "bat"), ("3", "bat"), ("4", "bat"), ("5", "bat"), ("1", "hat"), ("6", "hat")]


def study(captions=CAPTIONS, objects=OBJECTS, references=None) -> Study:
    frame = pl.DataFrame(captions, schema=["image_id", "caption"], orient="row")
    labels = pl.DataFrame(objects, schema=["image_id", "label"], orient="row") if objects else None
    human_captions = (
        pl.DataFrame(references, schema=["image_id", "caption"], orient="row") if references else None
    )
    return Study.from_frames(
        captions=frame.with_columns(system=pl.lit("s")), objects=labels, references=human_captions
    )


def values(results, term, item, system="s"):
    return {
        m.group: m.value for m in results.measurements if (m.term, m.item, m.system) == (term, item, system)
    }


def test_by_hand():
    results = cooccurrence(study(), attribute="gender")
    # bat: men 1, 2; women 3; image 4 names both and counts for neither; 5 names nobody
    assert values(results, "count", "bat") == {"male": 2, "female": 1}
    assert values(results, "bias", "bat") == pytest.approx({"male": 2 / 3, "female": 1 / 3})
    assert values(results, "bias", "hat") == pytest.approx({"male": 1 / 2, "female": 1 / 2})
    assert values(results, "count", None) == {None: 4, "male": 2, "female": 2}
    assert values(results, "overall", None) == pytest.approx({None: 1 / 2, "male": 1 / 2, "female": 1 / 2})
    assert values(results, "several", None) == {None: 1}


def test_both_each_counts_a_caption_for_every_group_it_names():
    results = cooccurrence(study(), attribute="gender", both="each")
    assert values(results, "count", "bat") == {"male": 3, "female": 2}
    assert values(results, "count", None) == {None: 5, "male": 3, "female": 3}


def test_objects_from_the_words_of_captions():
    results = cooccurrence(study(), attribute="gender", objects="words")
    assert values(results, "count", "bat") == {"male": 1, "female": 1}
    assert values(results, "bias", "hat") == {"male": None, "female": None}
    with pytest.raises(Undefined, match="names no object to look for"):
        cooccurrence(study(objects=None), attribute="gender", objects="words")


def test_a_users_own_words_for_objects(tmp_path):
    (tmp_path / "words.txt").write_text("bat, stick, club\nhat, cap\n")
    captions = [("1", "a man with two sticks"), ("2", "a woman with a cap"), ("3", "a man with a bat")]
    synonym_study = study(captions, [("1", "bat"), ("2", "hat")])
    results = cooccurrence(
        synonym_study, attribute="gender", objects="words", synonyms=str(tmp_path / "words.txt")
    )
    assert values(results, "count", "bat") == {"male": 2, "female": 0}
    assert values(results, "count", "hat") == {"male": 0, "female": 1}
    assert results.measurements[0].settings["synonyms"].startswith("words.txt@")  # without the folder
    (tmp_path / "elsewhere").mkdir()
    moved_file = (tmp_path / "words.txt").rename(tmp_path / "elsewhere" / "words.txt")
    moved_results = cooccurrence(synonym_study, attribute="gender", objects="words", synonyms=str(moved_file))
    assert [m.id for m in moved_results.measurements] == [m.id for m in results.measurements]
    with pytest.raises(PortrayalError, match="There is no file"):
        cooccurrence(synonym_study, attribute="gender", objects="words", synonyms=str(tmp_path / "none.txt"))


def test_without_objects_or_labels_there_are_counts():
    results = cooccurrence(study(objects=None))
    assert {m.attribute for m in results.measurements} == {"gender"}
    assert values(results, "count", None) == {None: 4, "male": 2, "female": 2}
    assert all(m.item is None for m in results.measurements)


def test_human_values_are_means_over_references():
    references = [("1", "a man"), ("1", "a person"), ("3", "a woman")]
    results = cooccurrence(study(references=references), attribute="gender")
    assert values(results, "count", "bat", "human") == {"male": 0.5, "female": 1}
    assert values(results, "overall", None, "human") == pytest.approx(
        {None: 2 / 3, "male": 1 / 3, "female": 2 / 3}
    )


def test_rare_objects_are_listed_but_not_tested():
    results = cooccurrence(study(), attribute="gender")
    bat = next(m for m in results.measurements if m.item == "bat" and m.term == "bias")
    assert bat.value is not None
    assert bat.reason == "too few: 3 images, fewer than 30"
    assert (bat.p, bat.q) == (None, None)


def test_only_objects_count_and_human_labels_come_first():
    frame = pl.DataFrame(CAPTIONS, schema=["image_id", "caption"], orient="row").with_columns(
        system=pl.lit("s")
    )
    rows = [
        ("1", "bat", "object", "human"),
        ("1", "red", "attribute", "human"),
        ("1", "cup", "object", "detr"),
    ]
    labels = pl.DataFrame(rows, schema=["image_id", "label", "kind", "source"], orient="row")
    results = cooccurrence(Study.from_frames(captions=frame, objects=labels), attribute="gender")
    assert {m.item for m in results.measurements} == {None, "bat"}
    assert results.measurements[0].settings["source"] == "human"
    model_results = cooccurrence(
        Study.from_frames(captions=frame, objects=labels.tail(1)), attribute="gender"
    )
    assert {m.item for m in model_results.measurements} == {None, "cup"}
    assert model_results.measurements[0].settings["source"] == "detr"


def test_a_lexicon_names_its_attribute(tmp_path):
    (tmp_path / "l.toml").write_text(
        'name = "jobs"\nattribute = "occupation"\n[groups]\na = ["man"]\nb = ["woman"]\n'
    )
    results = cooccurrence(study(), lexicon=str(tmp_path / "l.toml"))
    assert {m.attribute for m in results.measurements} == {"occupation"}


def test_too_few_resamples_are_refused():
    for n_resamples in (0, -1, 5):
        with pytest.raises(
            PortrayalError, match=f"The option 'bootstrap' must be 20 or more. Got {n_resamples} instead"
        ):
            cooccurrence(study(), attribute="gender", bootstrap=n_resamples)


def test_evidence_is_what_was_counted():
    results = cooccurrence(study(), attribute="gender")
    bias = next(m for m in results.measurements if m.item == "bat" and m.term == "bias" and m.group == "male")
    assert results.evidence_of(bias)["image_id"].to_list() == ["1", "2"]


def test_a_planted_association_is_significant_and_the_others_are_not():
    """Biased activities are associated with a group in the lab's world; the balanced ones are not."""
    lab_study = make_study(
        scenes=3000, seed=1, world=World(data_bias=1.0), captioners=[Captioner("c", neutral=0.0)]
    )
    rows = {
        m.item: m
        for m in cooccurrence(lab_study, attribute="gender").measurements
        if m.term == "bias" and m.group == "male" and m.system == "c"
    }
    assert rows["car"].q < 0.01
    assert rows["car"].value > 0.9
    assert rows["oven"].q < 0.01
    assert rows["oven"].value < 0.1
    assert rows["book"].q > 0.05


@pytest.mark.simulation
def test_p_values_are_uniform_without_associations():
    p_values = []
    for seed in range(30):
        lab_study = make_study(
            scenes=500, seed=seed, world=World(data_bias=0.0), captioners=[Captioner("c", neutral=0.0)]
        )
        results = cooccurrence(lab_study, attribute="gender", bootstrap=200)
        p_values += [
            m.p for m in results.measurements if m.p is not None and m.group == "male" and m.system == "c"
        ]
    assert len(p_values) > 100
    assert np.mean(np.array(p_values) < 0.1) == pytest.approx(0.1, abs=0.04)


def test_real_counts_agree_with_a_second_implementation(lic_gender):
    real = portrayal.read_study(lic_gender)
    results = cooccurrence(real, attribute="gender", systems=["sat"], bootstrap=20, lexicon="gender-lic")
    labels: dict[str, set[str]] = {}
    for image, label in real.objects.select("image_id", "label").iter_rows():
        labels.setdefault(image, set()).add(label)
    lexicon = {w: g for g, words in portrayal.lexicon.load_lexicon("gender").groups.items() for w in words}
    counts: Counter = Counter()
    for image, caption in (
        real.captions.filter(pl.col("system") == "sat").select("image_id", "caption").iter_rows()
    ):
        named = {
            lexicon[w] for w in caption.lower().replace(".", " ").replace("'", " ").split() if w in lexicon
        }
        if len(named) == 1:
            for label in labels.get(image, ()):
                counts[label, *named] += 1
    for m in results.measurements:
        if m.system == "sat" and m.term == "count" and m.item is not None:
            assert m.value == counts[m.item, m.group], (m.item, m.group)


def test_the_counts_the_paper_prints_for_blip_and_blip2(shared, tmp_path):
    """Sabir and Padro 2023, Table 5: 775 and 385 for BLIP, 695 and 356 for BLIP-2, within 1.5 %."""
    out = tmp_path / "karpathy"
    assert run(["import", "coco", str(shared / "captioners" / "karpathy_test"), "--out", str(out)]) == 0
    (tmp_path / "words.toml").write_text(
        'name = "man-woman"\nas_listed = true\n[groups]\nman = ["man"]\nwoman = ["woman"]\n'
    )
    results = cooccurrence(
        portrayal.read_study(out),
        attribute="gender",
        lexicon=str(tmp_path / "words.toml"),
        both="each",
        bootstrap=20,
    )
    blip, blip2 = values(results, "count", None, "blip_vit_l"), values(results, "count", None, "blip2_2.7b")
    assert (blip["man"], blip["woman"]) == (772, 382)
    assert (blip2["man"], blip2["woman"]) == (698, 361)
    for count, published in ((772, 775), (382, 385), (698, 695), (361, 356)):
        assert count == pytest.approx(published, rel=0.015)


def test_the_largest_share_has_the_interval_of_its_group():
    """Resampling the maximum itself calls equal shares unequal in a third of all studies."""
    captions = [(str(n), "a man" if n % 5 < 3 else "a woman") for n in range(100)]
    rows = {
        m.group: m
        for m in cooccurrence(study(captions, None), attribute="gender").measurements
        if m.term == "overall"
    }
    assert rows[None].value == rows["male"].value == pytest.approx(0.6)
    assert (rows[None].low, rows[None].high) == (rows["male"].low, rows["male"].high)
    assert rows[None].ideal == 0.5


def test_the_largest_of_three_shares_has_a_wider_interval(tmp_path):
    lexicon = tmp_path / "three.toml"
    lexicon.write_text('name = "three"\n[groups]\na = ["ash"]\nb = ["birch"]\nc = ["cedar"]\n')
    captions = [(str(n), ("an ash", "a birch", "a cedar")[min(n % 4, 2)]) for n in range(200)]
    results = cooccurrence(study(captions, None), attribute="tree", lexicon=str(lexicon))
    rows = {m.group: m for m in results.measurements if m.term == "overall"}
    assert rows[None].value == rows["c"].value == pytest.approx(0.5)
    assert rows[None].low < rows["c"].low
    assert rows[None].high > rows["c"].high


def test_requested_objects_are_matched_in_words_and_in_labels():
    study = Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": [1, 2, 3],
                "system": ["s"] * 3,
                "caption": ["a man", "a woman skis", "a man on skis"],
            }
        ),
        objects=pl.DataFrame({"image_id": [1, 2, 3], "label": ["ski lift", "snow", "snow"]}),
    )

    def counts(objects):
        results = cooccurrence(study, attribute="gender", objects=objects, item=("ski",), bootstrap=50)
        return {m.group: m.value for m in results.measurements if m.term == "count" and m.item == "ski"}

    assert counts("labels") == {"male": 1, "female": 0}  # "ski lift" contains ski
    assert counts("words") == {"male": 1, "female": 1}


def test_chance_is_that_of_images_whose_captions_name_a_group():
    """Captions of one object seldom name a group, of another always: no association, so few false positives."""
    rng = np.random.default_rng(7)
    false_positives = {"quiet": 0, "loud": 0}
    for trial in range(60):
        label = ["quiet"] * 400 + ["loud"] * 60 + ["other"] * 300
        is_named = rng.random(760) < np.repeat([0.1, 1.0, 0.4], [400, 60, 300])
        is_man = rng.random(760) < 0.6
        captions = [
            "a dog" if not named else "a man" if m else "a woman"
            for named, m in zip(is_named, is_man, strict=True)
        ]
        study = Study.from_frames(
            captions=pl.DataFrame({"image_id": range(760), "system": ["s"] * 760, "caption": captions}),
            objects=pl.DataFrame({"image_id": range(760), "label": label}),
        )
        results = cooccurrence(study, attribute="gender", bootstrap=99, seed=trial)
        for m in results.measurements:
            if m.term == "bias" and m.group == "male" and m.item in false_positives and m.p is not None:
                false_positives[m.item] += m.p <= 0.05
    assert false_positives["quiet"] <= 9  # of 60; 3 are expected
    assert 1 <= false_positives["loud"] <= 9


def test_the_tested_share_is_the_reported_share():
    """Only captions that mention the object count: all of these name men, whatever the image's other captions name."""
    images = [image for image in range(40) for _ in range(2)]
    study = Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": images,
                "system": ["s"] * 80,
                "sample": [0, 1] * 40,
                "caption": ["a man rides a ski", "a woman rides"] * 40,
            }
        ),
        objects=pl.DataFrame({"image_id": range(40), "label": ["ski"] * 40}),
    )
    results = cooccurrence(study, attribute="gender", objects="words", bootstrap=99)
    (row,) = [m for m in results.measurements if m.term == "bias" and m.group == "male"]
    assert (row.value, row.p) == (1.0, 0.01)


def test_people_are_no_objects_unless_requested():
    rider_study = study([("1", "a man"), ("2", "a woman")], [("1", "rider"), ("1", "bat"), ("2", "bat")])
    assert {m.item for m in cooccurrence(rider_study, attribute="gender").measurements} == {None, "bat"}
    requested = cooccurrence(rider_study, attribute="gender", item=("rider",))
    assert "rider" in {m.item for m in requested.measurements}
