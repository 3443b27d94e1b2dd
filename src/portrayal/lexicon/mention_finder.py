"""Find and mask the words that name a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from portrayal.lexicon.lexicon import Lexicon
from portrayal.lexicon.non_mentions import NonMentions
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import TOKEN, tokenize

# Words allowed between "black" or "old" and the person it describes. Allowing any word would find more people, but
# also the colours of things ("a black and white photo shows men").
PERSON_MODIFIERS = frozenset(
    "young younger old older elderly little small tall big adult teenage middle-aged american male female "
    "white black african asian hispanic latino caucasian native smiling bearded blonde pretty beautiful "
    "handsome happy".split()
)
_MAX_MODIFIERS = 2  # maximum number of words in between


class Mention(NamedTuple):
    """A word or phrase of a caption that names a group, with its character span."""

    group: str
    word: str
    start: int
    end: int


@dataclass(frozen=True)
class MentionFinder:
    """Finds and masks the words of one lexicon in captions. The longest phrase matches first.

    Parameters
    ----------
    lexicon : Lexicon
        The word list.
    """

    lexicon: Lexicon

    def find(self, caption: str) -> list[Mention]:
        """Find all mentions of a group, from left to right.

        Words that name nobody are left out, as in "a cowboy hat", "a male lion" and "there is no man" (see
        `NonMentions`).

        >>> from portrayal.lexicon import load_lexicon
        >>> [(m.group, m.word) for m in MentionFinder(load_lexicon("gender")).find("A Man and his mother's dog")]
        [('male', 'man'), ('male', 'his'), ('female', 'mother')]
        """
        lowered = caption.lower()
        if len(lowered) != len(
            caption
        ):  # lower-casing changes the length of a few letters; spans must not shift
            lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in caption)
        spans = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(lowered)]
        words = [word for word, _, _ in spans]
        matches = list(self._naming_table.find(words))
        if not matches:
            return []
        non_mentions = NonMentions(words) if self.lexicon.uses_mention_rules else None
        non_person_indices = {
            index
            for start, length, phrase, _ in matches
            if phrase in self._not_naming
            for index in range(start, start + length)
            if words[index] in self._group_words
        }
        mentions: list[Mention] = []
        for start, length, phrase, group in matches:
            end = start + length
            if phrase in self._not_naming:
                continue
            if non_mentions is not None and non_mentions.covers(start, length):
                continue
            if phrase not in self._needs_person or self._precedes_person(
                words, end, non_person_indices, non_mentions
            ):
                mentions.append(Mention(group, phrase, spans[start][1], spans[end - 1][2]))
        return mentions

    def groups(self, caption: str) -> tuple[str, ...]:
        """The groups that a caption names, in the lexicon's order.

        >>> from portrayal.lexicon import load_lexicon
        >>> MentionFinder(load_lexicon("gender")).groups("a woman and a man")
        ('male', 'female')
        """
        mentioned = {mention.group for mention in self.find(caption)}
        return tuple(group for group in self.lexicon.groups if group in mentioned)

    def mask(self, caption: str, token: str) -> str:
        """Replace every word of the lexicon with a mask token.

        >>> from portrayal.lexicon import load_lexicon
        >>> MentionFinder(load_lexicon("gender")).mask("A man and his mother's dog", "genderword")
        "A genderword and genderword genderword's dog"
        """
        masked = self._masked_table.single_words
        if masked is None:
            return self._mask_phrases(caption, token)
        return TOKEN.sub(lambda match: token if match.group().lower() in masked else match.group(), caption)

    def mask_words(self, words: Sequence[str], token: str | None) -> list[str]:
        """Mask the lower-cased words of a caption. If `token` is None, masked words are removed.

        >>> from portrayal.lexicon import load_lexicon
        >>> MentionFinder(load_lexicon("gender")).mask_words(["a", "man", "'s", "dog"], "genderword")
        ['a', 'genderword', "'s", 'dog']
        """
        replacement = [] if token is None else [token]
        masked = self._masked_table.single_words
        result: list[str] = []
        if masked is not None:
            for word in words:
                result += [word] if word not in masked else replacement
            return result
        end = 0
        for start, length, _, _ in self._masked_table.find(words):
            result += [*words[end:start], *replacement]
            end = start + length
        return [*result, *words[end:]]

    def mask_all(self, captions: Iterable[str], token: str) -> list[str]:
        """Mask several captions."""
        return [self.mask(caption, token) for caption in captions]

    def _mask_phrases(self, caption: str, token: str) -> str:
        spans = [(m.group().lower(), m.start(), m.end()) for m in TOKEN.finditer(caption)]
        pieces: list[str] = []
        end = 0
        for start, length, _, _ in self._masked_table.find([word for word, _, _ in spans]):
            pieces += [caption[end : spans[start][1]], token]
            end = spans[start + length - 1][2]
        return "".join([*pieces, caption[end:]])

    def _precedes_person(
        self, words: Sequence[str], start: int, non_person_indices: Set[int], non_mentions: NonMentions | None
    ) -> bool:
        for index, word in enumerate(words[start : start + _MAX_MODIFIERS + 1], start):
            if (
                word in self._person_words
                and index not in non_person_indices
                and (non_mentions is None or not non_mentions.covers(index))
            ):
                return True  # "an old lady", not "an old lady bug"
            if word not in PERSON_MODIFIERS:
                return False
        return False

    @cached_property
    def _needs_person(self) -> frozenset[str]:
        return frozenset(" ".join(tokenize(word)) for word in self.lexicon.before_person)

    @cached_property
    def _not_naming(self) -> frozenset[str]:
        return frozenset(" ".join(tokenize(phrase)) for phrase in self.lexicon.not_naming)

    @cached_property
    def _person_words(self) -> frozenset[str]:
        """Single words for a person: neutral words, and group words that are not in `before_person`."""
        return frozenset(
            word
            for word in (*self.lexicon.neutral, *self._group_words)
            if word not in self.lexicon.before_person
        )

    @cached_property
    def _group_words(self) -> frozenset[str]:
        return frozenset(word for words in self.lexicon.naming_words.values() for word in words)

    @cached_property
    def _naming_table(self) -> PhraseTable:
        entries = [(word, group) for group, words in self.lexicon.naming_words.items() for word in words]
        return PhraseTable([*entries, *((phrase, "") for phrase in self.lexicon.not_naming)])

    @cached_property
    def _masked_table(self) -> PhraseTable:
        entries = [(word, group) for group, words in self.lexicon.groups.items() for word in words]
        return PhraseTable([*entries, *((word, "") for word in self.lexicon.mask_also)])
