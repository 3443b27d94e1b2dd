"""The tokenizer, on hand-made cases and against the one that the LIC studies used."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from portrayal.errors import Problems
from portrayal.lexicon import tokenize
from portrayal.study.importers import safe_pickle

CASES = {
    "A man riding a wave.": ["a", "man", "riding", "a", "wave", "."],
    "the man's hat": ["the", "man", "'s", "hat"],
    "the man ’s hat": ["the", "man", "’s", "hat"],
    "MAN'S HAT": ["man", "'s", "hat"],
    "they're here, aren't they?": ["they", "'re", "here", ",", "are", "n't", "they", "?"],
    "a t-shirt-clad man": ["a", "t-shirt-clad", "man"],
    "man/woman": ["man/woman"],
    "1,000 dogs at 3:30": ["1,000", "dogs", "at", "3:30"],
    "a t.v. show": ["a", "t.v", ".", "show"],
    "well...": ["well", "..."],
    "<unk> dog": ["<", "unk", ">", "dog"],
    "café naïve": ["café", "naïve"],
    "": [],
    " \n\t": [],
}


@pytest.mark.parametrize("text", CASES)
def test_by_hand(text):
    assert tokenize(text) == CASES[text]


@given(st.text())
def test_tokens_hold_every_visible_character_in_order(text):
    assert "".join(tokenize(text)) == re.sub(r"\s", "", text.lower())


def differing(captions: list[str]) -> float:
    """Share of captions that NLTK's word_tokenize, which splits sentences first, tokenises otherwise.

    Quotation marks are compared as plain ones: NLTK rewrites them to `` and ''.
    """
    treebank = NLTKWordTokenizer()
    n_different = 0
    for caption in captions:
        sentences = re.split(r"(?<=[.!?])\s+(?=\S)", caption.lower())
        theirs = [token for sentence in sentences for token in treebank.tokenize(sentence)]
        theirs = ['"' if token in ("``", "''") else token for token in theirs]
        n_different += theirs != tokenize(caption)
    return n_different / len(captions)


def test_generated_captions_tokenise_as_published(shared):
    captions = []
    for path in sorted((shared / "lic" / "bias_data").glob("*/gender_*_entries.pkl")):
        captions += [entry["pred"] for entry in safe_pickle.load(path, Problems())]
    assert len(captions) == 6 * 10_780
    assert differing(captions[::3]) < 0.0002


def test_human_captions_tokenise_as_published(shared):
    lines = (shared / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()
    captions = [caption for line in lines for caption in json.loads(line)["captions"]]
    assert differing(captions[::6]) < 0.001
