"""The miner proposes concepts that a caption has for one person, and no similar words."""

from __future__ import annotations

import gzip
import random
import re

import polars as pl
import pytest

from portrayal.errors import PortrayalError
from portrayal.study import Study
from portrayal.vl_bias import ImageCandidate, count_candidates, mine_candidates


def mine_captions(captions: dict[str, list[str]], **options) -> list[ImageCandidate]:
    rows = [(image, caption) for image, image_captions in captions.items() for caption in image_captions]
    references = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    return mine_candidates(Study.from_frames(references=references), **options)


def mined_concepts(caption: str) -> set[tuple[str, str]]:
    return {(candidate.group, candidate.concept) for candidate in mine_captions({"1": [caption]})}


@pytest.mark.parametrize(
    ("caption", "group", "concept"),
    [
        ("A man is cooking.", "male", "cooking"),
        ("A woman sitting on a bench", "female", "sitting"),
        ("Woman cooks dinner in a small kitchen", "female", "cooking"),
        ("A young boy in a red shirt rides his bike", "male", "riding"),
        ("A man with a beard is sleeping on a train", "male", "sleeping"),
        ("A man who is washing an elephant", "male", "washing"),
        ("A smiling young woman holds a cake", "female", "smiling"),
        ("A woman holding a racket while standing on a court", "female", "standing"),
        ("A female tennis player jumping in the air", "female", "jumping"),
        ("A lady sits next to a shopping cart", "female", "sitting"),  # the cart names no activity
        ("A male is running down a street", "male", "running"),
        ("A baby looks at a man eating pizza", "male", "eating"),
        ("A woman hugging a child", "female", "hugging"),
        ("A man is seen walking on a beach", "male", "walking"),
    ],
)
def test_activities_of_a_person(caption, group, concept):
    assert mined_concepts(caption) == {(group, concept)}


@pytest.mark.parametrize(
    ("caption", "group", "concept"),
    [
        ("A female doctor with a clipboard", "female", "doctor"),
        ("A male police officer beside a car", "male", "police"),
        ("A police woman on a horse", "female", "police"),
        ("A man who is a chef", "male", "chef"),
        ("A woman soccer player on a field", "female", "footballer"),
        ("A female marathon runner in red", "female", "runner"),
    ],
)
def test_occupations_of_a_person(caption, group, concept):
    assert mined_concepts(caption) == {(group, concept)}


@pytest.mark.parametrize(
    "caption",
    [
        # a thing, or what something is for
        "A man with a cooking pot",
        "A woman pushing a shopping cart",
        "A man with a walking stick",
        "A man on a fishing boat",
        "A man holding a fishing pole",
        "A woman in blue running shoes",
        "A man parking a car",
        "A woman next to a sewing machine",
        "A man in a sleeping bag",
        "A boy holding a painting",
        # somebody or something else is the subject
        "A man with a dog running",
        "A man and a running dog",
        "A dog next to a man sitting",
        "A man watches cars driving by",
        "A man near a bus driving down the road",
        "A woman with a laptop sitting on her lap",
        "A woman pouring glasses of wine sitting on a table",
        "A man and a child sitting on a bench",
        "A man's dog is running",
        "A man holding a sign reading hello",
        "A man holding a camera by a mirror that sits on a sink",
        # nobody is there, or it is not done
        "A statue of a man sitting",
        "A female giraffe standing in a field",
        "A man who is not smiling",
        "A man after running",
        "A man ready for fishing",
        "A man as if he were sleeping",
        # another sense
        "A woman serving a tennis ball",
        "A man working out",
        "A man picking up a ball",
        # an occupation's things, and somebody else's occupation
        "A man in a chef hat",
        "A woman in front of a police car",
        "A man near a doctor",
        "A woman and a nurse",
        "A little boy dressed as a soldier",
    ],
)
def test_captions_that_propose_nothing(caption):
    assert mined_concepts(caption) == set()


@pytest.mark.parametrize(
    "caption",
    [
        "Men fishing",
        "Two men are cooking",
        "Two young women sitting",
        "Several male athletes",
        "A man and another man sit",
    ],
)
def test_several_people_propose_nothing(caption):
    assert mined_concepts(caption) == set()


def test_two_groups_and_two_concepts_propose_nothing():
    assert mined_concepts("A man and a woman cooking") == set()
    assert mined_concepts("A woman sitting and reading") == set()
    assert mined_concepts("A female chef cooking") == {
        ("female", "chef"),
        ("female", "cooking"),
    }  # one of each kind


def test_other_captions_of_the_image_count():
    assert mine_captions({"1": ["A man is cooking", "A woman in a kitchen"]}) == []
    assert mine_captions({"1": ["A man is cooking", "Two men in a kitchen"]}) == []
    assert mine_captions({"1": ["A man is cooking", "A couple in a kitchen"]}) == []
    assert mine_captions({"1": ["A man is cooking", "A man by his brother"]}) == []
    candidates = mine_captions(
        {"1": ["A man cooks eggs", "Somebody in a kitchen", "The man is cooking an egg"]}
    )
    assert candidates == [ImageCandidate("1", "male", "cooking", "activity", 2, 3, "A man cooks eggs")]


def test_postures_that_captions_do_not_agree_on_are_left_out():
    assert mine_captions({"1": ["A man is sitting", "A man is standing"]}) == []
    assert [
        candidate.concept
        for candidate in mine_captions({"1": ["A man sits", "A man stands", "A seated man"]})
    ] == ["sitting"]


def test_a_pronoun_alone_is_no_evidence():
    caption = "A farmer on his tractor"
    assert mine_captions({"1": [caption]}) == []
    assert [candidate.concept for candidate in mine_captions({"1": [caption, "A man on a tractor"]})] == [
        "farmer"
    ]


def test_the_minimum_number_of_captions():
    captions = {
        "1": ["A man is cooking", "A man cooks eggs"],
        "2": ["A man is cooking", "A man in a kitchen"],
    }
    assert [candidate.image for candidate in mine_captions(captions)] == ["1", "2"]
    assert [candidate.image for candidate in mine_captions(captions, min_captions=2)] == ["1"]
    with pytest.raises(PortrayalError, match="'min_captions'"):
        mine_captions(captions, min_captions=0)


def test_own_concepts_and_lexicon():
    captions = {"1": ["A young woman juggling"], "2": ["An old man juggling"], "3": ["A woman baker"]}
    concepts = {"act": ["juggling"], "job": ["baker"]}
    candidates = [
        (candidate.image, candidate.group, candidate.kind)
        for candidate in mine_captions(captions, concepts=concepts)
    ]
    assert candidates == [("2", "male", "act"), ("1", "female", "act"), ("3", "female", "job")]
    by_age = [
        (candidate.image, candidate.group)
        for candidate in mine_captions(captions, concepts=concepts, lexicon="age")
    ]
    assert by_age == [("1", "young"), ("2", "old")]


def test_the_order_of_rows_changes_nothing():
    captions = {
        "b": ["A man is cooking"], "a": ["A man cooks eggs"], "c": ["A girl reading a book"], "d": ["A female nurse"],
        "e": ["A woman is cooking"],
    }  # fmt: skip
    candidates = mine_captions(captions)
    assert [(candidate.concept, candidate.image) for candidate in candidates] == [
        ("cooking", "a"), ("cooking", "b"), ("cooking", "e"), ("reading", "c"), ("nurse", "d"),
    ]  # fmt: skip
    shuffled = list(captions.items())
    random.Random(0).shuffle(shuffled)
    assert mine_captions(dict(shuffled)) == candidates
    assert count_candidates(candidates)["activity", "cooking", "male"] == 2


def test_odd_captions_do_no_harm():
    assert (
        mine_captions(
            {
                "1": ["İ A man is cooking", "?", "man", "cooking"],
                "2": ["A man-eating tiger sits"],
            }
        )
        == []
    )


def test_real_captions(shared):
    """The first 3,000 sentences of Flickr30k."""
    rows = []
    with gzip.open(shared / "text" / "flickr30k_entities_sentences.tsv.gz", "rt", encoding="utf-8") as file:
        for _, line in zip(range(3000), file, strict=False):
            image, _, text = line.rstrip("\n").split("\t")
            rows.append((image, re.sub(r"\[/EN#\d+(?:/\w+)+ ([^\]]*)\]", r"\1", text)))
    candidates = mine_candidates(
        Study.from_frames(references=pl.DataFrame(rows, schema=["image_id", "caption"], orient="row"))
    )
    assert len(candidates) > 100
    assert {candidate.group for candidate in candidates} == {"male", "female"}
    captions = {}
    for image, caption in rows:
        captions.setdefault(image, []).append(caption)
    for candidate in candidates:
        assert candidate.caption in captions[candidate.image]
        assert 1 <= candidate.saying <= candidate.captions == len(captions[candidate.image])
