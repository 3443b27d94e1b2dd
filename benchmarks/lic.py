"""LIC: the published split, its null, leak-safe folds; and one fit against scikit-learn's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.audit import SYSTEMS, real_study
from portrayal.auditing import score
from portrayal.lab import make_study
from portrayal.metrics import lic
from portrayal.metrics.shared.classifier.captions import Reader
from portrayal.metrics.shared.classifier.linear import Guesser
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.splits import PAPER_SEEDS, paper_split
from portrayal.results import Results
from portrayal.study import Study

_BY_HAND = 5  # fits of scikit-learn's


def timed(what: str, run: Callable[[], Results]) -> None:
    started = time.perf_counter()
    results = run()
    print(f"  {what}: {time.perf_counter() - started:.1f} s, {len(results.measurements):,} measurements")


def one_fit(study: Study) -> None:
    """The published split's fits, all at once and one by one; both in one thread."""
    system = study.systems[0]
    groups = study.groups("gender")
    truth = {image: groups.index(group) for image, group in study.labels("gender").iter_rows()}
    reader = Reader(study, truth, Mask.for_attribute("gender", None, None), in_order=True)
    corpus = reader.of_system(system, PAPER_SEEDS)[0]
    splits = [paper_split(corpus.group.tolist(), seed) for seed in PAPER_SEEDS]
    guesser = Guesser(len(groups), weighted=False)
    with threadpool_limits(1):
        started = time.perf_counter()
        together = guesser.guess(corpus, splits)
        ours = (time.perf_counter() - started) / len(splits)
        design = corpus.design
        apart, theirs = [], 0.0
        for number, split in enumerate(splits[:_BY_HAND]):
            allowed = design.common_enough(np.bincount(design.row[split.train], minlength=len(design.texts)))
            matrix = design.matrix.tocsc()[:, np.flatnonzero(allowed)].tocsr()
            started = time.perf_counter()
            model = LogisticRegression(C=guesser.strength, tol=1e-8, max_iter=10_000)
            model.fit(matrix[design.row[split.train]], corpus.group[split.train])
            found = model.predict_proba(matrix[design.row[split.test]])
            theirs += (time.perf_counter() - started) / _BY_HAND
            apart.append(np.abs(found - together.likely[together.fit == number]).max())
    print(
        f"  a fit, all ten at once: {ours * 1000:.1f} ms; one by one with scikit-learn: {theirs * 1000:.1f} ms"
    )
    print(f"  ratio: {theirs / ours:.1f}; largest difference of a probability: {max(apart):.1e}")


def main() -> None:
    study = real_study() or make_study(scenes=10_000)
    workers = os.cpu_count() or 1
    first = [study.systems[min(1, len(study.systems) - 1)]]
    print(f"  {len(study.systems)} systems, {study.image_ids.len():,} images, {workers} core(s)")
    timed(
        f"published split, {len(PAPER_SEEDS)} seeds, {len(study.systems)} of {len(SYSTEMS)} systems",
        lambda: score(study, lic, attribute="gender", split="paper", workers=workers),
    )
    timed(
        f"published split of {first[0]} with 1,000 dealings of labels",
        lambda: score(study, lic, attribute="gender", split="paper", systems=first, permutations=1000),
    )
    timed(
        "leak-safe folds of all systems with 200 dealings",
        lambda: score(study, lic, attribute="gender", workers=workers),
    )
    one_fit(study)
