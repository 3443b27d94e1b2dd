"""METEOR: words matched exactly, by stem, by synonym and by paraphrase, with a penalty for another word order.

The matching exists as a Java program only, which the package pycocoevalcap contains. It gives counts that are summed
over captions; the score of any set of captions follows from their sums (Denkowski and Lavie 2014).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from portrayal.errors import PortrayalError
from portrayal.metrics.quality.ngrams import Array

N_COUNTS = 23
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75  # the program's values for English
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # of exact matches, stems, synonyms, paraphrases
_JAR = "meteor-1.5.jar"


def missing_requirement() -> str | None:
    """The reason why METEOR cannot run on this machine, or None where it can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        return "METEOR needs the extra 'meteor': pip install 'portrayal[meteor]'"
    if shutil.which("java") is None:
        return "METEOR needs Java (the command 'java')"
    return None


def meteor_counts(captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Array:
    """Counts that METEOR sums, a row per caption. Captions and references are lists of words."""
    lines = [
        " ||| ".join(["SCORE", *(" ".join(words) for words in caption_references), " ".join(caption)])
        for caption, caption_references in zip(captions, references, strict=True)
    ]
    counts = _run_program(lines)
    # A caption that is one unbroken match has no fragmentation and adds no chunk.
    unbroken = (counts[:, 20] == 1) & (counts[:, 21] == counts[:, 0]) & (counts[:, 22] == counts[:, 1])
    counts[unbroken, 20] = 0.0
    return counts


def _run_program(lines: Sequence[str]) -> Array:
    command = [
        "java",
        "-Xmx2G",
        "-Dfile.encoding=UTF-8",
        "-jar",
        str(_jar()),
        "-",
        "-",
        "-stdio",
        "-l",
        "en",
        "-norm",
    ]
    stdin = "".join(f"{line}\n" for line in lines)
    process = subprocess.run(
        command, input=stdin, capture_output=True, text=True, encoding="utf-8", check=False
    )
    rows = [line.split() for line in process.stdout.splitlines()]
    if process.returncode or len(rows) != len(lines) or any(len(row) != N_COUNTS for row in rows):
        last_line = (process.stderr.strip() or process.stdout.strip() or "no answer").splitlines()[-1]
        raise PortrayalError(
            f"METEOR's program gave {len(rows)} answers to {len(lines)} captions: {last_line}."
        )
    return np.array(rows, dtype=np.float64)


def _jar() -> Path:
    spec = importlib.util.find_spec("pycocoevalcap")
    paths = [Path(path) / "meteor" / _JAR for path in (spec.submodule_search_locations or ())] if spec else []
    for path in paths:
        if path.is_file():
            return path
    raise PortrayalError(f"The package pycocoevalcap is there, but its {_JAR} is not.")


def meteor(counts: Array) -> Array:
    """The score of summed counts: (resamples, counts) to (resamples,). Without a match it is 0."""
    caption_words, reference_words, caption_function, reference_function = counts[:, :4].T
    matched = counts[:, 4:20].reshape(
        len(counts), 4, 4
    )  # per way of matching: content and function words, both sides
    precision = _safe_divide(
        _weight_matches(matched[:, :, 0], matched[:, :, 2]),
        _mix_words(caption_words - caption_function, caption_function),
    )
    recall = _safe_divide(
        _weight_matches(matched[:, :, 1], matched[:, :, 3]),
        _mix_words(reference_words - reference_function, reference_function),
    )
    chunks, words = counts[:, 20], counts[:, 21:23].mean(axis=1)
    mean = _safe_divide(precision * recall, _ALPHA * precision + (1 - _ALPHA) * recall)
    score: Array = mean * (1 - _GAMMA * _safe_divide(chunks, words) ** _BETA)
    return score


def _weight_matches(content: Array, function: Array) -> Array:
    return np.asarray(_mix_words(content @ _WEIGHTS, function @ _WEIGHTS))


def _mix_words(content: Array, function: Array) -> Array:
    return np.asarray(_DELTA * content + (1 - _DELTA) * function)


def _safe_divide(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
