"""Who is said not to be there: "no people", "without a man", "does not show a woman", "people are not visible"."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

_LONGEST = 4  # words of one thing that is not there: "no other visible human beings"
_REACH = 14  # tokens from the negation on that are read
_POSSESSIVE = frozenset(("'s", "’s", "'", "’"))
_NOT = frozenset(("not", "n't", "n’t", "never", "cannot"))
_ONLY = frozenset(("only", "just", "merely", "simply"))
_PLURALS = frozenset(("people", "men", "women", "children", "folk"))
_FEW_BEFORE = 3  # words between an article and the noun that is the subject


def absent(tokens: Sequence[str]) -> frozenset[int]:
    """The indices of the tokens that name what is said not to be there.

    What is done or worn is not looked at: "a man not wearing a helmet" mentions a man, and so does "no helmet on the
    man". Nor are pronouns: "a boy without his shirt".

    >>> def left(text): return [token for place, token in enumerate(text.split()) if place not in absent(text.split())]
    >>> left("a street with no people and a woman walking")
    ['a', 'street', 'with', 'no', 'and', 'a', 'woman', 'walking']
    >>> left("it does not show a man or a woman")
    ['it', 'does', 'not', 'show', 'a', 'or', 'a']
    """
    absence = _absence()
    if absence.first.isdisjoint(tokens):  # nearly every caption ends here
        return frozenset()
    return frozenset(place for start in range(len(tokens)) for place in absence.of(tokens, start))


class _Absence:
    """The negations of one language, as `absence.toml` lists them."""

    def __init__(self, lists: dict[str, list[str]]):
        self._sets = {name: frozenset(words) for name, words in lists.items() if isinstance(words, list)}
        self._prepositions = sorted(
            (tuple(cue.split()) for cue in lists["prepositions"]), key=len, reverse=True
        )
        self._not_cues = [tuple(cue.split()) for cue in lists["not_cues"]]
        self.first = (
            self._sets["determiners"]
            | self._sets["gone"]
            | {cue[0] for cue in self._prepositions}
            | _NOT
            | {"neither", "nor", "nobody", "no-one", "noone"}
        )

    def of(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """What the negation that begins at one token takes away, if one does."""
        token = tokens[start]
        if token not in self.first:
            return
        if any(tuple(tokens[start : start + len(cue)]) == cue for cue in self._not_cues):
            return
        if token in ("nobody", "no-one", "noone"):
            yield start
        elif token in self._sets["determiners"]:
            yield from self._things(tokens, start + 1, articles=False)
        elif token in _NOT:
            yield from self._not_shown(tokens, start)
        elif token == "neither":
            if "nor" in tokens[start : start + _REACH]:
                yield from self._things(tokens, start + 1, articles=True)
        elif token == "nor":
            yield from self._things(tokens, self._past_fillers(tokens, start + 1)[0], articles=True)
        elif token in self._sets["gone"]:
            yield from self._subject(tokens, start)
        else:
            cue = next(
                (cue for cue in self._prepositions if tuple(tokens[start : start + len(cue)]) == cue), None
            )
            if cue is not None:
                yield from self._things(tokens, start + len(cue), articles=cue[0] != "free")

    def _not_shown(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """After "not": what is not shown, or is not there at all."""
        if tokens[start + 1 : start + 2] and tokens[start + 1] in _ONLY:
            return
        yield from self._subject(tokens, start)
        place, shown = self._past_fillers(tokens, start + 1)
        any_of_them = place > start + 1 and tokens[place - 1] == "any"
        if place < len(tokens) and (shown or any_of_them or tokens[place] in self._sets["indefinite"]):
            yield from self._things(tokens, place, articles=True)

    def _past_fillers(self, tokens: Sequence[str], place: int) -> tuple[int, bool]:
        """Past "appear to", "be", and one verb of showing; whether there was one."""
        shown = False
        while place < len(tokens):
            if tokens[place] in self._sets["showing"] and not shown:
                shown = True
            elif tokens[place] not in self._sets["fillers"]:
                break
            place += 1
        return place, shown

    def _subject(self, tokens: Sequence[str], start: int) -> Iterator[int]:
        """Before "are not visible" or "is absent": who is not."""
        follows = start + 1
        if tokens[start] not in self._sets["gone"]:
            follows += tokens[follows : follows + 1] == ["be"]
            if not self._unseen(tokens[follows : follows + 4]):
                return
        last = start - 1
        if tokens[start] != "cannot":
            if last < 0 or tokens[last] not in self._sets["helpers"]:
                return
            last -= 1
        while last >= 0:
            if tokens[last] in self._sets["ends"] or tokens[last] in _POSSESSIVE:
                return
            first = last
            while first > 0 and last - first < _FEW_BEFORE and self._describes(tokens[first - 1]):
                first -= 1
            if first > 0 and tokens[first - 1] in self._sets["articles"] | {"the"}:
                first -= 1
            if first > 0 and tokens[first - 1] == "of":  # the face of the man is not visible
                return
            yield last
            if first < 2 or tokens[first - 1] not in ("or", "and", "nor"):
                return
            last = first - 2

    def _unseen(self, after: Sequence[str]) -> bool:
        if not after:
            return False
        if after[0] in self._sets["seen"]:
            return not after[1:2] or not (after[1] in self._sets["partly"] or _is_done(after[1]))
        shown_in = [place for place in (1, 2) if place < len(after) and after[place] in self._sets["images"]]
        if after[0] != "in" or not shown_in:
            return False
        return _POSSESSIVE.isdisjoint(after[shown_in[0] + 1 : shown_in[0] + 2])  # "in the image's center"

    def _describes(self, token: str) -> bool:
        return (
            token.isalpha()
            and token not in self._sets["ends"]
            and token not in self._sets["articles"]
            and token not in ("of", "or", "and", "nor")
        )

    def _things(self, tokens: Sequence[str], start: int, *, articles: bool) -> Iterator[int]:
        """What is named from here on: one thing, or several joined by "or"."""
        sure: list[int] = []
        maybe: list[int] = []  # after a comma, which may join, or begin something else
        joint, words, begins = "", 0, True
        for place in range(start, min(start + _REACH, len(tokens))):
            token = tokens[place]
            if token == "of" and place > start and tokens[place - 1] in self._sets["signs"]:
                begins, words, articles = True, 0, True
            elif token in self._sets["ends"] or token == "of":
                break
            elif token in (",", "or", "nor", "and"):
                if begins and (joint != "," or token == ","):  # nothing is named between the two
                    break
                if token != ",":
                    if token == "and" and not _bare_plural(tokens, place + 1):
                        break
                    sure += maybe
                    maybe = []
                elif not joint:
                    sure += maybe
                    maybe = []
                joint, words, begins = token, 0, True
            elif token in self._sets["articles"] and begins:
                if token in ("a", "an") and not articles and joint not in ("or", "nor"):
                    break
            elif token in self._sets["owners"]:
                if not begins:
                    break
            elif token in ("a", "an", "some") or words == _LONGEST or (words and token.endswith("ing")):
                break
            else:
                words, begins = words + 1, False
                if tokens[place + 1 : place + 2] and tokens[place + 1] in _POSSESSIVE:
                    break  # "without a man's help"
                maybe.append(place)
                if joint != ",":
                    sure += maybe
                    maybe = []
        yield from sure


def _is_done(token: str) -> bool:
    """Whether somebody is seen, if not to do or have something: "is not seen smiling", "not shown with a hat"."""
    return token.endswith("ing") or token in ("with", "to", "as")


def _bare_plural(tokens: Sequence[str], place: int) -> bool:
    """Whether "and" joins one more thing that is not there: "no cars and people", not "no shirt and a hat".

    Of whom something is said, is there: "no cars and men walking dogs", "no clouds and men are surfing".
    """
    following = tokens[place] if place < len(tokens) else ""
    said = tokens[place + 1] if place + 1 < len(tokens) else ""
    if said.endswith("ing") or said in ("is", "are", "was", "were", "have", "who"):
        return False
    return following in _PLURALS or (following.endswith("s") and not following.endswith("ss"))


@cache
def _absence() -> _Absence:
    file = resources.files("portrayal.lexicon") / "words" / "mentions" / "absence.toml"
    return _Absence(tomllib.loads(file.read_text(encoding="utf-8")))
