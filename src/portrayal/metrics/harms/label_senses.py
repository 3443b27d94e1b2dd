"""WordNet senses of object labels, and whether a caption names a label."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from portrayal.lexicon import tokenize
from portrayal.lexicon.person_labels import is_person_label
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.lexicon.wordnet.graph import wordnet
from portrayal.metrics.harms.parsed_captions import Parsed


@cache
def label_senses(label: str) -> Mapping[int, str]:
    """The sense of a label (of its last noun), with the label; empty where WordNet lacks it."""
    nouns = [
        word.synset
        for word in content_words(tokenize(label))
        if word.pos == "noun" and word.synset is not None
    ]
    return {nouns[-1]: label} if nouns else {}


def names_label(parsed: Parsed, label: str) -> bool:
    """Whether a caption names a labelled object: by a word for it, or by a hyponym (a terrier is a dog).

    Any word for a person names a person label.
    """
    if any(match.value == label for match in parsed.objects):
        return True
    if is_person_label(label) and parsed.person is not None:
        return True
    return any(
        sense in wordnet().ancestors(named) for sense in label_senses(label) for named in parsed.senses
    )
