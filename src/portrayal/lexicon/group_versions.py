"""One caption told of each group in turn: only the words that name a group change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.lexicon import NEUTRAL, Lexicon
from portrayal.lexicon.mentions import Mention
from portrayal.lexicon.swap import Swapper, replaced

MASK = re.compile(r"\[\s*mask\s*\]|<\s*mask\s*>", re.IGNORECASE)


@dataclass(frozen=True)
class Filler:
    """Tells a caption of a group as if the words that name one had been hidden: which of them stood there is lost.

    Words that say the same of anybody (`plain`: man, guy and lady are a person, his and her are their) give way to the
    first such word of the group, in the caption's own group too. Words that the lexicon calls nothing plain give way to
    their counterparts (`swap`). Where a lexicon lists neither, the one word that stands for each group is exchanged.
    """

    lexicon: Lexicon

    def fill(self, caption: str, group: str) -> str | None:
        """As if it were about this group, or about anybody (`neutral`); None where a word has no counterpart.

        Places marked [MASK] take the word that stands for the group.

        >>> from portrayal.lexicon import load_lexicon
        >>> filler = Filler(load_lexicon("gender"))
        >>> filler.fill("A lady and her dog", "male"), filler.fill("A lady and her dog", "female")
        ('A man and his dog', 'A woman and her dog')
        >>> filler.fill("an actor", "neutral"), filler.fill("a [MASK] on a horse", "male")
        ('a performer', 'a man on a horse')
        """
        word = self.lexicon.standing_for(group)
        if word is None:
            return None
        caption = _unmasked(caption, word)
        places = []
        found = self._plain.counterparts(caption)
        others = [
            other for _, other in self._swapper.counterparts(caption, None if group == NEUTRAL else group)
        ]
        for (mention, plain), other in zip(found, others, strict=True):
            new = self._instead(mention, group, plain, other)
            if new is None:
                return None
            places.append((mention.start, mention.end, new))
        return replaced(caption, places)

    def _instead(self, mention: Mention, group: str, plain: str | None, other: str | None) -> str | None:
        """What stands in a word's place when the caption is about the group."""
        lexicon = self.lexicon
        if plain is not None:
            if group == NEUTRAL:
                return plain
            same = [word for word in lexicon.naming[group] if plain in lexicon.plain.get(word, ())]
            if same:
                return same[0]
        if group == mention.group:
            return mention.word
        if lexicon.swap or lexicon.plain:
            return None if group == NEUTRAL else other
        # One word stands for a group; for others (his, two men) it would make a sentence that nobody says.
        known = mention.word == lexicon.standing_for(mention.group)
        return lexicon.standing_for(group) if known else None

    @cached_property
    def _swapper(self) -> Swapper:
        return Swapper(self.lexicon)

    @cached_property
    def _plain(self) -> Swapper:
        return Swapper(self.lexicon, table=self.lexicon.plain)


def _unmasked(caption: str, word: str) -> str:
    caption = MASK.sub(lambda place: place.group().lower(), caption)  # the mark's capitals are not the word's
    return replaced(caption, [(place.start(), place.end(), word) for place in MASK.finditer(caption)])
