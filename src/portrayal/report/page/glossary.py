"""Words that the page uses in a sense of its own."""

from __future__ import annotations

GLOSSARY = {
    "95 % interval": "Where the number would lie if other images had been drawn, in 95 of 100 such draws. Where it "
    "holds the ideal, the data do not tell whether the number differs from it.",
    "ideal": "What a number would be if nothing were wrong by this metric; not always reachable, and not what is just.",
    "people's captions": "Captions that people wrote of the same images: the references of the study. They are a "
    "measure to hold systems against, and not free of bias themselves.",
    "group": "One of the values of an attribute, as the study labels people. A label says what somebody noted, and "
    "nothing about who a person is.",
    "undefined": "The data cannot answer, and the reason is given. It is never written as 0.",
    "too few": "The number rests on fewer than 30 images. It is shown, and nothing is concluded from it.",
    "p": "How often chance alone would give a number this far from what it is held against.",
    "q": "The share of false finds among all rows that are at least this sure (Benjamini and Hochberg).",
    "floor": "What a mean of absolute values is without any effect, from noise alone. excess is what lies above it.",
    "detectable": "The smallest true effect that this much data would find with 80 % probability.",
    "evidence": "The captions behind a number. The page carries some of them, spread evenly; evidence.parquet has all.",
}
