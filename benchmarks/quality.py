"""Scores of captions: CIDEr, BLEU and ROUGE-L of all of COCO val2014, beside the implementation that the field uses.

Seconds of one processor, in one run, on the same words, given as each takes them (lists, or text with blanks); the
largest difference between the two is printed with the ratio.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.precision import data
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
    began = time.process_time()
    said = [plain_words(caption) for caption in captions]
    written = [[plain_words(one) for one in some] for some in references]
    print(f"{len(said):,} images, {sum(map(len, written)):,} references; words of all captions found in "
          f"{time.process_time() - began:.2f} s")  # fmt: skip
    joined = {place: [" ".join(words)] for place, words in enumerate(said)}
    others = {place: [" ".join(words) for words in some] for place, some in enumerate(written)}

    def by_coco_caption_bleu() -> Any:
        scorer = BleuScorer(n=4)
        for place in joined:
            scorer += (joined[place][0], others[place])
        return scorer.compute_score(option="closest")

    with threadpool_limits(1):
        _beside(
            "CIDEr",
            lambda: cider_scores(_round(said, written))[0],
            lambda: Cider().compute_score(others, joined)[1],
        )
        _beside(
            "BLEU-4",
            lambda: bleu(bleu_counts(_round(said, written)))[:, 3],
            lambda: np.array(by_coco_caption_bleu()[1][3]),
        )
        _beside(
            "ROUGE-L",
            lambda: rouge_l(_round(said, written)),
            lambda: Rouge().compute_score(others, joined)[1],
        )


def _round(said: list[list[str]], written: list[list[list[str]]]) -> ReferenceComparison:
    image = np.repeat(np.arange(len(said)), [len(some) for some in written])
    sentences = Sentences([*said, *(words for some in written for words in some)])
    return ReferenceComparison(sentences, np.arange(len(said)), len(said) + np.arange(len(image)), image)


def _beside(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    began = time.process_time()
    mine = ours()
    between = time.process_time()
    other = theirs()
    ended = time.process_time()
    ratio = (ended - between) / (between - began)
    print(
        f"{name}: ours {between - began:.2f} s, pycocoevalcap {ended - between:.2f} s, {ratio:.1f} times as fast; "
        f"largest difference of an image {np.abs(mine - other).max():.1e}"
    )


def _read() -> tuple[list[str], list[list[str]]]:
    rows = json.loads((data() / "captioners" / "val2014" / "liu17.json").read_text(encoding="utf-8"))
    lines = (data() / "coco" / "human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()
    people = {row["img_id"]: row["captions"] for row in map(json.loads, lines)}
    said = {row["image_id"]: row["caption"] for row in rows if row["image_id"] in people}
    return [said[image] for image in sorted(said)], [people[image] for image in sorted(said)]
