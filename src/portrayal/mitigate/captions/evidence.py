"""The evidence for a group in an image: the groups that its references name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, MentionFinder, tokenize
from portrayal.lexicon.people import first_person_mention
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.study import Study

MIN_SHARE = 0.5


@dataclass(frozen=True)
class GroupEvidence:
    """For each image, the number of references that mention people, and the number that name each group."""

    min_share: float
    people: Mapping[str, int]
    naming: Mapping[str, Mapping[str, int]]

    def groups(self, image: str) -> frozenset[str]:
        """Return the groups named by the minimum share of references that mention people; none if none does."""
        people = self.people.get(image, 0)
        named = self.naming.get(image, {})
        return frozenset(group for group, count in named.items() if count >= self.min_share * people)

    def describe(self, image: str) -> str:
        """Return the evidence of an image as text."""
        people, named = self.people.get(image, 0), self.naming.get(image, {})
        if not people:
            return "no reference names anybody"
        groups = ", ".join(f"{count} {group}" for group, count in named.items()) or "no group"
        return f"references that name people: {people}; of them name {groups}"


def find_group_evidence(study: Study, lexicon: Lexicon, min_share: float = MIN_SHARE) -> GroupEvidence:
    """Return the evidence for groups in the references of a study.

    A reference mentions people if it names a group or has a word for a person ("a skier", "two people"). `min_share` is
    the share of these references that must name a group.

    >>> import polars as pl
    >>> from portrayal.lexicon import load_lexicon
    >>> captions = ["a man skis", "a skier", "a snowy hill", "a person on skis"]
    >>> study = Study.from_frames(references=pl.DataFrame({"image_id": [1] * 4, "caption": captions}))
    >>> [sorted(find_group_evidence(study, load_lexicon("gender"), share).groups("1")) for share in (0.5, 0.3)]
    [[], ['male']]
    """
    if not study.references.height:
        raise Undefined(
            "Evidence for groups comes from human captions (references), and the study has none; "
            "rewrite everywhere (--where everywhere)."
        )
    finder = MentionFinder(lexicon)
    people: dict[str, int] = {}
    naming: dict[str, dict[str, int]] = {}
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        groups = finder.groups(caption)
        if not groups:
            tokens = tokenize(caption)
            if first_person_mention(tokens, content_words(tokens)) is None:
                continue
        people[image] = people.get(image, 0) + 1
        counts = naming.setdefault(image, {})
        for group in groups:
            counts[group] = counts.get(group, 0) + 1
    return GroupEvidence(min_share, people, naming)
