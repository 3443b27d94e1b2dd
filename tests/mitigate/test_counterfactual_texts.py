"""Counterpart texts: the same words at the same positions, except those that name the group."""

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


def make_tokenizer(max_length=10):
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    return WordTokenizer([*WORDS.split(), "sir", "lord"], max_length)


def counterparts(texts, lexicon=None, groups=("men", "women"), tokenizer=None):
    import torch

    from portrayal.mitigate.counterfactual_texts import make_counterparts
    from portrayal.models.masked_vlm.vocabulary import pad_rows

    tokenizer = tokenizer or make_tokenizer()
    ids = torch.tensor(
        pad_rows([tokenizer.encode_caption(text) for text in texts], tokenizer.pad_id), dtype=torch.int32
    )
    swapped, counts = make_counterparts(
        [[text] for text in texts], ids[:, None], tokenizer, lexicon or small(), groups
    )
    return ids, swapped.group[:, 0].tolist(), swapped.ids[:, 0], dict(counts)


def decode(ids, tokenizer=None):
    tokenizer = tokenizer or make_tokenizer()
    words = [tokenizer.id_to_token(int(token_id)) for token_id in ids]
    return " ".join(word for word in words if word not in ("[PAD]", "[CLS]", "[SEP]"))


def test_the_words_of_one_group_become_those_of_the_other():
    texts = ["a man and the boy", "The woman is cooking"]
    ids, group, counterpart_ids, counts = counterparts(texts)
    assert group == [0, 1]
    assert [decode(row) for row in counterpart_ids] == ["a woman and the girl", "the man is cooking"]
    assert counts == {"have a counterpart": 2}
    assert (ids != counterpart_ids).tolist() == [
        [False, False, True, False, False, True, False],
        [False, False, True, False, False, False, False],
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a man and a woman", "name no single group"),
        ("the dog is cooking", "name no single group"),
        ("an elf lord is cooking", "name no single group"),  # a group outside the pair
        ("the elf is cooking", "have a word without a counterpart"),
        ("a man and the elf", "have a word without a counterpart"),  # although "man" has one
        ("the sir is cooking", "change their number of pieces"),
        ("a young lady and a girl", "change their number of pieces"),
    ],
)
def test_a_text_without_a_counterpart_stays_and_is_counted(text, reason):
    ids, group, counterpart_ids, counts = counterparts([text])
    assert group == [2]
    assert counterpart_ids.equal(ids)
    assert counts == {reason: 1}


def test_a_truncated_text_has_no_counterpart_if_its_number_of_pieces_changes():
    """Both texts are truncated to ten token ids, but after the swap every later word is at another position."""
    long_text = "the sir and a dog and a dog and a dog and a hat"
    assert (
        len(make_tokenizer().encode_caption(long_text))
        == len(make_tokenizer().encode_caption(long_text.replace("sir", "young lady")))
        == 10
    )
    _, group, _, counts = counterparts([long_text])
    assert group == [2]
    assert counts == {"change their number of pieces": 1}
    # Here the number of pieces stays the same.
    _, group, counterpart_ids, _ = counterparts([long_text.replace("sir", "man")])
    assert group == [0]
    assert decode(counterpart_ids[0]) == "the woman and a dog and a dog"


def test_length_changes_that_cancel_out_still_move_positions():
    """One word becomes two and two become one: the length is the same, but the words between them move."""
    lexicon = parse_lexicon(
        SMALL.replace('sir = "young lady"', 'sir = "young lady"\n"boy elf" = "girl"').replace(
            '"sir", "elf"', '"sir", "elf", "boy elf"'
        ),
        "small.toml",
    )
    _, group, _, counts = counterparts(
        ["the sir gives a hat and the boy elf is cooking"], lexicon, tokenizer=make_tokenizer(20)
    )
    assert group == [2]
    assert counts == {"change their number of pieces": 1}


def test_padding_stays_padding():
    ids, _, counterpart_ids, _ = counterparts(["a man", "the woman is cooking and the dog"])
    assert (counterpart_ids[0, 4:] == 0).all()
    assert ((ids == 0) == (counterpart_ids == 0)).all()


def test_two_of_three_groups_are_swapped():
    lexicon = parse_lexicon(
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
    _, group, counterpart_ids, counts = counterparts(texts, lexicon, ("men", "elves"))
    assert group == [0, 1, 2]
    assert [decode(row) for row in counterpart_ids] == ["an elf is cooking", "the man", "a woman"]
    assert counts == {"have a counterpart": 2, "name no single group": 1}
    _, group, counterpart_ids, _ = counterparts(texts, lexicon, ("elves", "women"))
    assert group == [2, 0, 1]
    assert [decode(row) for row in counterpart_ids] == ["a man is cooking", "the woman", "an elf"]


def test_pronouns_are_swapped_with_the_groups_words():
    ids, group, counterpart_ids, _ = counterparts(
        ["a man gives him his hat"], load_lexicon("gender"), ("male", "female"), make_tokenizer(20)
    )
    assert group == [0]
    assert decode(counterpart_ids[0]) == "a woman gives her her hat"
    assert (ids != counterpart_ids)[0].nonzero()[:, 0].tolist() == [2, 4, 5]


def test_a_repeated_text_is_counted_each_time():
    _, group, _, counts = counterparts(["a man", "a man", "a dog"])
    assert group == [0, 0, 2]
    assert counts == {"have a counterpart": 2, "name no single group": 1}


WORD_LISTS = st.lists(
    st.sampled_from("a man woman is the boy girl cooking dog hat".split()), min_size=1, max_size=8
)


@given(WORD_LISTS)
def test_the_counterpart_of_a_counterpart_is_the_text(words):
    text = " ".join(words)
    ids, (group,), counterpart_ids, _ = counterparts([text])
    if group == 2:
        assert counterpart_ids.equal(ids)
        return
    second_ids, (second_group,), restored_ids, _ = counterparts([decode(counterpart_ids[0])])
    assert second_group == 1 - group
    assert second_ids.equal(counterpart_ids)
    assert restored_ids.equal(ids)


@given(WORD_LISTS)
def test_a_counterpart_differs_only_where_the_group_is_named(words):
    ids, (group,), counterpart_ids, _ = counterparts([" ".join(words)])
    group_words = {"man", "woman", "boy", "girl"}
    is_changed = [group != 2 and word in group_words for word in words]
    assert (ids != counterpart_ids)[0].tolist() == [False, *is_changed, False]


# -- logit adjustment -----------------------------------------------------------------------------------------------


def word_adjustments(texts, groups, counterpart_texts, n_words=8):
    import torch

    from portrayal.mitigate.counterfactual_texts import Counterparts, logit_adjustment

    ids, counterpart_ids = (
        torch.tensor(texts, dtype=torch.int32),
        torch.tensor(counterpart_texts, dtype=torch.int32),
    )
    return logit_adjustment(
        [(ids[:, None], Counterparts(torch.tensor(groups)[:, None], counterpart_ids[:, None]))], n_words, 0
    )


def test_logit_adjustment_by_hand():
    """Words 1 and 2 name the groups. Word 3 occurs twice with the first group and once with the second, word 4 only
    with the second, and word 5 with neither; 0 is padding.

    The texts of each group have 4 words. With 1 added to the count of each of 8 words, shares are (count + 1) / 12.
    Word 3: 3/12 and 2/12, mean 2.5/12: log 3/2.5 and log 2/2.5. Word 4: 1/12 and 2/12: log 1/1.5, log 2/1.5.
    """
    texts, counterpart_texts = (
        [[1, 3], [1, 3], [2, 3], [2, 4], [5, 5]],
        [[2, 3], [2, 3], [1, 3], [1, 4], [5, 5]],
    )
    adjustment = word_adjustments(texts, [0, 0, 1, 1, 2], counterpart_texts)
    expected = [[0.0] * 8 for _ in range(3)]
    expected[0][3], expected[1][3] = 0.18232156, -0.22314355  # log 1.2, log 0.8
    expected[0][4], expected[1][4] = -0.40546511, 0.28768207  # log 2/3, log 4/3
    assert adjustment.shape == (3, 8)
    assert adjustment.flatten().tolist() == pytest.approx(
        [logit for row in expected for logit in row], abs=1e-6
    )
    padded = word_adjustments([*texts, [0, 0]], [0, 0, 1, 1, 2, 1], [*counterpart_texts, [0, 0]])
    assert padded.equal(adjustment)  # padding belongs to no group


def test_unequal_group_sizes_do_not_adjust_unused_words():
    """The first group has three texts with 6 words, the second one text with 2. The mean is 4, so the added counts are
    1.5 and 0.5. Word 3: (3 + 1.5) / (6 + 8 x 1.5) = 4.5/18 and (1 + .5) / (2 + 8 x .5) = 1.5/6, the same share."""
    texts = [[1, 3], [1, 3], [1, 3], [2, 3]]
    equal_shares = word_adjustments(texts, [0, 0, 0, 1], [[2, 3], [2, 3], [2, 3], [1, 3]])
    assert equal_shares.abs().max() == pytest.approx(0, abs=1e-6)
    unequal_shares = word_adjustments(
        [[1, 3], [1, 3], [1, 4], [2, 3]], [0, 0, 0, 1], [[2, 3], [2, 3], [2, 4], [1, 3]]
    )
    # word 3: (2 + 1.5) / 18 and 1.5/6; word 4: (1 + 1.5) / 18 and .5/6
    import math

    for word, first, second in ((3, 3.5 / 18, 1.5 / 6), (4, 2.5 / 18, 0.5 / 6)):
        mean = (first + second) / 2
        assert float(unequal_shares[0, word]) == pytest.approx(math.log(first / mean), abs=1e-6)
        assert float(unequal_shares[1, word]) == pytest.approx(math.log(second / mean), abs=1e-6)
    assert (unequal_shares[:, [0, 1, 2, 5, 6, 7]].abs() < 1e-6).all()


def test_no_adjustment_if_only_one_group_is_named():
    adjustment = word_adjustments([[1, 3], [1, 4]], [0, 0], [[2, 3], [2, 4]])
    assert (adjustment == 0).all()
