"""Speed of the Gender Score with models trained on the references: 100,000 captions, from tokens to scores."""

from __future__ import annotations

import time

from portrayal.lab import Captioner, make_study
from portrayal.metrics import gender_score
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.models import FROM_REFERENCES, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.visual_context import visual_context

CAPTIONS = 100_000
SCENES = 20_000


def main() -> None:
    study = make_study(
        scenes=SCENES, captioners=[Captioner("varied", length=1.0, vocabulary=1.0, repetition=0.0)]
    )
    started = time.perf_counter()
    language_likelihood, encoder = (
        likelihood(study, FROM_REFERENCES, "cpu"),
        sentence_encoder(study, FROM_REFERENCES, "cpu"),
    )
    training_time = time.perf_counter() - started
    print(
        f"  training a language model and vectors from {study.references.height:,} captions: {training_time:.1f} s"
    )
    scorer = CaptionScorer(
        language_likelihood, encoder, visual_context(study, None), "joined", "mean", "positive"
    )
    references = study.references.head(CAPTIONS)
    images, captions = references["image_id"].to_list(), references["caption"].to_list()
    started = time.perf_counter()
    scorer.score_captions(images, captions)
    seconds = time.perf_counter() - started
    print(f"  scoring {len(captions):,} captions ({len(set(captions)):,} distinct): {seconds:.1f} s")
    started = time.perf_counter()
    gender_score(study, attribute="gender", sources=["varied"])
    seconds = time.perf_counter() - started
    print(
        f"  the metric for one system on {SCENES:,} images, intervals and permutations included: {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
