"""Caption mitigation: rewriting, group evidence, balancing, and metrics before and after."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.comparing import compare
from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import make_study
from portrayal.lexicon import Lexicon, MentionFinder, load_lexicon
from portrayal.mitigate.captions import (
    METRICS,
    Rewriter,
    balance,
    find_group_evidence,
    mitigate_captions,
    random_subset,
)
from portrayal.mitigate.captions.changes import changes
from portrayal.results import Measurement, Results
from portrayal.study import Study
from tests.conftest import small_study

GENDER = Rewriter(load_lexicon("gender"))
REWRITTEN = {
    # nouns: singular, plural, age, letter case, possessive
    "a man on a horse": "a person on a horse",
    "A Woman on a horse": "A Person on a horse",
    "two men and three women": "two people and three people",
    "MEN AT WORK": "PEOPLE AT WORK",
    "a little girl and two boys": "a little child and two children",
    "The lady's dog": "The person's dog",
    "the guys' dogs": "the people's dogs",
    "a mother and her son": "a parent and their child",
    "his wife and her husband": "their spouse and their spouse",
    "her brother and his sisters": "their sibling and their siblings",
    # articles
    "an actress": "a performer",
    "an actor and a waitress": "a performer and a server",
    # words that are removed
    "a male tennis player": "a tennis player",
    "Female athlete runs": "Athlete runs",
    "a young male riding a horse": "a young person riding a horse",
    "a male and a female": "a person and a person",
    "a man in a cowboy hat": "a person in a cowboy hat",
    "a cowboy on a horse": "a rider on a horse",
    # pronouns by grammatical role
    "a dog looks at her": "a dog looks at them",
    "her dog looks at him": "their dog looks at them",
    "the bag is hers": "the bag is theirs",
    "the bag is his": "the bag is theirs",
    "a board behind his back": "a board behind their back",
    "she hurt herself": "they hurt themselves",
    # the verb after "they"
    "he rides a wave": "they ride a wave",
    "as she is riding": "as they are riding",
    "He's riding.": "They're riding.",
    "She's got her hat on": "They've got their hat on",
    "he was there and has a hat": "they were there and have a hat",
    "he doesn't smile": "they don't smile",
    "she quickly catches it": "they quickly catch it",
    "he flies, she watches": "they fly, they watch",
    "he sits on a bench and reads while a dog waits": "they sit on a bench and read while a dog waits",
    "what is he holding": "what are they holding",
    "he threw the ball": "they threw the ball",
    "he can ride": "they can ride",
    "a ramp he made": "a ramp they made",
    # unchanged captions
    "a person on a horse": "a person on a horse",
    "they ride": "they ride",
    "a queen size bed": "a queen size bed",
    "": "",
    # markup and white space stay as they are
    "<b>man</b> & <script>she()</script>": "<b>person</b> & <script>they()</script>",
    "[red]man[/red]": "[red]person[/red]",
    "a\tman\n of \u2028 Straße": "a\tperson\n of \u2028 Straße",
}


@pytest.mark.parametrize("caption", REWRITTEN)
def test_rewriting(caption):
    assert GENDER.rewrite(caption).text == REWRITTEN[caption]


def test_changed_and_remaining_words_are_returned():
    rewritten = GENDER.rewrite("a pregnant woman and her queen")
    assert rewritten.text == "a pregnant person and their queen"
    assert rewritten.changed == (("woman", "person"), ("her", "their"))
    assert rewritten.left == ("pregnant", "queen")


def test_words_of_kept_groups_are_unchanged():
    assert GENDER.rewrite("a man and his wife", keep_groups={"male"}).text == "a man and his spouse"
    assert GENDER.rewrite("a man and his wife", keep_groups={"male", "female"}).changed == ()


def test_other_attributes():
    race, age = (Rewriter(load_lexicon(name)) for name in ("race", "age"))
    assert race.rewrite("An African man with a black dog").text == "A man with a black dog"
    assert age.rewrite("Old man and an old truck").text == "Man and an old truck"
    assert age.rewrite("an elderly woman").text == "a woman"
    assert age.rewrite("the elderly").left == ("elderly",)  # it describes no noun, so it cannot be removed
    assert age.rewrite("a child and two teens").text == "a person and two people"
    assert age.rewrite("a senior man and a toddler").text == "a man and a person"
    assert race.rewrite("a dark skinned man and a light-skinned woman").text == "a man and a woman"


def test_a_custom_lexicon_is_used():
    lexicon = Lexicon("x", "x", {"a": ("ape",), "b": ("bee",)}, plain={"ape": ("owl",), "bee": ("owl",)})
    assert Rewriter(lexicon).rewrite("an ape, a bee").text == "an owl, an owl"


def test_a_lexicon_that_cannot_rewrite_is_refused():
    with pytest.raises(PortrayalError, match=r"The lexicon 'x' lists no neutral words .* \[plain\]"):
        Rewriter(Lexicon("x", "x", {"a": ("ape",)}))
    with pytest.raises(
        PortrayalError, match="lists 'bee' as the neutral word of 'ape', and it names a group"
    ):
        Rewriter(Lexicon("x", "x", {"a": ("ape",), "b": ("bee",)}, plain={"ape": ("bee",)}))


LEXICON_NAMES = ("gender", "gender-broad", "age", "race", "man-woman")
REWRITERS = {name: Rewriter(load_lexicon(name)) for name in LEXICON_NAMES}
GROUP_WORDS = sorted(
    {word for name in LEXICON_NAMES for words in load_lexicon(name).groups.values() for word in words}
)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(GROUP_WORDS),
        st.sampled_from(
            "a an the is and dog person rides hat tennis player , . <b> & 's happy smiling".split()
        ),
        st.text(max_size=4),
    ),
    max_size=12,
).map(" ".join)


@given(TEXTS, st.sampled_from(LEXICON_NAMES))
def test_rewriting_is_idempotent(caption, name):
    rewritten = REWRITERS[name].rewrite(caption)
    assert REWRITERS[name].rewrite(rewritten.text).text == rewritten.text


@given(TEXTS, st.sampled_from(LEXICON_NAMES))
def test_no_group_word_is_added_and_only_those_in_left_remain(caption, name):
    finder = MentionFinder(load_lexicon(name))
    words_before = [mention.word for mention in finder.find(caption)]
    rewritten = REWRITERS[name].rewrite(caption)
    words_after = [mention.word for mention in finder.find(rewritten.text)]
    assert words_after == list(rewritten.left)
    assert len(words_after) + len(rewritten.changed) >= len(words_before)
    assert all(
        word not in load_lexicon(name).plain or "" in load_lexicon(name).plain[word] for word in words_after
    )


@given(st.text(), st.sampled_from(LEXICON_NAMES))
def test_text_without_group_words_is_unchanged(text, name):
    if not MentionFinder(load_lexicon(name)).find(text):
        assert REWRITERS[name].rewrite(text).text == text


def references(*captions: tuple[str, str]) -> Study:
    return Study.from_frames(
        references=pl.DataFrame(
            {"image_id": [i for i, _ in captions], "caption": [text for _, text in captions]}
        )
    )


def test_evidence_is_a_share_of_the_references_that_name_people():
    study = references(
        *(("1", text) for text in ("a man", "a skier", "a snowy hill", "a person", "a man skis")),  # 2 of 4
        *(("2", text) for text in ("a man", "a skier", "a person")),  # 1 of 3
        *(("3", text) for text in ("a hill", "a dog")),  # nobody
        *(("4", text) for text in ("a man and a woman", "a man")),  # both, and 1 of 2
    )
    evidence = find_group_evidence(study, load_lexicon("gender"))
    assert [sorted(evidence.groups(image)) for image in "12345"] == [["male"], [], [], ["female", "male"], []]
    strict_evidence = find_group_evidence(study, load_lexicon("gender"), min_share=0.6)
    assert [sorted(strict_evidence.groups(image)) for image in "1234"] == [[], [], [], ["male"]]
    assert evidence.describe("1") == "references that name people: 4; of them name 2 male"
    assert evidence.describe("3") == "no reference names anybody"
    with pytest.raises(Undefined, match="the study has none; rewrite everywhere"):
        find_group_evidence(Study(), load_lexicon("gender"))


def images(**counts: int) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Groups and objects of images, with the number of images for each "group_object_object"."""
    groups, objects = {}, {}
    for name, count in counts.items():
        group, *labels = name.split("_")
        for index in range(count):
            groups[f"{name}-{index}"] = group
            objects[f"{name}-{index}"] = labels
    return groups, objects


def test_balancing_with_one_object():
    """40 of 60 men and 20 of 60 women ski. At most 20 images of a group may show skiing, and 20 men do not ski, so 40
    images of each group are kept, 20 of them with skiing."""
    balanced = balance(*images(male_ski=40, male=20, female_ski=20, female=40))
    assert balanced.counts(None, kept=True) == {"female": 40, "male": 40}
    assert balanced.counts("ski", kept=True) == {"female": 20, "male": 20}
    assert balanced.gap("ski", kept=False) == pytest.approx(20 / 60)
    assert balanced.gap("ski", kept=True) == 0


def test_balancing_without_objects_samples_groups_of_equal_size():
    groups, _ = images(a=50, b=7, c=9)
    balanced = balance(groups, {})
    assert balanced.counts(None, kept=True) == {"a": 7, "b": 7, "c": 7}
    assert balanced.frequent == ()
    # The order of rows does not matter.
    assert balanced.kept == balance(dict(reversed(groups.items())), {}).kept
    assert balanced.kept != balance(groups, {}, seed=1).kept
    assert set(balanced.kept) <= set(groups)


def test_rare_objects_are_ignored():
    groups, objects = images(a_kite=29, a=1, b=30)
    assert balance(groups, objects).frequent == ()
    assert len(balance(groups, objects).kept) == 60
    groups, objects = images(a_kite=30, b=30)
    assert balance(groups, objects).kept == ()  # a is always shown with a kite, b never


def test_random_subset_keeps_the_group_sizes():
    balanced = balance(*images(male_ski=40, male=20, female_ski=20, female=40))
    subset = random_subset(balanced)
    assert subset.counts(None, kept=True) == balanced.counts(None, kept=True)
    assert subset.counts("ski", kept=True) != balanced.counts("ski", kept=True)


def test_one_group_cannot_be_balanced():
    with pytest.raises(Undefined, match="there is 1 group only"):
        balance({"1": "a"}, {})


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from(["ski", "dog", "bus"]))), min_size=2),
    st.integers(0, 3),
)
def test_balanced_groups_have_equal_size(labelled_images, seed):
    groups = {str(index): group for index, (group, _) in enumerate(labelled_images)}
    objects = {str(index): labels for index, (_, labels) in enumerate(labelled_images)}
    if len(set(groups.values())) < 2:
        return
    balanced = balance(groups, objects, seed)
    assert len(set(balanced.counts(None, kept=True).values())) == 1
    for label in balanced.frequent:
        assert max(balanced.counts(label, kept=True).values()) <= min(
            balanced.counts(label, kept=False).values()
        )


def value(results: Results, metric: str, term: str, system: str, **filters) -> float | None:
    (measurement,) = [
        m for m in results.measurements
        if (m.metric, m.term, m.system, m.group, m.item)
        == (metric, term, system, filters.get("group"), filters.get("item")) and m.unit != filters.get("not_unit")
    ]  # fmt: skip
    return measurement.value


def test_metrics_before_and_after_by_hand():
    """References name the man of image 1, not of image 2. Caption 3 calls a woman a man; caption 4 names nobody."""
    rows = [
        ("1", "male", "a man"),
        ("2", "male", "a man"),
        ("3", "female", "a man"),
        ("4", "female", "a dog"),
    ]
    references = [("1", "a man"), ("2", "a person"), ("3", "a woman"), ("4", "a dog")]
    mitigation = mitigate_captions(
        small_study(rows, references), methods=["neutral"], metrics=["error"], bootstrap=20
    )
    results, no_evidence, everywhere = (
        mitigation.results,
        "s (neutral where no evidence)",
        "s (neutral everywhere)",
    )
    assert mitigation.original_systems == {no_evidence: "s", everywhere: "s"}
    assert [value(results, "error", "right", name) for name in ("s", no_evidence, everywhere)] == [
        0.5,
        0.25,
        0,
    ]
    assert [value(results, "error", "wrong", name) for name in ("s", no_evidence, everywhere)] == [0.25, 0, 0]
    assert [value(results, "error", "neutral", name) for name in ("s", no_evidence, everywhere)] == [
        0.25,
        0.75,
        1,
    ]
    assert [value(results, "caption-mitigation", "changed", name) for name in (no_evidence, everywhere)] == [
        0.5,
        0.75,
    ]
    assert value(results, "caption-mitigation", "changed", no_evidence, group="male") == 0.5
    assert value(results, "caption-mitigation", "change", no_evidence, item="error: neutral") == 0.5
    assert value(results, "caption-mitigation", "change", everywhere, item="error: right", group="male") == -1
    (measurement,) = [
        m for m in results.measurements if (m.term, m.system, m.group) == ("changed", no_evidence, None)
    ]
    assert measurement.settings["where"] == "no-evidence"
    assert measurement.settings["min_share"] == 0.5
    evidence = results.evidence_of(measurement)
    assert evidence["image_id"].to_list() == ["2", "3"]
    assert json.loads(evidence["detail"][0])["evidence"].startswith(
        "references that name people: 1; of them name no group"
    )
    assert mitigation.captions.filter(pl.col("system") == no_evidence)["caption"].to_list() == [
        "a man", "a person", "a person", "a dog",
    ]  # fmt: skip


def test_images_are_not_balanced_by_labels_of_people():
    """Annotators labelled a person where a man is shown but not where a woman is: the label "person" is no object."""
    rows = [(str(index), "male" if index < 30 else "female", "a man") for index in range(60)]
    person_labels = pl.DataFrame(
        {"image_id": [image for image, group, _ in rows if group == "male"], "label": "person"}
    )
    kite_labels = pl.DataFrame({"image_id": ["0"], "label": "kite"})
    study = replace(
        small_study(rows),
        objects=Study.from_frames(
            captions=pl.DataFrame({"image_id": ["0"], "system": ["s"], "caption": ["a man"]}),
            objects=pl.concat([person_labels, kite_labels]),
        ).objects,
    )
    mitigation = mitigate_captions(study, methods=["balanced"], metrics=["error"], bootstrap=20)
    assert len(mitigation.images["balanced"]) == 60
    assert not [m for m in mitigation.results.measurements if m.item == "person"]


@pytest.fixture(scope="module")
def lab_study() -> Study:
    return make_study(scenes=150, seed=3)


@pytest.fixture(scope="module")
def lab_mitigation(lab_study):
    return mitigate_captions(lab_study, systems=["stereotyping"], metrics=["error", "quality"], bootstrap=60)


def test_results_equal_those_of_the_metrics(lab_study, lab_mitigation):
    """Before: results of the whole study. Balanced: results of a study with the kept images only."""
    results_before = portrayal.metrics.error(
        lab_study, attribute="gender", sources=["stereotyping"], bootstrap=60
    )
    measurement_by_id = {m.id: m for m in lab_mitigation.results.measurements}
    assert all(measurement_by_id[m.id] == m for m in results_before.measurements)
    kept_images = [image for image, _ in lab_mitigation.images["balanced"]]
    balanced_study = replace(
        lab_study.select_systems(["stereotyping"]),
        **{
            table: getattr(lab_study.select_systems(["stereotyping"]), table).filter(
                pl.col("image_id").is_in(kept_images)
            )
            for table in ("captions", "references", "attributes", "objects")
        },
    )
    balanced_results = portrayal.metrics.error(balanced_study, attribute="gender", bootstrap=60)
    for m in balanced_results.measurements:
        assert (
            value(lab_mitigation.results, m.metric, m.term, f"{m.system} (balanced)", group=m.group)
            == m.value
        )


def test_changes_equal_those_of_compare(lab_mitigation):
    """A change is the paired difference that `compare` returns for the two systems."""
    mitigated_system = "stereotyping (neutral where no evidence)"
    results_before, results_after = (
        replace(
            lab_mitigation.results,
            measurements=tuple(
                m for m in lab_mitigation.results.measurements if m.system == name and m.metric == "error"
            ),
        )
        for name in ("stereotyping", mitigated_system)
    )
    expected_changes = {(m.term, m.group): m for m in compare(results_before, results_after).measurements}
    rows = [
        m for m in lab_mitigation.results.measurements
        if m.term == "change" and m.system == mitigated_system and m.item.startswith("error: ")
    ]  # fmt: skip
    assert len(rows) == len(expected_changes)
    for m in rows:
        expected = expected_changes[m.item.removeprefix("error: "), m.group]
        assert (m.value, m.low, m.high, m.p) == (expected.value, expected.low, expected.high, expected.p)
        # Differences that are constant in all resamples come from both intervals.
        paired = expected.settings["paired"] or expected.settings.get("test") == "both intervals"
        assert paired or expected.value is None or expected.low is None


def test_results_are_consistent_and_saved(lab_mitigation, tmp_path):
    rows = lab_mitigation.results.measurements
    assert len({m.id for m in rows}) == len(rows)
    assert {m.id for m in rows} >= set(lab_mitigation.results.evidence["id"]) | set(
        lab_mitigation.results.replicates["id"]
    )
    assert all(m.value is not None or m.reason for m in rows)
    assert {m.term for m in rows if m.metric == "caption-mitigation"} <= {
        term["name"] for term in lab_mitigation.results.provenance["cards"]["caption-mitigation"]["terms"]
    }
    lab_mitigation.save(tmp_path)
    assert Results.load(tmp_path).measurements == rows


def test_the_same_call_gives_the_same_results(lab_study, lab_mitigation):
    repeated = mitigate_captions(
        lab_study, systems=["stereotyping"], metrics=["error", "quality"], bootstrap=60
    )
    assert repeated.results.measurements == lab_mitigation.results.measurements
    assert repeated.results.evidence.equals(lab_mitigation.results.evidence)
    shuffled_study = replace(lab_study, captions=lab_study.captions.sample(fraction=1, shuffle=True, seed=1))
    shuffled_mitigation = mitigate_captions(
        shuffled_study, systems=["stereotyping"], metrics=["error"], bootstrap=60
    )
    assert shuffled_mitigation.images == lab_mitigation.images


def test_rewritten_systems_keep_their_vocabulary(lab_study):
    study = replace(lab_study.select_systems(["faithful"]), vocabularies={"faithful": ("man", "a", "rides")})
    mitigation = mitigate_captions(
        study, methods=["neutral"], where=["everywhere"], metrics=["lic"], bootstrap=20, permutations=0
    )
    vocabularies = {m.settings["vocabulary"] for m in mitigation.results.measurements if m.metric == "lic"}
    assert vocabularies == {"system"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["prayer"]}, "Unknown caption method 'prayer'"),
        ({"where": ["nowhere"]}, "Unknown rewrite condition 'nowhere'"),
        ({"min_share": 0.0}, "'min_share' must be above 0 and at most 1"),
        ({"methods": []}, "Name at least one method"),
        ({"metrics": ["magic"]}, "Unknown metric 'magic'"),
        ({"systems": ["nobody"]}, "Unknown system 'nobody'"),
        ({"attribute": "hair"}, "No shipped lexicon names the groups of 'hair'"),
        ({"attribute": "gender+age"}, "No shipped lexicon names the groups"),
    ],
)
def test_invalid_arguments_are_refused(lab_study, arguments, message):
    with pytest.raises(PortrayalError, match=message):
        mitigate_captions(lab_study, **{"metrics": ["error"], **arguments})


def test_taken_system_names_and_unusable_studies_are_refused(lab_study):
    taken_name_study = replace(
        lab_study, captions=lab_study.captions.with_columns(pl.lit("s (neutral everywhere)").alias("system"))
    )
    two_system_study = replace(
        lab_study,
        captions=pl.concat(
            [taken_name_study.captions, taken_name_study.captions.with_columns(pl.lit("s").alias("system"))]
        ),
    )
    with pytest.raises(PortrayalError, match=r"has a system called .s \(neutral everywhere\). already"):
        mitigate_captions(two_system_study, metrics=["error"])
    study_without_attributes = replace(lab_study, attributes=lab_study.attributes.select("image_id"))
    with pytest.raises(Undefined, match="balanced by labels"):
        mitigate_captions(study_without_attributes, metrics=["quality"], methods=["balanced"])
    mitigation = mitigate_captions(
        study_without_attributes, metrics=["error", "quality"], methods=["neutral"], bootstrap=20
    )
    assert [skip["metric"] for skip in mitigation.results.provenance["skipped"]] == ["error"]
    with pytest.raises(Undefined, match="there is nothing to mitigate"):
        mitigate_captions(Study())


def test_the_real_study(lic_gender):
    """The shares of docs/mitigation.md for Oscar, without LIC. Few resamples suffice: shares do not depend on them."""
    study = portrayal.read_study(lic_gender)
    mitigation = mitigate_captions(study, systems=["oscar"], metrics=["error"], bootstrap=20)
    results, no_evidence, everywhere = (
        mitigation.results,
        "oscar (neutral where no evidence)",
        "oscar (neutral everywhere)",
    )
    assert value(results, "error", "neutral", everywhere) == 1
    wrong_before, wrong_after = (value(results, "error", "wrong", name) for name in ("oscar", no_evidence))
    assert wrong_after < wrong_before / 2
    assert 0.1 < value(results, "caption-mitigation", "changed", no_evidence) < 0.3
    assert value(results, "caption-mitigation", "left", everywhere) == 0
    objects_apart = [
        value(results, "caption-mitigation", "objects-apart", name) for name in ("human", "human (balanced)")
    ]
    assert objects_apart[0] > 0.3
    # COCO labels three objects per image on average, so fewer images can be balanced for all of them.
    assert objects_apart[1] < 0.04
    assert len(mitigation.images["balanced"]) > 4000


def test_metrics_and_terms_before_and_after_come_from_cards():
    assert METRICS == ("lic", "error", "quality", "harms")
    measured = [
        *(
            ("lic", term, "percent", {"split": split})
            for term in ("lic", "word")
            for split in ("crossfit", "paper")
        ),
        ("error", "ratio", "ratio", {"split": "only one"}),
        *(("harms", "erasure.group-not-mentioned", unit, {}) for unit in ("share", "count")),
        ("quality", "bleu-1", "fraction", {}),
        ("quality", "cider", "fraction", {}),
        ("leakage", "bias-amplification", "count", {}),
    ]
    rows = tuple(
        Measurement(metric, term, system=system, value=1.0, unit=unit, settings=settings)
        for system in ("s", "s (new)")
        for metric, term, unit, settings in measured
    )
    differences = changes(Results(rows), {"s (new)": "s"}, {"s (new)": {}}, "change").measurements
    assert [(m.item, m.unit) for m in differences] == [
        ("lic: lic (crossfit)", "percent"),
        ("lic: lic (paper)", "percent"),
        ("error: ratio", "ratio"),
        ("harms: erasure.group-not-mentioned", "share"),
        ("quality: cider", "fraction"),
        ("leakage: bias-amplification", "count"),
    ]
