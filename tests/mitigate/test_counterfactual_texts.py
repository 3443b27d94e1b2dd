"""The other text: the same words in the same places, but for those that name the group."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import load_lexicon
from portrayal.lexicon.lexicon import parse_lexicon

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)

WORDS = "a an man woman is the boy girl young lady his her hat cooking and elf pregnant dog him gives"
SMALL = """
name = "small"
attribute = "folk"
[groups]
men = ["man", "boy", "sir", "elf"]
women = ["woman", "girl", "young lady"]
elves = ["elf lord"]
[swap]
man = "woman"
boy = "girl"
sir = "young lady"
"""


def small():
    return parse_lexicon(SMALL, "small.toml")


def tokenizer(longest=10):
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    return WordTokenizer([*WORDS.split(), "sir", "lord"], longest)


def twins(texts, lexicon=None, groups=("men", "women"), reads=None):
    import torch

    from portrayal.mitigate.counterfactual_texts import make_counterparts
    from portrayal.models.masked_vlm.vocabulary import pad_rows

    reads = reads or tokenizer()
    ids = torch.tensor(
        pad_rows([reads.encode_caption(text) for text in texts], reads.pad_id), dtype=torch.int32
    )
    made, counts = make_counterparts(
        [[text] for text in texts], ids[:, None], reads, lexicon or small(), groups
    )
    return ids, made.group[:, 0].tolist(), made.ids[:, 0], dict(counts)


def said(ids, reads=None):
    reads = reads or tokenizer()
    words = [reads.id_to_token(int(number)) for number in ids]
    return " ".join(word for word in words if word not in ("[PAD]", "[CLS]", "[SEP]"))


def test_the_words_of_one_group_become_those_of_the_other():
    texts = ["a man and the boy", "The woman is cooking"]
    ids, group, made, counts = twins(texts)
    assert group == [0, 1]
    assert [said(one) for one in made] == ["a woman and the girl", "the man is cooking"]
    assert counts == {"have a counterpart": 2}
    assert (ids != made).tolist() == [
        [False, False, True, False, False, True, False],
        [False, False, True, False, False, False, False],
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a man and a woman", "name no single group"),
        ("the dog is cooking", "name no single group"),
        ("an elf lord is cooking", "name no single group"),  # a group that the remedy is not about
        ("the elf is cooking", "have a word without a counterpart"),
        (
            "a man and the elf",
            "have a word without a counterpart",
        ),  # one of them has one: half a swap is none
        ("the sir is cooking", "change their number of pieces"),
        ("a young lady and a girl", "change their number of pieces"),
    ],
)
def test_a_text_without_a_counterpart_stays_and_is_counted(text, why):
    ids, group, made, counts = twins([text])
    assert group == [2]
    assert made.equal(ids)
    assert counts == {why: 1}


def test_a_text_that_is_cut_has_no_counterpart_either_if_its_pieces_change():
    """Cut to ten numbers both are as long, and every word after the first stands in another place."""
    long = "the sir and a dog and a dog and a dog and a hat"
    assert (
        len(tokenizer().encode_caption(long))
        == len(tokenizer().encode_caption(long.replace("sir", "young lady")))
        == 10
    )
    _, group, _, counts = twins([long])
    assert group == [2]
    assert counts == {"change their number of pieces": 1}
    _, group, made, _ = twins([long.replace("sir", "man")])  # the same with as many pieces
    assert group == [0]
    assert said(made[0]) == "the woman and a dog and a dog"


def test_words_that_make_up_for_each_other_do_not_keep_the_places():
    """One word becomes two and two become one: as many in all, and what lies between has moved."""
    both = parse_lexicon(
        SMALL.replace('sir = "young lady"', 'sir = "young lady"\n"boy elf" = "girl"').replace(
            '"sir", "elf"', '"sir", "elf", "boy elf"'
        ),
        "small.toml",
    )
    _, group, _, counts = twins(["the sir gives a hat and the boy elf is cooking"], both, reads=tokenizer(20))
    assert group == [2]
    assert counts == {"change their number of pieces": 1}


def test_filler_stays_filler():
    ids, _, made, _ = twins(["a man", "the woman is cooking and the dog"])
    assert (made[0, 4:] == 0).all()
    assert ((ids == 0) == (made == 0)).all()


def test_of_several_groups_two_are_chosen():
    three = parse_lexicon(
        """
        name = "three"
        [groups]
        men = ["man"]
        women = ["woman"]
        elves = ["elf"]
        [swap]
        man = ["woman", "elf"]
        woman = ["elf"]
        """,
        "three.toml",
    )
    texts = ["a man is cooking", "the elf", "a woman"]
    _, group, made, counts = twins(texts, three, ("men", "elves"))
    assert group == [0, 1, 2]
    assert [said(one) for one in made] == ["an elf is cooking", "the man", "a woman"]
    assert counts == {"have a counterpart": 2, "name no single group": 1}
    _, group, made, _ = twins(texts, three, ("elves", "women"))
    assert group == [2, 0, 1]
    assert [said(one) for one in made] == ["a man is cooking", "the woman", "an elf"]


def test_pronouns_follow_and_stand_among_the_groups_words():
    ids, group, made, _ = twins(
        ["a man gives him his hat"], load_lexicon("gender"), ("male", "female"), tokenizer(20)
    )
    assert group == [0]
    assert said(made[0]) == "a woman gives her her hat"
    assert (ids != made)[0].nonzero()[:, 0].tolist() == [2, 4, 5]


def test_a_text_that_comes_again_is_counted_again():
    _, group, _, counts = twins(["a man", "a man", "a dog"])
    assert group == [0, 0, 2]
    assert counts == {"have a counterpart": 2, "name no single group": 1}


ANY = st.lists(st.sampled_from("a man woman is the boy girl cooking dog hat".split()), min_size=1, max_size=8)


@given(ANY)
def test_the_twin_of_a_twin_is_the_text(words):
    text = " ".join(words)
    ids, (group,), made, _ = twins([text])
    if group == 2:
        assert made.equal(ids)
        return
    again, (other,), back, _ = twins([said(made[0])])
    assert other == 1 - group
    assert again.equal(made)
    assert back.equal(ids)


@given(ANY)
def test_a_twin_differs_where_the_group_is_named_and_nowhere_else(words):
    ids, (group,), made, _ = twins([" ".join(words)])
    names = {"man", "woman", "boy", "girl"}
    where = [group != 2 and word in names for word in words]
    assert (ids != made)[0].tolist() == [False, *where, False]


# -- how words lean -------------------------------------------------------------------------------------------------


def leaned(texts, groups, others, words=8):
    import torch

    from portrayal.mitigate.counterfactual_texts import Counterparts, logit_adjustment

    ids, twin = torch.tensor(texts, dtype=torch.int32), torch.tensor(others, dtype=torch.int32)
    return logit_adjustment(
        [(ids[:, None], Counterparts(torch.tensor(groups)[:, None], twin[:, None]))], words, 0
    )


def test_leanings_by_hand():
    """Words 1 and 2 name the groups; 3 is said of the first group twice and of the second once, 4 of the second alone;
    5 of nobody; 0 is filler.

    The first group's texts have 4 words, the second's 4: of 8 words each with one more, shares are (count + 1) / 12.
    Word 3: 3/12 and 2/12, mean 2.5/12: log 3/2.5 and log 2/2.5. Word 4: 1/12 and 2/12: log 1/1.5, log 2/1.5.
    """
    texts, others = [[1, 3], [1, 3], [2, 3], [2, 4], [5, 5]], [[2, 3], [2, 3], [1, 3], [1, 4], [5, 5]]
    made = leaned(texts, [0, 0, 1, 1, 2], others)
    want = [[0.0] * 8 for _ in range(3)]
    want[0][3], want[1][3] = 0.18232156, -0.22314355  # log 1.2, log 0.8
    want[0][4], want[1][4] = -0.40546511, 0.28768207  # log 2/3, log 4/3
    assert made.shape == (3, 8)
    assert made.flatten().tolist() == pytest.approx([one for row in want for one in row], abs=1e-6)
    filled = leaned([*texts, [0, 0]], [0, 0, 1, 1, 2, 1], [*others, [0, 0]])
    assert filled.equal(made)  # filler is nobody's


def test_a_word_that_was_never_said_leans_to_nobody_however_often_groups_are_named():
    """The first group has three texts and the second one: 6 and 2 words, 4 on average, so one more word is 1.5 and 0.5.
    Word 3: (3 + 1.5) / (6 + 8 x 1.5) = 4.5/18 and (1 + .5) / (2 + 8 x .5) = 1.5/6, which is the same share."""
    texts = [[1, 3], [1, 3], [1, 3], [2, 3]]
    made = leaned(texts, [0, 0, 0, 1], [[2, 3], [2, 3], [2, 3], [1, 3]])
    assert made.abs().max() == pytest.approx(0, abs=1e-6)
    apart = leaned([[1, 3], [1, 3], [1, 4], [2, 3]], [0, 0, 0, 1], [[2, 3], [2, 3], [2, 4], [1, 3]])
    # word 3: (2 + 1.5) / 18 and 1.5/6; word 4: (1 + 1.5) / 18 and .5/6
    import math

    for word, first, second in ((3, 3.5 / 18, 1.5 / 6), (4, 2.5 / 18, 0.5 / 6)):
        mean = (first + second) / 2
        assert float(apart[0, word]) == pytest.approx(math.log(first / mean), abs=1e-6)
        assert float(apart[1, word]) == pytest.approx(math.log(second / mean), abs=1e-6)
    assert (apart[:, [0, 1, 2, 5, 6, 7]].abs() < 1e-6).all()


def test_where_one_group_alone_is_named_nothing_leans():
    made = leaned([[1, 3], [1, 4]], [0, 0], [[2, 3], [2, 4]])
    assert (made == 0).all()
