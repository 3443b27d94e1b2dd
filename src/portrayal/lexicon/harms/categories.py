"""Categories of objects, attributes and relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.lexicon.harms.loading import Checked, loaded


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """The category of each label of an object, each adjective and each verb."""

    objects: Mapping[str, str]
    attributes: Mapping[str, str]
    relations: Mapping[str, str]
    label: str


def taxonomy(path: str | Path | None = None) -> Taxonomy:
    """The shipped categories of objects, attributes and relations, or those of a file.

    >>> found = taxonomy()
    >>> found.objects["toaster"], found.attributes["elderly"], found.relations["hug"]
    ('appliance', 'age', 'contact')
    """
    return loaded("taxonomy", path, {"objects", "attributes", "relations"}, _taxonomy)


def _taxonomy(file: Checked) -> Taxonomy:
    tables: dict[str, dict[str, str]] = {}
    for key in ("objects", "attributes", "relations"):
        owner: dict[str, str] = {}
        for category, words in file.lists(key).items():
            for word in words:
                if owner.setdefault(word, category) != category:
                    file.note(
                        f"each word of [{key}] in one category",
                        f"{word!r} in '{owner[word]}' and '{category}'",
                    )
        if not owner:
            file.note(f"a table [{key}] with one list of words per category", "none")
        tables[key] = owner
    return Taxonomy(tables["objects"], tables["attributes"], tables["relations"], file.label)
