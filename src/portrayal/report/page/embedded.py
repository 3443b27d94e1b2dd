"""What a page carries inside itself: data, styles and scripts, so that it needs nothing from elsewhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from typing import Any

from markupsafe import Markup


def json_for_html(value: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or open another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for mark in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def compressed(text: str) -> str:
    """In letters that need no escaping."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def packed(value: Any) -> str:
    """JSON, compressed, in letters that need no escaping: a tenth of its size, and nothing of anybody's in the open."""
    return compressed(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def unpacked(text: str) -> Any:
    """
    >>> unpacked(packed({"caption": "<b>"}))
    {'caption': '<b>'}
    """
    return json.loads(gzip.decompress(base64.b64decode(text)))


def template_text(name: str) -> str:
    return (resources.files("portrayal.report") / "templates" / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """The content security policy lets this one script and this one style run, and nothing else."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
