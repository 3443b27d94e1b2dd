"""Names of files and labels made of titles: safe on every system, unique, and the same in every run."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

LONGEST = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")  # Windows opens a device where a file has such a name


def slug(title: str) -> str:
    """Small letters, digits and single hyphens.

    >>> slug("error · Género: <all>")
    'error-genero-all'
    """
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    made = re.sub("[^a-z0-9]+", "-", ascii_only)[:LONGEST].strip("-")
    return made if made and not _DEVICES.fullmatch(made) else f"x-{made}".strip("-")


def slugs(titles: Sequence[str], identities: Sequence[str] | None = None) -> list[str]:
    """One for each title. Where several look alike, a digest of what tells them apart follows.

    The digest depends on the title and the identity alone, not on the order.

    >>> slugs(["lic", "error"], ["split a", "split b"])
    ['lic', 'error']
    """
    told = titles if identities is None else [f"{a}\n{b}" for a, b in zip(titles, identities, strict=True)]
    plain = [slug(title) for title in titles]
    counts = Counter(plain)
    made: list[str] = []
    taken = {name for name in plain if counts[name] == 1}
    for name, identity in zip(plain, told, strict=True):
        if counts[name] > 1:
            digest = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:8]
            base, number = f"{name[: LONGEST - 9].rstrip('-')}-{digest}", 1
            name = base
            while name in taken:  # the very same title and identity
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
        made.append(name)
    return made
