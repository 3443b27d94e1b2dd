"""Tokenization for the published caption scores: lower case, without punctuation marks."""

from __future__ import annotations

from portrayal.lexicon import tokenize


def plain_words(caption: str) -> list[str]:
    """The tokens of a caption, except for those that are punctuation marks only.

    >>> plain_words("A man's T-shirt; he doesn't smile.")
    ['a', 'man', "'s", 't-shirt', 'he', 'does', "n't", 'smile']
    """
    return [token for token in tokenize(caption) if token not in _PUNCTUATION and token.strip(".-")]


_PUNCTUATION = frozenset("' ` ’ ‘ “ ” \" ( ) [ ] { } . ? ! , : - ; … – —".split())
