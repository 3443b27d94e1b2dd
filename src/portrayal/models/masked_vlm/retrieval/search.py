"""Image-text retrieval with a model: the captions of each image, and the image of each caption."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.network import DualEncoder
from portrayal.models.masked_vlm.retrieval import RetrievalModel
from portrayal.models.masked_vlm.retrieval.recall import (
    Array,
    IntArray,
    Mask,
    RankPositions,
    rank_positions,
    rerank_order,
    top_k,
)

Floats = NDArray[np.float32]
ReportProgress = Callable[[str, int, int], None]  # step, number of images done, total number of images
_ENCODE_BATCH_SIZE = 256  # images
_MATCH_BATCH_SIZE = 32  # images; fewer, since the embeddings of one image may take megabytes
_MAX_BLOCK_SCORES = 4_000_000  # number of scores that are ranked in one block
_MARKUP = re.compile(r"[\[\]<>]")


@dataclass(frozen=True)
class RetrievalPool:
    """The images and captions that are searched."""

    n_images: int
    load_images: Callable[[slice], Sequence[Any]]  # returns a slice of the images
    captions: Sequence[str]
    image_of_caption: IntArray  # index of each caption's image


@dataclass(frozen=True)
class RetrievalResult:
    """The rank positions and the first results of both search directions."""

    scored_by: str  # scores of the ranking: "similarity", "matching" or both
    rerank: int | None
    n_truncated: int  # number of captions that are longer than the maximum length
    caption_positions: RankPositions  # of captions, for each image
    top_caption: IntArray
    image_positions: RankPositions  # of images, for each caption
    top_image: IntArray


@dataclass(frozen=True)
class _PairScores:
    """Scores (images, texts) of images and distinct texts.

    Identical captions are one text, so that their scores are exactly equal. The last digits of a network's
    output depend on the other texts of the batch.
    """

    similarity: Floats | None
    match: Floats | None  # nan where it was not computed
    caption_candidates: Mask | None  # texts that are reranked for a query image; None: all or none
    image_candidates: Mask | None

    def caption_search(self, images: slice, text_index: IntArray) -> Array:
        """Return scores (images, captions)."""
        return self._ordered(images, self.caption_candidates, lambda scores: scores)[:, text_index]

    def image_search(self, text_indices: IntArray) -> Array:
        """Return scores (texts, images)."""
        return self._ordered((slice(None), text_indices), self.image_candidates, lambda scores: scores.T)

    def _ordered(self, index: Any, candidates: Mask | None, transpose: Callable[[Any], Any]) -> Array:
        if self.similarity is None or candidates is None:
            scores = self.match if self.similarity is None else self.similarity
            assert scores is not None
            return np.asarray(transpose(scores[index]), dtype=np.float64)
        assert self.match is not None
        return rerank_order(
            transpose(self.similarity[index]), transpose(self.match[index]), transpose(candidates[index])
        )


def search(
    model: RetrievalModel,
    pool: RetrievalPool,
    rerank: int,
    n_jobs: int = 1,
    report_progress: ReportProgress | None = None,
) -> RetrievalResult:
    """Return the ranks of captions for each image, and of images for each caption.

    A dual encoder ranks all pairs by similarity, and its matching head reranks the first `rerank` of each query.
    A model without separate encoders ranks all pairs by its matching head.

    Parameters
    ----------
    model
        The model.
    pool
        Images and captions.
    rerank
        Number of first results that are reranked; 0: none.
    n_jobs
        Number of threads on a CPU.
    report_progress
        Called with the step, the number of images done and the total number of images.

    Returns
    -------
    RetrievalResult
    """
    network = model.network
    if not network.image_size:
        raise PortrayalError(f"The model '{model.name}' takes no images: it cannot search them.")
    is_dual_encoder = isinstance(network, DualEncoder)
    if not is_dual_encoder and not network.has_match_head:
        raise PortrayalError(
            f"The model '{model.name}' has no head that compares images with texts, so it cannot search."
        )
    effective_rerank = rerank if network.has_match_head else 0
    truncated = [truncate_caption(caption, model.tokenizer) for caption in pool.captions]
    index_by_text = {text: index for index, text in enumerate(sorted({text for text, _ in truncated}))}
    text_index = np.array([index_by_text[text] for text, _ in truncated], dtype=np.int64)
    with _single_thread():
        scores = _pair_scores(
            model,
            pool,
            list(index_by_text),
            text_index,
            is_dual_encoder,
            effective_rerank,
            n_jobs,
            report_progress,
        )
    scored_by = (
        ("similarity, then matching" if effective_rerank else "similarity") if is_dual_encoder else "matching"
    )
    return RetrievalResult(
        scored_by,
        effective_rerank if is_dual_encoder else None,
        sum(is_truncated for _, is_truncated in truncated),
        *_rank_in_blocks(pool.n_images, len(pool.captions), lambda rows: (
            scores.caption_search(slice(rows[0], rows[-1] + 1), text_index), rows, pool.image_of_caption)),
        *_rank_in_blocks(len(pool.captions), pool.n_images, lambda rows: (
            scores.image_search(text_index[rows]), pool.image_of_caption[rows], np.arange(pool.n_images))),
    )  # fmt: skip


def truncate_caption(caption: str, tokenizer: Any) -> tuple[str, bool]:
    """Return a caption truncated to the maximum length, and whether it was truncated.

    Brackets are removed, since a tokenizer would interpret [SEP] or <mask> in an untrusted caption as a special
    token.
    """
    words = _MARKUP.sub(" ", caption).split()
    kept_words = words[: tokenizer.max_length - 1]  # a text has a start token, and most have an end token
    while kept_words and len(tokenizer.encode(" ".join(kept_words))) > tokenizer.max_length:
        kept_words.pop()
    return " ".join(kept_words), len(kept_words) < len(words)


def _rank_in_blocks(
    n_rows: int, n_columns: int, score_rows: Callable[[IntArray], tuple[Array, IntArray, IntArray]]
) -> tuple[RankPositions, IntArray]:
    """Return rank positions and the index of the top column of each row, computed in blocks that fit into memory."""
    block_size = max(1, _MAX_BLOCK_SCORES // n_columns)
    block_positions, top_columns = [], []
    for start in range(0, n_rows, block_size):
        scores, row_images, column_images = score_rows(np.arange(start, min(start + block_size, n_rows)))
        block_positions.append(rank_positions(scores, row_images, column_images))
        top_columns.append(scores.argmax(axis=1))
    return RankPositions.concat(block_positions), np.concatenate(top_columns)


def _pair_scores(
    model: RetrievalModel,
    pool: RetrievalPool,
    texts: Sequence[str],
    text_index: IntArray,
    is_dual_encoder: bool,
    rerank: int,
    n_jobs: int,
    report_progress: ReportProgress | None,
) -> _PairScores:
    if not is_dual_encoder:
        all_pairs = np.ones((pool.n_images, len(texts)), dtype=bool)
        return _PairScores(
            None, _match_scores(model, pool, texts, all_pairs, n_jobs, report_progress), None, None
        )
    text_features = _to_numpy(model, partial(model.text_features, texts))
    image_features = [
        _to_numpy(model, partial(model.image_features, embeddings))
        for _, embeddings in _encoded_batches(model, pool, "compares", _ENCODE_BATCH_SIZE, report_progress)
    ]
    similarity = np.concatenate(image_features) @ text_features.T
    if not rerank:
        return _PairScores(similarity, None, None, None)
    caption_candidates = _top_k_in_blocks(similarity, rerank, np.bincount(text_index, minlength=len(texts)))
    image_candidates = _top_k_in_blocks(similarity.T, rerank).T
    return _PairScores(
        similarity,
        _match_scores(model, pool, texts, caption_candidates | image_candidates, n_jobs, report_progress),
        caption_candidates,
        image_candidates,
    )


def _top_k_in_blocks(scores: Floats, k: int, weights: IntArray | None = None) -> Mask:
    """Return `top_k` of all rows, computed in blocks that fit into memory."""
    block_size = max(1, _MAX_BLOCK_SCORES // scores.shape[1])
    blocks = [scores[start : start + block_size] for start in range(0, len(scores), block_size)]
    return np.concatenate([top_k(block.astype(np.float64), k, weights) for block in blocks])


def _match_scores(
    model: RetrievalModel,
    pool: RetrievalPool,
    texts: Sequence[str],
    candidates: Mask,
    n_jobs: int,
    report_progress: ReportProgress | None,
) -> Floats:
    """Return the logit that each text matches each image, for the candidate pairs."""
    scores = np.full(candidates.shape, np.nan, dtype=np.float32)
    # On a CPU each worker runs a batch on one thread. Threads that share a batch are slower, and the last digits would
    # depend on their number.
    n_workers = n_jobs if model.device == "cpu" else 1
    with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as workers:
        for start, embeddings in _encoded_batches(model, pool, "matches", _MATCH_BATCH_SIZE, report_progress):
            rows, columns = np.nonzero(candidates[start : start + len(embeddings)])

            def score_batch(
                offset: int, embeddings: Any = embeddings, rows: IntArray = rows, columns: IntArray = columns
            ) -> Floats:
                batch = slice(offset, offset + model.batch_size)
                batch_texts = [texts[column] for column in columns[batch]]
                image_index = torch.from_numpy(rows[batch])
                return _to_numpy(
                    model, lambda: model.match_logits(embeddings[image_index], batch_texts)[:, 1]
                )

            results = list(workers.map(score_batch, range(0, len(rows), model.batch_size)))
            scores[start + rows, columns] = np.concatenate(results)
    return scores


def _encoded_batches(
    model: RetrievalModel,
    pool: RetrievalPool,
    verb: str,
    batch_size: int,
    report_progress: ReportProgress | None,
) -> Iterator[tuple[int, Any]]:
    """Yield the index of the first image of each batch, and the batch's embeddings."""
    step, n_images = f"{model.name} {verb}", pool.n_images
    for start in range(0, n_images, batch_size):
        if report_progress is not None:
            report_progress(step, start, n_images)
        pixels = model.preprocess(pool.load_images(slice(start, start + batch_size)))
        with torch.inference_mode():
            embeddings = model.encode_images(pixels)
        yield start, embeddings
    if report_progress is not None:
        report_progress(step, n_images, n_images)


def _to_numpy(model: RetrievalModel, compute: Callable[[], Any]) -> Floats:
    with torch.inference_mode():
        values: Floats = compute().float().cpu().numpy()
    if np.isnan(values).any():
        raise PortrayalError(f"The model '{model.name}' gives no number for some images and captions.")
    return values


@contextmanager
def _single_thread() -> Iterator[None]:
    """Run PyTorch on one thread, and restore the number of threads afterwards."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
