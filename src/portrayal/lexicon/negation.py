"""Negated mentions: "no people", "without a man", "does not show a woman", "people are not visible"."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

_MAX_WORDS = 4  # words of one negated noun phrase: "no other visible human beings"
_MAX_DISTANCE = 14  # tokens that are read from the negation on
_POSSESSIVE = frozenset(("'s", "’s", "'", "’"))
_NOT = frozenset(("not", "n't", "n’t", "never", "cannot"))
_ONLY = frozenset(("only", "just", "merely", "simply"))
_PLURALS = frozenset(("people", "men", "women", "children", "folk"))
_MAX_MODIFIERS = 3  # words between an article and the subject noun


def negated(tokens: Sequence[str]) -> frozenset[int]:
    """Indices of the tokens that name something the caption says is absent.

    Negated activities and clothing do not negate the person: "a man not wearing a helmet" mentions a man, and so does
    "no helmet on the man". Pronouns are not negated either: "a boy without his shirt".

    >>> def kept(text): return [token for i, token in enumerate(text.split()) if i not in negated(text.split())]
    >>> kept("a street with no people and a woman walking")
    ['a', 'street', 'with', 'no', 'and', 'a', 'woman', 'walking']
    >>> kept("it does not show a man or a woman")
    ['it', 'does', 'not', 'show', 'a', 'or', 'a']
    """
    rules = _negation_rules()
    if rules.first_tokens.isdisjoint(tokens):  # most captions return here
        return frozenset()
    return frozenset(index for start in range(len(tokens)) for index in rules.negated_from(tokens, start))


class NegationRules:
    """The negation rules of one language, with the words of `absence.toml`."""

    def __init__(self, lists: dict[str, list[str]]):
        self._words = {name: frozenset(words) for name, words in lists.items() if isinstance(words, list)}
        self._prepositions = sorted(
            (tuple(cue.split()) for cue in lists["prepositions"]), key=len, reverse=True
        )
        self._not_cues = [tuple(cue.split()) for cue in lists["not_cues"]]
        self.first_tokens = (
            self._words["determiners"]
            | self._words["gone"]
            | {cue[0] for cue in self._prepositions}
            | _NOT
            | {"neither", "nor", "nobody", "no-one", "noone"}
        )

    def negated_from(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """Yield the indices that are negated by a negation starting at `start`, if there is one."""
        token = tokens[start]
        if token not in self.first_tokens:
            return
        if any(tuple(tokens[start : start + len(cue)]) == cue for cue in self._not_cues):
            return
        if token in ("nobody", "no-one", "noone"):
            yield start
        elif token in self._words["determiners"]:
            yield from self._negated_list(tokens, start + 1, articles=False)
        elif token in _NOT:
            yield from self._after_not(tokens, start)
        elif token == "neither":
            if "nor" in tokens[start : start + _MAX_DISTANCE]:
                yield from self._negated_list(tokens, start + 1, articles=True)
        elif token == "nor":
            yield from self._negated_list(tokens, self._skip_fillers(tokens, start + 1)[0], articles=True)
        elif token in self._words["gone"]:
            yield from self._negated_subject(tokens, start)
        else:
            cue = next(
                (cue for cue in self._prepositions if tuple(tokens[start : start + len(cue)]) == cue), None
            )
            if cue is not None:
                yield from self._negated_list(tokens, start + len(cue), articles=cue[0] != "free")

    def _after_not(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """Yield the indices negated by "not": what is not shown, or not there at all."""
        if tokens[start + 1 : start + 2] and tokens[start + 1] in _ONLY:
            return
        yield from self._negated_subject(tokens, start)
        index, has_showing_verb = self._skip_fillers(tokens, start + 1)
        after_any = index > start + 1 and tokens[index - 1] == "any"
        if index < len(tokens) and (
            has_showing_verb or after_any or tokens[index] in self._words["indefinite"]
        ):
            yield from self._negated_list(tokens, index, articles=True)

    def _skip_fillers(self, tokens: Sequence[str], index: int) -> tuple[int, bool]:
        """The index after "appear to", "be" and one verb of showing, and whether there was such a verb."""
        has_showing_verb = False
        while index < len(tokens):
            if tokens[index] in self._words["showing"] and not has_showing_verb:
                has_showing_verb = True
            elif tokens[index] not in self._words["fillers"]:
                break
            index += 1
        return index, has_showing_verb

    def _negated_subject(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """Yield the indices of the subject before "are not visible" or "is absent"."""
        next_index = start + 1
        if tokens[start] not in self._words["gone"]:
            next_index += tokens[next_index : next_index + 1] == ["be"]
            if not self._is_not_visible(tokens[next_index : next_index + 4]):
                return
        last = start - 1
        if tokens[start] != "cannot":
            if last < 0 or tokens[last] not in self._words["helpers"]:
                return
            last -= 1
        while last >= 0:
            if tokens[last] in self._words["ends"] or tokens[last] in _POSSESSIVE:
                return
            first = last
            while first > 0 and last - first < _MAX_MODIFIERS and self._is_modifier(tokens[first - 1]):
                first -= 1
            if first > 0 and tokens[first - 1] in self._words["articles"] | {"the"}:
                first -= 1
            if first > 0 and tokens[first - 1] == "of":  # "the face of the man is not visible"
                return
            yield last
            if first < 2 or tokens[first - 1] not in ("or", "and", "nor"):
                return
            last = first - 2

    def _is_not_visible(self, after: Sequence[str]) -> bool:
        if not after:
            return False
        if after[0] in self._words["seen"]:
            return not after[1:2] or not (after[1] in self._words["partly"] or _is_activity(after[1]))
        image_indices = [
            index for index in (1, 2) if index < len(after) and after[index] in self._words["images"]
        ]
        if after[0] != "in" or not image_indices:
            return False
        # "in the image's center" does not negate the subject.
        return _POSSESSIVE.isdisjoint(after[image_indices[0] + 1 : image_indices[0] + 2])

    def _is_modifier(self, token: str) -> bool:
        return (
            token.isalpha()
            and token not in self._words["ends"]
            and token not in self._words["articles"]
            and token not in ("of", "or", "and", "nor")
        )

    def _negated_list(self, tokens: Sequence[str], start: int, *, articles: bool) -> Iterator[int]:
        """Yield the indices of the noun phrases that follow: one, or several joined by "or"."""
        certain: list[int] = []
        tentative: list[int] = []  # after a comma, which continues the list or starts something else
        conjunction, n_words, at_start = "", 0, True
        for index in range(start, min(start + _MAX_DISTANCE, len(tokens))):
            token = tokens[index]
            if token == "of" and index > start and tokens[index - 1] in self._words["signs"]:
                at_start, n_words, articles = True, 0, True
            elif token in self._words["ends"] or token == "of":
                break
            elif token in (",", "or", "nor", "and"):
                if at_start and (
                    conjunction != "," or token == ","
                ):  # two conjunctions without a noun in between
                    break
                if token != ",":
                    if token == "and" and not _is_bare_plural(tokens, index + 1):
                        break
                    certain += tentative
                    tentative = []
                elif not conjunction:
                    certain += tentative
                    tentative = []
                conjunction, n_words, at_start = token, 0, True
            elif token in self._words["articles"] and at_start:
                if token in ("a", "an") and not articles and conjunction not in ("or", "nor"):
                    break
            elif token in self._words["owners"]:
                if not at_start:
                    break
            elif token in ("a", "an", "some") or n_words == _MAX_WORDS or (n_words and token.endswith("ing")):
                break
            else:
                n_words, at_start = n_words + 1, False
                if tokens[index + 1 : index + 2] and tokens[index + 1] in _POSSESSIVE:
                    break  # "without a man's help"
                tentative.append(index)
                if conjunction != ",":
                    certain += tentative
                    tentative = []
        yield from certain


def _is_activity(token: str) -> bool:
    """Whether only an activity or a possession is negated: "is not seen smiling", "not shown with a hat"."""
    return token.endswith("ing") or token in ("with", "to", "as")


def _is_bare_plural(tokens: Sequence[str], index: int) -> bool:
    """Whether "and" continues the negated list: "no cars and people", but not "no shirt and a hat".

    People with a predicate are present: "no cars and men walking dogs", "no clouds and men are surfing".
    """
    word = tokens[index] if index < len(tokens) else ""
    following = tokens[index + 1] if index + 1 < len(tokens) else ""
    if following.endswith("ing") or following in ("is", "are", "was", "were", "have", "who"):
        return False
    return word in _PLURALS or (word.endswith("s") and not word.endswith("ss"))


@cache
def _negation_rules() -> NegationRules:
    file = resources.files("portrayal.lexicon") / "words" / "mentions" / "absence.toml"
    return NegationRules(tomllib.loads(file.read_text(encoding="utf-8")))
