"""Sentences of an audit: each agrees with its rows and names the worse-off group and the uncertainty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from portrayal.metrics import CARDS
from portrayal.mitigate.captions.card import CARD as CAPTION_MITIGATION_CARD
from portrayal.mitigate.card import CARD as MITIGATION_CARD
from portrayal.questions import QUESTIONS, question_of
from portrayal.report.findings.findings import (
    AS_HUMAN,
    FINDING,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    OBSERVATION,
    SUGGESTIVE,
    TOO_FEW,
    UNDEFINED,
    conclusions,
)
from portrayal.report.page.page import render
from portrayal.results import REPLICATES_SCHEMA, Measurement, Results, join_cautions
from portrayal.statements import Statement, fill, statements_of
from portrayal.study.cautions import Caution

ALL_CARDS = {
    card.name: card.as_dict() for card in (*CARDS.values(), CAPTION_MITIGATION_CARD, MITIGATION_CARD)
}


def row(metric, term, value, low=None, high=None, **overrides):
    """A row as its metric writes it: unit, ideal and direction come from the card."""
    card_term = next(candidate for candidate in ALL_CARDS[metric]["terms"] if candidate["name"] == term)
    fields = {name: card_term[name] for name in ("unit", "ideal", "better")}
    fields |= {"system": "oscar", "attribute": "gender", "n": 500}
    return Measurement(metric, term, value=value, low=low, high=high, **{**fields, **overrides})


def results(*rows):
    return Results(tuple(rows), provenance={"cards": ALL_CARDS})


def sentences(*rows):
    return [(sentence.state, sentence.text) for sentence in conclusions(results(*rows)).sentences]


def findings(*rows):
    return [(finding.group, finding.text) for finding in conclusions(results(*rows)).findings]


def by_group(metric, term, overall, **groups):
    """A headline, and rows of groups: (value, low, high) each."""
    return [
        row(metric, term, *overall),
        *(row(metric, term, *numbers, group=group) for group, numbers in groups.items()),
    ]


def test_group_finding_names_the_worse_group_both_values_and_the_difference():
    """By hand (MOVER): .141 - .039 = .102; low .102 - hypot(.141 - .117, .053 - .039) = .074,
    high .102 + hypot(.169 - .141, .039 - .028) = .132."""
    rows = by_group(
        "error", "error", (0.091, 0.076, 0.109), female=(0.141, 0.117, 0.169), male=(0.039, 0.028, 0.053)
    )
    assert findings(*rows) == [
        ("female", "When oscar names one gender, it is the wrong one more often for female than for male: 14.1 % for "
         "female, 3.9 % for male; difference +10.2 points (95 % CI [7.4, 13.2]).")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("female", "male", "worse"),
    [((0.80, 0.78, 0.82), (0.95, 0.93, 0.97), "female"), ((0.95, 0.93, 0.97), (0.80, 0.78, 0.82), "male")],
)
def test_finding_names_the_group_with_worse_captions(female, male, worse):
    rows = by_group("quality", "cider", (0.88, 0.86, 0.9), female=female, male=male)
    ((group, text),) = findings(*rows)
    assert group == worse
    assert f"less like human captions for {worse} than for" in text
    assert "0.800 for" in text
    assert "0.950 for" in text
    assert "difference -0.150 (95 % CI [" in text


def test_overall_ratio_does_not_hide_a_group_that_is_named_less():
    rows = by_group(
        "naming-ratio", "ratio", (1.086, 1.05, 1.12), male=(1.308, 1.25, 1.37), female=(0.684, 0.64, 0.73)
    )
    ((group, text),) = findings(*rows)
    assert group == "female"
    assert text.startswith(
        "Relative to human captions (1 = as often as they do), oscar names female less often than male: 0.684 times"
    )
    assert "1.308 times for male" in text


def test_gap_equal_to_human_captions_is_no_finding():
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    humans = [row("quality", "cider", *numbers, system="human", group=group)
              for group, numbers in (("female", (0.7, 0.68, 0.72)), ("male", (0.9, 0.88, 0.92)))]  # fmt: skip
    assert [state for state, _ in sentences(*groups)] == [FINDING]
    ((state, text),) = sentences(*groups, *humans)
    assert state == AS_HUMAN
    assert text.startswith("Not shown to go beyond human captions: whether")
    assert text.endswith("human captions 0.700 and 0.900, 0.000 beyond them (95 % CI [-0.040, 0.040]).")


def test_gap_opposite_to_human_captions_is_reported():
    """Not significant by itself. By hand: the gap is -.05, that of human captions +.10, so -.15 beyond them."""
    groups = by_group(
        "quality", "cider", (0.9, 0.88, 0.92), female=(0.875, 0.83, 0.92), male=(0.925, 0.88, 0.97)
    )
    humans = [row("quality", "cider", *numbers, system="human", group=group)
              for group, numbers in (("female", (0.94, 0.91, 0.97)), ("male", (0.84, 0.81, 0.87)))]  # fmt: skip
    ((state, text),) = sentences(*groups, *humans)
    assert state == INCONCLUSIVE
    assert "human captions 0.940 and 0.840, -0.150 beyond them (95 % CI [-0.2" in text


def harm(system, value, low, high, term="demeaning.people-not-mentioned", **overrides):
    stage = {"settings": {"stage": "3" if system == "human" else "4"}}
    return row("harms", term, value, low, high, system=system, **{"unit": "share", **stage, **overrides})


def test_harms_are_findings_where_they_differ_enough_from_human_captions():
    human = harm("human", 0.001, 0.0, 0.002)
    assert sentences(harm("oscar", 0.037, 0.028, 0.047), human) == [
        (FINDING, "oscar leaves people out more often than human captions do (share of images with a person of whom "
         "captions say nothing): 3.7 %, human captions 0.1 %; difference +3.6 points (95 % CI [2.7, 4.6]).")
    ]  # fmt: skip
    ((state, text),) = sentences(harm("oscar", 0.003, 0.0025, 0.0035), human)
    assert (state, text[-38:]) == (OBSERVATION, "[0.1, 0.3]) (too small to count as a finding)."[-38:])


def test_unspecific_rule_gives_an_observation_and_no_finding():
    """76.8 % against 71.0 % of human captions was once the first sentence of a page."""
    term = {"term": "stereotyping.incorrect-word"}
    rows = (harm("oscar", 0.768, 0.76, 0.776, **term), harm("human", 0.71, 0.702, 0.718, **term))
    assert findings(*rows) == []
    ((state, text),) = sentences(*rows)
    assert state == OBSERVATION
    assert text.startswith("More often in captions of oscar than in human captions")
    ((state, text),) = sentences(harm("oscar", 0.4, 0.39, 0.41, **term), rows[1])
    assert state == OBSERVATION
    assert text.startswith("Less often in captions of oscar than in human captions")


def test_lic_is_an_observation():
    ((state, text),) = sentences(row("lic", "lic", 5.9, 4.8, 7.0))
    assert state == OBSERVATION
    assert text.startswith(
        "Captions of oscar are easier to classify by gender than human captions: +5.9 points (95 % CI [4.8, 7.0]) (no "
        "finding by itself"
    )
    assert "harder to classify" in sentences(row("lic", "lic", -2.0, -3.0, -1.0))[0][1]


@pytest.mark.parametrize(("low", "high"), [(-0.5, 2.5), (0.0, 2.5)])
def test_an_interval_that_reaches_the_ideal_is_not_significant(low, high):
    assert sentences(row("lic", "lic", 1.0, low, high)) == [
        (INCONCLUSIVE, "Not significant: whether captions of oscar are easier to classify by gender than human "
         f"captions: +1.0 points (95 % CI [{low}, {high}]).")
    ]  # fmt: skip


def test_value_without_an_interval_is_inconclusive():
    ((state, text),) = sentences(row("leakage", "difference", 0.2))
    assert state == INCONCLUSIVE
    assert text.startswith("Inconclusive: whether a classifier predicts gender better")
    assert text.endswith("+20.0 points, without an interval.")


def test_undefined_and_too_few_are_no_findings():
    undefined = row("lic", "lic", None, reason="all captions are of one group")
    too_few = row(
        "lic", "lic", 9.0, 5.0, 13.0, reason="too few: 12 images, fewer than 30", n=12, system="sat"
    )
    whether = "whether captions of {} are easier to classify by gender than human captions"
    assert sentences(undefined, too_few) == [
        (TOO_FEW, f"Too few to say {whether.format('sat')} (12 images, fewer than 30)."),
        (UNDEFINED, f"Undefined: {whether.format('oscar')}: all captions are of one group."),
    ]  # fmt: skip


def test_group_with_too_few_images_is_not_compared():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.2, 0.4))
    rows.append(
        row("error", "error", 0.0, 0.0, 0.2, group="male", n=9, reason="too few: 9 images, fewer than 30")
    )
    assert sentences(*rows) == [
        (TOO_FEW, "Too few to say whether oscar names the wrong gender more often for one group, when it names one "
         "(male: 9 images, fewer than 30).")
    ]  # fmt: skip


def test_human_captions_of_too_few_images_are_not_compared():
    oscar = row("quality", "chair-i", 0.2, 0.18, 0.22)
    human = row(
        "quality", "chair-i", 0.05, 0.0, 0.1, system="human", n=9, reason="too few: 9 images, fewer than 30"
    )
    ((state, text),) = sentences(oscar, human)
    assert state == TOO_FEW
    assert text.endswith("(human captions: 9 images, fewer than 30).")


def test_sentence_reports_human_captions_that_cannot_be_compared():
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    too_few = [row("quality", "cider", 0.9, 0.5, 1.3, system="human", group=group, n=12, reason="too few: 12 images")
           for group in ("female", "male")]  # fmt: skip
    ((state, text),) = sentences(*groups, *too_few)
    assert state == FINDING
    assert text.endswith("; human captions too few to compare.")
    undefined = [row("quality", "cider", None, system="human", group=group, reason="no references")
                 for group in ("female", "male")]  # fmt: skip
    assert sentences(*groups, *undefined)[0][1].endswith("; human captions undefined.")


def test_a_group_without_an_interval_is_named_as_left_out():
    rows = by_group(
        "quality", "cider", (0.9, 0.88, 0.92), a=(0.8, 0.78, 0.82), b=(1.0, 0.98, 1.02), c=(0.1, None, None)
    )
    assert "; c left out, without an interval" in sentences(*rows)[0][1]


def test_interval_of_a_difference_includes_the_covariance():
    """The groups' resamples are correlated, here negatively, so the difference varies more than if they were
    independent. By hand: half-widths of .1 each, correlation -1: -.15 -+ .2."""
    rows = by_group(
        "naming-ratio", "ratio", (1.0, 0.95, 1.05), female=(0.9, 0.8, 1.0), male=(1.05, 0.95, 1.15)
    )
    noise = np.random.default_rng(0).normal(0, 1, 1000)
    noise *= 0.1 / 1.96 / noise.std(ddof=1)
    female_id, male_id = (next(m.id for m in rows if m.group == group) for group in ("female", "male"))

    def conclude_with_resamples(female_noise, male_noise):
        replicate_rows = [
            (female_id, "same", (0.9 + female_noise).tolist()),
            (male_id, "same", (1.05 + male_noise).tolist()),
        ]
        replicates = pl.DataFrame(replicate_rows, schema=REPLICATES_SCHEMA, orient="row")
        (sentence,) = conclusions(
            Results(tuple(rows), replicates=replicates, provenance={"cards": ALL_CARDS})
        ).sentences
        return sentence.state, sentence.text

    state, text = conclude_with_resamples(noise, -noise)
    assert state == INCONCLUSIVE
    assert "difference -0.150 (95 % CI [-0.350, 0.050])" in text
    state, text = conclude_with_resamples(noise, noise + np.random.default_rng(1).normal(0, 0.001, 1000))
    assert state == FINDING  # the common part cancels
    assert "difference -0.150 (95 % CI [-0.15" in text


def test_missing_direction_or_ideal_has_no_default():
    """A card, or a results file of another program, may leave open which way is better, and what is ideal."""
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    assert sentences(*(replace(m, better=None) for m in groups)) == []
    ((state, text),) = sentences(row("leakage", "difference", 0.2, 0.1, 0.3, ideal=None))
    assert (state, "0.2" in text) == (INCONCLUSIVE, False)


@pytest.mark.parametrize(("p", "state"), [(1 / 201, FINDING), (1 / 1001, FINDING), (0.0043, INCONCLUSIVE)])
def test_interval_decides_only_at_the_smallest_possible_permutation_p(p, state):
    """1 / (1 + N) is the smallest p of N permutations. Another p is as it is, however small."""
    rows = [row("leakage", "difference", 0.2, 0.19, 0.21, p=p if number == 0 else 0.9, system=f"s{number}")
            for number in range(21)]  # fmt: skip
    (sentence,) = [sentence for sentence in conclusions(results(*rows)).sentences if sentence.system == "s0"]
    assert (sentence.state == FINDING) == (state == FINDING)


def test_group_with_too_few_images_is_named_as_left_out():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), a=(0.3, 0.27, 0.33), b=(0.1, 0.08, 0.12))
    too_few = row("error", "error", 0.9, 0.5, 1.0, group="c", n=9, reason="too few: 9 images, fewer than 30")
    ((group, text),) = findings(*rows, too_few)
    assert (group, "; c left out, with too few images" in text) == ("a", True)
    assert "left out" not in findings(*rows)[0][1]


def test_observations_are_corrected_for_all_observations():
    """One of twelve observations at p = .03 is not significant. The correction of findings ignores observations."""
    oscar = row("lic", "lic", 2.0, 0.1, 3.9, p=0.03)
    assert [state for state, _ in sentences(oscar)] == [OBSERVATION]
    others = [row("lic", "lic", 0.0, -2.0, 2.0, system=f"s{number}", p=0.9) for number in range(11)]
    state, text = next(pair for pair in sentences(oscar, *others) if "oscar" in pair[1])
    assert state == INCONCLUSIVE
    assert text.startswith(
        "Not significant after correction for 12 comparisons that are observed only: whether"
    )
    finding = row("leakage", "difference", 0.02, 0.001, 0.039, p=0.03)
    assert [sentence.metric for sentence in conclusions(results(finding, oscar, *others)).findings] == [
        "leakage"
    ]


def test_findings_are_corrected_for_all_comparisons():
    """A single comparison at p = .03 is a finding; the same value among ten comparisons is not."""
    oscar = row("leakage", "difference", 0.02, 0.001, 0.039, p=0.03)
    assert [state for state, _ in sentences(oscar)] == [FINDING]
    others = [
        row("leakage", "difference", 0.0, -0.02, 0.02, system=f"s{number}", p=0.9) for number in range(9)
    ]
    state, text = next(pair for pair in sentences(oscar, *others) if "oscar" in pair[1])
    assert state == SUGGESTIVE
    assert text.startswith(
        "Suggestive, not significant after correction for 10 comparisons: whether a classifier"
    )
    assert conclusions(results(oscar, *others)).n_comparisons == 10


def test_permutation_p_at_its_minimum_counts_as_its_interval():
    """The smallest p of 1,000 permutations, .001, would not survive a correction for 100 comparisons."""
    rows = [row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=1 / 1001)]
    others = [
        row("retrieval-skew", "maxskew", 0.2, 0.1, 0.3, ideal=0.2, p=0.9, system=f"s{number}")
        for number in range(99)
    ]
    assert [finding.system for finding in conclusions(results(*rows, *others)).findings] == ["oscar"]
    not_significant = row("retrieval-skew", "maxskew", 0.1, 0.05, 0.15, ideal=0.2, p=0.97)
    assert sentences(not_significant)[0][1].startswith(
        "Not significant: whether oscar ranks"
    )  # its own test decides


def test_interval_of_a_difference_is_that_of_the_gap_row():
    rows = by_group("quality", "cider", (0.88, 0.86, 0.9), female=(0.80, 0.78, 0.82), male=(0.95, 0.93, 0.97))
    gap_row = row("quality", "cider-gap", 0.15, 0.11, 0.2, p=0.001)
    ((_, text),) = findings(*rows, gap_row)
    assert "difference -0.150 (95 % CI [-0.200, -0.110])" in text


def test_systems_without_a_finding_are_named():
    rows = [
        row("leakage", "difference", 0.2, 0.1, 0.3),
        row("leakage", "difference", 0.0, -0.1, 0.1, system="sat"),
    ]
    assert conclusions(results(*rows)).systems_without_finding == ["sat"]
    assert "No finding for sat." in render(results(*rows))


def test_better_than_human_is_observed_if_it_survives_the_correction():
    """-1.4 [-2.8, -0.05] is significant by itself, but not after correction for 41 comparisons."""
    oscar = row("quality", "chair-i", 0.040, 0.031, 0.049)
    human = row("quality", "chair-i", 0.054, 0.044, 0.064, system="human")
    others = [row("leakage", "difference", 0.0, -0.02, 0.02, system=f"s{number}") for number in range(40)]
    ((state, text),) = sentences(oscar, human)
    assert state == OBSERVATION
    assert "less often than human captions do" in text
    state, text = next(pair for pair in sentences(oscar, human, *others) if "CHAIR" in pair[1])
    assert state == INCONCLUSIVE
    assert text.startswith("Not significant after correction for 41 comparisons: whether oscar names objects")


def test_interval_is_corrected_for_the_choice_of_a_pair_of_groups():
    """By hand: the pair's CI is 3.0 [.34, 5.66] points, p .029 (z = 2.21 of half / 1.96); of three pairs p is .086,
    and the CI is wider by z(1 - .025 / 3) / z(.975) = 2.394 / 1.960 = 1.221: 3.0 -+ 3.25."""
    two_groups = {"a": (0.10, 0.08, 0.12), "b": (0.07, 0.0524, 0.0876)}
    ((state, text),) = sentences(*by_group("error", "error", (0.09, 0.08, 0.1), **two_groups))
    assert (state, "difference +3.0 points (95 % CI [0.3, 5.7])." in text) == (FINDING, True)
    three_groups = {**two_groups, "c": (0.085, 0.07, 0.10)}
    ((state, text),) = sentences(*by_group("error", "error", (0.09, 0.08, 0.1), **three_groups))
    assert state == INCONCLUSIVE
    assert text.endswith("+3.0 points (95 % CI [-0.3, 6.3], holding for all 3 pairs of groups at once).")


def amplification_rows(ba, t_to_a, named=(0.03, 0.01, 0.05)):
    terms = {"ba": ba, "t-to-a": t_to_a, "a-to-t-named": named, "multi-signed": (0.0, -0.02, 0.02)}
    return [row("amplification", term, *numbers) for term, numbers in terms.items()]


def test_amplification_terms_share_a_sentence():
    """The demo's page once reported 'less, -2.6 points' for a captioner whose ba, a-to-t and multi were all above 0."""
    ((state, text),) = sentences(*amplification_rows((0.041, 0.02, 0.062), (-0.026, -0.040, -0.010)))
    assert state == FINDING
    assert text == (
        "oscar associates objects with gender more strongly than the images do (ba): +4.1 points (95 % CI [2.0, 6.2]); "
        "a-to-t-named agrees; t-to-a (how much more the objects predict the group named than "
        "the one shown) is the other way, -2.6 points (95 % CI [-4.0, -1.0])."
    )


def test_t_to_a_comes_first_where_only_it_is_a_finding():
    ((state, text),) = sentences(*amplification_rows((0.01, -0.02, 0.04), (0.05, 0.03, 0.07)))
    assert state == FINDING
    assert text.startswith("oscar takes gender from the objects")
    assert "a-to-t-named agrees; ba not significant" in text


def test_sentence_is_about_the_first_setting_and_names_settings_that_differ():
    rows = [
        row("lic", "lic", value, value - 2, value + 2, settings={"split": split})
        for split, value in (("a", 4.0), ("b", 3.0), ("c", 1.0))
    ]
    too_few = row("lic", "lic", 1.0, -1.0, 3.0, settings={"split": "d"}, n=5, reason="too few: 5 images")
    assert "; +1.0 points (95 % CI [-1.0, 3.0]) with split c (no finding" in sentences(*rows, too_few)[0][1]
    assert "split" not in sentences(*rows[:2])[0][1]


LENGTH = "Captions of oscar are 8 times as long as the references."


def sentences_with_length_caution(*rows):
    """The same rows, with a caution that captions are several times as long as the references."""
    cautioned = tuple(Measurement(**{**m.as_dict(), "caution": LENGTH}) for m in rows)
    provenance = {"cards": ALL_CARDS, "cautions": [{"about": "length", "sentence": LENGTH}]}
    return [
        (sentence.state, sentence.text)
        for sentence in conclusions(Results(cautioned, provenance=provenance)).sentences
    ]


def test_captions_of_another_length_are_not_compared_with_references():
    """CIDEr of captions this long is near 0 for every group, and they name more objects, right and wrong."""
    oscar = row("quality", "chair-i", 0.2, 0.18, 0.22)
    human = row("quality", "chair-i", 0.05, 0.04, 0.06, system="human")
    assert [state for state, _ in sentences(oscar, human)] == [FINDING]
    assert sentences_with_length_caution(oscar, human) == [
        (NOT_COMPARABLE, "Cannot be compared: whether oscar names objects that are not there more often than human "
         "captions do (CHAIR-i): captions and references differ too much in length. (See the cautions about this "
         "study.)")
    ]  # fmt: skip
    groups = {"female": (0.001, 0.0008, 0.0012), "male": (0.009, 0.008, 0.01)}
    ((state, _),) = sentences_with_length_caution(
        *by_group("quality", "cider", (0.004, 0.003, 0.005), **groups)
    )
    assert state == NOT_COMPARABLE
    errors = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    assert [state for state, _ in sentences_with_length_caution(*errors)] == [
        FINDING
    ]  # groups of one system, and no reference


def test_identical_sentences_are_written_once():
    rows = [
        row("quality", "chair-i", 0.3, 0.28, 0.32, attribute=attribute, n=n, ideal=0.0)
        for attribute, n in (("gender", 500), ("race", 400))
    ]
    human = [replace(m, system="human", value=0.05, low=0.04, high=0.06) for m in rows]
    texts = [text for _, text in sentences_with_length_caution(*rows, *human)]
    assert len(texts) == len(set(texts)) == 1


def test_human_captions_of_other_images_are_not_compared_with_a_system():
    """Groups of one system can be compared all the same."""
    caution = "Human captions are of 100 images and captions of oscar of 900 (100 of them the same)."
    provenance = {"cards": ALL_CARDS, "cautions": [{"about": "other images", "sentence": caution}]}
    oscar = row("quality", "chair-i", 0.2, 0.18, 0.22, caution=caution)
    human = row("quality", "chair-i", 0.05, 0.04, 0.06, system="human")
    groups = {
        group: row("error", "error", value, value - 0.02, value + 0.02, group=group, caution=caution)
        for group, value in (("female", 0.3), ("male", 0.1))
    }
    overall = row("error", "error", 0.2, 0.18, 0.22, caution=caution)
    oscar_sentences = conclusions(
        Results((oscar, human, overall, *groups.values()), provenance=provenance)
    ).sentences
    assert [(sentence.metric, sentence.state) for sentence in oscar_sentences] == [
        ("error", FINDING),
        ("quality", NOT_COMPARABLE),
    ]
    assert "human captions are of other images" in oscar_sentences[1].text


def test_sentence_has_p_where_test_and_interval_disagree():
    """A permutation test and a bootstrap CI can disagree: p explains why a CI that excludes 0 is no finding."""
    ((state, text),) = sentences(row("leakage", "difference", 0.02, 0.005, 0.035, p=0.21))
    assert (state, text.endswith("+2.0 points (95 % CI [0.5, 3.5]); p .210.")) == (INCONCLUSIVE, True)
    assert "; p " not in sentences(row("leakage", "difference", 0.02, -0.005, 0.045, p=0.21))[0][1]


def test_value_that_is_not_significant_is_not_compared_with_human_captions():
    oscar = row("leakage", "difference", 0.02, 0.005, 0.035, p=0.21)
    human = row("leakage", "difference", 0.02, 0.0, 0.04, system="human")
    assert [state for state, _ in sentences(oscar, human)] == [INCONCLUSIVE]


def test_question_is_answered_by_its_significant_statement():
    """ba is not significant. t-to-a below 0 is no fault, but it is significant."""
    ((state, text),) = sentences(*amplification_rows((0.01, -0.02, 0.04), (-0.05, -0.07, -0.03)))
    assert (state, "t-to-a" in text.partition(":")[0]) == (OBSERVATION, True)


def test_an_attribute_without_a_finding_is_named():
    rows = [
        row("leakage", "difference", 0.2, 0.1, 0.3),
        row("leakage", "difference", 0, -0.1, 0.1, attribute="age"),
    ]
    assert conclusions(results(*rows)).attributes_without_finding == ["age"]
    assert "No finding about age." in render(results(*rows))


def test_a_comparison_has_sentences_of_its_own():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    assert (
        conclusions(Results(tuple(rows), provenance={"cards": ALL_CARDS, "compared": ["a", "b"]})).sentences
        == ()
    )


def test_words_associated_with_a_group_and_those_of_human_captions():
    def word(item, group, z, q, system="oscar"):
        return row("word-odds", "z", z, item=item, group=group, q=q, system=system)

    rows = [
        word("car", "male", 4.0, 0.001), word("fishing", "male", 5.0, 0.0001), word("stove", "female", 6.0, 0.0001),
        word("sky", "female", 1.0, 0.6), word("car", "female", -4.0, 0.001), word("car", "male", 3.0, 0.01, "human"),
    ]  # fmt: skip
    assert sentences(*rows) == [
        (OBSERVATION, "Words that go with a group of gender in captions of oscar: with male fishing, car; with female "
         "stove (in human captions too: car).")
    ]  # fmt: skip
    assert sentences(rows[3]) == [
        (INCONCLUSIVE, "Not significant: whether any word goes with a group of gender in captions of oscar.")
    ]


def test_retrieval_sentence_names_the_group_ranked_first():
    rows = [
        row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=0.001),
        row("retrieval-skew", "skew@k", 0.54, 0.3, 0.7, group="male"),
        row("retrieval-skew", "skew@k", -0.7, -0.9, -0.5, group="female"),
    ]
    ((group, text),) = findings(*rows)
    assert group == "male"
    assert "ranks one group first more often than its share, beyond chance, mostly male (maxskew" in text
    assert text.endswith("0.540 (95 % CI [0.380, 0.720]), where chance gives 0.200.")


def test_retrieval_that_favours_another_group_per_query_names_none():
    """A maxskew above chance whose queries lean to different groups: no group's mean skew lies above 0."""
    rows = [
        row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=0.001),
        row("retrieval-skew", "skew@k", 0.02, -0.1, 0.14, group="male"),
        row("retrieval-skew", "skew@k", -0.03, -0.2, 0.14, group="female"),
    ]
    ((group, text),) = findings(*rows)
    assert group is None
    assert "beyond chance, no group more than the others (maxskew" in text


def test_leakage_equal_to_human_captions_is_no_finding():
    """Human captions of COCO name objects that reveal gender more than those in the image do."""
    oscar = row("leakage", "difference", 0.051, 0.022, 0.080)
    human = row("leakage", "difference", 0.045, 0.020, 0.070, system="human")
    assert [state for state, _ in sentences(oscar)] == [FINDING]
    ((state, text),) = sentences(oscar, human)
    assert state == AS_HUMAN
    assert text.startswith(
        "Not shown to go beyond human captions: whether a classifier predicts gender better"
    )
    assert text.endswith(
        "+5.1 points (95 % CI [2.2, 8.0]); human captions +4.5 points, +0.6 points beyond them (95 % CI [-3.2, 4.4])."
    )
    larger = row("leakage", "difference", 0.201, 0.18, 0.222)
    assert [state for state, _ in sentences(larger, human)] == [FINDING]


def test_findings_come_worst_first():
    rows = [
        row("leakage", "difference", value, value - 0.01, value + 0.01, system=system)
        for system, value in (("a", 0.03), ("b", 0.20), ("c", 0.05))
    ]
    assert [finding.system for finding in conclusions(results(*rows)).findings] == ["b", "c", "a"]


def test_a_caution_is_part_of_the_sentence():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    cautioned = [Measurement(**{**m.as_dict(), "caution": "A quarter has no label."}) for m in rows]
    ((_, text),) = findings(*cautioned)
    assert text.endswith(". Caution: A quarter has no label.")


def test_caution_about_the_study_is_referenced_and_not_repeated():
    study_caution = "Systems caption different images."
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    cautioned = tuple(
        Measurement(**{**m.as_dict(), "caution": join_cautions([study_caution, "Its own."])}) for m in rows
    )
    provenance = {"cards": ALL_CARDS, "cautions": [{"about": "images", "sentence": study_caution}]}
    (finding,) = conclusions(Results(cautioned, provenance=provenance)).findings
    assert finding.text.endswith(". Caution: Its own. (See the cautions about this study.)")


def test_caution_with_several_spaces_in_a_name_stays_whole():
    study_caution = Caution(
        "images", "Captions of my  model are of other images.", system="my  model"
    ).sentence
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    cautioned = tuple(replace(m, caution=join_cautions([study_caution])) for m in rows)
    provenance = {"cards": ALL_CARDS, "cautions": [{"about": "images", "sentence": study_caution}]}
    (finding,) = conclusions(Results(cautioned, provenance=provenance)).findings
    assert finding.text.endswith(". (See the cautions about this study.)")


ATTACK_SETTINGS = {"kind": "activity", "attack": "pgd", "of": "b@v-l"}


def counterbias_rows(corrected, low, high, *extra_rows, settings=ATTACK_SETTINGS, **overrides):
    return (
        row("counterbias", "excess", 2.2, 1.8, 2.7, settings=settings),
        row("counterbias", "corrected", corrected, low, high, **{"settings": settings, **overrides}),
        row("counterbias", "corrected", 0.0, 0.0, 0.0, settings={**settings, "of": "b@v"}),
        *extra_rows,
    )


def test_effect_explained_by_the_control_is_no_finding():
    """An attack also changes what it does not target. Only an effect larger than that of a control attack is a bias."""
    ((state, text),) = sentences(*counterbias_rows(0.0, 0.0, 0.0))
    assert state == INCONCLUSIVE
    assert "changes no more than when something else is attacked (activity, pgd)" in text
    assert "(corrected 0.0 % (95 % CI [0.0, 0.0])): +2.2 points" in text
    for corrected in ((1.0, 0.0, 2.0), (2.0, None, None), (None, None, None)):
        reason = {"reason": "nobody"} if corrected[0] is None else {}
        ((state, text),) = sentences(*counterbias_rows(*corrected, **reason))
        assert state == INCONCLUSIVE
        assert text.startswith("Not significant: whether what oscar predicts changes more with the person")
    assert sentences(*counterbias_rows(1.5, 1.0, 2.0))[0][0] == FINDING
    other_system = sentences(*counterbias_rows(0.0, 0.0, 0.0, system="another"))
    assert other_system[0][0] == FINDING  # the control is of another system


def test_finding_may_rest_on_a_single_concept():
    """The control may cancel the mean over concepts, although single concepts have a significant bias."""
    fishing = {"item": "fishing", "settings": ATTACK_SETTINGS}
    significant = row("counterbias", "corrected", 9.0, 8.0, 10.0, q=0.001, **fishing)
    assert sentences(*counterbias_rows(0.0, 0.0, 0.0, significant))[0][0] == FINDING
    not_significant = row("counterbias", "corrected", 9.0, -1.0, 19.0, q=0.4, **fishing)
    assert sentences(*counterbias_rows(0.0, 0.0, 0.0, not_significant))[0][0] == INCONCLUSIVE


def test_effect_and_cost_of_a_mitigation():
    exact_attack = {"settings": {**ATTACK_SETTINGS, "attack": "exact"}}
    rows = [
        row("mitigation", "drop", 20.0, 15.0, 25.0, system="fairvlp", **exact_attack),
        row("mitigation", "drop", -1.0, -4.0, 2.0, system="dropout", **exact_attack),
        row(
            "mitigation", "drop", 9.0, 5.0, 13.0, system="fairvlp", settings={**ATTACK_SETTINGS, "of": "b@v"}
        ),
    ]
    assert [(state, text) for state, text in sentences(*rows)] == [
        (FINDING, "fairvlp leaves less bias than as much training without it (b@v-l, activity, exact): +20.0 points "
         "(95 % CI [15.0, 25.0])."),
        (INCONCLUSIVE, "Not significant: whether dropout leaves less bias than as much training without it (b@v-l, "
         "activity, exact): -1.0 points (95 % CI [-4.0, 2.0])."),
    ]  # fmt: skip
    fields = {"system": "oscar (neutral)", "ideal": None, "better": None}
    wrong = row(
        "caption-mitigation",
        "change",
        -0.012,
        -0.014,
        -0.010,
        item="error: wrong",
        **fields | {"unit": "share"},
    )
    leaks = row(
        "caption-mitigation",
        "change",
        0.4,
        -0.6,
        1.4,
        item="lic: lic (folds)",
        **fields | {"unit": "percent"},
    )
    other = row("caption-mitigation", "change", 9.0, 8.0, 10.0, item="harms: demeaning.words", **fields)
    assert [text for _, text in sentences(wrong, leaks, other)] == [
        "With oscar (neutral), the share of captions that name the wrong group of gender falls: -1.2 points (95 % CI "
        "[-1.4, -1.0]).",
        "Not significant: whether how much easier captions are to classify by gender than human captions changes with "
        "oscar (neutral): +0.4 points (95 % CI [-0.6, 1.4]).",
    ]  # fmt: skip


def test_human_captions_are_no_system_and_results_without_cards_have_no_sentences():
    assert sentences(row("lic", "lic", 4.0, 2.0, 6.0, system="human")) == []
    assert conclusions(Results((row("lic", "lic", 4.0, 2.0, 6.0),))).sentences == ()


def test_sentences_are_grouped_by_question():
    cards = [
        CARDS["lic"].as_dict(),
        CARDS["harms"].as_dict(),
        MITIGATION_CARD.as_dict(),
        None,
        {"answers": ["?"]},
    ]
    assert [question_of(card).name for card in cards] == ["leaks", "harms", "mitigation", "other", "other"]
    gap_rows = by_group("quality", "cider", (0.9, 0.88, 0.92), a=(0.8, 0.78, 0.82), b=(1.0, 0.98, 1.02))
    by_question = conclusions(results(*gap_rows, row("lic", "lic", 4, 2, 6))).by_question()
    assert [question.name for question, _ in by_question] == ["leaks", "quality"]
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)


def test_names_in_sentences_are_escaped_on_the_page():
    page = render(results(row("leakage", "difference", 0.2, 0.1, 0.3, system="<img src=x onerror=alert(1)>")))
    assert "<img src=x" not in page
    assert 'id="verdict">Findings<' in page
    assert "from the objects &lt;img src=x onerror=alert(1)&gt; names than from" in page


def test_a_page_without_a_finding_says_so_first():
    page = render(results(row("leakage", "difference", 0.0, -0.1, 0.1)))
    assert "No finding: no difference that would count as one is significant" in page
    assert "correction for 1 comparison (Holm" in page


def test_invalid_statements_of_a_card_are_left_out():
    valid = Statement("lic", "ideal", "{system} more", "{system} is more", "{system} less")
    card = {"statements": [valid.__dict__, {"term": "lic"}, 3, {**valid.__dict__, "against": "x"}, None]}
    assert statements_of(card) == [valid]
    for invalid_fields in (
        {"smallest": "1"}, {"settings": None}, {"choice": ["x"]}, {"supporting_terms": 3},
        {"factor": True}, {"question": None},
    ):  # fmt: skip
        assert statements_of({"statements": [{**valid.__dict__, **invalid_fields}]}) == []
    assert statements_of({"statements": "text"}) == statements_of(None) == []
    assert fill("{system.__class__} {0} {system}", {"system": "{attribute}", "attribute": "x"}) == (
        "{system.__class__} {0} {attribute}"
    )


@pytest.mark.parametrize(
    "card", [*CARDS.values(), CAPTION_MITIGATION_CARD, MITIGATION_CARD], ids=lambda card: card.name
)
def test_statements_are_about_terms_of_the_card(card):
    terms = {term.name for term in card.terms}
    for statement in card.statements:
        assert {statement.term, *statement.supporting_terms} <= terms
        assert {statement.remainder or statement.term, statement.group_term or statement.term} <= terms
    assert statements_of(card.as_dict()) == list(card.statements)
