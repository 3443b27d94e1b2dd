"""SPICE: the objects, attributes and relations that a caption and its references share, as a parser reads them.

It exists as a Java program only, which the package pycocoevalcap calls; the parser's models must be there already.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from portrayal.errors import PortrayalError
from portrayal.metrics.quality.ngrams import Array


def lacking() -> str | None:
    """Why SPICE cannot be asked on this machine, or None when it can."""
    found = importlib.util.find_spec("pycocoevalcap")
    if found is None:
        return "SPICE needs the extra 'meteor': pip install 'portrayal[meteor]'"
    if shutil.which("java") is None:
        return "SPICE needs Java (the command 'java')"
    places = [Path(place) / "spice" / "lib" for place in found.submodule_search_locations or ()]
    if not any(list(place.glob("stanford-corenlp-*-models.jar")) for place in places):
        return "SPICE needs the Stanford parser's models in pycocoevalcap's folder spice/lib"
    return None


def spice(captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Array:
    """The F score of every caption; its mean is what coco-caption prints."""
    from pycocoevalcap.spice.spice import Spice

    said = {place: [" ".join(words)] for place, words in enumerate(captions)}
    written = {place: [" ".join(words) for words in some] for place, some in enumerate(references)}
    try:
        _, scores = Spice().compute_score(written, said)
    except (OSError, ValueError) as error:
        raise PortrayalError(f"SPICE's program failed: {error}.") from error
    return np.nan_to_num(np.array([one["All"]["f"] for one in scores], dtype=np.float64))
