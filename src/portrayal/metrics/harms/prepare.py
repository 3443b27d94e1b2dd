"""Turn the options of a call into the settings that its measurements share."""

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
from portrayal.metrics.harms.counts import KEEP_ALL, MAX_PAIRED_IMAGES
from portrayal.metrics.harms.measurement import HarmMeasurement
from portrayal.metrics.harms.parsed_captions import WordLists
from portrayal.metrics.harms.reification import NAMED
from portrayal.metrics.harms.settings import HarmSettings, Reference, Stage, Truth
from portrayal.metrics.harms.survey import Survey
from portrayal.metrics.shared.caption_mentions import choose_lexicon, object_finder
from portrayal.metrics.shared.language_scores.models import FROM_REFERENCES, word_vectors
from portrayal.models.entity_pipeline import Entity, load_entity_pipeline
from portrayal.models.word_vectors import WordVectors
from portrayal.study import Study

WORD_LISTS = "words"  # find entities by a gazetteer and rules, not by a model


@dataclass(frozen=True)
class HarmOptions:
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

    def at_stage(self, stage: Stage) -> HarmOptions:
        return replace(self, stage=stage)


def prepare(
    options: HarmOptions, survey: Survey, selected: Sequence[type[HarmMeasurement]]
) -> tuple[HarmSettings, dict[str, Any]]:
    """The settings of the measurements, without what depends on captions; and the settings that rows record."""
    labels = tuple(sorted(survey.labels))
    custom = options.identity or options.demeaning or options.synonyms
    word_lists = _load_word_lists(options, labels) if custom else _shipped_word_lists(labels)
    pairs = in_context(options.in_context)
    lexicon = choose_lexicon(options.lexicon, options.attribute) if options.by == NAMED else None
    settings = HarmSettings(
        stage=options.stage, truth=options.truth, reference=options.reference, attribute=options.attribute,
        groups=tuple(sorted(survey.groups.get(options.attribute, ()))),
        images_with_references=survey.images_with_references, images_with_labels=survey.images_with_labels,
        word_lists=word_lists,
        labels=labels, pairs=pairs, framing_words=framing_words(), not_imageable=not_imageable(),
        taxonomy=taxonomy(), vectors=None,
        common_senses=survey.common_senses() if any(kind.needs_senses for kind in selected) else frozenset(),
        appearance=None if options.appearance is None else read_appearance(Path(options.appearance)), by=options.by,
        lexicon=lexicon, threshold=options.threshold, seed=options.seed, n_resamples=options.n_resamples,
        top=options.top, evidence=options.evidence or KEEP_ALL, show_words=options.show_words,
        paired=survey.images <= MAX_PAIRED_IMAGES,
    )  # fmt: skip
    by_model = options.entities != WORD_LISTS
    row_settings = {
        "stage": options.stage, "reference": options.reference, "truth": options.truth,
        "entities": load_entity_pipeline(options.entities).label if by_model else WORD_LISTS,
        "identity": _identity_label(word_lists.identity.label, options.identity),
        "demeaning": word_lists.demeaning.label, "in_context": pairs.label, "objects": survey.label_source,
        "synonyms": word_lists.synonyms, "threshold": options.threshold, "vectors": options.vectors,
        "by": options.by, "lexicon": None if lexicon is None else lexicon.label,
        "appearance": None if options.appearance is None else Path(options.appearance).name,
    }  # fmt: skip
    return settings, row_settings


def _load_word_lists(options: HarmOptions, labels: tuple[str, ...]) -> WordLists:
    finder, synonyms = object_finder(labels, options.synonyms) if labels else (None, None)
    return WordLists(
        identity_words(options.identity), entity_names(), demeaning_words(options.demeaning), adjectives_as_nouns(),
        finder, synonyms,
    )  # fmt: skip


# Cached with the captions they parsed: the attributes and sources of one study share them.
@lru_cache(maxsize=2)
def _shipped_word_lists(labels: tuple[str, ...]) -> WordLists:
    finder, synonyms = object_finder(labels, None) if labels else (None, None)
    return WordLists(
        identity_words(), entity_names(), demeaning_words(), adjectives_as_nouns(), finder, synonyms
    )


def with_study_data(
    settings: HarmSettings, options: HarmOptions, study: Study, selected: Sequence[type[HarmMeasurement]]
) -> HarmSettings:
    """The settings with what depends on captions: entities that a model detects, and word vectors."""
    if options.entities != WORD_LISTS:
        detected_entities = _detect_entities(study, options.entities)
        settings = replace(settings, word_lists=settings.word_lists.with_entities(detected_entities))
    if any(kind.needs_vectors for kind in selected) and len(settings.groups) > 1:
        return replace(settings, vectors=_load_vectors(study, options.vectors))
    return settings


def _detect_entities(study: Study, name: str) -> Mapping[str, tuple[Entity, ...]]:
    frames = (study.captions, study.references)
    captions = list(dict.fromkeys(caption for frame in frames for caption in frame["caption"]))
    return dict(zip(captions, load_entity_pipeline(name).find_entities(captions), strict=True))


def _load_vectors(study: Study, name: str) -> WordVectors | None:
    """The word vectors; None if they are to be trained on human captions and there are none.

    Without vectors only the words of the taxonomy have a category.
    """
    if name == FROM_REFERENCES and not study.references.height:
        return None
    return word_vectors(study, name, () if name == FROM_REFERENCES else _vocabulary(study))


def _vocabulary(study: Study) -> Collection[str]:
    frames = (study.captions, study.references)
    words = {word for frame in frames for caption in frame["caption"] for word in tokenize(caption)}
    categories = taxonomy()
    names = (*categories.objects, *categories.attributes, *categories.relations)
    return words | {word for name in names for word in name.split()}


def _identity_label(label: str, files: Sequence[str]) -> str:
    """One name for the word lists of all axes: `shipped`, the names of the user's files, and a digest of the words."""
    names = [Path(file).name for file in files]
    return "@".join(["+".join(["shipped", *names]), hashlib.sha256(label.encode()).hexdigest()[:8]])
