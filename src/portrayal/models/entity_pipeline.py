"""Named entity recognition in captions with spaCy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from portrayal.errors import PortrayalError, need
from portrayal.models.packaged import packaged_path

# Entity types that are proper names. spaCy also finds dates, numbers, amounts and languages.
_ENTITY_LABELS = frozenset(
    ("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW")
)
# slow components that entity recognition does not need
_EXCLUDED_PIPES = ("parser", "lemmatizer", "tagger", "attribute_ruler", "senter")
_BATCH_SIZE = 256


class Entity(NamedTuple):
    text: str
    # spaCy's label in lower case: person, gpe, org; norp: nationalities, religious and political groups
    kind: str


class EntityPipeline:
    """A spaCy pipeline by name, from a folder, or installed as a Python package."""

    def __init__(self, name: str):
        spacy = need("spacy", "nlp", "Finding entities with spaCy")
        self.name = name
        try:
            self._pipeline: Any = spacy.load(packaged_path(name), exclude=list(_EXCLUDED_PIPES))
        except OSError:
            raise PortrayalError(
                f"There is no spaCy pipeline '{name}': name one that is installed, such as en_core_web_sm "
                f"(python -m spacy download en_core_web_sm), or the folder of one."
            ) from None

    @property
    def label(self) -> str:
        """The name in settings."""
        meta = self._pipeline.meta
        return f"{meta.get('lang', '')}_{meta.get('name', self.name)}@{meta.get('version', '')}"

    def find_entities(self, captions: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the named entities of each caption, in their order."""
        return [
            tuple(
                Entity(entity.text, entity.label_.lower())
                for entity in doc.ents
                if entity.label_ in _ENTITY_LABELS
            )
            for doc in self._pipeline.pipe(captions, batch_size=_BATCH_SIZE)
        ]


@cache
def load_entity_pipeline(name: str) -> EntityPipeline:
    """Return the pipeline, loaded once."""
    return EntityPipeline(name)
