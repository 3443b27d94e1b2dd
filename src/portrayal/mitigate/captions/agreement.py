"""English grammar around a rewritten word: the verb that goes with "they", and words that describe another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.lexicon.wordnet.graph import wordnet

SEVERAL = "they"  # takes a verb without -s, whoever it stands for
_FORMS = {"is": "are", "was": "were", "has": "have", "does": "do"}
_SHORT = {"'s": ("'re", "'ve"), "’s": ("’re", "’ve")}  # he's riding, he's got
_OF_HAVE = frozenset(("got", "been", "had"))
_BETWEEN = frozenset(
    "also just still then now always never often only even almost both all not quickly".split()
)
_JOINS = frozenset(("and", "or", "but"))
_ENDS = frozenset("while as when where who which that because before after until if . ; : ! ?".split())


def agreeing(tokens: Sequence[str], place: int) -> Iterator[tuple[int, str]]:
    """The tokens that change where the one in this place becomes "they", each with its new form.

    >>> list(agreeing(["he", "also", "sits", "and", "reads"], 0))
    [(2, 'sit'), (4, 'read')]
    >>> list(agreeing(["what", "is", "she", "holding"], 2))
    [(1, 'are')]
    """
    verb = _after(tokens, place + 1)
    form = _without_s(tokens, verb)
    if form is None:
        if place and tokens[place - 1] in _FORMS:
            yield place - 1, _FORMS[tokens[place - 1]]
        return
    yield verb, form
    verbs = {word.start for word in content_words(tokens) if word.part == "verb"}
    for index in range(verb + 1, len(tokens) - 1):
        if tokens[index] in _ENDS:
            return
        joined = _after(tokens, index + 1)
        if tokens[index] in _JOINS and (
            joined in verbs or (joined < len(tokens) and tokens[joined] in _FORMS)
        ):
            form = _without_s(tokens, joined)
            if form is not None:
                yield joined, form


def _after(tokens: Sequence[str], place: int) -> int:
    """The next token that is no adverb; the number of tokens where there is none."""
    while place < len(tokens) and (tokens[place] in _BETWEEN or tokens[place].endswith("ly")):
        place += 1
    return place


def _without_s(tokens: Sequence[str], place: int) -> str | None:
    if place >= len(tokens):
        return None
    verb = tokens[place]
    if verb in _SHORT:
        return _SHORT[verb][place + 1 < len(tokens) and tokens[place + 1] in _OF_HAVE]
    if verb in _FORMS:
        return _FORMS[verb]
    if not verb.endswith("s") or verb.endswith("ss"):
        return None
    lemma = wordnet().lemma(verb, "verb")
    return lemma if lemma is not None and lemma != verb else None


def describes(tokens: Sequence[str], place: int) -> bool:
    """Whether the word in this place stands before a noun that it describes.

    >>> describes(["a", "male", "tennis", "player"], 1), describes(["a", "male", "riding", "a", "horse"], 1)
    (True, False)
    """
    return any(
        (word.start == place and word.length > 1)
        or (word.start == place + 1 and word.part in ("noun", "adjective"))
        for word in content_words(tokens)
    )
