"""The neutral rewrite: words that name a group become neutral words with the same meaning."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon, Mention, MentionFinder, Swapper
from portrayal.lexicon.swap import replace_spans
from portrayal.lexicon.tokens import TOKEN
from portrayal.mitigate.captions.agreement import THEY, agreement_changes, is_modifier

NO_EVIDENCE, EVERYWHERE = "no-evidence", "everywhere"
WHERE = (NO_EVIDENCE, EVERYWHERE)
_POSSESSIVE = re.compile(r"['’](?=\s+\w)")
# Removing a word may join two others that name a group, so that another pass is needed; ten are never reached.
_PASSES = 10


@dataclass(frozen=True)
class RewrittenCaption:
    """A rewritten caption, with the changed words and the group words without a neutral one (`left`)."""

    text: str
    changed: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Rewriter:
    """Rewrites captions with the neutral words of a lexicon (`plain`).

    Case, articles, the case of pronouns and the verb after "they" are adjusted. A modifier is removed where the lexicon
    allows it ("a male player", "an old man").

    Parameters
    ----------
    lexicon
        A lexicon with a table [plain].
    """

    lexicon: Lexicon

    def __post_init__(self) -> None:
        if not self.lexicon.plain:
            raise PortrayalError(
                f"The lexicon '{self.lexicon.name}' lists no neutral words to rewrite with; give it a table [plain]."
            )
        finder = MentionFinder(self.lexicon)
        for word, neutral_words in self.lexicon.plain.items():
            naming_group = [neutral_word for neutral_word in neutral_words if finder.groups(neutral_word)]
            if naming_group:
                raise PortrayalError(
                    f"The lexicon '{self.lexicon.name}' lists '{naming_group[0]}' as the neutral word of '{word}', "
                    "and it names a group."
                )

    def rewrite(self, caption: str, keep_groups: Container[str] = ()) -> RewrittenCaption:
        """Rewrite the words of all groups except `keep_groups`.

        >>> from portrayal.lexicon import load_lexicon
        >>> rewriter = Rewriter(load_lexicon("gender"))
        >>> rewriter.rewrite("A man rides his horse while she watches.").text
        'A person rides their horse while they watch.'
        >>> rewriter.rewrite("a man and his wife", keep_groups={"male"}).text
        'a man and his spouse'
        """
        text = caption
        left: tuple[str, ...] = ()
        changed: list[tuple[str, str]] = []
        for _ in range(_PASSES):
            rewritten = self._rewrite_once(text, keep_groups)
            text, left = rewritten.text, rewritten.left
            changed += rewritten.changed
            if not rewritten.changed:
                break
        # The first word was removed.
        if changed and caption[:1].isupper() and text[:1].islower():
            text = text[0].upper() + text[1:]
        return RewrittenCaption(text, tuple(changed), left)

    def _rewrite_once(self, caption: str, keep_groups: Container[str]) -> RewrittenCaption:
        mentions = [pair for pair in self._swapper.counterparts(caption) if pair[0].group not in keep_groups]
        if not mentions:
            return RewrittenCaption(caption, (), ())
        spans = [(match.group().lower(), match.start(), match.end()) for match in TOKEN.finditer(caption)]
        words = [word for word, _, _ in spans]
        token_index = {start: index for index, (_, start, _) in enumerate(spans)}
        edits: dict[int, tuple[int, int, str]] = {}
        changed, left = [], []
        for mention, default in mentions:
            new = self._replacement(mention, default, words, token_index[mention.start])
            if new is None:
                left.append(mention.word)
                continue
            changed.append((mention.word, new))
            edits[mention.start] = (mention.start, mention.end, new)
            possessive = _POSSESSIVE.match(caption, mention.end)
            # the boys' bags, the children's bags
            if possessive and mention.word.endswith("s") and not new.endswith("s"):
                edits[mention.end] = (mention.end, mention.end + 1, possessive.group() + "s")
            if new == THEY:
                for index, form in agreement_changes(words, token_index[mention.start]):
                    _, start, end = spans[index]
                    edits.setdefault(start, (start, end, form))
        text = replace_spans(caption, [edits[start] for start in sorted(edits)])
        return RewrittenCaption(text, tuple(changed), tuple(left))

    def _replacement(self, mention: Mention, default: str | None, words: list[str], index: int) -> str | None:
        """Return the replacement of a word, or None. A word is removed only before a word that it modifies."""
        neutral_words = self.lexicon.plain.get(mention.word, ())
        if "" not in neutral_words:
            return default
        if mention.word in self.lexicon.before_person or is_modifier(words, index):
            return ""
        return next((word for word in neutral_words if word), None)

    @cached_property
    def _swapper(self) -> Swapper:
        return Swapper(self.lexicon, table=self.lexicon.plain)
