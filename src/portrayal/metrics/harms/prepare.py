"""The options of a call turned into what its measurements need."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from portrayal.lexicon import Lexicon, tokenize
from portrayal.lexicon.entities import entity_names
from portrayal.lexicon.harms import (
    adjectives_as_nouns,
    demeaning_words,
    framing_words,
    in_context,
    not_imageable,
    taxonomy,
)
from portrayal.lexicon.identity import identity_words
from portrayal.metrics.harms.appearance import read_appearance
from portrayal.metrics.harms.counts import ALL, PAIRED
from portrayal.metrics.harms.measurement import Measure
from portrayal.metrics.harms.parsed_captions import Lists
from portrayal.metrics.harms.reification import NAMED
from portrayal.metrics.harms.setup import Reference, Setup, Stage, Truth
from portrayal.metrics.harms.survey import Survey
from portrayal.metrics.shared.language_scores.models import LEARNT, word_vectors
from portrayal.metrics.shared.mentions import choose_lexicon, object_finder
from portrayal.models.entity_pipeline import Entity, entity_pipeline
from portrayal.models.word_vectors import WordVectors
from portrayal.study import Study

WORDS = "words"  # entities by a gazetteer and rules, not by a model


@dataclass(frozen=True)
class Asked:
    """The options of one call at one stage."""

    attribute: str
    truth: Truth | None
    reference: Reference
    entities: str
    identity: Sequence[str]
    demeaning: str | None
    in_context: str | None
    appearance: str | None
    by: str
    threshold: float
    vectors: str
    synonyms: str | None
    lexicon: str | Lexicon | None
    seed: int
    n_resamples: int
    top: int
    evidence: int
    show_words: bool
    stage: Stage = "4"

    def at(self, stage: Stage) -> Asked:
        return replace(self, stage=stage)


def prepare(asked: Asked, survey: Survey, chosen: Sequence[type[Measure]]) -> tuple[Setup, dict[str, Any]]:
    """What measurements need, as far as it does not depend on captions, and the settings that say what it was."""
    labels = tuple(sorted(survey.labels))
    own = asked.identity or asked.demeaning or asked.synonyms
    lists = _lists(asked, labels) if own else _shipped_lists(labels)
    pairs = in_context(asked.in_context)
    named = choose_lexicon(asked.lexicon, asked.attribute) if asked.by == NAMED else None
    setup = Setup(
        stage=asked.stage, truth=asked.truth, reference=asked.reference, attribute=asked.attribute,
        groups=tuple(sorted(survey.groups.get(asked.attribute, ()))), described=survey.described,
        labelled=survey.labelled, lists=lists,
        labels=labels, pairs=pairs, framing=framing_words(), not_imageable=not_imageable(),
        taxonomy=taxonomy(), vectors=None,
        common=survey.common() if any(kind.needs_senses for kind in chosen) else frozenset(),
        appearance=None if asked.appearance is None else read_appearance(Path(asked.appearance)), by=asked.by,
        lexicon=named, threshold=asked.threshold, seed=asked.seed, n_resamples=asked.n_resamples, top=asked.top,
        evidence=asked.evidence or ALL, show_words=asked.show_words, paired=survey.images <= PAIRED,
    )  # fmt: skip
    by_model = asked.entities != WORDS
    settings = {
        "stage": asked.stage, "reference": asked.reference, "truth": asked.truth,
        "entities": entity_pipeline(asked.entities).label if by_model else WORDS,
        "identity": _short(lists.identity.label, asked.identity), "demeaning": lists.demeaning.label,
        "in_context": pairs.label,
        "objects": survey.source, "synonyms": lists.synonyms, "threshold": asked.threshold, "vectors": asked.vectors,
        "by": asked.by, "lexicon": None if named is None else named.label,
        "appearance": None if asked.appearance is None else Path(asked.appearance).name,
    }  # fmt: skip
    return setup, settings


def _lists(asked: Asked, labels: tuple[str, ...]) -> Lists:
    finder, synonyms = object_finder(labels, asked.synonyms) if labels else (None, None)
    return Lists(
        identity_words(asked.identity), entity_names(), demeaning_words(asked.demeaning), adjectives_as_nouns(), finder,
        synonyms,
    )  # fmt: skip


@lru_cache(
    maxsize=2
)  # with the captions that were read: attributes and speakers of one study ask for the same ones
def _shipped_lists(labels: tuple[str, ...]) -> Lists:
    finder, synonyms = object_finder(labels, None) if labels else (None, None)
    return Lists(identity_words(), entity_names(), demeaning_words(), adjectives_as_nouns(), finder, synonyms)


def with_study(setup: Setup, asked: Asked, study: Study, chosen: Sequence[type[Measure]]) -> Setup:
    """What depends on captions: entities that a model finds in them, and vectors of their words."""
    if asked.entities != WORDS:
        setup = replace(setup, lists=setup.lists.seeing(_entities(study, asked.entities)))
    if any(kind.needs_vectors for kind in chosen) and len(setup.groups) > 1:
        return replace(setup, vectors=_vectors(study, asked.vectors))
    return setup


def _entities(study: Study, name: str) -> Mapping[str, tuple[Entity, ...]]:
    frames = (study.captions, study.references)
    captions = list(dict.fromkeys(caption for frame in frames for caption in frame["caption"]))
    return dict(zip(captions, entity_pipeline(name).find(captions), strict=True))


def _vectors(study: Study, name: str) -> WordVectors | None:
    """None where they should be learnt from people's captions, and there are none: the taxonomy's own words remain."""
    if name == LEARNT and not study.references.height:
        return None
    return word_vectors(study, name, () if name == LEARNT else _words(study))


def _words(study: Study) -> Collection[str]:
    frames = (study.captions, study.references)
    said = {word for frame in frames for caption in frame["caption"] for word in tokenize(caption)}
    known = taxonomy()
    listed = (*known.objects, *known.attributes, *known.relations)
    return said | {word for name in listed for word in name.split()}


def _short(label: str, own: Sequence[str]) -> str:
    """The lists of all axes in one word, by what they hold; a user's own are named."""
    named = [Path(name).name for name in own]
    return "@".join(["+".join(["shipped", *named]), hashlib.sha256(label.encode()).hexdigest()[:8]])
