"""METEOR: words matched exactly, by stem, by synonym and by paraphrase, with a penalty for a different word order.

The matching is a Java program, which the package pycocoevalcap contains. It returns counts for each caption. The score
of any set of captions is a function of the sums of these counts (Denkowski and Lavie 2014).
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
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75  # the parameters of the program for English
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # weights of exact matches, stems, synonyms, paraphrases
_JAR = "meteor-1.5.jar"


def missing_requirement() -> str | None:
    """The reason why METEOR cannot run on this machine, or None if it can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        return "METEOR needs the extra 'meteor': pip install 'portrayal[meteor]'"
    if shutil.which("java") is None:
        return "METEOR needs Java (the command 'java')"
    return None


def meteor_counts(captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Array:
    """The counts that METEOR sums, with a row for each caption. Captions and references are lists of words."""
    lines = [
        " ||| ".join(["SCORE", *(" ".join(words) for words in caption_references), " ".join(caption)])
        for caption, caption_references in zip(captions, references, strict=True)
    ]
    counts = _run_program(lines)
    # A caption that matches as one chunk has no fragmentation. Its chunk is not counted.
    is_single_chunk = (counts[:, 20] == 1) & (counts[:, 21] == counts[:, 0]) & (counts[:, 22] == counts[:, 1])
    counts[is_single_chunk, 20] = 0.0
    return counts


def _run_program(lines: Sequence[str]) -> Array:
    """The counts that the Java program prints for these input lines."""
    command = [
        "java",
        "-Xmx2G",
        "-Dfile.encoding=UTF-8",
        "-jar",
        str(_jar_path()),
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
    count_fields = [line.split() for line in process.stdout.splitlines()]
    if (
        process.returncode
        or len(count_fields) != len(lines)
        or any(len(row) != N_COUNTS for row in count_fields)
    ):
        last_line = (process.stderr.strip() or process.stdout.strip() or "no answer").splitlines()[-1]
        raise PortrayalError(
            f"METEOR's program gave {len(count_fields)} answers to {len(lines)} captions: {last_line}."
        )
    return np.array(count_fields, dtype=np.float64)


def _jar_path() -> Path:
    """The path of the Java program in the package pycocoevalcap."""
    spec = importlib.util.find_spec("pycocoevalcap")
    paths = [Path(path) / "meteor" / _JAR for path in (spec.submodule_search_locations or ())] if spec else []
    for path in paths:
        if path.is_file():
            return path
    raise PortrayalError(f"The package pycocoevalcap is there, but its {_JAR} is not.")


def meteor(counts: Array) -> Array:
    """METEOR from summed counts: shape (resamples, counts) to (resamples,). It is 0 without a match."""
    caption_words, reference_words, caption_function_words, reference_function_words = counts[:, :4].T
    # For each way of matching: content words of caption and reference, function words of caption and reference.
    matches = counts[:, 4:20].reshape(len(counts), 4, 4)
    precision = _safe_divide(
        _weighted_matches(matches[:, :, 0], matches[:, :, 2]),
        _weighted_words(caption_words - caption_function_words, caption_function_words),
    )
    recall = _safe_divide(
        _weighted_matches(matches[:, :, 1], matches[:, :, 3]),
        _weighted_words(reference_words - reference_function_words, reference_function_words),
    )
    chunks, mean_words = counts[:, 20], counts[:, 21:23].mean(axis=1)
    f_mean = _safe_divide(precision * recall, _ALPHA * precision + (1 - _ALPHA) * recall)
    score: Array = f_mean * (1 - _GAMMA * _safe_divide(chunks, mean_words) ** _BETA)
    return score


def _weighted_matches(content_matches: Array, function_matches: Array) -> Array:
    return np.asarray(_weighted_words(content_matches @ _WEIGHTS, function_matches @ _WEIGHTS))


def _weighted_words(content_words: Array, function_words: Array) -> Array:
    return np.asarray(_DELTA * content_words + (1 - _DELTA) * function_words)


def _safe_divide(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
