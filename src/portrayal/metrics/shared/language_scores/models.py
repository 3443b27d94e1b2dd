"""Language models and encoders of the scores: pretrained ones by name, or ones trained on the human captions."""

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
from portrayal.models.cache import default_cache_folder
from portrayal.models.language_models import (
    CachedLanguageModel,
    CausalLM,
    LanguageModel,
    NGramModel,
    TokenScores,
    last_word_probability,
    text_probability,
)
from portrayal.models.packaged import packaged_path
from portrayal.models.sentence_encoders import (
    CachedSentenceEncoder,
    MeanWordVectorEncoder,
    SentenceEncoder,
    SentenceTransformerEncoder,
)
from portrayal.models.word_vectors import WordVectors, fit_vectors, frequent_words, load_vectors
from portrayal.study import Study

# The name of the default models, which are trained on the references of the study.
FROM_REFERENCES = "fitted"
Values = NDArray[np.float64]


class Likelihood:
    """Probability of a caption of an image.

    A model trained on human captions must not have been trained on those of the image that it scores, which would
    raise their probability. So two models are trained, each on half of the images, and an image is scored by the model
    of the other half.
    """

    def __init__(self, models: Sequence[LanguageModel]):
        self._models = models
        self.name = models[0].name
        # Models trained on the study have no digest, which would keep rows of two studies from being compared.
        if len(models) > 1:
            self.metadata = {"order": models[0].metadata["order"]}
        else:
            self.metadata = {**models[0].metadata, "digest": models[0].digest[:8]}

    def score(self, images: Sequence[str], texts: Sequence[str]) -> list[TokenScores]:
        if len(self._models) == 1:
            with _all_cores():
                return self._models[0].score(texts)
        half = np.fromiter((image_half(image) for image in images), dtype=np.int64, count=len(images))
        results: list[TokenScores | None] = [None] * len(texts)
        for number, model in enumerate(self._models):
            indices = np.flatnonzero(half != number).tolist()
            for index, score in zip(indices, model.score([texts[index] for index in indices]), strict=True):
                results[index] = score
        return [score for score in results if score is not None]

    def hypotheses(self, images: Sequence[str], texts: Sequence[str], summary: str) -> Values:
        return np.array(
            [text_probability(model_scores, summary) for model_scores in self.score(images, texts)],
            dtype=np.float64,
        )

    def last_words(self, images: Sequence[str], texts: Sequence[str]) -> Values:
        model_scores = self.score(images, texts)
        probabilities = [
            last_word_probability(text, probability)
            for text, probability in zip(texts, model_scores, strict=True)
        ]
        return np.array(
            [np.nan if probability is None else probability for probability in probabilities],
            dtype=np.float64,
        )


@contextmanager
def _all_cores() -> Iterator[None]:
    """Let torch use all cores: metrics run on one thread for reproducible sums, but a pretrained model is slow."""
    torch = need("torch", "neural", "A pretrained model")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(available_cores())
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def image_half(image: str) -> int:
    """The half (0 or 1) of an image, by a hash of its name: the same in every study."""
    return hashlib.blake2b(image.encode(), digest_size=1).digest()[0] & 1


@lru_cache(maxsize=4)
def likelihood(study: Study, name: str, device: str) -> Likelihood:
    """The language model of this name or path; `fitted`: n-gram models trained on the references."""
    if name != FROM_REFERENCES:
        return Likelihood(
            [CachedLanguageModel(CausalLM.load(packaged_path(name), device), default_cache_folder())]
        )
    return Likelihood(
        [NGramModel.fit(half, tokens_with_ends, name=FROM_REFERENCES) for half in _split_references(study)]
    )


def check_models(study: Study, *, language_model: str | None = None, encoder: str | None = None) -> None:
    """Raise Undefined where the study has too few references for a default model; nothing is loaded or trained."""
    if language_model == FROM_REFERENCES:
        _split_references(study)
    if encoder == FROM_REFERENCES:
        _require_references(study, "--encoder")


def _split_references(study: Study) -> tuple[list[str], list[str]]:
    """The references of each half of the images."""
    _require_references(study, "--language-model")
    halves: tuple[list[str], list[str]] = ([], [])
    for image, caption in study.references.select("image_id", "caption").iter_rows():
        halves[image_half(image)].append(caption)
    if not all(halves):
        raise Undefined(
            "Too few images have human captions to train a language model on other images than the one it scores; "
            "name a model with --language-model."
        )
    return halves


def tokens_with_ends(text: str) -> list[tuple[str, int]]:
    """Tokens in lower case, each with its end position."""
    return [(match.group().lower(), match.end()) for match in TOKEN.finditer(text)]


@lru_cache(maxsize=4)
def sentence_encoder(study: Study, name: str, device: str) -> SentenceEncoder:
    """The sentence encoder of this name or path; `fitted`: the weighted mean of word vectors of the references."""
    if name != FROM_REFERENCES:
        return CachedSentenceEncoder(SentenceTransformerEncoder(name, device), default_cache_folder())
    _require_references(study, "--encoder")
    counts = Counter(word for caption in _tokenized_references(study) for word in caption)
    total = counts.total()
    return MeanWordVectorEncoder(
        reference_vectors(study), {word: times / total for word, times in counts.items()}, tokenize
    )


def word_vectors(study: Study, name: str, only: Collection[str]) -> WordVectors:
    """Word vectors of this path or package; `fitted`: trained on the references."""
    if name != FROM_REFERENCES:
        return load_vectors(name, only)
    _require_references(study, "--vectors")
    return reference_vectors(study)


@lru_cache(maxsize=4)
def reference_vectors(study: Study) -> WordVectors:
    return fit_vectors(_tokenized_references(study))


def reference_vocabulary(study: Study) -> set[str]:
    """The words that vectors trained on the study's references will know."""
    _require_references(study, "--vectors")
    return set(frequent_words(_tokenized_references(study)))


@lru_cache(maxsize=4)
def _tokenized_references(study: Study) -> list[list[str]]:
    # Sorted, since sums of floating-point numbers depend on the order.
    return [tokenize(caption) for caption in study.references["caption"].sort()]


def _require_references(study: Study, option: str) -> None:
    if not study.references.height:
        raise Undefined(
            f"By default this is trained on the human captions (references), and the study has none; name a model "
            f"with {option}."
        )


def encoder_settings(encoder: SentenceEncoder) -> dict[str, str]:
    """Settings that identify an encoder; a pretrained one has a digest, since names of folders are ambiguous."""
    return {"encoder": encoder.name} | (
        {} if isinstance(encoder, MeanWordVectorEncoder) else {"encoder_digest": encoder.digest[:8]}
    )


def in_vocabulary(encoder: SentenceEncoder, label: str) -> bool:
    """Whether an encoder knows every word of a label: half of the words may mean another thing.

    A pretrained encoder splits unknown words into known subwords.
    """
    if not isinstance(encoder, MeanWordVectorEncoder):
        return True
    return all(word in encoder.vectors.index for word in tokenize(label))


def similarities(encoder: SentenceEncoder, first: Sequence[str], second: Sequence[str]) -> Values:
    """Cosine of each pair of texts; nan where no word of one is known. Each distinct text is encoded once."""
    row_of = {text: number for number, text in enumerate(dict.fromkeys([*first, *second]))}
    with nullcontext() if isinstance(encoder, MeanWordVectorEncoder) else _all_cores():
        vectors = encoder.encode(list(row_of))
    left = vectors[[row_of[text] for text in first]] if first else np.zeros((0, 1))
    right = vectors[[row_of[text] for text in second]] if second else np.zeros((0, 1))
    return np.asarray(np.einsum("ij,ij->i", left, right), dtype=np.float64)
