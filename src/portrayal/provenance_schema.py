"""What the provenance of a results file must be made of, whoever wrote it: reports, comparisons and gates read it."""

from __future__ import annotations

from typing import Any

from portrayal.documents import unwritable
from portrayal.errors import shown

# A shape is a type, a list of one shape, or an object: field -> shape, `ANY` for fields of any other name.
# What a shape does not name may be anything, and every value may be null: results from elsewhere say less.
ANY = "*"
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_TERM = {"name": str, "meaning": str, "unit": str, "better": str, "ideal": float, "items": [str]}
_PART = {"term": str, "rule": str, "origin": [str], "caveats": [str]}
_CARD = {
    **dict.fromkeys(("name", "title", "question", "formula", "range", "paper"), str),
    **{name: [str] for name in ("needs", "caveats", "uses", "beside", "should_ignore")},
    "terms": [_TERM],
    "parts": [_PART],
    "by_term": bool,
    "learns": bool,
    "responds_to": {ANY: str},
    "lab_notes": {ANY: str},
    "cautioned": {ANY: [str]},
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
    "shortened": {ANY: int},
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
    "only_first": int,
    "only_second": int,
    "same_images": bool,
    "cautions": [dict.fromkeys(("about", "sentence", "system", "attribute", "group"), str)],
    "stereotypes": {ANY: str},
}


def wrong_provenance(found: object) -> tuple[str, str] | None:
    """What provenance should have held and what it holds, or None where it is sound.

    >>> wrong_provenance({"study": {"images": "many"}})
    ('provenance.study.images as a whole number', "'many'")
    """
    if not isinstance(found, dict):
        return "provenance as an object", shown(found)
    fault = unwritable(found)
    if fault:
        return "provenance of text and finite numbers", fault
    return _wrong(found, _PROVENANCE, "provenance")


def _wrong(value: Any, shape: Any, name: str) -> tuple[str, str] | None:
    if value is None:
        return None
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{name} as an object", shown(value)
        inner = [(f"{name}.{key}", one, shape.get(key, shape.get(ANY))) for key, one in value.items()]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{name} as a list", shown(value)
        inner = [(f"{name}[{place}]", one, shape[0]) for place, one in enumerate(value, start=1)]
    else:
        known = int | float if shape is float else shape
        if isinstance(value, known) and (shape is bool or not isinstance(value, bool)):
            return None
        return f"{name} as {_WORDS[shape]}", shown(value)
    for told, one, wanted in inner:
        fault = None if wanted is None else _wrong(one, wanted, told)
        if fault:
            return fault
    return None
