"""The taxonomy of objects, attributes and relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from portrayal.lexicon.harms.loading import WordListReader, load_word_list


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """The categories of object labels, adjectives and verbs: word -> category."""

    objects: Mapping[str, str]
    attributes: Mapping[str, str]
    relations: Mapping[str, str]
    label: str


def taxonomy(path: str | Path | None = None) -> Taxonomy:
    """Load the shipped taxonomy, or that of a file.

    >>> categories = taxonomy()
    >>> categories.objects["toaster"], categories.attributes["elderly"], categories.relations["hug"]
    ('appliance', 'age', 'contact')
    """
    return load_word_list("taxonomy", path, {"objects", "attributes", "relations"}, _read_taxonomy)


def _read_taxonomy(reader: WordListReader) -> Taxonomy:
    tables: dict[str, dict[str, str]] = {}
    for key in ("objects", "attributes", "relations"):
        category_of: dict[str, str] = {}
        for category, words in reader.lists(key).items():
            for word in words:
                if category_of.setdefault(word, category) != category:
                    reader.note(
                        f"each word of [{key}] in one category",
                        f"{word!r} in '{category_of[word]}' and '{category}'",
                    )
        if not category_of:
            reader.note(f"a table [{key}] with one list of words per category", "none")
        tables[key] = category_of
    return Taxonomy(tables["objects"], tables["attributes"], tables["relations"], reader.label)
