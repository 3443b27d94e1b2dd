"""What an image gives evidence for: the groups that people name who describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portrayal.errors import Undefined
from portrayal.lexicon import Finder, Lexicon, tokenize
from portrayal.lexicon.people import person_mentioned
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.study import Study

LEAST = 0.5


@dataclass(frozen=True)
class Evidence:
    """By image: how many references name people, and how many of them name each group."""

    least: float
    people: Mapping[str, int]
    naming: Mapping[str, Mapping[str, int]]

    def groups(self, image: str) -> frozenset[str]:
        """The groups that enough of the references that name people name; none where no reference names anybody."""
        people = self.people.get(image, 0)
        named = self.naming.get(image, {})
        return frozenset(group for group, count in named.items() if count >= self.least * people)

    def told(self, image: str) -> str:
        """In words, for those who look at one caption."""
        people, named = self.people.get(image, 0), self.naming.get(image, {})
        if not people:
            return "no reference names anybody"
        groups = ", ".join(f"{count} {group}" for group, count in named.items()) or "no group"
        return f"references that name people: {people}; of them name {groups}"


def evidence_in(study: Study, lexicon: Lexicon, least: float = LEAST) -> Evidence:
    """Read people's captions once for all systems.

    A reference names people where it names a group or holds a word for a person ("a skier", "two people"). `least` is
    the share of these that must name a group for it to be evident.

    >>> import polars as pl
    >>> from portrayal.lexicon import load_lexicon
    >>> told = ["a man skis", "a skier", "a snowy hill", "a person on skis"]
    >>> study = Study.from_frames(references=pl.DataFrame({"image_id": [1] * 4, "caption": told}))
    >>> [sorted(evidence_in(study, load_lexicon("gender"), least).groups("1")) for least in (0.5, 0.3)]
    [[], ['male']]
    """
    if not study.references.height:
        raise Undefined(
            "What an image shows is told by people's captions (references), and the study has none; "
            "rewrite everywhere (--where everywhere)."
        )
    finder = Finder(lexicon)
    people: dict[str, int] = {}
    naming: dict[str, dict[str, int]] = {}
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        groups = finder.groups(caption)
        if not groups:
            tokens = tokenize(caption)
            if person_mentioned(tokens, content_words(tokens)) is None:
                continue
        people[image] = people.get(image, 0) + 1
        counts = naming.setdefault(image, {})
        for group in groups:
            counts[group] = counts.get(group, 0) + 1
    return Evidence(least, people, naming)
