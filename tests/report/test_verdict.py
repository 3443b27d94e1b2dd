"""What an audit found in sentences: each says what its number says, and how sure it is."""

from __future__ import annotations

import pytest

from portrayal.report.page import render
from portrayal.report.questions import QUESTIONS, question_of
from portrayal.report.verdict import OPEN, TOLD, TOO_FEW, UNDEFINED, by_question, verdicts
from portrayal.results import Measurement, Results

CARDS = {
    "lic": {"title": "LIC", "question": "?", "caveats": ["Read lic_excess rather than lic.", "Another."], "terms": []},
    "harms": {
        "title": "Harms", "question": "?", "caveats": ["A count is the entry to a look."],
        "terms": [{"name": "demeaning.words", "meaning": "captions with a word that demeans people"}],
    },
}  # fmt: skip


def row(metric, term, value, low=None, high=None, **more):
    given = {
        "system": "oscar",
        "attribute": "gender",
        "ideal": 0.0,
        "better": "lower",
        "unit": "percent",
        "n": 500,
    }
    return Measurement(metric, term, value=value, low=low, high=high, **{**given, **more})


def said(*rows):
    return [(one.state, one.text) for one in verdicts(Results(tuple(rows), provenance={"cards": CARDS}))]


def test_the_sentence_of_the_design():
    found = verdicts(Results((row("lic", "lic", 5.9, 4.8, 7.0),), provenance={"cards": CARDS}))
    assert [one.text for one in found] == [
        "Captions of oscar make gender easier to guess than people's do: +5.9, 95 % interval 4.8 to 7.0."
    ]
    assert found[0].state == TOLD
    assert found[0].question == "leaks"
    assert found[0].caveat == "Read lic_excess rather than lic."


@pytest.mark.parametrize(
    ("value", "low", "high", "state", "text"),
    [
        (-2.0, -3.0, -1.0, TOLD,
         "Captions of oscar make gender harder to guess than people's do: -2.0, 95 % interval -3.0 to -1.0."),
        (1.0, -0.5, 2.5, OPEN, "Whether captions of oscar make gender easier to guess than people's do cannot be told: "
         "+1.0, 95 % interval -0.5 to 2.5."),
        (1.0, 0.0, 2.5, OPEN, "Whether captions of oscar make gender easier to guess than people's do cannot be told: "
         "+1.0, 95 % interval 0.0 to 2.5."),
        (1.0, None, None, OPEN, "Whether captions of oscar make gender easier to guess than people's do cannot be "
         "told: +1.0, without an interval."),
    ],
)  # fmt: skip
def test_an_interval_above_below_or_across_the_ideal(value, low, high, state, text):
    assert said(row("lic", "lic", value, low, high)) == [(state, text)]


def test_undefined_and_too_few_are_no_findings():
    undefined = row("lic", "lic", None, reason="all captions are of one group")
    few = row("lic", "lic", 9.0, 5.0, 13.0, reason="too few: 12 images, fewer than 30", n=12, system="sat")
    assert said(undefined, few) == [
        (TOO_FEW, "Whether captions of sat make gender easier to guess than people's do cannot be told: too few: 12 "
         "images, fewer than 30 (+9.0, 95 % interval 5.0 to 13.0)."),
        (UNDEFINED, "Whether captions of oscar make gender easier to guess than people's do cannot be told: undefined, "
         "all captions are of one group."),
    ]  # fmt: skip


def test_an_ideal_that_is_not_zero_is_what_the_interval_is_held_against():
    ratio = {"ideal": 1.0, "better": "closer", "unit": "ratio"}
    assert said(row("naming-ratio", "ratio", 0.8, 0.7, 0.9, **ratio)) == [
        (
            TOLD,
            "Captions of oscar name groups of gender less often than people do: 0.800, 95 % interval 0.700 to "
            "0.900.",
        )
    ]
    assert said(row("naming-ratio", "ratio", 0.98, 0.9, 1.1, **ratio))[0][0] == OPEN


def test_differences_of_shares_are_points_and_shares_are_percent():
    assert said(row("leakage", "difference", 0.202, 0.18, 0.224, unit="share")) == [
        (TOLD, "What oscar names gives gender away more than what is there: +20.2 points, 95 % interval 18.0 to 22.4 "
         "points.")
    ]  # fmt: skip
    error = {"unit": "share", "settings": {"lexicon": "gender"}}
    rows = [
        row("error", "error", 0.022, 0.015, 0.032, **error),
        row("error", "error", 0.024, 0.01, 0.04, group="female", **error),
        row("error", "error", 0.021, 0.01, 0.03, group="male", **error),
    ]
    assert said(*rows) == [
        (TOLD, "Of captions of oscar that name one group of gender, 2.2 % name the wrong one (95 % interval 1.5 % to "
         "3.2 %; female 2.4 %; male 2.1 %).")
    ]  # fmt: skip
    assert said(row("error", "error", None, unit="share", reason="no caption names one group"))[0] == (
        UNDEFINED,
        "Of captions of oscar that name one group of gender, the share that is wrong is undefined: no caption names "
        "one group.",
    )


def test_of_several_settings_the_first_speaks_and_tells_if_others_differ():
    rows = [
        row("lic", "lic", 4.0, 2.0, 6.0, settings={"split": "a"}),
        row("lic", "lic", 3.0, 1.0, 5.0, settings={"split": "b"}),
        row("lic", "lic", 1.0, -1.0, 3.0, settings={"split": "c"}),
        row(
            "lic",
            "lic",
            1.0,
            -1.0,
            3.0,
            settings={"split": "d"},
            n=5,
            reason="too few: 5 images, fewer than 30",
        ),
    ]
    assert [text for _, text in said(*rows)] == [
        "Captions of oscar make gender easier to guess than people's do: +4.0, 95 % interval 2.0 to 6.0; 1 of 3 other "
        "settings say otherwise."
    ]
    assert "otherwise" not in said(*rows[:2])[0][1]


def test_words_that_go_with_a_group():
    def word(item, group, z, q):
        return row("word-odds", "z", z, item=item, group=group, q=q, unit="z", better=None)

    rows = [
        word("car", "male", 4.0, 0.001), word("fishing", "male", 5.0, 0.0001), word("stove", "female", 6.0, 0.0001),
        word("sky", "female", 1.0, 0.6), word("car", "female", -4.0, 0.001),
    ]  # fmt: skip
    assert said(*rows) == [
        (TOLD, "In captions of oscar some words go with a group of gender: most with male fishing, car; with female "
         "stove.")
    ]  # fmt: skip
    assert said(rows[3]) == [
        (OPEN, "In captions of oscar no word goes with a group of gender more than chance explains.")
    ]


def test_harms_are_held_against_people():
    def harm(system, value, low, high, stage, term="demeaning.words"):
        more = {"unit": "share", "ideal": None, "system": system, "settings": {"stage": stage}}
        return row("harms", term, value, low, high, **more)

    people = harm("human", 0.001, 0.0, 0.002, "3")
    assert said(harm("oscar", 0.006, 0.003, 0.011, "4"), people) == [
        (TOLD, "Of oscar, captions with a word that demeans people: 0.6 %, 95 % interval 0.3 % to 1.1 %; of people's "
         "0.1 %.")
    ]  # fmt: skip
    assert said(harm("oscar", 0.002, 0.001, 0.011, "4"), people) == [
        (OPEN, "Nothing that the rules look for is found more often in captions of oscar than in people's.")
    ]
    by_rule = harm("human", 0.0, 0.0, 0.003, "3", "erasure.ignoring")
    assert "rare" not in str(said(harm("oscar", 0.5, 0.4, 0.6, "4", "erasure.ignoring"), by_rule))


def test_what_changes_and_what_a_remedy_takes_away():
    about = {"kind": "activity", "attack": "exact", "of": "b@v-l"}
    rows = [
        row("counterbias", "excess", 30.0, 25.0, 35.0, system="albef", settings=about),
        row("counterbias", "excess", 9.0, 5.0, 13.0, system="albef", settings={**about, "of": "b@v"}),
        row(
            "mitigation",
            "drop",
            20.0,
            15.0,
            25.0,
            system="fairvlp",
            ideal=None,
            better="higher",
            settings=about,
        ),
        row(
            "mitigation",
            "drop",
            -1.0,
            -4.0,
            2.0,
            system="dropout",
            ideal=None,
            better="higher",
            settings=about,
        ),
    ]
    assert [text for _, text in said(*rows)] == [
        "When only the person changes, what albef says of what they do or are changes more than chance would have it "
        "(activity, exact, in percent): +30.0, 95 % interval 25.0 to 35.0.",
        "fairvlp takes bias away that as much training without it leaves (b@v-l, activity, exact): 20.0, 95 % interval "
        "15.0 to 25.0.",
        "Whether dropout takes bias away cannot be told (b@v-l, activity, exact): -1.0, 95 % interval -4.0 to 2.0.",
    ]


def test_people_are_no_system_and_results_without_cards_have_no_caveat():
    assert said(row("lic", "lic", 4.0, 2.0, 6.0, system="human")) == []
    bare = verdicts(Results((row("lic", "lic", 4.0, 2.0, 6.0),)))
    assert bare[0].caveat is None


def test_every_question_has_its_place_on_the_page():
    assert [question_of(metric).name for metric in ("lic", "harms", "mitigation", "unheard-of")] == [
        "leaks", "harms", "remedies", "other",
    ]  # fmt: skip
    found = verdicts(
        Results((row("quality", "cider-gap", 0.2, 0.1, 0.3, unit="fraction"), row("lic", "lic", 4, 2, 6)))
    )
    assert [question.name for question, _ in by_question(found)] == ["leaks", "quality"]
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)


def test_names_in_sentences_are_text_on_the_page():
    page = render(Results((row("lic", "lic", 4.0, 2.0, 6.0, system="<img src=x onerror=alert(1)>"),)))
    assert "<img src=x" not in page
    assert "What was found" in page
    assert "&lt;img src=x onerror=alert(1)&gt; make gender easier to guess" in page


def test_what_a_remedy_changes_in_captions():
    change = {"system": "oscar (neutral)", "ideal": None, "better": None}
    wrong = row("remedy", "change", -0.012, -0.014, -0.010, item="error: wrong", unit="share", **change)
    leaks = row("remedy", "change", 0.4, -0.6, 1.4, item="lic: lic (folds)", **change)
    again = row("remedy", "change", 2.0, 1.0, 3.0, item="lic: lic (published)", **change)
    cider = row("remedy", "change", None, item="quality: cider", reason="no references", **change)
    few = row("remedy", "change", -0.5, -0.6, -0.4, item="error: right", unit="share", n=12,
              reason="too few: 12 images, fewer than 30", **change)  # fmt: skip
    other = row("remedy", "change", 9.0, 8.0, 10.0, item="harms: demeaning.words", **change)
    of_a_group = row("remedy", "change", 9.0, 8.0, 10.0, item="lic: lic", group="female", **change)
    assert said(wrong, leaks, again, cider, few, other, of_a_group) == [
        (TOLD, "With oscar (neutral), the share of captions that name the wrong group of gender falls: -1.2 points, 95 "
         "% interval -1.4 to -1.0 points."),
        (OPEN, "Whether how much easier captions make gender to guess than people's changes with oscar (neutral) "
         "cannot be told: +0.4, 95 % interval -0.6 to 1.4; 1 of 1 other settings say otherwise."),
        (TOO_FEW, "Whether the share of captions that name the right group of gender changes with oscar (neutral) "
         "cannot be told: too few: 12 images, fewer than 30 (-50.0 points, 95 % interval -60.0 to -40.0 points)."),
        (UNDEFINED, "Whether the likeness to people's captions (cider) changes with oscar (neutral) cannot be told: "
         "undefined, no references."),
    ]  # fmt: skip


ATTACKED = {"kind": "activity", "attack": "pgd", "of": "b@v-l"}


def attacked(left, low, high, *more, settings=ATTACKED, **changed):
    return (
        row("counterbias", "excess", 2.2, 1.8, 2.7, settings=settings),
        row("counterbias", "corrected", left, low, high, **{"settings": settings, **changed}),
        row("counterbias", "corrected", 0.0, 0.0, 0.0, settings={**settings, "of": "b@v"}),
        *more,
    )


def test_what_a_placebo_explains_is_no_finding():
    """An attack damages what it does not aim at; a bias is told where more is left than an attack elsewhere does."""
    assert said(*attacked(0.0, 0.0, 0.0)) == [
        (OPEN, "When only the person changes, what oscar says changes no more than when something else is attacked "
         "(activity, pgd, in percent): +2.2, 95 % interval 1.8 to 2.7; beside the other attack 0.0, 95 % interval 0.0 "
         "to 0.0.")
    ]  # fmt: skip
    whether = (
        "Whether what oscar says changes more with the person than when something else is attacked cannot be told "
        "(activity, pgd, in percent): +2.2, 95 % interval 1.8 to 2.7; beside the other attack "
    )
    assert said(*attacked(1.0, 0.0, 2.0)) == [(OPEN, f"{whether}+1.0, 95 % interval 0.0 to 2.0.")]
    assert said(*attacked(2.0, None, None)) == [(OPEN, f"{whether}+2.0, without an interval.")]
    assert said(*attacked(None, None, None, reason="nobody")) == [(OPEN, f"{whether}undefined.")]
    assert said(*attacked(1.5, 1.0, 2.0))[0][0] == TOLD
    another = said(*attacked(0.0, 0.0, 0.0, system="another"))
    assert another[0][0] == TOLD  # of another system: nothing is known of this one


def test_a_single_concept_bears_a_finding_out():
    """A placebo that does much to some concepts may leave nothing on average of what others clearly have."""
    fishing = {"item": "fishing", "settings": ATTACKED}
    sure = row("counterbias", "corrected", 9.0, 8.0, 10.0, q=0.001, **fishing)
    assert said(*attacked(0.0, 0.0, 0.0, sure))[0][0] == TOLD
    unsure = row("counterbias", "corrected", 9.0, -1.0, 19.0, q=0.4, **fishing)
    assert said(*attacked(0.0, 0.0, 0.0, unsure))[0][0] == OPEN


def test_other_settings_say_otherwise_where_their_placebo_does():
    other = {**ATTACKED, "norm": "linf"}
    damage, finding = attacked(0.0, 0.0, 0.0), attacked(1.5, 1.0, 2.0, settings=other)
    for rows in ((*damage, *finding), (*finding, *damage)):
        (found,) = said(*rows)
        assert found[1].endswith("; 1 of 1 other settings say otherwise.")
    level = row("counterbias", "excess", 0.0, -1.0, 1.0, settings=other)
    assert "otherwise" not in said(*damage, level)[0][1]
