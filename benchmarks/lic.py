"""LIC: the published split, its permutations, leak-safe folds; and one fit against scikit-learn's."""

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
from portrayal.metrics.shared.classifier.corpus_builder import CorpusBuilder
from portrayal.metrics.shared.classifier.linear_classifier import LinearClassifier
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.splits import PAPER_SEEDS, paper_split
from portrayal.results import Results
from portrayal.study import Study

_N_SKLEARN_FITS = 5  # fits by scikit-learn


def timed(label: str, run: Callable[[], Results]) -> None:
    started = time.perf_counter()
    results = run()
    print(f"  {label}: {time.perf_counter() - started:.1f} s, {len(results.measurements):,} measurements")


def compare_single_fit(study: Study) -> None:
    """The published split's fits, all at once and one by one; both single-threaded."""
    system = study.systems[0]
    groups = study.groups("gender")
    truth = {image: groups.index(group) for image, group in study.labels("gender").iter_rows()}
    corpus_builder = CorpusBuilder(
        study, truth, Mask.for_attribute("gender", None, None), keep_file_order=True
    )
    corpus = corpus_builder.system_corpora(system, PAPER_SEEDS)[0]
    splits = [paper_split(corpus.group.tolist(), seed) for seed in PAPER_SEEDS]
    classifier = LinearClassifier(len(groups), balanced=False)
    with threadpool_limits(1):
        started = time.perf_counter()
        predictions = classifier.cross_val_predict(corpus, splits)
        seconds_ours = (time.perf_counter() - started) / len(splits)
        design = corpus.design
        differences, seconds_sklearn = [], 0.0
        for number, split in enumerate(splits[:_N_SKLEARN_FITS]):
            allowed = design.frequent_features(
                np.bincount(design.row[split.train], minlength=len(design.texts))
            )
            matrix = design.matrix.tocsc()[:, np.flatnonzero(allowed)].tocsr()
            started = time.perf_counter()
            model = LogisticRegression(C=classifier.C, tol=1e-8, max_iter=10_000)
            model.fit(matrix[design.row[split.train]], corpus.group[split.train])
            proba = model.predict_proba(matrix[design.row[split.test]])
            seconds_sklearn += (time.perf_counter() - started) / _N_SKLEARN_FITS
            differences.append(np.abs(proba - predictions.proba[predictions.fit_index == number]).max())
    print(
        f"  a fit, all ten at once: {seconds_ours * 1000:.1f} ms; "
        f"one by one with scikit-learn: {seconds_sklearn * 1000:.1f} ms"
    )
    print(
        f"  ratio: {seconds_sklearn / seconds_ours:.1f}; largest difference of a probability: {max(differences):.1e}"
    )


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
        f"published split of {first[0]} with 1,000 permutations of labels",
        lambda: score(study, lic, attribute="gender", split="paper", systems=first, permutations=1000),
    )
    timed(
        "leak-safe folds of all systems with 200 permutations",
        lambda: score(study, lic, attribute="gender", workers=workers),
    )
    compare_single_fit(study)
