"""Decodes the evidence in a page, as its script does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from portrayal.report.page.embedded import unpack_json


def element(html: str, name: str) -> Any:
    """The data of a script element of the page."""
    match = re.search(rf'<script type="text/plain" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    return unpack_json(match.group(1))


def rows_behind(data: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows behind each number: image, source, caption and facts."""
    captions = list(zip(*(list(accumulate(column)) for column in data["captions"]), strict=True))
    rows = []
    for kind in data["kinds"]:
        columns = [_values(column, data) for column in kind["columns"]]
        for n, index in enumerate(accumulate(kind["captions"])):
            image, source, caption = captions[index]
            facts = {key: column[n] for key, column in zip(kind["keys"], columns, strict=True)}
            texts = data["images"][image], data["systems"][source], data["texts"][caption]
            rows.append(dict(zip(("image", "source", "caption"), texts, strict=True)) | {"facts": facts})
    row_lists = [[rows[index] for index in accumulate(row_list)] for row_list in data["row_lists"]]
    return {identifier: row_lists[index] for identifier, index in data["by_id"].items()}


def _values(column: Any, data: dict[str, Any]) -> Sequence[Any]:
    if isinstance(column, list):
        return column
    if "lists" in column:
        return [[data["texts"][text] for text in data["lists"][index]] for index in column["lists"]]
    pairs = zip(column["words"], column["contributions"], strict=True)
    return [[[word, value / 100] for word, value in zip(*pair, strict=True)] for pair in pairs]
