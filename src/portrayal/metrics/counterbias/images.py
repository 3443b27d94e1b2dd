"""Small copies of what was shown to a model: as it is, its counterfactual, and what lies between them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from portrayal.counterfactual.formulas import COUNTERFACTUAL, FACTUAL
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Answers
from portrayal.results import PICTURES_SCHEMA

SIDE = 128
_MAGNIFIED = 8.0  # times: an attack moves pixels by a few of 255 levels


def picture_frame(answers: Answers, instances: Sequence[Instance], model: str, attack: str) -> pl.DataFrame:
    """`IMAGE`, `IMAGE#MODEL#ATTACK#counterfactual` and `...#difference` of the instances whose pictures were kept."""
    rows = []
    for row, pictures in answers.seen.items():
        name = instances[row].image
        fact, other = pictures[FACTUAL].astype(np.float64), pictures[COUNTERFACTUAL].astype(np.float64)
        between = np.clip(127.5 + _MAGNIFIED * (other - fact), 0, 255)
        for key, picture in (
            (name, fact),
            (f"{name}#{model}#{attack}#counterfactual", other),
            (f"{name}#{model}#{attack}#difference", between),
        ):
            rows.append((key, _webp(picture)))
    return pl.DataFrame(rows, schema=PICTURES_SCHEMA, orient="row")


def _webp(picture: NDArray[np.float64]) -> bytes:
    made = Image.fromarray(picture.round().astype(np.uint8))
    scale = SIDE / max(made.size)
    made = made.resize(
        (max(1, round(made.width * scale)), max(1, round(made.height * scale))),
        Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS,
    )
    written = io.BytesIO()
    made.save(written, "WEBP", quality=85)
    return written.getvalue()
