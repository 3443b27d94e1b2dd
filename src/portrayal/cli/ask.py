"""portrayal ask"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import echo, print_table, write_raw
from portrayal.cli.study_loading import load_study
from portrayal.lab import make_study
from portrayal.lexicon import lexicon_for, load_lexicon
from portrayal.metrics.cloze import TEMPLATE
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.models import FROM_REFERENCES, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.sentence import (
    ScoredSentence,
    context_of_objects,
    score_sentence,
)
from portrayal.models.language_models import AGGREGATIONS
from portrayal.study import Study

_LAB_SCENES = 1500  # scenes of the lab, whose human captions are the training data without --study


@click.command("ask")
@click.argument("text")
@click.option(
    "--object",
    "objects",
    multiple=True,
    required=True,
    metavar="TEXT",
    help="Object in the image (repeatable).",
)
@click.option(
    "--confidence", "confidences", multiple=True, required=True, type=click.FloatRange(0, 1),
    help="Confidence of the objects: one number, or one per object (repeatable).",
)  # fmt: skip
@click.option(
    "--study", type=click.Path(path_type=Path), metavar="STUDY",
    help="Study whose human captions train the models. [default: a simulated study of the lab]",
)  # fmt: skip
@click.option(
    "--language-model", default=FROM_REFERENCES, show_default=True, metavar="NAME",
    help="Causal language model: a Hugging Face name, a folder or GGUF file, a packaged one, or "
    f"'{FROM_REFERENCES}': an n-gram model trained on human captions.",
)  # fmt: skip
@click.option(
    "--encoder", default=FROM_REFERENCES, show_default=True, metavar="NAME",
    help=f"Sentence encoder: a name or folder, a packaged one, or '{FROM_REFERENCES}': word vectors trained on human "
    "captions.",
)  # fmt: skip
@click.option("--attribute", default="gender", show_default=True, help="Attribute whose groups are compared.")
@click.option(
    "--lexicon",
    metavar="NAME",
    help="Lexicon of group words: a shipped one or a TOML file. [default: the attribute's]",
)
@click.option(
    "--hypothesis",
    type=click.Choice(AGGREGATIONS),
    default=AGGREGATIONS[0],
    show_default=True,
    help="Caption probability: arithmetic mean, geometric mean or product of the token probabilities.",
)
@click.option(
    "--evidence",
    type=click.Choice(["positive", "negative"]),
    default="positive",
    show_default=True,
    help="Belief revision with positive or negative evidence.",
)
@click.option(
    "--each/--joined",
    "each",
    default=False,
    help="Compare objects one by one, or joined to one text (the default).",
)
@click.option(
    "--template",
    default=TEMPLATE,
    show_default=True,
    help="Sentence of the cloze score; {} is replaced by the group's word.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device for inference; auto: a GPU if there is one.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
def command(
    text: str,
    objects: tuple[str, ...],
    confidences: tuple[float, ...],
    study: Path | None,
    language_model: str,
    encoder: str,
    attribute: str,
    lexicon: str | None,
    hypothesis: str,
    evidence: str,
    each: bool,
    template: str,
    device: str,
    style: str,
) -> None:
    """Compute the Gender Score of TEXT for each group, given detected objects, and print every intermediate value.

    TEXT names a group ("a man on a horse"), or has [MASK] in place of a group word. The language model gives the
    probability of each version, the encoder its similarity to the objects; the Gender Score revises the probability by
    the similarity.
    """
    words = load_lexicon(lexicon) if lexicon else lexicon_for(attribute)
    uses_captions = FROM_REFERENCES in (language_model, encoder)
    training_study = _training_study(study) if uses_captions else Study()
    scorer = CaptionScorer(
        likelihood(training_study, language_model, device),
        sentence_encoder(training_study, encoder, device),
        context_of_objects(objects, confidences),
        "each" if each else "joined",
        hypothesis,
        evidence,
    )
    scores = score_sentence(text, scorer, words, template)
    if style == "json":
        write_raw(
            json.dumps({**asdict(scores), "settings": scorer.settings}, indent=1, ensure_ascii=False) + "\n"
        )
        return
    _print_scores(scores, scorer, template)
    if uses_captions:
        echo(
            f"Trained on {training_study.references.height:,} captions of {'the study' if study else 'the lab'}, the "
            "language model on half of them."
        )


def _training_study(study: Path | None) -> Study:
    return load_study(study, skip_bad=False) if study else _lab_study()


@cache
def _lab_study() -> Study:
    return make_study(scenes=_LAB_SCENES, captioners=[])


def _print_scores(scores: ScoredSentence, scorer: CaptionScorer, template: str) -> None:
    for version in scores.versions:
        echo(f"{version.group}: {version.text}")
    objects = [
        thing for group_objects in scorer.visual_context.items_by_image.values() for thing in group_objects
    ]
    described = ", ".join(f"{thing.text} (confidence {thing.confidence:g})" for thing in objects)
    joined = len(objects) > 1 and scorer.detections == "joined"
    echo(f"objects: {described}" + (", as one text with the mean confidence" if joined else ""))
    echo()
    rows: list[tuple[str, Any]] = [
        (f"P of the caption ({scorer.hypothesis} of tokens)", lambda v: v.hypothesis),
        ("similarity to the objects", lambda v: v.similarity),
        ("alpha", lambda v: v.alpha),
        ("score", lambda v: v.score),
        ("share of the groups' scores", lambda v: v.share),
        ("P of the last word", lambda v: v.last_word),
        (f"similarity to '{template}'", lambda v: v.cloze_similarity),
        ("cloze score", lambda v: v.cloze_score),
    ]
    cells = [[name, *(_number(value(version)) for version in scores.versions)] for name, value in rows]
    groups = [version.group for version in scores.versions]
    print_table(["", *groups], cells, set(range(1, len(groups) + 1)))
    if all(version.similarity is None for version in scores.versions):
        echo(
            "The encoder has no vectors for the sentence or for the objects; choose another one with --encoder."
        )
    echo()
    echo(
        f"estimate: {scores.estimate or 'undecided'}; cloze: {scores.cloze_estimate or 'undecided'}",
        style="bold",
    )
    about = ", ".join(f"{name}: {text}" for name, text in scorer.likelihood.metadata.items())
    echo(f"language model {scorer.likelihood.name} ({about}); encoder {scorer.encoder.name}")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
