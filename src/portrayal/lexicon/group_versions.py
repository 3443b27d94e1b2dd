"""Versions of a caption for each group: only the words that name a group change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.lexicon import NEUTRAL, Lexicon
from portrayal.lexicon.mention_finder import Mention
from portrayal.lexicon.swap import Swapper, replace_spans

MASK = re.compile(r"\[\s*mask\s*\]|<\s*mask\s*>", re.IGNORECASE)


@dataclass(frozen=True)
class GroupVersions:
    """Rewrites a caption for a group, as if its group words had been masked.

    Words with the same neutral equivalent (`plain`: man, guy and lady are a person, his and her are their) become the
    group's first such word, also in the version of the caption's own group. Words without a neutral equivalent become
    their counterparts (`swap`). If a lexicon lists neither, only the representative word of each group is exchanged.

    Parameters
    ----------
    lexicon : Lexicon
        The word list.
    """

    lexicon: Lexicon

    def in_group(self, caption: str, group: str) -> str | None:
        """The caption as if it were about a group, or about anybody (`neutral`).

        Parameters
        ----------
        caption : str
            The caption. [MASK] becomes the representative word of the group.
        group : str
            A group of the lexicon, or `neutral`.

        Returns
        -------
        str or None
            None if a word has no counterpart.

        Examples
        --------
        >>> from portrayal.lexicon import load_lexicon
        >>> versions = GroupVersions(load_lexicon("gender"))
        >>> versions.in_group("A lady and her dog", "male"), versions.in_group("A lady and her dog", "female")
        ('A man and his dog', 'A woman and her dog')
        >>> versions.in_group("an actor", "neutral"), versions.in_group("a [MASK] on a horse", "male")
        ('a performer', 'a man on a horse')
        """
        word = self.lexicon.word_for(group)
        if word is None:
            return None
        caption = _fill_masks(caption, word)
        replacements = []
        plain_counterparts = self._plain_swapper.counterparts(caption)
        swap_counterparts = [
            other for _, other in self._swapper.counterparts(caption, None if group == NEUTRAL else group)
        ]
        for (mention, plain), other in zip(plain_counterparts, swap_counterparts, strict=True):
            new = self._replacement(mention, group, plain, other)
            if new is None:
                return None
            replacements.append((mention.start, mention.end, new))
        return replace_spans(caption, replacements)

    def _replacement(self, mention: Mention, group: str, plain: str | None, other: str | None) -> str | None:
        """The word that replaces a mention in the version of the group."""
        lexicon = self.lexicon
        if plain is not None:
            if group == NEUTRAL:
                return plain
            same = [word for word in lexicon.naming_words[group] if plain in lexicon.plain.get(word, ())]
            if same:
                return same[0]
        if group == mention.group:
            return mention.word
        if lexicon.swap or lexicon.plain:
            return None if group == NEUTRAL else other
        # Only the representative word is exchanged: for others (his, two men) the sentence would be ungrammatical.
        is_group_word = mention.word == lexicon.word_for(mention.group)
        return lexicon.word_for(group) if is_group_word else None

    @cached_property
    def _swapper(self) -> Swapper:
        return Swapper(self.lexicon)

    @cached_property
    def _plain_swapper(self) -> Swapper:
        return Swapper(self.lexicon, table=self.lexicon.plain)


def _fill_masks(caption: str, word: str) -> str:
    # Lower case, because the new word must not take the mask's case.
    caption = MASK.sub(lambda match: match.group().lower(), caption)
    return replace_spans(caption, [(match.start(), match.end(), word) for match in MASK.finditer(caption)])
