"""Tokenization of the published scores of captions: lower case, without punctuation marks."""

from __future__ import annotations

from portrayal.lexicon import tokenize


def plain_words(caption: str) -> list[str]:
    """The tokens with a letter, a digit or a symbol other than a punctuation mark.

    >>> plain_words("A man's T-shirt; he doesn't smile.")
    ['a', 'man', "'s", 't-shirt', 'he', 'does', "n't", 'smile']
    """
    return [token for token in tokenize(caption) if token not in _MARKS and token.strip(".-")]


_MARKS = frozenset("' ` ’ ‘ “ ” \" ( ) [ ] { } . ? ! , : - ; … – —".split())
