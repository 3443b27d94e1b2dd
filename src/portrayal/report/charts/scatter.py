"""The scatter plot, used for concepts and for bias against quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portrayal.report.charts.vega import Spec, base_spec, layer


def scatter(
    rows: Sequence[Mapping[str, Any]],
    size: tuple[int, int],
    mark: Spec,
    encoding: Spec,
    *,
    background: Sequence[Spec] = (),
    labels: Sequence[Spec] = (),
    fit_width: bool = True,
) -> Spec:
    """The specification of a scatter: a point for each row, above the `background` layers and below the `labels`.

    With `fit_width`, the plot is as wide as its container on the page; otherwise exactly `size`.
    """
    spec = base_spec(*size)
    if not fit_width:
        spec["autosize"] = "pad"
    return {**spec, "layer": [*background, layer(rows, mark, encoding), *labels]}
