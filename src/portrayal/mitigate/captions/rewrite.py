"""The neutral rewrite: words that name a group become words that say the same of anybody."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from portrayal.errors import PortrayalError
from portrayal.lexicon import Finder, Lexicon, Mention, Swapper
from portrayal.lexicon.swap import replaced
from portrayal.lexicon.tokens import TOKEN
from portrayal.mitigate.captions.agreement import SEVERAL, agreeing, describes

NO_EVIDENCE, EVERYWHERE = "no-evidence", "everywhere"
WHERE = (NO_EVIDENCE, EVERYWHERE)
_OWNER = re.compile(r"['’](?=\s+\w)")
_PASSES = 10  # a word that is left out may bring two others together that name a group; more never happens


@dataclass(frozen=True)
class Rewritten:
    """A caption after the rewrite: what was changed, and which words had no neutral one."""

    text: str
    changed: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Rewriter:
    """Rewrites captions by the words that a lexicon lists as saying the same of anybody (`plain`).

    Case, articles, the part that a pronoun plays and the verb after "they" follow. A word that describes another one is
    left out where the lexicon says that it can be ("a male player", "an old man").
    """

    lexicon: Lexicon

    def __post_init__(self) -> None:
        if not self.lexicon.plain:
            raise PortrayalError(
                f"The lexicon '{self.lexicon.name}' lists no neutral words to rewrite with; give it a table [plain]."
            )
        finder = Finder(self.lexicon)
        for word, others in self.lexicon.plain.items():
            named = [other for other in others if finder.groups(other)]
            if named:
                raise PortrayalError(
                    f"The lexicon '{self.lexicon.name}' lists '{named[0]}' as the neutral word of '{word}', and it "
                    "names a group."
                )

    def rewrite(self, caption: str, spare: Container[str] = ()) -> Rewritten:
        """Words of all groups but the spared ones.

        >>> from portrayal.lexicon import load_lexicon
        >>> rewriter = Rewriter(load_lexicon("gender"))
        >>> rewriter.rewrite("A man rides his horse while she watches.").text
        'A person rides their horse while they watch.'
        >>> rewriter.rewrite("a man and his wife", spare={"male"}).text
        'a man and his spouse'
        """
        text = caption
        left: tuple[str, ...] = ()
        changed: list[tuple[str, str]] = []
        for _ in range(_PASSES):
            once = self._once(text, spare)
            text, left = once.text, once.left
            changed += once.changed
            if not once.changed:
                break
        if changed and caption[:1].isupper() and text[:1].islower():  # the first word was left out
            text = text[0].upper() + text[1:]
        return Rewritten(text, tuple(changed), left)

    def _once(self, caption: str, spare: Container[str]) -> Rewritten:
        found = [one for one in self._swapper.counterparts(caption) if one[0].group not in spare]
        if not found:
            return Rewritten(caption, (), ())
        spans = [(match.group().lower(), match.start(), match.end()) for match in TOKEN.finditer(caption)]
        words = [word for word, _, _ in spans]
        place = {start: index for index, (_, start, _) in enumerate(spans)}
        places: dict[int, tuple[int, int, str]] = {}
        changed, left = [], []
        for mention, usual in found:
            new = self._instead(mention, usual, words, place[mention.start])
            if new is None:
                left.append(mention.word)
                continue
            changed.append((mention.word, new))
            places[mention.start] = (mention.start, mention.end, new)
            owner = _OWNER.match(caption, mention.end)
            if (
                owner and mention.word.endswith("s") and not new.endswith("s")
            ):  # the boys' bags, the children's bags
                places[mention.end] = (mention.end, mention.end + 1, owner.group() + "s")
            if new == SEVERAL:
                for index, form in agreeing(words, place[mention.start]):
                    _, start, end = spans[index]
                    places.setdefault(start, (start, end, form))
        text = replaced(caption, [places[start] for start in sorted(places)])
        return Rewritten(text, tuple(changed), tuple(left))

    def _instead(self, mention: Mention, usual: str | None, words: list[str], place: int) -> str | None:
        """What stands in a word's place; None where nothing can. A word is left out only before one it describes."""
        others = self.lexicon.plain.get(mention.word, ())
        if "" not in others:
            return usual
        if mention.word in self.lexicon.before_person or describes(words, place):
            return ""
        return next((other for other in others if other), None)

    @cached_property
    def _swapper(self) -> Swapper:
        return Swapper(self.lexicon, table=self.lexicon.plain)
