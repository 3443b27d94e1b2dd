"""METEOR: words matched exactly, by stem, by synonym and by paraphrase, and how far their order is the same.

The matching exists as a Java program only, which the package pycocoevalcap brings. It gives counts that add up over
captions; the score of any set of captions follows from their sums (Denkowski and Lavie 2014).
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

PARTS = 23
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75  # the program's values for English
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # of exact matches, stems, synonyms, paraphrases
_JAR = "meteor-1.5.jar"


def lacking() -> str | None:
    """Why METEOR cannot be asked on this machine, or None when it can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        return "METEOR needs the extra 'meteor': pip install 'portrayal[meteor]'"
    if shutil.which("java") is None:
        return "METEOR needs Java (the command 'java')"
    return None


def meteor_parts(captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Array:
    """What METEOR adds up, a row per caption. Captions and references are lists of words."""
    lines = [
        " ||| ".join(["SCORE", *(" ".join(words) for words in some), " ".join(caption)])
        for caption, some in zip(captions, references, strict=True)
    ]
    made = _ask(lines)
    # A caption that is one unbroken match is not fragmented at all, and adds nothing to how much others are.
    whole = (made[:, 20] == 1) & (made[:, 21] == made[:, 0]) & (made[:, 22] == made[:, 1])
    made[whole, 20] = 0.0
    return made


def _ask(lines: Sequence[str]) -> Array:
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
    asked = "".join(f"{line}\n" for line in lines)
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, encoding="utf-8", check=False)
    rows = [line.split() for line in ran.stdout.splitlines()]
    if ran.returncode or len(rows) != len(lines) or any(len(row) != PARTS for row in rows):
        told = (ran.stderr.strip() or ran.stdout.strip() or "no answer").splitlines()[-1]
        raise PortrayalError(f"METEOR's program gave {len(rows)} answers to {len(lines)} captions: {told}.")
    return np.array(rows, dtype=np.float64)


def _jar() -> Path:
    found = importlib.util.find_spec("pycocoevalcap")
    places = (
        [Path(place) / "meteor" / _JAR for place in (found.submodule_search_locations or ())] if found else []
    )
    for place in places:
        if place.is_file():
            return place
    raise PortrayalError(f"The package pycocoevalcap is there, but its {_JAR} is not.")


def meteor(parts: Array) -> Array:
    """The score of summed parts: (draws, parts) to (draws,). Nothing matched is 0."""
    said, written, said_function, written_function = parts[:, :4].T
    matched = parts[:, 4:20].reshape(
        len(parts), 4, 4
    )  # per way of matching: content and function words, both sides
    precision = _over(
        _weighed(matched[:, :, 0], matched[:, :, 2]), _mixed(said - said_function, said_function)
    )
    recall = _over(
        _weighed(matched[:, :, 1], matched[:, :, 3]), _mixed(written - written_function, written_function)
    )
    chunks, words = parts[:, 20], parts[:, 21:23].mean(axis=1)
    mean = _over(precision * recall, _ALPHA * precision + (1 - _ALPHA) * recall)
    made: Array = mean * (1 - _GAMMA * _over(chunks, words) ** _BETA)
    return made


def _weighed(content: Array, function: Array) -> Array:
    return np.asarray(_mixed(content @ _WEIGHTS, function @ _WEIGHTS))


def _mixed(content: Array, function: Array) -> Array:
    return np.asarray(_DELTA * content + (1 - _DELTA) * function)


def _over(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
