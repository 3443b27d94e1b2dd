"""File names and labels from titles: safe on every system, unique, and reproducible."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

MAX_LENGTH = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")  # device names on Windows


def slug(title: str) -> str:
    """The title as lower-case letters, digits and single hyphens.

    >>> slug("error · Género: <all>")
    'error-genero-all'
    """
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    text = re.sub("[^a-z0-9]+", "-", ascii_only)[:MAX_LENGTH].strip("-")
    return text if text and not _DEVICES.fullmatch(text) else f"x-{text}".strip("-")


def slugs(titles: Sequence[str], identities: Sequence[str] | None = None) -> list[str]:
    """A slug for each title, with a digest of title and identity where slugs would be equal.

    The digest does not depend on the order.

    >>> slugs(["lic", "error"], ["split a", "split b"])
    ['lic', 'error']
    """
    identity_texts = (
        titles if identities is None else [f"{a}\n{b}" for a, b in zip(titles, identities, strict=True)]
    )
    plain_slugs = [slug(title) for title in titles]
    counts = Counter(plain_slugs)
    unique: list[str] = []
    taken = {name for name in plain_slugs if counts[name] == 1}
    for name, identity in zip(plain_slugs, identity_texts, strict=True):
        if counts[name] > 1:
            digest = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:8]
            base, number = f"{name[: MAX_LENGTH - 9].rstrip('-')}-{digest}", 1
            name = base
            while name in taken:  # equal titles and identities
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
        unique.append(name)
    return unique
