"""One caption told of each group in turn: only the words that name a group change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.find import Finder
from portrayal.lexicon.lexicon import NEUTRAL, Lexicon
from portrayal.lexicon.swap import Swapper, replaced

MASK = re.compile(r"\[\s*mask\s*\]|<\s*mask\s*>", re.IGNORECASE)


@dataclass(frozen=True)
class Filler:
    """Tells a caption of a group: by the counterparts its lexicon lists, or, where it lists none, by one word."""

    lexicon: Lexicon

    def fill(self, caption: str, group: str) -> str | None:
        """As if it were about this group, or about anybody (`neutral`); None where a word has no counterpart.

        Places marked [MASK] take the word that stands for the group.

        >>> from portrayal.lexicon import load_lexicon
        >>> filler = Filler(load_lexicon("gender"))
        >>> filler.fill("A man and his dog", "female"), filler.fill("an actor", "neutral")
        ('A woman and her dog', 'a performer')
        >>> filler.fill("a [MASK] on a horse", "male")
        'a man on a horse'
        """
        word = self.lexicon.standing_for(group)
        if word is None:
            return None
        caption = _unmasked(caption, word)
        if group != NEUTRAL and self.lexicon.swap:
            swapped = self._swapper.swap(caption, to=group)
            return None if swapped.left else swapped.text
        if group == NEUTRAL and self.lexicon.plain:
            plain = self._plain.swap(caption)
            return None if plain.left else plain.text
        mentions = self._finder.mentions(caption)
        # One word stands for a group; for others (his, two men) it would make a sentence that nobody says.
        if any(one.word != self.lexicon.standing_for(one.group) for one in mentions):
            return None
        return replaced(caption, [(one.start, one.end, word) for one in mentions])

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.lexicon)

    @cached_property
    def _swapper(self) -> Swapper:
        return Swapper(self.lexicon)

    @cached_property
    def _plain(self) -> Swapper:
        return Swapper(self.lexicon, table=self.lexicon.plain)


def _unmasked(caption: str, word: str) -> str:
    caption = MASK.sub(lambda place: place.group().lower(), caption)  # the mark's capitals are not the word's
    return replaced(caption, [(place.start(), place.end(), word) for place in MASK.finditer(caption)])
