"""The terms that the page explains."""

from __future__ import annotations

GLOSSARY = {
    "95 % CI [x, y]": "Confidence interval: other images would give another number; in 95 of 100 studies such an "
    "interval contains the true one. An interval that contains the ideal means: not significant.",
    "ideal": "The number that this metric would give without bias or errors; not always reachable, and "
    "not always just.",
    "human captions": "Captions that people wrote for the same images: the references of the study. Systems are "
    "compared with them, but they are not free of bias themselves.",
    "group": "One of the values of an attribute, as the study labels people. A label is what an annotator noted, and "
    "says nothing about who a person is.",
    "undefined": "The data cannot answer, and the reason is given. It is never written as 0.",
    "too few": "The number rests on fewer than 30 images. It is shown, and nothing is concluded from it.",
    "not significant": "The data are compatible with no difference. That does not show that there is none.",
    "inconclusive": "A difference could not be tested, or a control may explain it.",
    "p": "How often chance alone would give a number this far from what it is compared with.",
    "q": "The expected share of false positives among all rows with a q at most this large (Benjamini and Hochberg).",
    "floor": "Noise floor: the expected mean of absolute values without any effect. excess is what lies above it.",
    "MDE": "Minimum detectable effect: the smallest true effect that this much data would find with 80 % probability.",
    "evidence": "The captions behind a number. The page holds an even sample of them; evidence.parquet holds all.",
}
