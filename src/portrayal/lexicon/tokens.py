"""The tokenizer that all counts, masks and classifiers share."""

from __future__ import annotations

import re

# Equal to the Penn Treebank rules that the LIC studies used (NLTK's word_tokenize) on all but about one in ten
# thousand COCO captions: hyphenated words are one token, clitics are split off ("man's" is man + 's, "don't" is
# do + n't), and each punctuation mark is one token.
TOKEN = re.compile(
    r"""
      n['’]t\b                         # the negation, after its verb was matched
    | ['’](?:s|m|d|re|ve|ll)\b         # possessive and short verbs: "man's", "they 're"
    | \w+?(?=n['’]t\b)                 # the verb before a negation
    | [^\W\d_](?:\.[^\W\d_])+          # abbreviations: "t.v", "u.s"
    | \d+(?:[.,:/]\d+)+                # 1,000  3.5  1/2
    | \w+(?:[-/]\w+)*                  # words, with hyphens and slashes inside
    | \.{2,} | -{2,}                   # ellipsis and dash
    | [^\w\s]                          # any other mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


def tokenize(text: str) -> list[str]:
    """The tokens of a caption, lower-cased.

    >>> tokenize("A man's T-shirt; he doesn't smile.")
    ['a', 'man', "'s", 't-shirt', ';', 'he', 'does', "n't", 'smile', '.']
    """
    return TOKEN.findall(text.lower())
