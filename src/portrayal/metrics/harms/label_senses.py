"""What the label of an object means, and whether a caption names it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from portrayal.lexicon import tokenize
from portrayal.lexicon.person_labels import is_person_label
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.lexicon.wordnet.graph import wordnet
from portrayal.metrics.harms.parsed_captions import Telling


@cache
def label_senses(label: str) -> Mapping[int, str]:
    """The sense of a label: of the noun it is, or of the last noun it has."""
    nouns = [
        word.synset
        for word in content_words(tokenize(label))
        if word.part == "noun" and word.synset is not None
    ]
    return {nouns[-1]: label} if nouns else {}


def names(telling: Telling, label: str) -> bool:
    """Whether a caption names a labelled object: by a word for it, or by a kind of it (a terrier is a dog).

    That somebody is there can be said in many words.
    """
    if any(match.value == label for match in telling.objects):
        return True
    if is_person_label(label) and telling.person is not None:
        return True
    return any(
        sense in wordnet().ancestors(said) for sense in label_senses(label) for said in telling.meanings
    )
