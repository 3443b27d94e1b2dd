"""What an audit concludes, in sentences: each says what its rows say, names who is worse off, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from portrayal.metrics import CARDS
from portrayal.mitigate.captions.card import CARD as REMEDY
from portrayal.mitigate.card import CARD as MITIGATION
from portrayal.report.findings.findings import (
    AS_HUMAN,
    FINDING,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    OBSERVED,
    SUGGESTIVE,
    TOO_FEW,
    UNDEFINED,
    conclusions,
)
from portrayal.report.findings.questions import QUESTIONS, question_of
from portrayal.report.page.page import render
from portrayal.results import REPLICATES_SCHEMA, Measurement, Results, join_cautions
from portrayal.statements import Statement, fill, statements_of
from portrayal.study.cautions import Caution

ALL_CARDS = {card.name: card.as_dict() for card in (*CARDS.values(), REMEDY, MITIGATION)}


def row(metric, term, value, low=None, high=None, **more):
    """A row as its metric writes it: unit, ideal and direction come from the card."""
    described = next(one for one in ALL_CARDS[metric]["terms"] if one["name"] == term)
    given = {name: described[name] for name in ("unit", "ideal", "better")}
    given |= {"system": "oscar", "attribute": "gender", "n": 500}
    return Measurement(metric, term, value=value, low=low, high=high, **{**given, **more})


def results(*rows):
    return Results(tuple(rows), provenance={"cards": ALL_CARDS})


def said(*rows):
    return [(one.state, one.text) for one in conclusions(results(*rows)).sentences]


def findings(*rows):
    return [(one.group, one.text) for one in conclusions(results(*rows)).findings]


def by_group(metric, term, whole, **groups):
    """A headline, and rows of groups: (value, low, high) each."""
    return [
        row(metric, term, *whole),
        *(row(metric, term, *numbers, group=group) for group, numbers in groups.items()),
    ]


def test_a_finding_about_groups_names_who_is_worse_off_both_values_and_the_difference():
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
def test_two_captioners_that_serve_different_groups_get_different_sentences(female, male, worse):
    rows = by_group("quality", "cider", (0.88, 0.86, 0.9), female=female, male=male)
    ((group, text),) = findings(*rows)
    assert group == worse
    assert f"less like human captions for {worse} than for" in text
    assert "0.800 for" in text
    assert "0.950 for" in text
    assert "difference -0.150 (95 % CI [" in text


def test_a_ratio_of_all_people_does_not_hide_a_group_that_is_named_less():
    rows = by_group(
        "naming-ratio", "ratio", (1.086, 1.05, 1.12), male=(1.308, 1.25, 1.37), female=(0.684, 0.64, 0.73)
    )
    ((group, text),) = findings(*rows)
    assert group == "female"
    assert text.startswith(
        "Relative to human captions (1 = as often as they do), oscar names female less often than male: 0.684 times"
    )
    assert "1.308 times for male" in text


def test_what_human_captions_show_as_clearly_is_no_finding():
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    humans = [row("quality", "cider", *numbers, system="human", group=group)
              for group, numbers in (("female", (0.7, 0.68, 0.72)), ("male", (0.9, 0.88, 0.92)))]  # fmt: skip
    assert [state for state, _ in said(*groups)] == [FINDING]
    ((state, text),) = said(*groups, *humans)
    assert state == AS_HUMAN
    assert text.startswith("Not shown to go beyond human captions: whether")
    assert text.endswith("human captions 0.700 and 0.900, 0.000 beyond them (95 % CI [-0.040, 0.040]).")


def test_a_gap_that_human_captions_have_the_other_way_is_told():
    """Not clear by itself, and yet not what human captions show: by hand .05 less, of .10 more, -.15."""
    groups = by_group(
        "quality", "cider", (0.9, 0.88, 0.92), female=(0.875, 0.83, 0.92), male=(0.925, 0.88, 0.97)
    )
    humans = [row("quality", "cider", *numbers, system="human", group=group)
              for group, numbers in (("female", (0.94, 0.91, 0.97)), ("male", (0.84, 0.81, 0.87)))]  # fmt: skip
    ((state, text),) = said(*groups, *humans)
    assert state == INCONCLUSIVE
    assert "human captions 0.940 and 0.840, -0.150 beyond them (95 % CI [-0.2" in text


def harm(system, value, low, high, term="demeaning.people-not-mentioned", **more):
    stage = {"settings": {"stage": "3" if system == "human" else "4"}}
    return row("harms", term, value, low, high, system=system, **{"unit": "share", **stage, **more})


def test_harms_are_findings_where_they_differ_from_human_captions_by_enough_to_matter():
    human = harm("human", 0.001, 0.0, 0.002)
    assert said(harm("oscar", 0.037, 0.028, 0.047), human) == [
        (FINDING, "oscar leaves people out more often than human captions do (share of images with a person of whom "
         "captions say nothing): 3.7 %, human captions 0.1 %; difference +3.6 points (95 % CI [2.7, 4.6]).")
    ]  # fmt: skip
    ((state, text),) = said(harm("oscar", 0.003, 0.0025, 0.0035), human)
    assert (state, text[-38:]) == (OBSERVED, "[0.1, 0.3]) (too small to count as a finding)."[-38:])


def test_a_rule_that_finds_more_than_harm_gives_an_observation_and_no_finding():
    """76.8 % against 71.0 % of human captions was once the first sentence of a page."""
    term = {"term": "stereotyping.incorrect-word"}
    rows = (harm("oscar", 0.768, 0.76, 0.776, **term), harm("human", 0.71, 0.702, 0.718, **term))
    assert findings(*rows) == []
    ((state, text),) = said(*rows)
    assert state == OBSERVED
    assert text.startswith("More often in captions of oscar than in human captions")
    ((state, text),) = said(harm("oscar", 0.4, 0.39, 0.41, **term), rows[1])
    assert state == OBSERVED
    assert text.startswith("Less often in captions of oscar than in human captions")


def test_lic_is_an_observation():
    ((state, text),) = said(row("lic", "lic", 5.9, 4.8, 7.0))
    assert state == OBSERVED
    assert text.startswith(
        "Captions of oscar are easier to classify by gender than human captions: +5.9 points (95 % CI [4.8, 7.0]) (no "
        "finding by itself"
    )
    assert "harder to classify" in said(row("lic", "lic", -2.0, -3.0, -1.0))[0][1]


@pytest.mark.parametrize(("low", "high"), [(-0.5, 2.5), (0.0, 2.5)])
def test_an_interval_that_reaches_the_ideal_is_not_significant(low, high):
    assert said(row("lic", "lic", 1.0, low, high)) == [
        (INCONCLUSIVE, "Not significant: whether captions of oscar are easier to classify by gender than human "
         f"captions: +1.0 points (95 % CI [{low}, {high}]).")
    ]  # fmt: skip


def test_without_an_interval_nothing_is_concluded():
    ((state, text),) = said(row("leakage", "difference", 0.2))
    assert state == INCONCLUSIVE
    assert text.startswith("Inconclusive: whether a classifier predicts gender better")
    assert text.endswith("+20.0 points, without an interval.")


def test_undefined_and_too_few_are_no_findings():
    undefined = row("lic", "lic", None, reason="all captions are of one group")
    few = row("lic", "lic", 9.0, 5.0, 13.0, reason="too few: 12 images, fewer than 30", n=12, system="sat")
    whether = "whether captions of {} are easier to classify by gender than human captions"
    assert said(undefined, few) == [
        (TOO_FEW, f"Too few to say {whether.format('sat')} (12 images, fewer than 30)."),
        (UNDEFINED, f"Undefined: {whether.format('oscar')}: all captions are of one group."),
    ]  # fmt: skip


def test_a_group_on_too_few_images_is_compared_with_nobody():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.2, 0.4))
    rows.append(
        row("error", "error", 0.0, 0.0, 0.2, group="male", n=9, reason="too few: 9 images, fewer than 30")
    )
    assert said(*rows) == [
        (TOO_FEW, "Too few to say whether oscar names the wrong gender more often for one group, when it names one "
         "(male: 9 images, fewer than 30).")
    ]  # fmt: skip


def test_human_captions_on_too_few_images_are_compared_with_nobody():
    ours = row("quality", "chair-i", 0.2, 0.18, 0.22)
    human = row(
        "quality", "chair-i", 0.05, 0.0, 0.1, system="human", n=9, reason="too few: 9 images, fewer than 30"
    )
    ((state, text),) = said(ours, human)
    assert state == TOO_FEW
    assert text.endswith("(human captions: 9 images, fewer than 30).")


def test_human_captions_that_cannot_be_compared_are_said_to_be_missing():
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    few = [row("quality", "cider", 0.9, 0.5, 1.3, system="human", group=group, n=12, reason="too few: 12 images")
           for group in ("female", "male")]  # fmt: skip
    ((state, text),) = said(*groups, *few)
    assert state == FINDING
    assert text.endswith("; human captions too few to compare.")
    undefined = [row("quality", "cider", None, system="human", group=group, reason="no references")
                 for group in ("female", "male")]  # fmt: skip
    assert said(*groups, *undefined)[0][1].endswith("; human captions undefined.")


def test_a_group_without_an_interval_is_named_as_left_out():
    rows = by_group(
        "quality", "cider", (0.9, 0.88, 0.92), a=(0.8, 0.78, 0.82), b=(1.0, 0.98, 1.02), c=(0.1, None, None)
    )
    assert "; c left out, without an interval" in said(*rows)[0][1]


def test_what_two_numbers_share_is_not_counted_as_if_each_had_its_own():
    """Swapping groups at random moves one group's ratio up as it moves the other's down: the difference varies more
    than of two numbers that know nothing of each other. By hand: halves of .1 each, correlation -1: .15 -+ .2."""
    rows = by_group(
        "naming-ratio", "ratio", (1.0, 0.95, 1.05), female=(0.9, 0.8, 1.0), male=(1.05, 0.95, 1.15)
    )
    spread = np.random.default_rng(0).normal(0, 1, 1000)
    spread *= 0.1 / 1.96 / spread.std(ddof=1)
    women, men = (next(m.id for m in rows if m.group == group) for group in ("female", "male"))

    def with_draws(drawn_women, drawn_men):
        drawn = [(women, "same", (0.9 + drawn_women).tolist()), (men, "same", (1.05 + drawn_men).tolist())]
        table = pl.DataFrame(drawn, schema=REPLICATES_SCHEMA, orient="row")
        (one,) = conclusions(
            Results(tuple(rows), replicates=table, provenance={"cards": ALL_CARDS})
        ).sentences
        return one.state, one.text

    state, text = with_draws(spread, -spread)
    assert state == INCONCLUSIVE
    assert "difference -0.150 (95 % CI [-0.350, 0.050])" in text
    state, text = with_draws(spread, spread + np.random.default_rng(1).normal(0, 0.001, 1000))
    assert state == FINDING  # what both have in common cancels
    assert "difference -0.150 (95 % CI [-0.15" in text


def test_what_is_not_known_is_not_taken_for_a_side_or_for_0():
    """A card, or a results file of another program, may leave open which way is better, and what is ideal."""
    groups = by_group("quality", "cider", (0.9, 0.88, 0.92), female=(0.8, 0.78, 0.82), male=(1.0, 0.98, 1.02))
    assert said(*(replace(m, better=None) for m in groups)) == []
    ((state, text),) = said(row("leakage", "difference", 0.2, 0.1, 0.3, ideal=None))
    assert (state, "0.2" in text) == (INCONCLUSIVE, False)


@pytest.mark.parametrize(("p", "state"), [(1 / 201, FINDING), (1 / 1001, FINDING), (0.0043, INCONCLUSIVE)])
def test_only_permutations_that_none_went_beyond_give_way_to_the_interval(p, state):
    """1 / (1 + N) is the smallest p of N permutations. Another p is as it is, however small."""
    rows = [row("leakage", "difference", 0.2, 0.19, 0.21, p=p if number == 0 else 0.9, system=f"s{number}")
            for number in range(21)]  # fmt: skip
    (one,) = [one for one in conclusions(results(*rows)).sentences if one.system == "s0"]
    assert (one.state == FINDING) == (state == FINDING)


def test_a_group_on_too_few_images_is_named_as_left_out():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), a=(0.3, 0.27, 0.33), b=(0.1, 0.08, 0.12))
    few = row("error", "error", 0.9, 0.5, 1.0, group="c", n=9, reason="too few: 9 images, fewer than 30")
    ((group, text),) = findings(*rows, few)
    assert (group, "; c left out, with too few images" in text) == ("a", True)
    assert "left out" not in findings(*rows)[0][1]


def test_what_is_only_observed_is_corrected_for_all_that_is_only_observed():
    """No finding, yet a claim: one of twelve at p = .03 is none. It costs those that may be findings nothing."""
    one = row("lic", "lic", 2.0, 0.1, 3.9, p=0.03)
    assert [state for state, _ in said(one)] == [OBSERVED]
    others = [row("lic", "lic", 0.0, -2.0, 2.0, system=f"s{number}", p=0.9) for number in range(11)]
    state, text = next(pair for pair in said(one, *others) if "oscar" in pair[1])
    assert state == INCONCLUSIVE
    assert text.startswith(
        "Not significant after correction for 12 comparisons that are observed only: whether"
    )
    finding = row("leakage", "difference", 0.02, 0.001, 0.039, p=0.03)
    assert [found.metric for found in conclusions(results(finding, one, *others)).findings] == ["leakage"]


def test_findings_are_corrected_for_every_comparison_that_could_have_become_one():
    """One of one is a finding at p = .03; the same number among ten is not."""
    one = row("leakage", "difference", 0.02, 0.001, 0.039, p=0.03)
    assert [state for state, _ in said(one)] == [FINDING]
    others = [
        row("leakage", "difference", 0.0, -0.02, 0.02, system=f"s{number}", p=0.9) for number in range(9)
    ]
    state, text = next(pair for pair in said(one, *others) if "oscar" in pair[1])
    assert state == SUGGESTIVE
    assert text.startswith(
        "Suggestive, not significant after correction for 10 comparisons: whether a classifier"
    )
    assert conclusions(results(one, *others)).comparisons == 10


def test_a_permutation_at_its_floor_is_as_sure_as_its_interval():
    """1,000 permutations give no p below .001, which no correction for a hundred comparisons survives."""
    rows = [row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=1 / 1001)]
    others = [
        row("retrieval-skew", "maxskew", 0.2, 0.1, 0.3, ideal=0.2, p=0.9, system=f"s{number}")
        for number in range(99)
    ]
    assert [one.system for one in conclusions(results(*rows, *others)).findings] == ["oscar"]
    unsure = row("retrieval-skew", "maxskew", 0.1, 0.05, 0.15, ideal=0.2, p=0.97)
    assert said(unsure)[0][1].startswith("Not significant: whether oscar ranks")  # its own test decides


def test_the_interval_of_a_difference_is_the_tables_where_there_is_one():
    rows = by_group("quality", "cider", (0.88, 0.86, 0.9), female=(0.80, 0.78, 0.82), male=(0.95, 0.93, 0.97))
    own = row("quality", "cider-gap", 0.15, 0.11, 0.2, p=0.001)
    ((_, text),) = findings(*rows, own)
    assert "difference -0.150 (95 % CI [-0.200, -0.110])" in text


def test_systems_without_a_finding_are_named():
    rows = [
        row("leakage", "difference", 0.2, 0.1, 0.3),
        row("leakage", "difference", 0.0, -0.1, 0.1, system="sat"),
    ]
    assert conclusions(results(*rows)).without_finding == ["sat"]
    assert "No finding for sat." in render(results(*rows))


def test_a_value_on_the_good_side_is_observed_where_it_survives_the_correction():
    """-1.4 [-2.8, -0.05] is below by itself, and not once 41 comparisons are counted: then nothing is claimed."""
    ours = row("quality", "chair-i", 0.040, 0.031, 0.049)
    human = row("quality", "chair-i", 0.054, 0.044, 0.064, system="human")
    others = [row("leakage", "difference", 0.0, -0.02, 0.02, system=f"s{number}") for number in range(40)]
    ((state, text),) = said(ours, human)
    assert state == OBSERVED
    assert "less often than human captions do" in text
    state, text = next(pair for pair in said(ours, human, *others) if "CHAIR" in pair[1])
    assert state == INCONCLUSIVE
    assert text.startswith("Not significant after correction for 41 comparisons: whether oscar names objects")


def test_of_several_groups_the_pair_was_chosen_among_all():
    """By hand: the pair's CI is 3.0 [.34, 5.66] points, p .029 (z = 2.21 of half / 1.96); of three pairs p is .086,
    and the CI is wider by z(1 - .025 / 3) / z(.975) = 2.394 / 1.960 = 1.221: 3.0 -+ 3.25."""
    two = {"a": (0.10, 0.08, 0.12), "b": (0.07, 0.0524, 0.0876)}
    ((state, text),) = said(*by_group("error", "error", (0.09, 0.08, 0.1), **two))
    assert (state, "difference +3.0 points (95 % CI [0.3, 5.7])." in text) == (FINDING, True)
    three = {**two, "c": (0.085, 0.07, 0.10)}
    ((state, text),) = said(*by_group("error", "error", (0.09, 0.08, 0.1), **three))
    assert state == INCONCLUSIVE
    assert text.endswith("+3.0 points (95 % CI [-0.3, 6.3], holding for all 3 pairs of groups at once).")


def amplified(ba, t_to_a, named=(0.03, 0.01, 0.05)):
    terms = {"ba": ba, "t-to-a": t_to_a, "a-to-t-named": named, "multi-signed": (0.0, -0.02, 0.02)}
    return [row("amplification", term, *numbers) for term, numbers in terms.items()]


def test_the_terms_of_amplification_speak_in_one_sentence():
    """The demo's page once said 'less, -2.6 points' of a captioner whose ba, a-to-t and multi were all above 0."""
    ((state, text),) = said(*amplified((0.041, 0.02, 0.062), (-0.026, -0.040, -0.010)))
    assert state == FINDING
    assert text == (
        "oscar associates objects with gender more strongly than the images do (ba): +4.1 points (95 % CI [2.0, 6.2]); "
        "a-to-t-named agrees; t-to-a (how much more the objects predict the group named than "
        "the one shown) is the other way, -2.6 points (95 % CI [-4.0, -1.0])."
    )


def test_where_only_the_other_direction_is_a_finding_it_leads():
    ((state, text),) = said(*amplified((0.01, -0.02, 0.04), (0.05, 0.03, 0.07)))
    assert state == FINDING
    assert text.startswith("oscar takes gender from the objects")
    assert "a-to-t-named agrees; ba not significant" in text


def test_of_several_settings_the_first_speaks_and_tells_if_others_differ():
    rows = [
        row("lic", "lic", value, value - 2, value + 2, settings={"split": split})
        for split, value in (("a", 4.0), ("b", 3.0), ("c", 1.0))
    ]
    few = row("lic", "lic", 1.0, -1.0, 3.0, settings={"split": "d"}, n=5, reason="too few: 5 images")
    assert "; +1.0 points (95 % CI [-1.0, 3.0]) with split c (no finding" in said(*rows, few)[0][1]
    assert "split" not in said(*rows[:2])[0][1]


LENGTH = "Captions of oscar are 8 times as long as the references."


def long(*rows):
    """The same rows, with a caution that captions are several times as long as the references."""
    careful = tuple(Measurement(**{**m.as_dict(), "caution": LENGTH}) for m in rows)
    origin = {"cards": ALL_CARDS, "cautions": [{"about": "length", "sentence": LENGTH}]}
    return [(one.state, one.text) for one in conclusions(Results(careful, provenance=origin)).sentences]


def test_captions_of_another_length_are_not_held_against_references():
    """Of captions this long hardly any of CIDEr is left, for any group; they name more objects, right and wrong."""
    ours = row("quality", "chair-i", 0.2, 0.18, 0.22)
    human = row("quality", "chair-i", 0.05, 0.04, 0.06, system="human")
    assert [state for state, _ in said(ours, human)] == [FINDING]
    assert long(ours, human) == [
        (NOT_COMPARABLE, "Cannot be compared: whether oscar names objects that are not there more often than human "
         "captions do (CHAIR-i): captions and references differ too much in length. (See the cautions about this "
         "study.)")
    ]  # fmt: skip
    groups = {"female": (0.001, 0.0008, 0.0012), "male": (0.009, 0.008, 0.01)}
    ((state, _),) = long(*by_group("quality", "cider", (0.004, 0.003, 0.005), **groups))
    assert state == NOT_COMPARABLE
    errors = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    assert [state for state, _ in long(*errors)] == [FINDING]  # groups of one system, and no reference


def test_what_would_be_said_twice_in_the_same_words_is_said_once():
    rows = [
        row("quality", "chair-i", 0.3, 0.28, 0.32, attribute=attribute, n=n, ideal=0.0)
        for attribute, n in (("gender", 500), ("race", 400))
    ]
    human = [replace(m, system="human", value=0.05, low=0.04, high=0.06) for m in rows]
    texts = [text for _, text in long(*rows, *human)]
    assert len(texts) == len(set(texts)) == 1


def test_human_captions_of_other_images_are_not_held_against_a_system():
    """Groups of one system can be compared all the same."""
    caution = "Human captions are of 100 images and captions of oscar of 900 (100 of them the same)."
    origin = {"cards": ALL_CARDS, "cautions": [{"about": "other images", "sentence": caution}]}
    ours = row("quality", "chair-i", 0.2, 0.18, 0.22, caution=caution)
    human = row("quality", "chair-i", 0.05, 0.04, 0.06, system="human")
    groups = {
        group: row("error", "error", value, value - 0.02, value + 0.02, group=group, caution=caution)
        for group, value in (("female", 0.3), ("male", 0.1))
    }
    whole = row("error", "error", 0.2, 0.18, 0.22, caution=caution)
    concluded = conclusions(Results((ours, human, whole, *groups.values()), provenance=origin)).sentences
    assert [(one.metric, one.state) for one in concluded] == [("error", FINDING), ("quality", NOT_COMPARABLE)]
    assert "human captions are of other images" in concluded[1].text


def test_a_test_that_the_interval_does_not_show_has_its_p_beside():
    """Permutations may say what resamples do not: the sentence would else have an interval beyond 0 and no reason."""
    ((state, text),) = said(row("leakage", "difference", 0.02, 0.005, 0.035, p=0.21))
    assert (state, text.endswith("+2.0 points (95 % CI [0.5, 3.5]); p .210.")) == (INCONCLUSIVE, True)
    assert "; p " not in said(row("leakage", "difference", 0.02, -0.005, 0.045, p=0.21))[0][1]


def test_what_is_not_significant_by_itself_is_not_excused_by_human_captions():
    ours = row("leakage", "difference", 0.02, 0.005, 0.035, p=0.21)
    human = row("leakage", "difference", 0.02, 0.0, 0.04, system="human")
    assert [state for state, _ in said(ours, human)] == [INCONCLUSIVE]


def test_of_statements_about_one_question_the_surest_speaks():
    """ba is not significant; that t-to-a is below 0 is no fault, but it is what can be said."""
    ((state, text),) = said(*amplified((0.01, -0.02, 0.04), (-0.05, -0.07, -0.03)))
    assert (state, "t-to-a" in text.partition(":")[0]) == (OBSERVED, True)


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


def test_words_that_go_with_a_group_and_which_of_them_do_in_human_captions():
    def word(item, group, z, q, system="oscar"):
        return row("word-odds", "z", z, item=item, group=group, q=q, system=system)

    rows = [
        word("car", "male", 4.0, 0.001), word("fishing", "male", 5.0, 0.0001), word("stove", "female", 6.0, 0.0001),
        word("sky", "female", 1.0, 0.6), word("car", "female", -4.0, 0.001), word("car", "male", 3.0, 0.01, "human"),
    ]  # fmt: skip
    assert said(*rows) == [
        (OBSERVED, "Words that go with a group of gender in captions of oscar: with male fishing, car; with female "
         "stove (in human captions too: car).")
    ]  # fmt: skip
    assert said(rows[3]) == [
        (INCONCLUSIVE, "Not significant: whether any word goes with a group of gender in captions of oscar.")
    ]


def test_a_search_names_the_group_it_ranks_first():
    rows = [
        row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=0.001),
        row("retrieval-skew", "skew@k", 0.54, 0.3, 0.7, group="male"),
        row("retrieval-skew", "skew@k", -0.7, -0.9, -0.5, group="female"),
    ]
    ((group, text),) = findings(*rows)
    assert group == "male"
    assert "ranks one group first more often than its share, beyond chance, mostly male (maxskew" in text
    assert text.endswith("0.540 (95 % CI [0.380, 0.720]), where chance gives 0.200.")


def test_a_search_that_favours_another_group_each_time_names_none():
    """A maxskew above chance whose queries lean to different groups: no group's mean skew lies above 0."""
    rows = [
        row("retrieval-skew", "maxskew", 0.54, 0.38, 0.72, ideal=0.2, p=0.001),
        row("retrieval-skew", "skew@k", 0.02, -0.1, 0.14, group="male"),
        row("retrieval-skew", "skew@k", -0.03, -0.2, 0.14, group="female"),
    ]
    ((group, text),) = findings(*rows)
    assert group is None
    assert "beyond chance, no group more than the others (maxskew" in text


def test_what_human_captions_reveal_as_much_is_no_finding():
    """Human captions of COCO name objects that reveal gender more than those in the image do."""
    ours = row("leakage", "difference", 0.051, 0.022, 0.080)
    human = row("leakage", "difference", 0.045, 0.020, 0.070, system="human")
    assert [state for state, _ in said(ours)] == [FINDING]
    ((state, text),) = said(ours, human)
    assert state == AS_HUMAN
    assert text.startswith(
        "Not shown to go beyond human captions: whether a classifier predicts gender better"
    )
    assert text.endswith(
        "+5.1 points (95 % CI [2.2, 8.0]); human captions +4.5 points, +0.6 points beyond them (95 % CI [-3.2, 4.4])."
    )
    far = row("leakage", "difference", 0.201, 0.18, 0.222)
    assert [state for state, _ in said(far, human)] == [FINDING]


def test_worst_first():
    rows = [
        row("leakage", "difference", value, value - 0.01, value + 0.01, system=system)
        for system, value in (("a", 0.03), ("b", 0.20), ("c", 0.05))
    ]
    assert [one.system for one in conclusions(results(*rows)).findings] == ["b", "c", "a"]


def test_a_caution_is_part_of_the_sentence():
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    careful = [Measurement(**{**m.as_dict(), "caution": "A quarter has no label."}) for m in rows]
    ((_, text),) = findings(*careful)
    assert text.endswith(". Caution: A quarter has no label.")


def test_a_caution_about_the_whole_study_stands_once_and_is_pointed_to():
    whole = "Systems caption different images."
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    careful = tuple(
        Measurement(**{**m.as_dict(), "caution": join_cautions([whole, "Its own."])}) for m in rows
    )
    origin = {"cards": ALL_CARDS, "cautions": [{"about": "images", "sentence": whole}]}
    (finding,) = conclusions(Results(careful, provenance=origin)).findings
    assert finding.text.endswith(". Caution: Its own. (See the cautions about this study.)")


def test_a_name_with_several_spaces_does_not_tear_a_caution_apart():
    whole = Caution("images", "Captions of my  model are of other images.", system="my  model").sentence
    rows = by_group("error", "error", (0.1, 0.08, 0.12), female=(0.3, 0.27, 0.33), male=(0.1, 0.08, 0.12))
    careful = tuple(replace(m, caution=join_cautions([whole])) for m in rows)
    origin = {"cards": ALL_CARDS, "cautions": [{"about": "images", "sentence": whole}]}
    (finding,) = conclusions(Results(careful, provenance=origin)).findings
    assert finding.text.endswith(". (See the cautions about this study.)")


ATTACKED = {"kind": "activity", "attack": "pgd", "of": "b@v-l"}


def attacked(left, low, high, *more, settings=ATTACKED, **changed):
    return (
        row("counterbias", "excess", 2.2, 1.8, 2.7, settings=settings),
        row("counterbias", "corrected", left, low, high, **{"settings": settings, **changed}),
        row("counterbias", "corrected", 0.0, 0.0, 0.0, settings={**settings, "of": "b@v"}),
        *more,
    )


def test_what_a_control_explains_is_no_finding():
    """An attack damages what it does not aim at; a bias is found where more is left than an attack elsewhere does."""
    ((state, text),) = said(*attacked(0.0, 0.0, 0.0))
    assert state == INCONCLUSIVE
    assert "changes no more than when something else is attacked (activity, pgd)" in text
    assert "(corrected 0.0 % (95 % CI [0.0, 0.0])): +2.2 points" in text
    for left in ((1.0, 0.0, 2.0), (2.0, None, None), (None, None, None)):
        reason = {"reason": "nobody"} if left[0] is None else {}
        ((state, text),) = said(*attacked(*left, **reason))
        assert state == INCONCLUSIVE
        assert text.startswith("Not significant: whether what oscar predicts changes more with the person")
    assert said(*attacked(1.5, 1.0, 2.0))[0][0] == FINDING
    another = said(*attacked(0.0, 0.0, 0.0, system="another"))
    assert another[0][0] == FINDING  # the control of another system says nothing of this one


def test_a_single_concept_bears_a_finding_out():
    """A control that does much to some concepts may leave nothing on average of what others clearly have."""
    fishing = {"item": "fishing", "settings": ATTACKED}
    sure = row("counterbias", "corrected", 9.0, 8.0, 10.0, q=0.001, **fishing)
    assert said(*attacked(0.0, 0.0, 0.0, sure))[0][0] == FINDING
    unsure = row("counterbias", "corrected", 9.0, -1.0, 19.0, q=0.4, **fishing)
    assert said(*attacked(0.0, 0.0, 0.0, unsure))[0][0] == INCONCLUSIVE


def test_what_a_mitigation_leaves_and_costs():
    drop = {"settings": {**ATTACKED, "attack": "exact"}}
    rows = [
        row("mitigation", "drop", 20.0, 15.0, 25.0, system="fairvlp", **drop),
        row("mitigation", "drop", -1.0, -4.0, 2.0, system="dropout", **drop),
        row("mitigation", "drop", 9.0, 5.0, 13.0, system="fairvlp", settings={**ATTACKED, "of": "b@v"}),
    ]
    assert [(state, text) for state, text in said(*rows)] == [
        (FINDING, "fairvlp leaves less bias than as much training without it (b@v-l, activity, exact): +20.0 points "
         "(95 % CI [15.0, 25.0])."),
        (INCONCLUSIVE, "Not significant: whether dropout leaves less bias than as much training without it (b@v-l, "
         "activity, exact): -1.0 points (95 % CI [-4.0, 2.0])."),
    ]  # fmt: skip
    change = {"system": "oscar (neutral)", "ideal": None, "better": None}
    wrong = row("remedy", "change", -0.012, -0.014, -0.010, item="error: wrong", **change | {"unit": "share"})
    leaks = row("remedy", "change", 0.4, -0.6, 1.4, item="lic: lic (folds)", **change | {"unit": "percent"})
    other = row("remedy", "change", 9.0, 8.0, 10.0, item="harms: demeaning.words", **change)
    assert [text for _, text in said(wrong, leaks, other)] == [
        "With oscar (neutral), the share of captions that name the wrong group of gender falls: -1.2 points (95 % CI "
        "[-1.4, -1.0]).",
        "Not significant: whether how much easier captions are to classify by gender than human captions changes with "
        "oscar (neutral): +0.4 points (95 % CI [-0.6, 1.4]).",
    ]  # fmt: skip


def test_human_captions_are_no_system_and_results_without_cards_have_no_sentences():
    assert said(row("lic", "lic", 4.0, 2.0, 6.0, system="human")) == []
    assert conclusions(Results((row("lic", "lic", 4.0, 2.0, 6.0),))).sentences == ()


def test_every_question_has_its_place_on_the_page():
    assert [question_of(metric).name for metric in ("lic", "harms", "mitigation", "unheard-of")] == [
        "leaks", "harms", "mitigation", "other",
    ]  # fmt: skip
    gap = by_group("quality", "cider", (0.9, 0.88, 0.92), a=(0.8, 0.78, 0.82), b=(1.0, 0.98, 1.02))
    listed = conclusions(results(*gap, row("lic", "lic", 4, 2, 6))).by_question()
    assert [question.name for question, _ in listed] == ["leaks", "quality"]
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)


def test_names_in_sentences_are_text_on_the_page():
    page = render(results(row("leakage", "difference", 0.2, 0.1, 0.3, system="<img src=x onerror=alert(1)>")))
    assert "<img src=x" not in page
    assert "What was found" in page
    assert "from the objects &lt;img src=x onerror=alert(1)&gt; names than from" in page


def test_a_page_without_a_finding_says_so_first():
    page = render(results(row("leakage", "difference", 0.0, -0.1, 0.1)))
    assert "No finding: no difference that would count as one is significant" in page
    assert "correction for 1 comparison (Holm" in page


def test_statements_of_a_hostile_card_are_left_out():
    good = Statement("lic", "ideal", "{system} more", "{system} is more", "{system} less")
    card = {"statements": [good.__dict__, {"term": "lic"}, 3, {**good.__dict__, "against": "x"}, None]}
    assert statements_of(card) == [good]
    for wrong in (
        {"smallest": "1"}, {"settings": None}, {"choice": ["x"]}, {"supporting_terms": 3},
        {"factor": True}, {"question": None},
    ):  # fmt: skip
        assert statements_of({"statements": [{**good.__dict__, **wrong}]}) == []
    assert statements_of({"statements": "text"}) == statements_of(None) == []
    assert fill("{system.__class__} {0} {system}", {"system": "{attribute}", "attribute": "x"}) == (
        "{system.__class__} {0} {attribute}"
    )


@pytest.mark.parametrize("card", [*CARDS.values(), REMEDY, MITIGATION], ids=lambda card: card.name)
def test_statements_are_about_terms_of_the_card(card):
    terms = {term.name for term in card.terms}
    for statement in card.statements:
        assert {statement.term, *statement.supporting_terms} <= terms
        assert {statement.remainder or statement.term, statement.group_term or statement.term} <= terms
    assert statements_of(card.as_dict()) == list(card.statements)
