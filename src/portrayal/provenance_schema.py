"""The schema of the provenance in a results file, which reports, comparisons and gates read."""

from __future__ import annotations

from typing import Any

from portrayal.documents import unwritable_part
from portrayal.errors import shown

# A shape is a type, a list of one shape, or an object: field -> shape, `ANY` for fields of any other name.
# Fields that a shape does not name may hold anything, and every value may be null: other programs write less.
ANY = "*"
_TYPE_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_TERM = {
    "label": str,
    "name": str,
    "meaning": str,
    "unit": str,
    "better": str,
    "ideal": float,
    "items": [str],
}
_PART = {"term": str, "rule": str, "origin": [str], "caveats": [str]}
_TRADE_OFF = {
    **dict.fromkeys(("direction", "points"), str),
    "is_bias": bool,
    **{name: [str] for name in ("terms", "shared_settings", "titled_settings")},
    "settings": {ANY: str},
}
_CARD = {
    **dict.fromkeys(("name", "title", "question", "formula", "range", "paper", "layout"), str),
    **{name: [str] for name in ("needs", "caveats", "uses", "side_by_side", "should_ignore", "headline")},
    "trade_off": _TRADE_OFF,
    "terms": [_TERM],
    "parts": [_PART],
    "by_term": bool,
    "fits_model": bool,
    "responds_to": {ANY: str},
    "lab_notes": {ANY: str},
    "caution_terms": {ANY: [str]},
}
_COUNTS = ("images", "captions", "references", "objects", "instances", "left_out")
_STUDY = {
    "name": str,
    "digest": str,
    "systems": [str],
    **dict.fromkeys(_COUNTS, int),
    "groups": {ANY: {ANY: int}},
    "image_set": str,
    "words": {ANY: {ANY: [str]}},
    "truncated": {ANY: int},
}
_PROVENANCE: dict[str, Any] = {
    **dict.fromkeys(("version", "command", "started", "python", "git_commit"), str),
    "seed": int,
    "seconds": float,
    "study": _STUDY,
    "packages": {ANY: str},
    "cards": {ANY: _CARD},
    "skipped": [{"metric": str, "attribute": str, "reason": str}],
    "compared": [str],
    "selection": [str],
    "only_first": int,
    "only_second": int,
    "same_images": bool,
    "cautions": [dict.fromkeys(("about", "sentence", "system", "attribute", "group"), str)],
    "stereotypes": {ANY: str},
}


def provenance_problem(provenance: object) -> tuple[str, str] | None:
    """(expected, found) of the first problem in a provenance, or None if it is valid.

    >>> provenance_problem({"study": {"images": "many"}})
    ('provenance.study.images as a whole number', "'many'")
    """
    if not isinstance(provenance, dict):
        return "provenance as an object", shown(provenance)
    problem = unwritable_part(provenance)
    if problem:
        return "provenance of text and finite numbers", problem
    return _problem(provenance, _PROVENANCE, "provenance")


def _problem(value: Any, shape: Any, name: str) -> tuple[str, str] | None:
    if value is None:
        return None
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{name} as an object", shown(value)
        children = [(f"{name}.{key}", child, shape.get(key, shape.get(ANY))) for key, child in value.items()]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{name} as a list", shown(value)
        children = [(f"{name}[{index}]", child, shape[0]) for index, child in enumerate(value, start=1)]
    else:
        known = int | float if shape is float else shape
        if isinstance(value, known) and (shape is bool or not isinstance(value, bool)):
            return None
        return f"{name} as {_TYPE_NAMES[shape]}", shown(value)
    for child_name, child, child_shape in children:
        problem = None if child_shape is None else _problem(child, child_shape, child_name)
        if problem:
            return problem
    return None
