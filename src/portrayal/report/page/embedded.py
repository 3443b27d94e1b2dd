"""Data, styles and scripts embedded in a page, so that it loads nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from typing import Any

from markupsafe import Markup


def json_for_html(value: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or open another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for mark in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def compress(text: str) -> str:
    """The text as base64 of gzip."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def pack_json(value: Any) -> str:
    """JSON as base64 of gzip: a tenth of its size, and without characters to escape."""
    return compress(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def unpack_json(text: str) -> Any:
    """The inverse of `pack_json`.

    >>> unpack_json(pack_json({"caption": "<b>"}))
    {'caption': '<b>'}
    """
    return json.loads(gzip.decompress(base64.b64decode(text)))


def read_template(name: str) -> str:
    return (resources.files("portrayal.report") / "templates" / name).read_text(encoding="utf-8")


def csp_hash(text: str) -> str:
    """The hash by which a content security policy allows one script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
