"""English grammar around a rewritten word: agreement of the verb with "they", and modifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.lexicon.wordnet.graph import wordnet

# Takes a verb without -s, also for one person.
THEY = "they"
_FORMS = {"is": "are", "was": "were", "has": "have", "does": "do"}
_CONTRACTIONS = {"'s": ("'re", "'ve"), "’s": ("’re", "’ve")}  # he's riding, he's got
_PARTICIPLES_OF_HAVE = frozenset(("got", "been", "had"))
_SKIPPED = frozenset(
    "also just still then now always never often only even almost both all not quickly".split()
)
_CONJUNCTIONS = frozenset(("and", "or", "but"))
_CLAUSE_ENDS = frozenset("while as when where who which that because before after until if . ; : ! ?".split())


def agreement_changes(tokens: Sequence[str], position: int) -> Iterator[tuple[int, str]]:
    """Yield the tokens, with their new form, that change when the token at `position` becomes "they".

    >>> list(agreement_changes(["he", "also", "sits", "and", "reads"], 0))
    [(2, 'sit'), (4, 'read')]
    >>> list(agreement_changes(["what", "is", "she", "holding"], 2))
    [(1, 'are')]
    """
    verb = _next_content_token(tokens, position + 1)
    form = _without_s(tokens, verb)
    if form is None:
        if position and tokens[position - 1] in _FORMS:
            yield position - 1, _FORMS[tokens[position - 1]]
        return
    yield verb, form
    verbs = {word.start for word in content_words(tokens) if word.pos == "verb"}
    for index in range(verb + 1, len(tokens) - 1):
        if tokens[index] in _CLAUSE_ENDS:
            return
        joined = _next_content_token(tokens, index + 1)
        if tokens[index] in _CONJUNCTIONS and (
            joined in verbs or (joined < len(tokens) and tokens[joined] in _FORMS)
        ):
            form = _without_s(tokens, joined)
            if form is not None:
                yield joined, form


def _next_content_token(tokens: Sequence[str], position: int) -> int:
    """Return the index of the next token that is no adverb, or the number of tokens."""
    while position < len(tokens) and (tokens[position] in _SKIPPED or tokens[position].endswith("ly")):
        position += 1
    return position


def _without_s(tokens: Sequence[str], position: int) -> str | None:
    if position >= len(tokens):
        return None
    verb = tokens[position]
    if verb in _CONTRACTIONS:
        return _CONTRACTIONS[verb][
            position + 1 < len(tokens) and tokens[position + 1] in _PARTICIPLES_OF_HAVE
        ]
    if verb in _FORMS:
        return _FORMS[verb]
    if not verb.endswith("s") or verb.endswith("ss"):
        return None
    lemma = wordnet().lemma(verb, "verb")
    return lemma if lemma is not None and lemma != verb else None


def is_modifier(tokens: Sequence[str], position: int) -> bool:
    """Return whether the word at `position` modifies a following noun.

    >>> is_modifier(["a", "male", "tennis", "player"], 1), is_modifier(["a", "male", "riding", "a", "horse"], 1)
    (True, False)
    """
    return any(
        (word.start == position and word.length > 1)
        or (word.start == position + 1 and word.pos in ("noun", "adjective"))
        for word in content_words(tokens)
    )
