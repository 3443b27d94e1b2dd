"""Amplification: the printed check values, the public formulas written anew, and the lab's planted truth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import Undefined
from portrayal.lab import Annotators, Captioner, World, make_study
from portrayal.metrics.amplification.formulas import effective_count, sampling_error
from portrayal.metrics.amplification.metric import (
    amplification,
    attribute_to_task,
    bias_amplification,
    task_to_attribute,
)
from portrayal.study import Study

TRUTH = np.array([[30.0, 10.0], [10.0, 30.0]])  # rows tasks, columns groups


@pytest.mark.parametrize(
    ("p", "ba", "a_to_t", "t_to_a"),
    [
        (0.5, -0.177273, -0.1875, -0.177273),
        (4 / 3, 0.15, 0.125, 0.15),
        (1.0, 0.0, 0.0, 0.0),
    ],
)
def test_check_values(p, ba, a_to_t, t_to_a):
    predicted = np.array([[30 * p, 10], [10 + 30 * (1 - p), 30]])
    assert bias_amplification(TRUTH, predicted) == pytest.approx(ba, abs=1e-6)
    assert attribute_to_task(TRUTH, predicted) == pytest.approx(a_to_t, abs=1e-6)
    assert task_to_attribute(TRUTH, predicted) == pytest.approx(t_to_a, abs=1e-6)


def test_an_object_that_is_never_predicted_is_left_out():
    assert bias_amplification(np.array([[30, 10], [10, 30]]), np.array([[35, 5], [0, 0]])) == pytest.approx(
        35 / 40 - 0.75
    )
    assert np.isnan(bias_amplification(TRUTH, np.zeros((2, 2))))


TABLES = st.lists(st.lists(st.integers(0, 40), min_size=2, max_size=3), min_size=1, max_size=5).filter(
    lambda rows: len({len(row) for row in rows}) == 1
)


@given(TABLES)
def test_predicting_the_truth_amplifies_nothing(rows):
    table = np.array(rows, dtype=float)
    for value in (
        bias_amplification(table, table),
        attribute_to_task(table, table),
        task_to_attribute(table, table),
    ):
        assert np.isnan(value) or value == pytest.approx(0)


@given(TABLES, st.randoms())
def test_the_order_of_groups_and_objects_does_not_matter(rows, random):
    truth = np.array(rows, dtype=float) + 1
    predicted = np.roll(truth, 1, axis=0) + np.arange(truth.size).reshape(truth.shape)
    tasks, groups = (
        random.sample(range(truth.shape[0]), truth.shape[0]),
        random.sample(range(truth.shape[1]), truth.shape[1]),
    )
    reordered = truth[tasks][:, groups], predicted[tasks][:, groups]
    for function in (bias_amplification, attribute_to_task, task_to_attribute):
        assert function(*reordered) == pytest.approx(function(truth, predicted), nan_ok=True)


def study_by_hand() -> Study:
    """Eight images, one object each; captions that name the group and the object, some of them wrongly."""
    rows = [
        ("1", "male", "bat", "a man with a bat"),
        ("2", "male", "bat", "a man with a bat"),
        ("3", "male", "bat", "a man with a cup"),
        ("4", "male", "cup", "a man with a bat"),
        ("5", "female", "cup", "a woman with a cup"),
        ("6", "female", "cup", "a woman with a cup"),
        ("7", "female", "bat", "a man with a bat"),
        ("8", "female", "cup", "a person"),
    ]
    return Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": [r[0] for r in rows], "system": "s", "caption": [r[3] for r in rows]}
        ),
        attributes=pl.DataFrame({"image_id": [r[0] for r in rows], "gender": [r[1] for r in rows]}),
        objects=pl.DataFrame({"image_id": [r[0] for r in rows], "label": [r[2] for r in rows]}),
    )


def values(results, system="s"):
    return {m.term: m.value for m in results.measurements if m.system == system}


def test_a_study_by_hand():
    # Columns male, female. Labels: bat (3, 1), cup (1, 3); of images whose captions name one group, all but the last:
    # bat (3, 1), cup (1, 2). Named group by named object: bat (4, 0), cup (1, 2). Named object by labelled group:
    # bat (3, 1), cup (1, 2). Named group by labelled object: bat (4, 0), cup (1, 2).
    by_term = values(amplification(study_by_hand(), attribute="gender", set_minimum=1))
    assert by_term["ba"] == pytest.approx(((4 / 4 - 3 / 4) + (2 / 3 - 2 / 3)) / 2)
    assert by_term["a-to-t"] == pytest.approx((0 - 0 - 0 + (2 / 4 - 3 / 4)) / 4)
    # Bats are labelled and named four times, cups labelled four times and named three: (1, 2) becomes (4/3, 8/3).
    assert by_term["a-to-t-named"] == pytest.approx((0 - 0 - (4 / 3 - 1) / 4 + (8 / 3 - 3) / 4) / 4)
    assert by_term["t-to-a"] == pytest.approx(
        ((4 / 4 - 3 / 4) - (0 - 1 / 4) - (1 / 3 - 1 / 3) + (2 / 3 - 2 / 3)) / 4
    )
    assert by_term["multi"] == pytest.approx(1 / 4 / 2)
    assert by_term["multi-signed"] == pytest.approx(by_term["ba"])
    assert by_term["multi-variance"] == pytest.approx(np.var([1 / 4, 0, 0, 0]))
    assert by_term["multi-excess"] == pytest.approx(by_term["multi"] - by_term["multi-floor"])


def test_a_study_by_hand_as_published():
    """Named groups are compared with all images: the woman with the cup who is not named counts on one side only."""
    results = amplification(study_by_hand(), attribute="gender", set_minimum=1, images="all")
    by_term = values(results)
    assert by_term["ba"] == pytest.approx(((4 / 4 - 3 / 4) + (2 / 3 - 3 / 4)) / 2)
    assert by_term["t-to-a"] == pytest.approx(
        ((4 / 4 - 3 / 4) - (0 - 1 / 4) - (1 / 3 - 1 / 4) + (2 / 3 - 3 / 4)) / 4
    )
    assert by_term["multi"] == pytest.approx((abs(1 / 4) + abs(2 / 3 - 3 / 4)) / 2)
    assert by_term["multi-signed"] == pytest.approx(by_term["ba"])
    assert by_term["multi-variance"] == pytest.approx(np.var([1 / 4, 0, 0, 2 / 3 - 3 / 4]))
    assert {m.n for m in results.measurements if m.system == "s"} == {8}


def test_people_who_are_not_named_change_no_share():
    """A captioner that names everybody rightly or not at all, women with cups least, changes no share of a group."""
    study = study_by_hand()
    changed_captions = {
        "5": "a person with a cup",
        "7": "a woman with a bat",
        "4": "a man with a cup",
        "3": "a man, a bat",
    }
    captions = study.captions.with_columns(
        caption=pl.col("image_id").replace_strict(changed_captions, default=pl.col("caption"))
    )
    correct_study = Study.from_frames(captions=captions, attributes=study.attributes, objects=study.objects)
    results = amplification(correct_study, attribute="gender", set_minimum=1)
    by_term = values(results)
    for term in ("ba", "t-to-a", "multi", "multi-signed", "multi-variance"):
        assert by_term[term] == pytest.approx(0), term
    # As published, cups seem to go with men more than they do: 1/2 of those named, 1/4 of those shown.
    assert values(amplification(correct_study, attribute="gender", images="all"))["t-to-a"] == pytest.approx(
        (0 - 0 - (1 / 2 - 1 / 4) + (1 / 2 - 3 / 4)) / 4
    )
    # Images 5 and 8 name nobody, so they count only in terms that do not use the named groups.
    counts = {m.term: m.n for m in results.measurements if m.system == "s"}
    assert counts["t-to-a"] == counts["ba"] == counts["multi"] == 6
    assert counts["a-to-t"] == counts["a-to-t-named"] == 8


def test_an_image_counts_as_often_as_its_captions_name_one_group():
    """Image 1 has a second caption without a group, image 2 one with both groups: each counts half."""
    study = study_by_hand()
    second_captions = pl.DataFrame(
        {
            "image_id": ["1", "2"],
            "system": "s",
            "sample": [1, 1],
            "caption": ["a bat", "a man and a woman with a bat"],
        }
    )
    columns = ("image_id", "system", "sample", "caption")
    captions = pl.concat(
        [study.captions.select(columns), second_captions.cast(study.captions.select(columns).schema)]
    )
    two_samples = Study.from_frames(captions=captions, attributes=study.attributes, objects=study.objects)
    by_term = values(amplification(two_samples, attribute="gender", set_minimum=1))
    # Bats, labelled: 1/2 + 1/2 + 1 men and a woman; named: all of these 3 as men. Cups as before.
    assert by_term["t-to-a"] == pytest.approx(((1 - 2 / 3) - (0 - 1 / 3)) / 4)
    # Bats, named as objects too: images 1 and 2 half each, 4 and 7, all as men.
    assert by_term["ba"] == pytest.approx(((1 - 2 / 3) + 0) / 2)


def test_the_floor_counts_the_noise_of_few_captions():
    """30 and 10 labelled, 3 and 1 of them named: sqrt(.75 * .25 * (1/4 - 1/40)) for either group."""
    errors = sampling_error(np.array([[30.0, 10.0]]), np.array([4.0]))
    np.testing.assert_allclose(errors, np.sqrt(0.75 * 0.25 * (1 / 4 - 1 / 40)))
    assert (sampling_error(np.array([[30.0, 10.0]]), np.array([40.0])) == 0).all()
    assert np.isnan(sampling_error(np.array([[30.0, 10.0]]), np.array([0.0]))).all()


def test_several_captions_are_more_chances_than_their_sum():
    # Five images of which one caption in five names the set; four images that name it in full.
    np.testing.assert_allclose(
        effective_count(np.array([1.0, 4.0, 0.0]), np.array([0.2, 4.0, 0.0])), [5, 4, 0]
    )


def test_references_that_follow_the_labels_stay_at_their_floor():
    """Of five references an image only some name the object; nobody is misnamed, so nothing is above or below noise."""
    excess = []
    for seed in range(12):
        study = make_study(
            scenes=600, seed=seed, annotators=Annotators(mistakes=0.0), captioners=[Captioner("c")]
        )
        results = amplification(study, attribute="gender", sources=["human"], bootstrap=100)
        excess += [m for m in results.measurements if m.term == "multi-excess"]
    assert len(excess) == 12
    assert np.mean([m.value for m in excess]) == pytest.approx(0, abs=0.005)


def test_the_ideal_of_multi_is_its_floor():
    rows = {
        m.term: m
        for m in amplification(study_by_hand(), attribute="gender", set_minimum=1).measurements
        if m.system == "s"
    }
    assert rows["multi"].ideal == rows["multi-floor"].value
    assert rows["multi-variance"].ideal is None
    # Bat: four labelled, four named, so only sampling noise; cup: three of four named, or of three where one is named.
    least = np.sqrt(2 / np.pi) * np.sqrt(0.75 * 0.25 * (1 / 3 - 1 / 4)) / 2
    published = amplification(study_by_hand(), attribute="gender", set_minimum=1, images="all").measurements
    assert next(m for m in published if m.term == "multi-floor" and m.system == "s").value >= least


def test_sets_of_two_objects():
    study = study_by_hand()
    objects = pl.concat([study.objects, study.objects.with_columns(label=pl.lit("hat"))])
    with_hats = Study.from_frames(
        captions=study.captions.with_columns(pl.col("caption") + " and a hat"),
        attributes=study.attributes,
        objects=objects.select("image_id", "label"),
    )
    by_term = values(amplification(with_hats, attribute="gender", set_minimum=1))
    # Sets bat, cup, hat, {bat, hat}, {cup, hat}; the pairs repeat bat and cup, and hat is balanced (4, 4).
    # Among images that name somebody hats are shown with four men and three women, and named with five and two.
    assert by_term["multi"] == pytest.approx(2 * (1 / 4 + 0) / 5)
    published = values(amplification(with_hats, attribute="gender", set_minimum=1, images="all"))
    assert published["multi"] == pytest.approx(2 * (1 / 4 + abs(2 / 3 - 3 / 4)) / 5)


def test_ties_can_be_dropped():
    table = np.array([[10.0, 10.0], [10.0, 10.0]])
    assert attribute_to_task(table, table + 5) == pytest.approx(-5 / 20)
    study = study_by_hand()
    hat_study = Study.from_frames(
        captions=study.captions,
        attributes=study.attributes,
        objects=study.objects.select("image_id").with_columns(label=pl.lit("hat")),
    )
    assert values(amplification(hat_study, attribute="gender", ties="drop"))["t-to-a"] is None
    assert values(amplification(hat_study, attribute="gender"))["t-to-a"] is not None


def test_rows_of_the_union_count_images_without_objects():
    """Images without an object decide how common a group is only under 'union'; there women meet bats above chance."""
    study = study_by_hand()
    captions = study.captions.with_columns(
        pl.when(pl.col("image_id") == "5")
        .then(pl.lit("a woman with a bat"))
        .otherwise("caption")
        .alias("caption")
    )
    captions = pl.concat([captions, captions.head(1).with_columns(image_id=pl.lit("9"))])
    attributes = pl.concat([study.attributes, pl.DataFrame({"image_id": ["9"], "gender": ["male"]})])
    labels = [["bat"] if image in "15" else [] for image in "123456789"]
    objects = pl.DataFrame({"image_id": list("123456789"), "labels": labels})
    wide_study = Study.from_frames(captions=captions, attributes=attributes, objects=objects)
    inside, union = (
        values(amplification(wide_study, attribute="gender", rows=rows)) for rows in ("intersection", "union")
    )
    # bat (1, 1): even among the two images with an object; with 5 men and 4 women of 9 it is associated with women.
    # Bats named: men 1, 2, 4, 9 of 5 images, women 5, 7 of 4; so the changes are 4/5 - 1/5 and 2/4 - 1/4.
    assert inside["a-to-t"] == pytest.approx((-3 / 5 - 1 / 4) / 2)
    assert union["a-to-t"] == pytest.approx((-3 / 5 + 1 / 4) / 2)


def with_unlabelled_bats(count: int) -> Study:
    """The study by hand, and images of bats without a group label."""
    study, images = study_by_hand(), [f"u{n}" for n in range(count)]
    bats = pl.DataFrame({"image_id": images, "system": "s", "caption": "a bat"})
    labels = pl.DataFrame({"image_id": images, "label": "bat"})
    return Study.from_frames(
        captions=pl.concat([study.captions.select("image_id", "system", "caption"), bats]),
        attributes=study.attributes,
        objects=pl.concat([study.objects.select("image_id", "label"), labels]),
    )


def test_rows_of_the_union_count_images_without_a_label():
    plain = values(amplification(study_by_hand(), attribute="gender"))["t-to-a"]
    for count in (4, 16):
        inside = values(amplification(with_unlabelled_bats(count), attribute="gender"))
        assert inside["t-to-a"] == pytest.approx(plain)  # only images with a label and an object decide
    # With 4 more bats, 8 of 12 images hold bats and 4 show men: 8 * 4 / 12 = 2.67 < 3: men stay associated with bats;
    # cups 4 * 4 / 12 = 1.33 > 1, so they stay dissociated from men. No sign changes.
    few = values(amplification(with_unlabelled_bats(4), attribute="gender", rows="union"))
    assert few["t-to-a"] == pytest.approx(plain)
    # With 16 more, 20 of 24 hold bats: 20 * 4 / 24 = 3.33 > 3: bats are dissociated from men; cups 0.67 < 1.
    # Changes: bat (+1/4, -1/4), cup none for men and women; signs were (+, -, -, +), are (-, -, +, +).
    many = values(amplification(with_unlabelled_bats(16), attribute="gender", rows="union"))
    assert many["t-to-a"] == pytest.approx((-1 / 4 + 1 / 4) / 4)
    assert plain == pytest.approx((1 / 4 + 1 / 4) / 4)


def test_a_single_group_is_refused():
    study = study_by_hand()
    women = Study.from_frames(
        captions=study.captions,
        attributes=study.attributes.filter(pl.col("gender") == "female"),
        objects=study.objects,
    )
    with pytest.raises(Undefined, match="needs two groups"):
        amplification(women, attribute="gender")


def loop_by_loop(tasks, groups, task_predictions, group_predictions, same_images):
    """Directional amplification from arrays of (images, tasks) and (images, groups).

    As the public code for captions does, groups named are counted among captions that name one; groups shown among
    all images, or among the same.
    """
    keep = (tasks.sum(1) > 0) & (groups.sum(1) > 0)
    t_to_a, a_to_t = [], []
    for a in range(groups.shape[1]):
        for t in range(tasks.shape[1]):
            together = np.mean(tasks[keep, t] * groups[keep, a])
            y = 1 if together > np.mean(tasks[keep, t]) * np.mean(groups[keep, a]) + 1e-12 else -1
            with_task, in_group = tasks[:, t] == 1, groups[:, a] == 1
            known = with_task & (group_predictions.sum(1) > 0)  # captions that name exactly one group
            if known.any():
                shown = groups[known if same_images else with_task, a].mean()
                t_to_a.append(y * (group_predictions[known, a].mean() - shown))
            if in_group.any():
                a_to_t.append(y * (task_predictions[in_group, t].mean() - tasks[in_group, t].mean()))
    return np.mean(a_to_t), np.mean(t_to_a)


@pytest.mark.parametrize("compared", ["named", "all"])
def test_directions_agree_with_loops_on_a_lab_study(compared):
    study = make_study(
        scenes=400, seed=2, captioners=[Captioner("c", amplification=0.4, wrong_group={"female": 0.3})]
    )
    by_term = values(amplification(study, attribute="gender", bootstrap=20, images=compared), "c")
    labels = sorted(set(study.objects["label"]))
    images = sorted(study.attributes["image_id"])
    gender = dict(study.attributes.select("image_id", "gender").iter_rows())
    objects = {image: set() for image in images}
    for image, label in study.objects.select("image_id", "label").iter_rows():
        objects[image].add(label)
    object_finder = portrayal.lexicon.ObjectFinder(labels)
    mention_finder = portrayal.lexicon.MentionFinder(portrayal.lexicon.load_lexicon("gender"))
    caption = dict(study.captions.select("image_id", "caption").iter_rows())
    order = ("female", "male")
    tasks = np.array([[label in objects[i] for label in labels] for i in images], dtype=float)
    groups = np.array([[gender[i] == g for g in order] for i in images], dtype=float)
    mentioned = np.array(
        [[label in object_finder.labels(caption[i]) for label in labels] for i in images], dtype=float
    )
    named = np.array(
        [[mention_finder.groups(caption[i]) == (g,) for g in order] for i in images], dtype=float
    )
    a_to_t, t_to_a = loop_by_loop(tasks, groups, mentioned, named, compared == "named")
    assert by_term["a-to-t"] == pytest.approx(a_to_t)
    assert by_term["t-to-a"] == pytest.approx(t_to_a)


def test_amplification_grows_with_the_planted_dial():
    rows = []
    for dial in (0.0, 0.3, 0.6, 0.9):
        study = make_study(
            scenes=4000,
            seed=1,
            world=World(data_bias=0.5),
            captioners=[Captioner("c", amplification=dial, neutral=0.0)],
        )
        results = amplification(study, attribute="gender", bootstrap=100, systems=["c"])
        rows.append(next(m for m in results.measurements if m.term == "ba" and m.system == "c"))
    assert [m.value for m in rows] == sorted(m.value for m in rows)
    assert rows[0].low <= 0 <= rows[0].high
    assert rows[-1].low > 0.05
