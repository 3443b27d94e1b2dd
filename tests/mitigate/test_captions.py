"""Mitigation for captions: the rewrite, the evidence, the balance, and numbers before and after."""

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
    Rewriter,
    balance,
    find_group_evidence,
    mitigate_captions,
    random_subset,
)
from portrayal.results import Results
from portrayal.study import Study
from tests.conftest import small_study

GENDER = Rewriter(load_lexicon("gender"))
REWRITTEN = {
    # nouns: one, several, their age, their case, their owner
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
    # what can be left out
    "a male tennis player": "a tennis player",
    "Female athlete runs": "Athlete runs",
    "a young male riding a horse": "a young person riding a horse",
    "a male and a female": "a person and a person",
    "a man in a cowboy hat": "a person in a cowboy hat",
    "a cowboy on a horse": "a rider on a horse",
    # pronouns by the part they play
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
    # nothing to do, and nothing that can be done
    "a person on a horse": "a person on a horse",
    "they ride": "they ride",
    "a queen size bed": "a queen size bed",
    "": "",
    # captions are text, whatever they look like
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


def test_spared_groups_keep_their_words():
    assert GENDER.rewrite("a man and his wife", keep_groups={"male"}).text == "a man and his spouse"
    assert GENDER.rewrite("a man and his wife", keep_groups={"male", "female"}).changed == ()


def test_other_attributes():
    race, age = (Rewriter(load_lexicon(name)) for name in ("race", "age"))
    assert race.rewrite("An African man with a black dog").text == "A man with a black dog"
    assert age.rewrite("Old man and an old truck").text == "Man and an old truck"
    assert age.rewrite("an elderly woman").text == "a woman"
    assert age.rewrite("the elderly").left == ("elderly",)  # nobody is described, so it cannot be left out
    assert age.rewrite("a child and two teens").text == "a person and two people"
    assert age.rewrite("a senior man and a toddler").text == "a man and a person"
    assert race.rewrite("a dark skinned man and a light-skinned woman").text == "a man and a woman"


def test_groups_are_data():
    listed = Lexicon("x", "x", {"a": ("ape",), "b": ("bee",)}, plain={"ape": ("owl",), "bee": ("owl",)})
    assert Rewriter(listed).rewrite("an ape, a bee").text == "an owl, an owl"


def test_a_lexicon_that_cannot_rewrite_is_refused():
    with pytest.raises(PortrayalError, match=r"The lexicon 'x' lists no neutral words .* \[plain\]"):
        Rewriter(Lexicon("x", "x", {"a": ("ape",)}))
    with pytest.raises(
        PortrayalError, match="lists 'bee' as the neutral word of 'ape', and it names a group"
    ):
        Rewriter(Lexicon("x", "x", {"a": ("ape",), "b": ("bee",)}, plain={"ape": ("bee",)}))


NAMES = ("gender", "gender-broad", "age", "race", "man-woman")
REWRITERS = {name: Rewriter(load_lexicon(name)) for name in NAMES}
SAID = sorted({word for name in NAMES for words in load_lexicon(name).groups.values() for word in words})
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(SAID),
        st.sampled_from(
            "a an the is and dog person rides hat tennis player , . <b> & 's happy smiling".split()
        ),
        st.text(max_size=4),
    ),
    max_size=12,
).map(" ".join)


@given(TEXTS, st.sampled_from(NAMES))
def test_rewriting_twice_is_rewriting_once(caption, name):
    once = REWRITERS[name].rewrite(caption)
    assert REWRITERS[name].rewrite(once.text).text == once.text


@given(TEXTS, st.sampled_from(NAMES))
def test_no_group_word_is_added_and_only_left_ones_stay(caption, name):
    finder = MentionFinder(load_lexicon(name))
    before = [mention.word for mention in finder.find(caption)]
    rewritten = REWRITERS[name].rewrite(caption)
    after = [mention.word for mention in finder.find(rewritten.text)]
    assert after == list(rewritten.left)
    assert len(after) + len(rewritten.changed) >= len(before)
    assert all(word not in load_lexicon(name).plain or "" in load_lexicon(name).plain[word] for word in after)


@given(st.text(), st.sampled_from(NAMES))
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
    found = find_group_evidence(study, load_lexicon("gender"))
    assert [sorted(found.groups(image)) for image in "12345"] == [["male"], [], [], ["female", "male"], []]
    strict = find_group_evidence(study, load_lexicon("gender"), min_share=0.6)
    assert [sorted(strict.groups(image)) for image in "1234"] == [[], [], [], ["male"]]
    assert found.describe("1") == "references that name people: 4; of them name 2 male"
    assert found.describe("3") == "no reference names anybody"
    with pytest.raises(Undefined, match="the study has none; rewrite everywhere"):
        find_group_evidence(Study(), load_lexicon("gender"))


def images(**numbers: int) -> tuple[dict[str, str], dict[str, list[str]]]:
    """So many images of each "group_object_object"."""
    groups, objects = {}, {}
    for name, count in numbers.items():
        group, *shown = name.split("_")
        for number in range(count):
            groups[f"{name}-{number}"] = group
            objects[f"{name}-{number}"] = shown
    return groups, objects


def test_balance_beside_an_object():
    """40 of 60 men and 20 of 60 women ski. No group may ski more often than 20 times; men who do not are 20, so 40 of
    each are kept, 20 of them skiing."""
    made = balance(*images(male_ski=40, male=20, female_ski=20, female=40))
    assert made.counts(None, kept=True) == {"female": 40, "male": 40}
    assert made.counts("ski", kept=True) == {"female": 20, "male": 20}
    assert made.gap("ski", kept=False) == pytest.approx(20 / 60)
    assert made.gap("ski", kept=True) == 0


def test_balance_without_objects_is_a_draw_of_equally_many():
    groups, _ = images(a=50, b=7, c=9)
    made = balance(groups, {})
    assert made.counts(None, kept=True) == {"a": 7, "b": 7, "c": 7}
    assert made.frequent == ()
    assert made.kept == balance(dict(reversed(groups.items())), {}).kept  # whatever the order of rows
    assert made.kept != balance(groups, {}, seed=1).kept
    assert set(made.kept) <= set(groups)


def test_rare_objects_do_not_count():
    groups, objects = images(a_kite=29, a=1, b=30)
    assert balance(groups, objects).frequent == ()
    assert len(balance(groups, objects).kept) == 60
    groups, objects = images(a_kite=30, b=30)
    assert balance(groups, objects).kept == ()  # b is never shown with a kite, and a never without


def test_as_many_at_random():
    made = balance(*images(male_ski=40, male=20, female_ski=20, female=40))
    other = random_subset(made)
    assert other.counts(None, kept=True) == made.counts(None, kept=True)
    assert other.counts("ski", kept=True) != made.counts("ski", kept=True)


def test_one_group_cannot_be_balanced():
    with pytest.raises(Undefined, match="there is 1 group only"):
        balance({"1": "a"}, {})


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from(["ski", "dog", "bus"]))), min_size=2),
    st.integers(0, 3),
)
def test_balanced_groups_are_equally_many(drawn_images, seed):
    groups = {str(number): group for number, (group, _) in enumerate(drawn_images)}
    objects = {str(number): shown for number, (_, shown) in enumerate(drawn_images)}
    if len(set(groups.values())) < 2:
        return
    made = balance(groups, objects, seed)
    assert len(set(made.counts(None, kept=True).values())) == 1
    for label in made.frequent:
        assert max(made.counts(label, kept=True).values()) <= min(made.counts(label, kept=False).values())


def value(results: Results, metric: str, term: str, system: str, **more) -> float | None:
    (found,) = [
        m for m in results.measurements
        if (m.metric, m.term, m.system, m.group, m.item)
        == (metric, term, system, more.get("group"), more.get("item")) and m.unit != more.get("not_unit")
    ]  # fmt: skip
    return found.value


def test_before_and_after_by_hand():
    """Four images. The man of 1 is evident, that of 2 is not; 3 has a woman called a man, and 4 names nobody."""
    rows = [
        ("1", "male", "a man"),
        ("2", "male", "a man"),
        ("3", "female", "a man"),
        ("4", "female", "a dog"),
    ]
    told = [("1", "a man"), ("2", "a person"), ("3", "a woman"), ("4", "a dog")]
    made = mitigate_captions(small_study(rows, told), methods=["neutral"], metrics=["error"], bootstrap=20)
    results, near, far = made.results, "s (neutral where no evidence)", "s (neutral everywhere)"
    assert made.original_systems == {near: "s", far: "s"}
    assert [value(results, "error", "right", name) for name in ("s", near, far)] == [0.5, 0.25, 0]
    assert [value(results, "error", "wrong", name) for name in ("s", near, far)] == [0.25, 0, 0]
    assert [value(results, "error", "neutral", name) for name in ("s", near, far)] == [0.25, 0.75, 1]
    assert [value(results, "remedy", "changed", name) for name in (near, far)] == [0.5, 0.75]
    assert value(results, "remedy", "changed", near, group="male") == 0.5
    assert value(results, "remedy", "change", near, item="error: neutral") == 0.5
    assert value(results, "remedy", "change", far, item="error: right", group="male") == -1
    (changed,) = [m for m in results.measurements if (m.term, m.system, m.group) == ("changed", near, None)]
    assert changed.settings["where"] == "no-evidence"
    assert changed.settings["min_share"] == 0.5
    behind = results.evidence_of(changed)
    assert behind["image_id"].to_list() == ["2", "3"]
    assert json.loads(behind["detail"][0])["evidence"].startswith(
        "references that name people: 1; of them name no group"
    )
    assert made.captions.filter(pl.col("system") == near)["caption"].to_list() == [
        "a man", "a person", "a person", "a dog",
    ]  # fmt: skip


def test_images_are_not_balanced_by_labels_of_people():
    """Annotators marked a person where a man is shown and none where a woman is: a person is no object beside her."""
    rows = [(str(number), "male" if number < 30 else "female", "a man") for number in range(60)]
    people = pl.DataFrame(
        {"image_id": [image for image, group, _ in rows if group == "male"], "label": "person"}
    )
    kite = pl.DataFrame({"image_id": ["0"], "label": "kite"})
    study = replace(
        small_study(rows),
        objects=Study.from_frames(
            captions=pl.DataFrame({"image_id": ["0"], "system": ["s"], "caption": ["a man"]}),
            objects=pl.concat([people, kite]),
        ).objects,
    )
    made = mitigate_captions(study, methods=["balanced"], metrics=["error"], bootstrap=20)
    assert len(made.images["balanced"]) == 60
    assert not [m for m in made.results.measurements if m.item == "person"]


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(scenes=150, seed=3)


@pytest.fixture(scope="module")
def done(lab):
    return mitigate_captions(lab, systems=["stereotyping"], metrics=["error", "quality"], bootstrap=60)


def test_numbers_are_those_of_the_metrics(lab, done):
    """Before: of the study as it is. Balanced: of a study that has the kept images only."""
    before = portrayal.metrics.error(lab, attribute="gender", sources=["stereotyping"], bootstrap=60)
    ids = {m.id: m for m in done.results.measurements}
    assert all(ids[m.id] == m for m in before.measurements)
    kept = [image for image, _ in done.images["balanced"]]
    part = replace(
        lab.select_systems(["stereotyping"]),
        **{
            table: getattr(lab.select_systems(["stereotyping"]), table).filter(pl.col("image_id").is_in(kept))
            for table in ("captions", "references", "attributes", "objects")
        },
    )
    alone = portrayal.metrics.error(part, attribute="gender", bootstrap=60)
    for m in alone.measurements:
        assert value(done.results, m.metric, m.term, f"{m.system} (balanced)", group=m.group) == m.value


def test_changes_are_those_of_compare(done):
    """A change is what `compare` says of the two systems, paired."""
    after = "stereotyping (neutral where no evidence)"
    one, other = (
        replace(
            done.results,
            measurements=tuple(
                m for m in done.results.measurements if m.system == name and m.metric == "error"
            ),
        )
        for name in ("stereotyping", after)
    )
    found = {(m.term, m.group): m for m in compare(one, other).measurements}
    rows = [
        m for m in done.results.measurements
        if m.term == "change" and m.system == after and m.item.startswith("error: ")
    ]  # fmt: skip
    assert len(rows) == len(found)
    for m in rows:
        same = found[m.item.removeprefix("error: "), m.group]
        assert (m.value, m.low, m.high, m.p) == (same.value, same.low, same.high, same.p)
        paired = (
            same.settings["paired"] or same.settings.get("test") == "both intervals"
        )  # of none, in all resamples
        assert paired or same.value is None or same.low is None


def test_results_hold_together(done, tmp_path):
    rows = done.results.measurements
    assert len({m.id for m in rows}) == len(rows)
    assert {m.id for m in rows} >= set(done.results.evidence["id"]) | set(done.results.replicates["id"])
    assert all(m.value is not None or m.reason for m in rows)
    assert {m.term for m in rows if m.metric == "remedy"} <= {
        term["name"] for term in done.results.provenance["cards"]["remedy"]["terms"]
    }
    done.save(tmp_path)
    assert Results.load(tmp_path).measurements == rows


def test_the_same_call_gives_the_same(lab, done):
    again = mitigate_captions(lab, systems=["stereotyping"], metrics=["error", "quality"], bootstrap=60)
    assert again.results.measurements == done.results.measurements
    assert again.results.evidence.equals(done.results.evidence)
    shuffled = replace(lab, captions=lab.captions.sample(fraction=1, shuffle=True, seed=1))
    other = mitigate_captions(shuffled, systems=["stereotyping"], metrics=["error"], bootstrap=60)
    assert other.images == done.images


def test_vocabularies_follow(lab):
    study = replace(lab.select_systems(["faithful"]), vocabularies={"faithful": ("man", "a", "rides")})
    made = mitigate_captions(
        study, methods=["neutral"], where=["everywhere"], metrics=["lic"], bootstrap=20, permutations=0
    )
    used = {m.settings["vocabulary"] for m in made.results.measurements if m.metric == "lic"}
    assert used == {"system"}


@pytest.mark.parametrize(
    ("wrong", "says"),
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
def test_bad_calls(lab, wrong, says):
    with pytest.raises(PortrayalError, match=says):
        mitigate_captions(lab, **{"metrics": ["error"], **wrong})


def test_names_that_are_taken_and_studies_that_cannot(lab):
    taken = replace(lab, captions=lab.captions.with_columns(pl.lit("s (neutral everywhere)").alias("system")))
    both = replace(
        lab, captions=pl.concat([taken.captions, taken.captions.with_columns(pl.lit("s").alias("system"))])
    )
    with pytest.raises(PortrayalError, match=r"has a system called .s \(neutral everywhere\). already"):
        mitigate_captions(both, metrics=["error"])
    bare = replace(lab, attributes=lab.attributes.select("image_id"))
    with pytest.raises(Undefined, match="balanced by labels"):
        mitigate_captions(bare, metrics=["quality"], methods=["balanced"])
    made = mitigate_captions(bare, metrics=["error", "quality"], methods=["neutral"], bootstrap=20)
    assert [skip["metric"] for skip in made.results.provenance["skipped"]] == ["error"]
    with pytest.raises(Undefined, match="there is nothing to mitigate"):
        mitigate_captions(Study())


def test_the_real_study(lic_gender):
    """What docs/mitigation.md says of Oscar, without LIC and with few draws: shares do not depend on them."""
    study = portrayal.read_study(lic_gender)
    made = mitigate_captions(study, systems=["oscar"], metrics=["error"], bootstrap=20)
    results, near, far = made.results, "oscar (neutral where no evidence)", "oscar (neutral everywhere)"
    assert value(results, "error", "neutral", far) == 1
    before, after = (value(results, "error", "wrong", name) for name in ("oscar", near))
    assert after < before / 2
    assert 0.1 < value(results, "remedy", "changed", near) < 0.3
    assert value(results, "remedy", "left", far) == 0
    apart = [value(results, "remedy", "objects-apart", name) for name in ("human", "human (balanced)")]
    assert apart[0] > 0.3
    assert (
        apart[1] < 0.04
    )  # COCO annotates three objects an image: fewer images can be balanced by all of them
    assert len(made.images["balanced"]) > 4000
