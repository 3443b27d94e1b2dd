"""Finding and hiding the words that name a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from portrayal.lexicon.lexicon import Lexicon
from portrayal.lexicon.non_mentions import Nobody
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import TOKEN, tokenize

# Words that may stand between "black" or "old" and the person it describes. Any word would find more people,
# and with them the colours of things ("a black and white photo shows men").
ALSO_DESCRIBE = frozenset(
    "young younger old older elderly little small tall big adult teenage middle-aged american male female "
    "white black african asian hispanic latino caucasian native smiling bearded blonde pretty beautiful "
    "handsome happy".split()
)
_PHRASE_REACH = 2  # how many of them may stand in between


class Mention(NamedTuple):
    """One place where a caption names a group."""

    group: str
    word: str
    start: int
    end: int


@dataclass(frozen=True)
class Finder:
    """Finds the words of one lexicon in captions. Words of several tokens match longest first."""

    lexicon: Lexicon

    def mentions(self, caption: str) -> list[Mention]:
        """Every place where a group is named, from left to right.

        >>> from portrayal.lexicon import load_lexicon
        >>> [(m.group, m.word) for m in Finder(load_lexicon("gender")).mentions("A Man and his mother's dog")]
        [('male', 'man'), ('male', 'his'), ('female', 'mother')]

        Words that name nobody are left out: in "a cowboy hat", "a male lion" and "there is no man" (see `Nobody`).
        """
        lowered = caption.lower()
        if len(lowered) != len(caption):  # a few letters change their length; places refer to the original
            lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in caption)
        spans = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(lowered)]
        words = [word for word, _, _ in spans]
        matches = list(self._naming.find(words))
        if not matches:
            return []
        nobody = Nobody(words) if self.lexicon.reads_english_mentions else None
        things = {
            index
            for start, length, phrase, _ in matches
            if phrase in self._nobody
            for index in range(start, start + length)
            if words[index] in self._named
        }
        found: list[Mention] = []
        for start, length, phrase, group in matches:
            end = start + length
            if phrase in self._nobody:
                continue
            if nobody is not None and nobody.at(start, length):
                continue
            if phrase not in self._conditional or self._before_person(words, end, things, nobody):
                found.append(Mention(group, phrase, spans[start][1], spans[end - 1][2]))
        return found

    def groups(self, caption: str) -> tuple[str, ...]:
        """The groups a caption names, in the lexicon's order: none, one, or several.

        >>> from portrayal.lexicon import load_lexicon
        >>> Finder(load_lexicon("gender")).groups("a woman and a man")
        ('male', 'female')
        """
        named = {mention.group for mention in self.mentions(caption)}
        return tuple(group for group in self.lexicon.groups if group in named)

    def mask(self, caption: str, token: str) -> str:
        """The caption with every word of the lexicon hidden behind one token; the rest is untouched.

        >>> from portrayal.lexicon import load_lexicon
        >>> Finder(load_lexicon("gender")).mask("A man and his mother's dog", "genderword")
        "A genderword and genderword genderword's dog"
        """
        hidden = self._hiding.single_words
        if hidden is None:
            return self._mask_phrases(caption, token)
        return TOKEN.sub(lambda found: token if found.group().lower() in hidden else found.group(), caption)

    def mask_words(self, words: Sequence[str], token: str | None) -> list[str]:
        """The same with the words of a caption, lower-cased; without a token, hidden words are left out.

        >>> from portrayal.lexicon import load_lexicon
        >>> Finder(load_lexicon("gender")).mask_words(["a", "man", "'s", "dog"], "genderword")
        ['a', 'genderword', "'s", 'dog']
        """
        instead = [] if token is None else [token]
        hidden = self._hiding.single_words
        made: list[str] = []
        if hidden is not None:
            for word in words:
                made += [word] if word not in hidden else instead
            return made
        done = 0
        for start, length, _, _ in self._hiding.find(words):
            made += [*words[done:start], *instead]
            done = start + length
        return [*made, *words[done:]]

    def mask_all(self, captions: Iterable[str], token: str) -> list[str]:
        return [self.mask(caption, token) for caption in captions]

    def _mask_phrases(self, caption: str, token: str) -> str:
        spans = [(m.group().lower(), m.start(), m.end()) for m in TOKEN.finditer(caption)]
        pieces: list[str] = []
        done = 0
        for start, length, _, _ in self._hiding.find([word for word, _, _ in spans]):
            pieces += [caption[done : spans[start][1]], token]
            done = spans[start + length - 1][2]
        return "".join([*pieces, caption[done:]])

    def _before_person(
        self, words: Sequence[str], start: int, things: Set[int], nobody: Nobody | None
    ) -> bool:
        for index, word in enumerate(words[start : start + _PHRASE_REACH + 1], start):
            if word in self._people and index not in things and (nobody is None or not nobody.at(index)):
                return True  # an old lady, not an old lady bug
            if word not in ALSO_DESCRIBE:
                return False
        return False

    @cached_property
    def _conditional(self) -> frozenset[str]:
        return frozenset(" ".join(tokenize(word)) for word in self.lexicon.before_person)

    @cached_property
    def _nobody(self) -> frozenset[str]:
        return frozenset(" ".join(tokenize(phrase)) for phrase in self.lexicon.not_naming)

    @cached_property
    def _people(self) -> frozenset[str]:
        """Single words that stand for a person: the neutral ones, and group words that need no person."""
        return frozenset(
            word for word in (*self.lexicon.neutral, *self._named) if word not in self.lexicon.before_person
        )

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(word for words in self.lexicon.naming.values() for word in words)

    @cached_property
    def _naming(self) -> PhraseTable:
        named = [(word, group) for group, words in self.lexicon.naming.items() for word in words]
        return PhraseTable([*named, *((phrase, "") for phrase in self.lexicon.not_naming)])

    @cached_property
    def _hiding(self) -> PhraseTable:
        named = [(word, group) for group, words in self.lexicon.groups.items() for word in words]
        return PhraseTable([*named, *((word, "") for word in self.lexicon.mask_also)])
