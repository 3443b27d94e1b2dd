"""Reads the captions that a page carries, as its script does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from portrayal.report.page.embedded import unpacked


def element(html: str, name: str) -> Any:
    """What stands packed in the page under this name."""
    found = re.search(rf'<script type="text/plain" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return unpacked(found.group(1))


def rows_behind(data: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """For each number its rows: image, speaker, caption and facts."""
    said = list(zip(*(list(accumulate(column)) for column in data["said"]), strict=True))
    rows = []
    for kind in data["kinds"]:
        columns = [_values(column, data) for column in kind["columns"]]
        for n, place in enumerate(accumulate(kind["said"])):
            image, source, caption = said[place]
            facts = {key: column[n] for key, column in zip(kind["keys"], columns, strict=True)}
            names = data["images"][image], data["systems"][source], data["texts"][caption]
            rows.append(dict(zip(("image", "source", "caption"), names, strict=True)) | {"facts": facts})
    runs = [[rows[place] for place in accumulate(run)] for run in data["runs"]]
    return {identifier: runs[number] for identifier, number in data["behind"].items()}


def _values(column: Any, data: dict[str, Any]) -> Sequence[Any]:
    if isinstance(column, list):
        return column
    if "lists" in column:
        return [[data["texts"][text] for text in data["lists"][place]] for place in column["lists"]]
    pairs = zip(column["words"], column["adds"], strict=True)
    return [[[word, add / 100] for word, add in zip(*pair, strict=True)] for pair in pairs]
