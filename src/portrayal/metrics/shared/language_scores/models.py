"""The models that a measurement relates captions by: those asked for, or ones learnt from people's captions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from portrayal.engine import available_cores
from portrayal.errors import Undefined, need
from portrayal.lexicon.tokens import TOKEN, tokenize
from portrayal.models.cache import default_folder
from portrayal.models.language_models import (
    Causal,
    LanguageModel,
    NGrams,
    RememberedModel,
    Scored,
    hypothesis,
    last_word,
)
from portrayal.models.packaged import located
from portrayal.models.sentence_encoders import MeanOfWords, Pretrained, RememberedEncoder, SentenceEncoder
from portrayal.models.word_vectors import WordVectors, known_words, learn_vectors, load_vectors
from portrayal.study import Study

LEARNT = "learnt"
Values = NDArray[np.float64]


class Likelihood:
    """How likely a caption of an image is.

    A model that is learnt from people's captions must not know those of the image it judges: it would find people's own
    words likely because it has read them. So two are learnt, each from half of the images, and the one asked is that
    which has not seen the image.
    """

    def __init__(self, models: Sequence[LanguageModel]):
        self._models = models
        self.name = models[0].name
        if (
            len(models) > 1
        ):  # learnt from the study: a digest would keep two studies' rows from being compared
            self.about = {"order": models[0].about["order"]}
        else:
            self.about = {**models[0].about, "digest": models[0].digest[:8]}

    def scored(self, images: Sequence[str], texts: Sequence[str]) -> list[Scored]:
        if len(self._models) == 1:
            with _all_cores():
                return self._models[0].scored(texts)
        half = np.fromiter((half_of(image) for image in images), dtype=np.int64, count=len(images))
        made: list[Scored | None] = [None] * len(texts)
        for number, model in enumerate(self._models):
            places = np.flatnonzero(half != number).tolist()
            for place, said in zip(places, model.scored([texts[place] for place in places]), strict=True):
                made[place] = said
        return [said for said in made if said is not None]

    def hypotheses(self, images: Sequence[str], texts: Sequence[str], how: str) -> Values:
        return np.array([hypothesis(said, how) for said in self.scored(images, texts)], dtype=np.float64)

    def last_words(self, images: Sequence[str], texts: Sequence[str]) -> Values:
        said = self.scored(images, texts)
        found = [last_word(text, one) for text, one in zip(texts, said, strict=True)]
        return np.array([np.nan if one is None else one for one in found], dtype=np.float64)


@contextmanager
def _all_cores() -> Iterator[None]:
    """Metrics compute on one thread, so that sums are added in one order; a pretrained model needs all there are."""
    torch = need("torch", "neural", "A pretrained model")
    before = torch.get_num_threads()
    torch.set_num_threads(available_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def half_of(image: str) -> int:
    """0 or 1: by the image's name, so that it is the same in every study."""
    return hashlib.blake2b(image.encode(), digest_size=1).digest()[0] & 1


@lru_cache(maxsize=4)
def likelihood(study: Study, name: str, device: str) -> Likelihood:
    """A language model by name or path, or `learnt`."""
    if name != LEARNT:
        return Likelihood([RememberedModel(Causal.load(located(name), device), default_folder())])
    return Likelihood([NGrams.learnt(half, cut, name=LEARNT) for half in _halves(study)])


def check_models(study: Study, *, language_model: str | None = None, encoder: str | None = None) -> None:
    """Complain where the study has too few references for a default model; nothing is loaded or trained."""
    if language_model == LEARNT:
        _halves(study)
    if encoder == LEARNT:
        _need_people(study, "--encoder")


def _halves(study: Study) -> tuple[list[str], list[str]]:
    """The references of each half of the images."""
    _need_people(study, "--language-model")
    halves: tuple[list[str], list[str]] = ([], [])
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        halves[half_of(image)].append(caption)
    if not all(halves):
        raise Undefined(
            "Too few images have captions of people to learn how likely a caption is from other images than its own; "
            "name a model with --language-model."
        )
    return halves


def cut(text: str) -> list[tuple[str, int]]:
    """Tokens in lower case, each with the place at which it ends."""
    return [(found.group().lower(), found.end()) for found in TOKEN.finditer(text)]


@lru_cache(maxsize=4)
def sentence_encoder(study: Study, name: str, device: str) -> SentenceEncoder:
    """A sentence encoder by name or path, or `learnt`: the weighted mean of vectors of words."""
    if name != LEARNT:
        return RememberedEncoder(Pretrained(name, device), default_folder())
    _need_people(study, "--encoder")
    shares = Counter(word for caption in _people_said(study) for word in caption)
    total = shares.total()
    return MeanOfWords(
        learnt_vectors(study), {word: times / total for word, times in shares.items()}, tokenize
    )


def word_vectors(study: Study, name: str, only: Collection[str]) -> WordVectors:
    """Vectors of words by path or name of a package, or `learnt`."""
    if name != LEARNT:
        return load_vectors(name, only)
    _need_people(study, "--vectors")
    return learnt_vectors(study)


@lru_cache(maxsize=4)
def learnt_vectors(study: Study) -> WordVectors:
    return learn_vectors(_people_said(study))


def learnable_words(study: Study) -> set[str]:
    """The words that vectors trained on the study's references will know."""
    _need_people(study, "--vectors")
    return set(known_words(_people_said(study)))


@lru_cache(maxsize=4)
def _people_said(study: Study) -> list[list[str]]:
    # In one order, whatever that of the table: sums of floating-point numbers depend on it.
    return [tokenize(caption) for caption in study.references["caption"].sort()]


def _need_people(study: Study, option: str) -> None:
    if not study.references.height:
        raise Undefined(
            f"By default this is learnt from people's captions (references), and the study has none; name a model "
            f"with {option}."
        )


def told_encoder(encoder: SentenceEncoder) -> dict[str, str]:
    """How settings tell of an encoder; a pretrained one by what it is, since a folder's name does not say."""
    return {"encoder": encoder.name} | (
        {} if isinstance(encoder, MeanOfWords) else {"encoder_digest": encoder.digest[:8]}
    )


def knows(encoder: SentenceEncoder, label: str) -> bool:
    """Whether an encoder knows every word of a label: the mean of half a name would be that of another thing.

    A pretrained one cuts words that it does not know into pieces that it does.
    """
    if not isinstance(encoder, MeanOfWords):
        return True
    return all(word in encoder.vectors.place for word in tokenize(label))


def similarities(encoder: SentenceEncoder, one: Sequence[str], other: Sequence[str]) -> Values:
    """The cosine of each pair of texts; nan where nothing is known of either. Each distinct text is read once."""
    place = {text: number for number, text in enumerate(dict.fromkeys([*one, *other]))}
    with nullcontext() if isinstance(encoder, MeanOfWords) else _all_cores():
        vectors = encoder.encode(list(place))
    left = vectors[[place[text] for text in one]] if one else np.zeros((0, 1))
    right = vectors[[place[text] for text in other]] if other else np.zeros((0, 1))
    return np.asarray(np.einsum("ij,ij->i", left, right), dtype=np.float64)
