"""Named entities in captions, found by a pipeline of spaCy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from portrayal.errors import PortrayalError, need
from portrayal.models.packaged import located

# What is the name of something particular. Dates, numbers, amounts and languages are entities to spaCy, not names.
_NAMES = frozenset(("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW"))
_NOT_NEEDED = ("parser", "lemmatizer", "tagger", "attribute_ruler", "senter")  # by the entities, and slow
_TOGETHER = 256


class Entity(NamedTuple):
    text: str
    kind: str  # as spaCy calls it, lower case: person, gpe, org; norp: nationalities, religious and political groups


class EntityPipeline:
    """A pipeline of spaCy: by name where it is installed, by folder, or one that comes as a package."""

    def __init__(self, name: str):
        spacy = need("spacy", "nlp", "Finding entities with spaCy")
        self.name = name
        try:
            self._pipeline: Any = spacy.load(located(name), exclude=list(_NOT_NEEDED))
        except OSError:
            raise PortrayalError(
                f"There is no pipeline of spaCy called '{name}': name one that is installed, such as en_core_web_sm "
                f"(python -m spacy download en_core_web_sm), or the folder of one."
            ) from None

    @property
    def label(self) -> str:
        """How settings name it."""
        about = self._pipeline.meta
        return f"{about.get('lang', '')}_{about.get('name', self.name)}@{about.get('version', '')}"

    def find(self, captions: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The names in each caption, in the order in which they stand there."""
        return [
            tuple(Entity(found.text, found.label_.lower()) for found in read.ents if found.label_ in _NAMES)
            for read in self._pipeline.pipe(captions, batch_size=_TOGETHER)
        ]


@cache
def entity_pipeline(name: str) -> EntityPipeline:
    """Loaded once."""
    return EntityPipeline(name)
