"""Speed of CIDEr, BLEU and ROUGE-L on all of COCO val2014, compared with pycocoevalcap.

Processor seconds of one run on the same words, in the input format of each (lists, or text with blanks). The largest
difference between the two is printed with the ratio.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.precision import data_folder
from portrayal.metrics.quality.bleu import bleu, bleu_counts
from portrayal.metrics.quality.cider import cider_scores
from portrayal.metrics.quality.ngrams import ReferenceComparison, Sentences
from portrayal.metrics.quality.plain_words import plain_words
from portrayal.metrics.quality.rouge import rouge_l


def main() -> None:
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    captions, references = _read()
    started = time.process_time()
    candidates = [plain_words(caption) for caption in captions]
    references_of = [[plain_words(text) for text in texts] for texts in references]
    print(f"{len(candidates):,} images, {sum(map(len, references_of)):,} references; words of all captions found in "
          f"{time.process_time() - started:.2f} s")  # fmt: skip
    candidate_texts = {index: [" ".join(words)] for index, words in enumerate(candidates)}
    reference_texts = {
        index: [" ".join(words) for words in texts] for index, texts in enumerate(references_of)
    }

    def by_coco_caption_bleu() -> Any:
        scorer = BleuScorer(n=4)
        for index in candidate_texts:
            scorer += (candidate_texts[index][0], reference_texts[index])
        return scorer.compute_score(option="closest")

    with threadpool_limits(1):
        _compare(
            "CIDEr",
            lambda: cider_scores(_comparison(candidates, references_of))[0],
            lambda: Cider().compute_score(reference_texts, candidate_texts)[1],
        )
        _compare(
            "BLEU-4",
            lambda: bleu(bleu_counts(_comparison(candidates, references_of)))[:, 3],
            lambda: np.array(by_coco_caption_bleu()[1][3]),
        )
        _compare(
            "ROUGE-L",
            lambda: rouge_l(_comparison(candidates, references_of)),
            lambda: Rouge().compute_score(reference_texts, candidate_texts)[1],
        )


def _comparison(candidates: list[list[str]], references_of: list[list[list[str]]]) -> ReferenceComparison:
    image = np.repeat(np.arange(len(candidates)), [len(texts) for texts in references_of])
    sentences = Sentences([*candidates, *(words for texts in references_of for words in texts)])
    return ReferenceComparison(
        sentences, np.arange(len(candidates)), len(candidates) + np.arange(len(image)), image
    )


def _compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    started = time.process_time()
    our_scores = ours()
    our_end = time.process_time()
    their_scores = theirs()
    ended = time.process_time()
    ratio = (ended - our_end) / (our_end - started)
    print(
        f"{name}: ours {our_end - started:.2f} s, pycocoevalcap {ended - our_end:.2f} s, {ratio:.1f} times as fast; "
        f"largest difference of an image {np.abs(our_scores - their_scores).max():.1e}"
    )


def _read() -> tuple[list[str], list[list[str]]]:
    rows = json.loads((data_folder() / "captioners" / "val2014" / "liu17.json").read_text(encoding="utf-8"))
    lines = (data_folder() / "coco" / "human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()
    human = {row["img_id"]: row["captions"] for row in map(json.loads, lines)}
    candidates = {row["image_id"]: row["caption"] for row in rows if row["image_id"] in human}
    return [candidates[image] for image in sorted(candidates)], [human[image] for image in sorted(candidates)]
