"""SPICE: objects, attributes and relations that a caption shares with its references (Anderson et al. 2016).

It is a Java program, which the package pycocoevalcap calls. The models of its parser must be installed.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from portrayal.errors import PortrayalError
from portrayal.metrics.quality.ngrams import Array


def missing_requirement() -> str | None:
    """The reason why SPICE cannot run on this machine, or None if it can."""
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None:
        return "SPICE needs the extra 'meteor': pip install 'portrayal[meteor]'"
    if shutil.which("java") is None:
        return "SPICE needs Java (the command 'java')"
    library_folders = [Path(folder) / "spice" / "lib" for folder in spec.submodule_search_locations or ()]
    if not any(list(folder.glob("stanford-corenlp-*-models.jar")) for folder in library_folders):
        return "SPICE needs the Stanford parser's models in pycocoevalcap's folder spice/lib"
    return None


def spice(captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> Array:
    """The F score of each caption. coco-caption prints their mean."""
    from pycocoevalcap.spice.spice import Spice

    candidates = {index: [" ".join(words)] for index, words in enumerate(captions)}
    reference_texts = {
        index: [" ".join(words) for words in caption_references]
        for index, caption_references in enumerate(references)
    }
    try:
        _, scores = Spice().compute_score(reference_texts, candidates)
    except (OSError, ValueError) as error:
        raise PortrayalError(f"SPICE's program failed: {error}.") from error
    return np.nan_to_num(np.array([score["All"]["f"] for score in scores], dtype=np.float64))
