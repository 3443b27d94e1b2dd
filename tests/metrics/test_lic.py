"""LIC: against the published protocol and numbers, a plain implementation, chance, and the lab."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import portrayal
from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import make_study
from portrayal.metrics import lic
from portrayal.metrics.shared.classifier.corpus import unigrams_and_bigrams
from portrayal.metrics.shared.classifier.corpus_builder import CorpusBuilder
from portrayal.metrics.shared.classifier.cross_validation import Protocol
from portrayal.metrics.shared.classifier.linear_classifier import LinearClassifier
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.splits import PAPER_SEEDS, leak_safe_folds, paper_split
from portrayal.results import Results
from portrayal.study import Study

SYSTEMS = ("nic-th10", "sat", "oscar", "nic-plus", "nic-equalizer")
HUMAN_TERMS = ("lic_d", "lic_m_paired", "lic")


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(400, 3)


@pytest.fixture(scope="module")
def results(lab: Study) -> Results:
    return lic(lab, attribute="gender", permutations=20, bootstrap=100)


def value(results: Results, term: str, system: str | None = None, group=None, item=None):
    return row(results, term, system, group, item).value


def row(results: Results, term: str, system: str | None = None, group=None, item=None):
    rows = [
        m
        for m in results.measurements
        if (m.term, m.group, m.item) == (term, group, item) and system in (None, m.system)
    ]
    assert len(rows) == 1 or system is None, (term, len(rows))
    return rows[0]


def study_of(
    captions: list[str], groups: list[str], references: dict[int, list[str]] | None = None, **more
) -> Study:
    images = [f"{index:04d}" for index in range(len(captions))]
    human = None
    if references is not None:
        rows = [(images[index], text) for index, texts in references.items() for text in texts]
        human = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    return Study.from_frames(
        captions=pl.DataFrame({"image_id": images, "system": "s", "caption": captions}),
        attributes=pl.DataFrame({"image_id": images, "gender": groups}),
        references=human,
        **more,
    )


def leaking_captions(size: int = 200, seed: int = 0) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(seed)
    groups = ["female" if yes else "male" for yes in rng.random(size) < 0.4]
    captions = [
        f"a person {'cooks' if (group == 'female') == (rng.random() < 0.8) else 'skis'} near w{rng.integers(60)}"
        for group in groups
    ]
    return captions, groups


# The published data


def test_the_published_split_gives_the_reference_values(lic_gender):
    study = portrayal.read_study(lic_gender).select_systems(SYSTEMS)
    results = lic(study, attribute="gender", split="paper", bootstrap=20)
    expected = dict(zip(SYSTEMS, (43.4, 44.7, 48.8, 46.6, 51.2), strict=True))
    unseen = dict(zip(SYSTEMS, (231, 296, 373, 133, 137), strict=True))  # table 3 of the first reproduction
    for system, reference in expected.items():
        lic_m = row(results, "lic_m", system)
        assert lic_m.value == pytest.approx(reference, abs=1.0)
        assert lic_m.n == 662
        assert lic_m.settings["seeds"] == list(PAPER_SEEDS)
        assert 0.5 < lic_m.std_seed < 2.5
        assert 41 <= value(results, "lic_d", system) <= 45
        assert row(results, "lic_d", system).n == 520
        assert "fewer than 5 human captions" in row(results, "lic", system).reason
        assert value(results, "lic", system) == pytest.approx(
            value(results, "lic_m_paired", system) - value(results, "lic_d", system)
        )
        assert row(results, "unseen", system, item="raw").n == pytest.approx(unseen[system], abs=1)
        assert value(results, "unseen", system, item="raw") < lic_m.value
        assert value(results, "duplicates", system) == pytest.approx(
            100 * (1 - row(results, "unseen", system, item="masked").n / 662), abs=0.1
        )


def test_leak_safe_folds_give_the_reference_values(lic_gender):
    study = portrayal.read_study(lic_gender).select_systems(SYSTEMS)
    study = Study(captions=study.captions, attributes=study.attributes)  # no human captions
    results = lic(study, attribute="gender", permutations=0, bootstrap=200, seeds=(0, 1))
    expected = dict(zip(SYSTEMS, (43.0, 44.9, 49.4, 43.6, 47.5), strict=True))
    errors = dict(zip(SYSTEMS, (1.1, 1.1, 1.1, 1.9, 2.0), strict=True))
    for system, reference in expected.items():
        lic_m = row(results, "lic_m", system)
        assert lic_m.value == pytest.approx(reference, abs=0.7)
        assert lic_m.n == 10_780
        assert lic_m.se_data == pytest.approx(errors[system], abs=0.2)
        assert value(results, "lic_d", system) is None
        assert "no human captions" in row(results, "lic", system).reason


def test_chance_on_the_published_data_is_not_25(lic_gender):
    study = portrayal.read_study(lic_gender).select_systems(["sat"])
    results = lic(study, attribute="gender", permutations=10, bootstrap=20, seeds=(0,))
    assert 27.5 < value(results, "null_m") < 28.9
    assert 28.8 < value(results, "null_d") < 30.0
    lic_m = row(results, "lic_m")
    assert lic_m.ideal == value(results, "null_m")
    assert lic_m.p == pytest.approx(1 / 11)
    ideal = row(results, "lic_m_paired").ideal
    expected = (value(results, "lic_m_paired") - ideal) - (value(results, "lic_d") - value(results, "null_d"))
    assert value(results, "lic_excess") == pytest.approx(expected)


def test_common_folds_report_the_share_of_training_captions(lic_gender):
    study = portrayal.read_study(lic_gender).select_systems(["nic-equalizer"])
    study = Study(captions=study.captions, attributes=study.attributes)
    lic_m = row(
        lic(study, attribute="gender", split="common", folds=5, permutations=0, bootstrap=20, seeds=(0,)),
        "lic_m",
    )
    assert "common folds keep 28% of the training captions" in lic_m.reason


def test_race_words_stay_and_a_vocabulary_gap_is_reported(shared, tmp_path, command):
    out = tmp_path / "race"
    source = shared / "lic" / "bias_data" / "Show-Attend-Tell"
    vocabulary = shared / "lic" / "bias_data" / "model_vocab"
    references = shared / "coco" / "human_captions_val2014.jsonl"
    code, _, _ = command(
        "import", "lic", source, vocabulary, "--attribute", "race", "--references", references, "--out", out
    )
    assert code == 0
    results = lic(portrayal.read_study(out), attribute="race", split="paper", seeds=(0, 12), bootstrap=20)
    lic_m = row(results, "lic_m")
    assert lic_m.settings["mask"] is None
    assert lic_m.n == 220
    assert "not in its vocabulary (man, woman," in row(results, "lic_d").reason


# Against a plain implementation


def plain(texts, groups, splits, balanced) -> float:
    """LIC by scikit-learn, one caption a row."""
    names = sorted(set(groups))
    scores_by_group = {name: [] for name in names}
    for train, test in splits:
        vectorizer = CountVectorizer(
            analyzer=lambda words: unigrams_and_bigrams(words), binary=True, min_df=2
        )
        train_matrix = vectorizer.fit_transform([texts[p] for p in train])
        model = LogisticRegression(
            C=0.1, tol=1e-8, max_iter=10_000, class_weight="balanced" if balanced else None
        )
        model.fit(train_matrix, [groups[p] for p in train])
        proba = model.predict_proba(vectorizer.transform([texts[p] for p in test]))
        for index, row in zip(test, proba, strict=True):
            true = names.index(groups[index])
            scores_by_group[groups[index]].append(row[true] if row.argmax() == true else 0.0)
    return 100 * float(np.mean([np.mean(group_scores) for group_scores in scores_by_group.values()]))


def test_crossfit_agrees_with_a_plain_implementation(lab):
    system = lab.systems[-1]
    results = lic(lab, attribute="gender", systems=[system], permutations=0, bootstrap=20, seeds=(5, 9))
    caption_of = dict(lab.captions_of(system).select("image_id", "caption").iter_rows())
    truth = dict(lab.labels("gender").iter_rows())
    images = sorted(image for image in caption_of if image in truth)
    texts = Mask.for_attribute("gender", None, None).apply([caption_of[image] for image in images])
    groups = [truth[image] for image in images]
    by_hand = []
    for seed in (5, 9):
        fold = leak_safe_folds(texts, 10, seed)
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(10)]
        by_hand.append(plain(texts, groups, splits, True))
    assert value(results, "lic_m", system) == pytest.approx(np.mean(by_hand), abs=0.01)
    assert row(results, "lic_m", system).std_seed == pytest.approx(np.std(by_hand, ddof=1), abs=0.01)


def test_the_published_split_agrees_with_a_plain_implementation(lic_gender):
    study = portrayal.read_study(lic_gender).select_systems(["nic-plus"])
    captions = study.captions
    truth = dict(study.labels("gender").iter_rows())
    groups = [truth[image] for image in captions["image_id"]]
    texts = Mask.for_attribute("gender", None, None).apply(captions["caption"].to_list())
    split = paper_split(groups, 0)
    by_hand = plain(texts, groups, [(split.train, split.test)], False)
    alone = Study(captions=captions, attributes=study.attributes)
    results = lic(alone, attribute="gender", split="paper", seeds=(0,), bootstrap=20)
    assert value(results, "lic_m") == pytest.approx(by_hand, abs=0.01)


# Rows


def test_every_term_has_its_rows(results, lab):
    terms = Counter(m.term for m in results.measurements if m.system == lab.systems[0] and m.item is None)
    grouped_terms = (
        "lic_m lic_m_calibrated lic_d lic_m_paired lic lic_excess null_m null_d accuracy confidence".split()
    )
    assert {term: count for term, count in terms.items() if term in grouped_terms} == dict.fromkeys(
        grouped_terms, 3
    )
    assert terms["duplicates"] == 1
    assert {m.unit for m in results.measurements if m.term != "word"} == {"percent"}
    assert {m.system for m in results.measurements} == set(lab.systems)
    words = [m for m in results.measurements if m.term == "word"]
    assert {m.unit for m in words} == {"contribution"}
    assert all(m.low < m.value < m.high and (m.q is not None) == (m.n >= 30) for m in words)
    assert len({m.id for m in results.measurements}) == len(results.measurements)


def test_lic_is_the_mean_over_groups(results, lab):
    for system in lab.systems:
        for term in ("lic_m", "lic_d", "accuracy", "null_m", "lic"):
            group_values = [value(results, term, system, group) for group in lab.groups("gender")]
            assert value(results, term, system) == pytest.approx(np.mean(group_values))


def test_amplification_raises_lic(results, lab):
    faithful, amplifying = "faithful", "stereotyping"
    assert (
        value(results, "lic_m", amplifying)
        > value(results, "lic_m", faithful)
        > value(results, "null_m", faithful)
    )
    assert row(results, "lic_m", amplifying).p == pytest.approx(1 / 21)


def test_evidence_has_every_tested_caption_with_its_words(results, lab):
    system = lab.systems[0]
    captions = results.evidence_of(row(results, "lic_m", system))
    assert captions.height == row(results, "lic_m", system).n
    scores: dict[str, list[float]] = {}
    for caption, detail in captions.select("caption", "detail").iter_rows():
        detail_of = json.loads(detail)
        words = [word for word, _ in detail_of["parts"]]
        assert len(words) >= len(caption.split())
        assert "man" not in words
        scores.setdefault(detail_of["labelled"], []).append(detail_of["score"])
        assert (detail_of["score"] > 0) == (detail_of["labelled"] == detail_of["predicted"])
    first = lic(lab, attribute="gender", systems=[system], permutations=0, bootstrap=20, seeds=(0,))
    by_hand = 100 * np.mean([np.mean(group_scores) for group_scores in scores.values()])
    assert by_hand == pytest.approx(value(first, "lic_m"), abs=0.05)
    strongest = max(
        (m for m in results.measurements if m.term == "word" and m.system == system), key=lambda m: m.value
    )
    evidence = results.evidence_of(strongest)
    assert evidence.height
    assert all(strongest.item in [w for w, _ in json.loads(d)["parts"]] for d in evidence["detail"])


def test_leak_safe_folds_do_not_depend_on_the_order_of_rows(lab, results):
    system = lab.systems[1]
    shuffled = Study(
        captions=lab.captions.sample(fraction=1, shuffle=True, seed=1),
        attributes=lab.attributes.sample(fraction=1, shuffle=True, seed=2),
        references=lab.references,
    )
    shuffled_results = lic(shuffled, attribute="gender", systems=[system], permutations=20, bootstrap=100)
    assert [m.as_dict() for m in shuffled_results.measurements] == [
        m.as_dict() for m in results.measurements if m.system == system
    ]


def test_only_the_given_settings_are_measured(lab):
    options = {"attribute": "gender", "systems": list(lab.systems[:1]), "permutations": 0, "bootstrap": 20}
    both = lic(lab, split=("paper", "crossfit"), **options)
    assert {m.settings["split"] for m in both.measurements} == {"paper", "crossfit"}
    alone = lic(lab, split="paper", **options)
    assert [m.value for m in alone.measurements] == [
        m.value for m in both.measurements if m.settings["split"] == "paper"
    ]
    assert not any(m.term in ("null_m", "null_d", "lic_excess") for m in alone.measurements)
    assert row(alone, "lic_m").ideal is None
    for option, wrong, right in (
        ("split", "papr", "paper"),
        ("split", ("crossfit", "comon"), "common"),
        ("vocabulary", "observd", "observed"),
        ("balance", "weight", "weights"),
        ("classifier", "linaer", "linear"),
    ):
        with pytest.raises(PortrayalError, match=f"Did you mean '{right}'"):
            lic(lab, **options, **{option: wrong})


def test_unseen_is_what_the_split_of_that_name_measures(lab):
    results = lic(
        lab, attribute="gender", systems=[lab.systems[0]], split="paper-unseen", seeds=(0, 12), bootstrap=20
    )
    masked = row(results, "unseen", item="masked")
    assert masked.value == pytest.approx(value(results, "lic_m"))
    assert masked.n == pytest.approx(row(results, "lic_m").n, abs=1)
    assert masked.n <= row(results, "unseen", item="raw").n


def test_seeds_of_folds_follow_the_seed(lab):
    options = {"attribute": "gender", "systems": [lab.systems[0]], "permutations": 0, "bootstrap": 20}
    first, second = (lic(lab, seed=seed, **options) for seed in (0, 2))
    assert row(first, "lic_m").settings["seeds"] is None
    assert row(first, "lic_m").settings["repeats"] == 5
    assert row(first, "lic_m").id == row(second, "lic_m").id
    given = lic(lab, seeds=(10, 11, 12, 13, 14), **options)
    assert value(given, "lic_m") == value(second, "lic_m") != value(first, "lic_m")
    assert row(given, "lic_m").settings["seeds"] == [10, 11, 12, 13, 14]


# Attributes, groups, vocabularies


def test_three_groups_and_combinations(lab):
    attribute = f"gender+{next(name for name in lab.attribute_names if name != 'gender')}"
    results = lic(
        lab, attribute=attribute, systems=[lab.systems[0]], permutations=5, bootstrap=20, seeds=(0,)
    )
    groups = lab.groups(attribute)
    assert len(groups) > 2
    assert all("+" in group for group in groups)
    chance = 100 / len(groups) ** 2
    assert chance < value(results, "null_m") < chance + 12
    assert {m.group for m in results.measurements if m.term == "word"} <= set(groups)
    with pytest.raises(PortrayalError, match="Unknown attribute 'agee'"):
        lic(lab, attribute="gender+agee")
    with pytest.raises(PortrayalError, match="Unknown attribute"):
        lic(lab, attribute="gender+gender")


def test_human_captions_are_restricted_to_the_vocabulary():
    captions, groups = leaking_captions()
    references = {
        number: [f"a man {'wok' if 'cooks' in text else 'snow'} here"] * 5
        for number, text in enumerate(captions)
    }
    study = study_of(captions, groups, references, vocabularies={"s": ["a", "person", "near", "WOK"]})
    results = {
        rule: lic(study, attribute="gender", permutations=0, bootstrap=20, seeds=(0,), vocabulary=rule)
        for rule in ("system", "observed", "none", "common")
    }
    assert value(results["none"], "lic_d") is None  # only two texts: too few for ten folds
    corpus_builder = CorpusBuilder(
        study,
        dict.fromkeys((f"{n:04d}" for n in range(200)), 0),
        Mask.for_attribute("gender", None, None),
        False,
    )
    assert corpus_builder.vocabulary("s", "none") is None
    assert corpus_builder.vocabulary("s", "system") == {"a", "person", "near", "wok", "genderword"}
    assert {"cooks", "skis", "w0", "genderword"} < corpus_builder.vocabulary("s", "observed")
    common = corpus_builder.vocabulary(
        "s", "common"
    )  # as many as the system's vocabulary: the four most frequent words of human captions
    assert {"a", "genderword", "here"} < common
    assert len(common) == 4
    assert (
        row(lic(study, attribute="gender", permutations=0, bootstrap=20), "lic_m").settings["vocabulary"]
        == "system"
    )
    bare = study_of(captions, groups, references)
    assert (
        row(lic(bare, attribute="gender", permutations=0, bootstrap=20), "lic_m").settings["vocabulary"]
        == "observed"
    )
    lacking = lic(bare, attribute="gender", permutations=0, bootstrap=20, vocabulary="system")
    assert "no vocabulary of 's'" in row(lacking, "lic_d").reason
    assert value(lacking, "lic_m") is not None


def test_images_with_too_few_human_captions_are_left_out_of_the_pair():
    captions, groups = leaking_captions(300)
    references = {
        number: [f"{text} told {number % 7} {time}" for time in range(2 if number % 5 == 0 else 3)]
        for number, text in enumerate(captions)
    }
    study = study_of(captions, groups, references)
    results = lic(study, attribute="gender", permutations=0, bootstrap=50)
    lic_row = row(results, "lic")
    assert lic_row.n == 240
    assert "60 of 300 images have fewer than 3 human captions" in lic_row.reason
    assert row(results, "lic_m").n == 300
    kept = [number for number in range(300) if number % 5]
    alone = study_of([captions[n] for n in kept], [groups[n] for n in kept])
    image_ids = {f"{position:04d}": f"{n:04d}" for position, n in enumerate(kept)}
    alone = Study(
        captions=alone.captions.with_columns(pl.col("image_id").replace(image_ids)),
        attributes=alone.attributes.with_columns(pl.col("image_id").replace(image_ids)),
    )
    results_alone = lic(alone, attribute="gender", permutations=0, bootstrap=50)
    assert value(results_alone, "lic_m") == pytest.approx(value(results, "lic_m_paired"))
    with_two_references = lic(study, attribute="gender", permutations=0, bootstrap=50, references=2)
    assert row(with_two_references, "lic").n == 300
    assert row(with_two_references, "lic").reason is None


def test_repeats_sample_other_captions_of_an_image():
    captions, groups = leaking_captions()
    images = [f"{number:04d}" for number in range(200)]
    study = Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": images * 2,
                "system": "s",
                "sample": [0] * 200 + [1] * 200,
                "caption": captions + [f"{text} again" for text in captions],
            }
        ),
        attributes=pl.DataFrame({"image_id": images, "gender": groups}),
    )
    results = lic(study, attribute="gender", permutations=5, bootstrap=50)
    lic_m = row(results, "lic_m")
    assert lic_m.n == 200
    assert lic_m.low < lic_m.value < lic_m.high
    assert {caption.endswith("again") for caption in results.evidence_of(lic_m)["caption"]} == {True, False}


def test_masks_and_lists_change_the_input():
    rng = np.random.default_rng(0)
    groups = ["female", "male"] * 100
    captions = [f"a {'woman' if group == 'female' else 'man'} at w{rng.integers(80)}" for group in groups]
    options = {"attribute": "gender", "permutations": 0, "bootstrap": 20, "seeds": (0,)}
    study = study_of(captions, groups)
    assert value(lic(study, mask=False, **options), "accuracy") == 100
    assert value(lic(study, **options), "accuracy") < 65
    removed = lic(study, mask_mode="remove", **options)
    assert row(removed, "lic_m").settings["mask_mode"] == "remove"
    words = {m.item for m in removed.measurements if m.term == "word"}
    assert "genderword" not in words
    assert "a" in words


# What cannot be measured


@pytest.mark.parametrize(
    ("captions", "groups", "reason"),
    [
        (["a man skis"] * 60, ["male", "female"] * 30, "10 folds need as many different captions"),
        (
            [f"w{n} man skis" for n in range(60)],
            ["male"] * 59 + ["female"],
            "no caption of one of the groups",
        ),
    ],
)
def test_undefined_lic_has_a_reason(captions, groups, reason):
    results = lic(study_of(captions, groups), attribute="gender", bootstrap=20)
    lic_m = row(results, "lic_m")
    assert lic_m.value is None
    assert reason in lic_m.reason


def test_one_group_is_refused_and_few_images_are_marked():
    with pytest.raises(Undefined, match="has 1"):
        lic(study_of(["a", "b"], ["male", "male"]), attribute="gender")
    captions, groups = leaking_captions(50)
    lic_m = row(lic(study_of(captions, groups), attribute="gender", permutations=5, bootstrap=20), "lic_m")
    assert lic_m.reason.startswith("too few")
    assert lic_m.p is None
    without_references = lic(study_of(*leaking_captions()), attribute="gender", permutations=0, bootstrap=20)
    assert {value(without_references, term) for term in HUMAN_TERMS} == {None}


def test_a_system_without_a_group_is_undefined_and_the_others_are_measured():
    captions, groups = leaking_captions()
    study = study_of(captions, groups)
    male_captions = study.captions.filter(
        pl.col("image_id").is_in(study.attributes.filter(gender="male")["image_id"].to_list())
    )
    both = Study(
        captions=pl.concat([study.captions, male_captions.with_columns(pl.lit("t").alias("system"))]),
        attributes=study.attributes,
    )
    results = lic(both, attribute="gender", permutations=0, bootstrap=20)
    assert value(results, "lic_m", "s") is not None
    assert "no captioned image of female" in row(results, "lic_m", "t").reason


# Chance


def test_p_is_uniform_under_the_null_hypothesis():
    """Labels of the lab's captions are permuted."""
    captions = make_study(240, 1).captions_of("stereotyping")["caption"].to_list()
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 77])
        truth = {f"{n:04d}": int(g) for n, g in enumerate(rng.random(240) < 0.5)}
        study = study_of(captions, ["x"] * 240)
        corpus_builder = CorpusBuilder(study, truth, Mask.for_attribute("gender", None, None), False)
        corpus = corpus_builder.system_corpora("s", (seed,))
        protocol = Protocol("crossfit", "weights", (seed,), 5, LinearClassifier(2))
        null = protocol.permutation_scores([corpus], seed, 39).mean(axis=1)
        pred = protocol.cross_val_predict([corpus])[0][0]
        observed = np.mean([pred.score[pred.group == g].mean() for g in (0, 1)])
        p_values.append((1 + np.sum(null >= observed)) / 40)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert 0.01 <= np.mean(np.array(p_values) <= 0.05) <= 0.1


# The command


def test_the_command_takes_splits_seeds_and_shows_them_side_by_side(command, lab, tmp_path):
    portrayal.study.write_study(lab, tmp_path / "study")
    arguments = (
        "score",
        "lic",
        tmp_path / "study",
        "--attribute",
        "gender",
        "--permutations",
        0,
        "--bootstrap",
        20,
        "--workers",
        1,
    )
    out = tmp_path / "lic.json"
    code, stdout, _ = command(
        *arguments, "--split", "crossfit", "--split", "paper", "--seeds", "0,12", "--json", out
    )
    assert code == 0
    assert "side by side" in stdout
    assert "split paper" in stdout
    assert "The order of systems by lic_m" in " ".join(stdout.split())
    assert {m.settings["split"] for m in Results.load(out).measurements} == {"crossfit", "paper"}
    code, _, stderr = command(*arguments, "--seeds", "0,x")
    assert code == 2
    assert "whole numbers separated by commas" in stderr
    code, _, stderr = command(*arguments, "--split", "random")
    assert code == 2
    code, _, stderr = command(*arguments, "--permutations", -1)
    assert code == 2
    assert "must be 0 or more" in stderr


def test_workers_change_no_number(lab):
    options = {"attribute": "gender", "permutations": 5, "bootstrap": 20, "seeds": (0,)}
    alone = portrayal.auditing.score(lab, lic, **options)
    spread = portrayal.auditing.score(lab, lic, workers=2, **options)
    assert {m.id: m.as_dict() for m in alone.measurements} == {m.id: m.as_dict() for m in spread.measurements}
    with pytest.raises(Undefined):
        portrayal.auditing.score(study_of(["a", "b"], ["x", "x"]), lic, attribute="gender", workers=2)


def test_sensitivity_changes_one_setting_at_a_time(lab):
    system = lab.systems[0]
    results = lic(lab, attribute="gender", systems=[system], sensitivity=True, bootstrap=20, seeds=(0,))
    settings = [
        json.loads(text) for text in dict.fromkeys(json.dumps(m.settings) for m in results.measurements)
    ]
    base, *others = settings
    changed = [[name for name in base if base[name] != variant[name]] for variant in others]
    assert all(len(names) == 1 for names in changed)
    assert {names[0] for names in changed} == {"mask", "mask_mode", "vocabulary", "balance", "C"}
    assert [variant["C"] for variant in others if variant["C"] != 0.1] == [pytest.approx(0.01), 1.0]
    assert {m.settings["permutations"] for m in results.measurements} == {0}
    assert not any(m.term == "word" for m in results.measurements if m.settings != base)


def test_sensitivity_knows_which_systems_have_a_vocabulary():
    captions, groups = leaking_captions()
    study = study_of(
        captions, groups, {n: [f"{text} {k}" for k in range(5)] for n, text in enumerate(captions)}
    )
    both = Study(
        captions=pl.concat([study.captions, study.captions.with_columns(pl.lit("t").alias("system"))]),
        attributes=study.attributes,
        references=study.references,
        vocabularies={"t": ("a", "person", "near")},
    )
    results = lic(both, attribute="gender", sensitivity=True, bootstrap=20, seeds=(0,))
    rules = {
        system: {m.settings["vocabulary"] for m in results.measurements if m.system == system}
        for system in "st"
    }
    assert rules == {"s": {"observed", "common", "none"}, "t": {"system", "observed", "common", "none"}}


def test_a_C_without_convergence_is_refused(lab):
    for C in (1e9, float("inf"), float("nan")):
        with pytest.raises(PortrayalError, match="must be"):
            lic(lab, attribute="gender", C=C)


def test_few_permutations_widen_the_interval_of_the_excess(lab):
    options = {"attribute": "gender", "systems": ["faithful"], "bootstrap": 200, "seeds": (0, 1)}
    few, many = (lic(lab, permutations=n_permutations, **options) for n_permutations in (3, 60))
    plain = row(many, "lic")
    width = [row(results, "lic_excess").high - row(results, "lic_excess").low for results in (few, many)]
    assert width[0] > width[1] >= plain.high - plain.low
    assert value(many, "lic_excess") == pytest.approx(
        plain.value - (row(many, "lic_m_paired").ideal - value(many, "null_d"))
    )


def test_the_mask_token_has_no_word_contribution(results):
    assert not any(m.item == "genderword" for m in results.measurements if m.term == "word")


@pytest.mark.simulation
def test_coverage_where_system_and_human_captions_share_only_the_group():
    """The captions of both are independent, so the paired difference cancels nothing."""
    places = "in a park|at home|on snow|near water|by a car|with a dog|under trees|in a kitchen".split("|")

    def caption(group: str, rng: np.random.Generator) -> str:
        verbs = (
            ("cooks", "reads", "sings")
            if (group == "female") == (rng.random() < 0.7)
            else ("skis", "runs", "rows")
        )
        return f"a person {rng.choice(verbs)} {rng.choice(places)} w{rng.integers(9)}"

    values, intervals = [], []
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        groups = rng.choice(["female", "male"], 400).tolist()
        references = {n: [caption(group, rng) for _ in range(5)] for n, group in enumerate(groups)}
        study = study_of([caption(group, rng) for group in groups], groups, references)
        results = lic(study, attribute="gender", permutations=0, bootstrap=100, seeds=(0, 1))
        values.append([row(results, term).value for term in ("lic_m", "lic_d", "lic")])
        intervals.append(
            [(row(results, term).low, row(results, term).high) for term in ("lic_m", "lic_d", "lic")]
        )
    truth = np.mean(values, axis=0)
    low, high = np.moveaxis(np.array(intervals), 2, 0)
    coverage = np.mean((low <= truth) & (truth <= high), axis=0)
    # 51 of 60; with a coverage of 95 %, fewer occur once in 400 runs
    assert (coverage >= 0.85).all(), coverage


def test_several_captions_of_an_image_count_whatever_the_order_of_rows():
    study = make_study(80, seed=4)
    twice = pl.concat([study.captions, study.captions.with_columns(sample=pl.lit(1, study.captions["sample"].dtype),
                       caption=pl.col("caption") + " again")])  # fmt: skip
    both = [
        replace(study, captions=twice),
        replace(study, captions=twice.sample(fraction=1, shuffle=True, seed=2)),
    ]
    rows = [
        {(m.system, m.term): m.value
         for m in lic(study_variant, attribute="gender", permutations=0, seeds=(0,), bootstrap=20).measurements
         if m.group is None and m.item is None and m.term == "lic_m"}
        for study_variant in both
    ]  # fmt: skip
    assert rows[0]
    assert rows[0] == rows[1]
