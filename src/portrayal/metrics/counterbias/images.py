"""Thumbnails of model inputs: the image, its counterfactual, and their difference."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from portrayal.counterfactual.formulas import COUNTERFACTUAL, FACTUAL
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs
from portrayal.results import THUMBNAILS_SCHEMA

THUMBNAIL_SIZE = 128
_MAGNIFICATION = 8.0  # of the difference: an attack moves pixels by a few of 255 levels


def image_frame(
    outputs: ModelOutputs, instances: Sequence[Instance], model: str, attack: str
) -> pl.DataFrame:
    """Return the thumbnails of the instances whose images were kept.

    Their ids are `IMAGE`, `IMAGE#MODEL#ATTACK#counterfactual` and `IMAGE#MODEL#ATTACK#difference`.
    """
    rows = []
    for row, images in outputs.images.items():
        name = instances[row].image
        factual, counterfactual = (
            images[FACTUAL].astype(np.float64),
            images[COUNTERFACTUAL].astype(np.float64),
        )
        difference = np.clip(127.5 + _MAGNIFICATION * (counterfactual - factual), 0, 255)
        for key, image in (
            (name, factual),
            (f"{name}#{model}#{attack}#counterfactual", counterfactual),
            (f"{name}#{model}#{attack}#difference", difference),
        ):
            rows.append((key, _webp(image)))
    return pl.DataFrame(rows, schema=THUMBNAILS_SCHEMA, orient="row")


def _webp(levels: NDArray[np.float64]) -> bytes:
    image = Image.fromarray(levels.round().astype(np.uint8))
    scale = THUMBNAIL_SIZE / max(image.size)
    image = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))),
        Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS,
    )
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=85)
    return buffer.getvalue()
