"""The metric `error`: by hand, by property, and against a second implementation on real data."""

from __future__ import annotations

import json
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import load_lexicon
from portrayal.results import Results
from tests.conftest import small_study

# Four images of men, four of women:
#   men:   right "a man", right "a guy", wrong "a woman", neutral "a person"
#   women: right "a woman", wrong "a man", both "a man and a woman", neutral "a dog"
HAND = [
    ("m1", "male", "a man"),
    ("m2", "male", "a guy"),
    ("m3", "male", "a woman"),
    ("m4", "male", "a person"),
    ("w1", "female", "a woman"),
    ("w2", "female", "a man"),
    ("w3", "female", "a man and a woman"),
    ("w4", "female", "a dog"),
]


def values(results: Results, group: str | None, system: str = "s") -> dict[str, float | None]:
    return {m.term: m.value for m in results.measurements if m.group == group and m.system == system}


def test_by_hand():
    results = portrayal.metrics.error(small_study(HAND))
    assert values(results, "male") == pytest.approx(
        # named only male: m1, m2, w2 = 3; named only female: m3, w1 = 2
        {"right": 2 / 4, "wrong": 1 / 4, "neutral": 1 / 4, "both": 0, "error": 1 / 3, "ratio": 3 / 2}
    )
    assert values(results, "female") == pytest.approx(
        {"right": 1 / 4, "wrong": 1 / 4, "neutral": 1 / 4, "both": 1 / 4, "error": 1 / 2, "ratio": 2 / 3}
    )
    overall = values(results, None)
    ratio = overall.pop("ratio")
    assert overall == pytest.approx(
        {"right": 3 / 8, "wrong": 2 / 8, "neutral": 2 / 8, "both": 1 / 8, "error": 2 / 5}
    )
    assert ratio == pytest.approx(2 / 3)  # as many images of each: the first by name over the other


def test_counts_and_units():
    rows = {(m.term, m.group): m for m in portrayal.metrics.error(small_study(HAND)).measurements}
    assert (rows["right", None].n, rows["right", None].n_unit) == (8, "image")
    assert (rows["error", None].n, rows["error", None].n_unit) == (5, "caption")
    assert (rows["error", "female"].n, rows["ratio", "female"].n) == (2, 5)
    assert {rows[term, None].unit for term in ("right", "wrong", "neutral", "both", "error")} == {"share"}
    assert rows["ratio", None].unit == "ratio"
    assert rows["error", None].settings == {"lexicon": load_lexicon("gender").label}


def test_the_ideal_ratio_is_that_of_the_images():
    study = small_study([*HAND, ("m5", "male", "a man"), ("m6", "male", "a man")])
    rows = {(m.term, m.group): m for m in portrayal.metrics.error(study).measurements}
    assert rows["ratio", "female"].ideal == pytest.approx(4 / 6)
    assert rows["ratio", "male"].ideal == pytest.approx(6 / 4)
    assert rows["ratio", None].value == rows["ratio", "female"].value  # the rarer group over the commoner one


def test_an_image_counts_once_in_the_shares_and_every_caption_in_error_and_ratio():
    study = small_study(
        [("1", "male", "a man"), ("1", "male", "a woman"), ("2", "male", "a man"), ("3", "female", "a lady")]
    )
    results = portrayal.metrics.error(study)
    assert values(results, "male") == pytest.approx(
        {"right": 1.5 / 2, "wrong": 0.5 / 2, "neutral": 0, "both": 0, "error": 1 / 3, "ratio": 2 / 2}
    )


def test_many_captions_of_few_images_are_still_too_few():
    study = small_study(
        [(f"{g}{n}", g, "a man") for g in ("male", "female") for n in range(4) for _ in range(6)]
    )
    rows = {(m.term, m.group): m for m in portrayal.metrics.error(study).measurements}
    assert rows["error", "male"].n == 24
    assert rows["error", None].n == 48
    assert rows["error", None].reason == "too few: 8 images, fewer than 30"


def test_human_captions_are_measured_too():
    references = [("m1", "a man"), ("m1", "a person"), ("w1", "a man"), ("x", "not in the study")]
    results = portrayal.metrics.error(small_study(HAND, references))
    assert values(results, "male", "human")["right"] == 0.5
    assert values(results, "female", "human")["wrong"] == 1.0


def test_the_error_of_neutral_captions_is_undefined():
    study = small_study([("1", "male", "a person"), ("2", "female", "a person")])
    rows = {m.term: m for m in portrayal.metrics.error(study).measurements if m.group is None}
    assert rows["neutral"].value == 1
    assert rows["error"].value is None
    assert rows["error"].reason == "no caption names exactly one group"
    assert rows["ratio"].value is None


def test_a_group_the_lexicon_does_not_know_is_undefined_not_wrong():
    results = portrayal.metrics.error(
        small_study([*HAND, ("n1", "nonbinary", "a man"), ("n2", "nonbinary", "a person")])
    )
    unknown = [m for m in results.measurements if m.group == "nonbinary"]
    assert {m.value for m in unknown} == {None}
    assert {m.reason for m in unknown} == {"the lexicon 'gender' has no words for the group 'nonbinary'"}
    assert unknown[0].n == 2
    assert values(results, None) == values(portrayal.metrics.error(small_study(HAND)), None)


def test_a_lexicon_for_more_groups(tmp_path):
    path = tmp_path / "fruit.toml"
    path.write_text('name = "fruit"\n[groups]\na = ["apple"]\nb = ["pear"]\nc = ["plum"]\n')
    study = small_study(
        [("1", "a", "an apple"), ("2", "b", "an apple"), ("3", "c", "a plum"), ("4", "c", "a pear")]
    )
    results = portrayal.metrics.error(study, attribute="gender", lexicon=str(path))
    assert values(results, "a")["ratio"] == pytest.approx(2 / 2)  # apple twice, another fruit twice
    assert values(results, "c") == pytest.approx(
        {"right": 0.5, "wrong": 0.5, "neutral": 0, "both": 0, "error": 0.5, "ratio": 1 / 3}
    )


def test_group_names_match_whatever_their_case():
    study = small_study([(image, gender.upper(), caption) for image, gender, caption in HAND])
    assert values(portrayal.metrics.error(study), "MALE") == values(
        portrayal.metrics.error(small_study(HAND)), "male"
    )


def test_labels_no_lexicon_names():
    study = small_study([("1", "1", "a man"), ("2", "0", "a woman")])
    with pytest.raises(
        Undefined, match=r"has words for male, female, .* are 0, 1; .*--map gender:0=\.\.\.,1=\.\.\."
    ):
        portrayal.metrics.error(study)


def test_unknown_attribute_system_and_option():
    study = small_study(HAND)
    with pytest.raises(PortrayalError, match=r"Unknown attribute 'gendr'\. Did you mean 'gender'\?"):
        portrayal.metrics.error(study, attribute="gendr")
    with pytest.raises(PortrayalError, match="Unknown system 'x'"):
        portrayal.metrics.error(study, systems=["x"])
    with pytest.raises(PortrayalError, match="Unknown option of the metric 'error' 'lexicn'"):
        portrayal.metrics.error(study, lexicn="gender")


def test_evidence_is_what_was_counted():
    results = portrayal.metrics.error(small_study(HAND))
    rows = {(m.term, m.group): m for m in results.measurements}
    wrong = results.evidence_of(rows["wrong", "female"])
    assert wrong.rows() == [
        (
            rows["wrong", "female"].id,
            "w2",
            "s",
            "a man",
            '{"labelled": "female", "named": ["male"], "words": ["man"]}',
        )
    ]
    assert results.evidence_of(rows["both", None])["image_id"].to_list() == ["w3"]
    assert set(results.evidence_of(rows["error", None])["image_id"]) == {"m3", "w2"}
    assert results.evidence_of(rows["ratio", None]).height == 5


CAPTIONS = st.sampled_from(["a man", "a woman", "a man and a woman", "a person", "his dog", "Girls", "a cat"])
STUDIES = st.lists(st.tuples(st.integers(0, 20), CAPTIONS), min_size=1, max_size=40)


def study_of_rows(rows: list[tuple[int, str]]) -> portrayal.Study:
    return small_study([(f"i{image}", ("male", "female")[image % 2], caption) for image, caption in rows])


@given(STUDIES)
def test_the_four_outcomes_add_up_to_1(rows):
    results = portrayal.metrics.error(study_of_rows(rows))
    for group in (None, "male", "female"):
        shares = values(results, group)
        if shares and shares["right"] is not None:
            assert sum(shares[term] for term in ("right", "wrong", "neutral", "both")) == pytest.approx(1)
            assert all(0 <= shares[term] <= 1 + 1e-12 for term in ("right", "wrong", "neutral", "both"))


@given(STUDIES)
def test_against_fractions(rows):
    """Exact arithmetic over the same definition, written without the library's words or frames."""
    named = {
        "a man": {"male"}, "a woman": {"female"}, "a man and a woman": {"male", "female"}, "a person": set(),
        "his dog": {"male"}, "Girls": {"female"}, "a cat": set(),
    }  # fmt: skip
    results = portrayal.metrics.error(study_of_rows(rows))
    for remainder, group in enumerate(("male", "female")):
        images = sorted({image for image, _ in rows if image % 2 == remainder})
        if not images:
            continue
        sums = dict.fromkeys(("right", "wrong", "neutral", "both"), Fraction(0))
        for image in images:
            captions = [caption for other, caption in rows if other == image]
            for caption in captions:
                groups = named[caption]
                if len(groups) == 1:
                    outcome = "right" if groups == {group} else "wrong"
                else:
                    outcome = "both" if groups else "neutral"
                sums[outcome] += Fraction(1, len(captions))
        shares = values(results, group)
        for outcome, total in sums.items():
            assert shares[outcome] == pytest.approx(float(total / len(images)))
        named_groups = [(image, named[caption]) for image, caption in rows if image % 2 == remainder]
        is_right = [groups == {group} for _, groups in named_groups if len(groups) == 1]
        assert shares["error"] == (pytest.approx(is_right.count(False) / len(is_right)) if is_right else None)


def test_real_counts_agree_with_a_second_implementation(lic_gender):
    """Plain Python over the published word list: no tokeniser, lexicon, frame or weight of ours."""
    male = set(
        "man men male father gentleman gentlemen boy boys uncle husband actor prince waiter son he his him himself "
        "brother brothers guy guys emperor emperors dude dudes cowboy".split()
    )
    female = set(
        "woman women female lady ladies mother girl girls aunt wife actress princess waitress daughter she her hers "
        "herself sister sisters queen queens pregnant".split()
    )
    study = portrayal.read_study(lic_gender)
    truth = dict(study.attributes.iter_rows())
    results = portrayal.metrics.error(study, lexicon="gender-lic")
    assert len(study.systems) == 6
    for system in study.systems:
        counts = {
            (group, outcome): 0
            for group in ("male", "female")
            for outcome in ("right", "wrong", "neutral", "both")
        }
        for image, caption in (
            study.captions.filter(pl.col("system") == system).select("image_id", "caption").iter_rows()
        ):
            cleaned = "".join(c if c.isalnum() or c == "-" else " " for c in caption.lower())
            words = set(cleaned.split())
            named = {"male"} if words & male else set()
            named |= {"female"} if words & female else set()
            group = truth[image]
            if len(named) == 1:
                counts[group, "right" if named == {group} else "wrong"] += 1
            else:
                counts[group, "both" if named else "neutral"] += 1
        for m in results.measurements:
            if m.system == system and m.term in ("right", "wrong", "neutral", "both") and m.group:
                assert round(m.value * m.n) == counts[m.group, m.term], (system, m.group, m.term)
                assert results.evidence_of(m).height == counts[m.group, m.term]


def test_every_real_number_opens_its_evidence(lic_gender):
    results = portrayal.audit(portrayal.read_study(lic_gender), metrics=["error"], quick=True)
    n_evidence = dict(results.evidence.group_by("id").len().iter_rows())
    for m in results.measurements:
        assert m.value is not None
        assert (m.id in n_evidence) == (m.value > 0), (m.system, m.term, m.group)
    for detail in results.evidence.head(1000)["detail"]:
        assert set(json.loads(detail)) == {"labelled", "named", "words"}


def test_the_p_of_a_ratio_compares_with_the_ratio_of_the_labels():
    """Where everyone is named as labelled the two are equal in every resample, whatever the mix of groups."""
    women = [(f"w{n}", "female", "a woman") for n in range(40)]
    men = [(f"m{n}", "male", "a man") for n in range(60)]

    def p(rows):
        results = portrayal.metrics.error(small_study(rows), bootstrap=200)
        return {m.group: m.p for m in results.measurements if m.term == "ratio"}

    assert p(women + men) == {None: 1.0, "female": 1.0, "male": 1.0}
    misnamed = [
        (image, group, "a man" if n < 15 else caption) for n, (image, group, caption) in enumerate(women)
    ]
    p_values = p(misnamed + men)
    assert p_values["female"] < 0.01
    assert p_values["male"] < 0.01
