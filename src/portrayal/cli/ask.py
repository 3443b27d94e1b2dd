"""portrayal ask"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import raw, say, show_table
from portrayal.cli.study_loading import load_study
from portrayal.lab import make_study
from portrayal.lexicon import lexicon_for, load_lexicon
from portrayal.metrics.cloze import TEMPLATE
from portrayal.metrics.shared.language_scores.caption_scores import Scorer
from portrayal.metrics.shared.language_scores.models import LEARNT, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.sentence import Asked, ask, seen
from portrayal.models.language_models import HOW
from portrayal.study import Study

_SCENES = 1500  # of the lab, whose five people's captions are learnt from where no study is given


@click.command("ask")
@click.argument("text")
@click.option(
    "--object", "objects", multiple=True, required=True, metavar="TEXT", help="What is seen (repeatable)."
)
@click.option(
    "--confidence", "confidences", multiple=True, required=True, type=click.FloatRange(0, 1),
    help="How sure that is: one number, or one for each object.",
)  # fmt: skip
@click.option(
    "--study", type=click.Path(path_type=Path), metavar="STUDY",
    help="Learn from people's captions of this study; by default from the lab's.",
)  # fmt: skip
@click.option(
    "--language-model", default=LEARNT, show_default=True, metavar="NAME",
    help="A causal model of Transformers by name, folder or GGUF file, a packaged one, or learnt.",
)  # fmt: skip
@click.option(
    "--encoder", default=LEARNT, show_default=True, metavar="NAME",
    help="A sentence encoder by name or folder, a packaged one, or learnt.",
)  # fmt: skip
@click.option("--attribute", default="gender", show_default=True, help="Whose groups are compared.")
@click.option("--lexicon", metavar="NAME", help="Words that name the groups: a shipped list or a TOML file.")
@click.option(
    "--hypothesis",
    type=click.Choice(HOW),
    default=HOW[0],
    show_default=True,
    help="How tokens are summed up.",
)
@click.option(
    "--evidence", type=click.Choice(["positive", "negative"]), default="positive", show_default=True
)
@click.option(
    "--each/--joined", "each", default=False, help="Objects one by one, or as one text (the default)."
)
@click.option(
    "--template", default=TEMPLATE, show_default=True, help="The cloze sentence; {} is the group's word."
)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
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
    """Score TEXT told of each group, given what is seen, and show every ingredient.

    TEXT names a group ("a man on a horse"), or has [MASK] where one would stand. The language model says how likely
    each version is, the encoder how related it is to what is seen; the Gender Score revises the one by the other.
    """
    words = load_lexicon(lexicon) if lexicon else lexicon_for(attribute)
    learnt = LEARNT in (language_model, encoder)
    people = _people(study) if learnt else Study()
    scorer = Scorer(
        likelihood(people, language_model, device),
        sentence_encoder(people, encoder, device),
        seen(objects, confidences),
        "each" if each else "joined",
        hypothesis,
        evidence,
    )
    found = ask(text, scorer, words, template)
    if style == "json":
        raw(json.dumps({**asdict(found), "settings": scorer.settings}, indent=1, ensure_ascii=False) + "\n")
        return
    _show(found, scorer, template)
    if learnt:
        say(
            f"Learnt from {people.references.height:,} captions of {'the study' if study else 'the lab'}, the language "
            "model from half of them."
        )


def _people(study: Path | None) -> Study:
    return load_study(study, skip_bad=False) if study else _the_lab()


@cache
def _the_lab() -> Study:
    return make_study(scenes=_SCENES, captioners=[])


def _show(found: Asked, scorer: Scorer, template: str) -> None:
    for version in found.versions:
        say(f"{version.group}: {version.text}")
    things = [thing for some in scorer.visual.things.values() for thing in some]
    told = ", ".join(f"{thing.text} (confidence {thing.confidence:g})" for thing in things)
    joined = len(things) > 1 and scorer.detections == "joined"
    say(f"seen: {told}" + (", as one text with the mean confidence" if joined else ""))
    say()
    rows: list[tuple[str, Any]] = [
        (f"P of the caption ({scorer.how} of tokens)", lambda v: v.hypothesis),
        ("similarity to what is seen", lambda v: v.similarity),
        ("alpha", lambda v: v.alpha),
        ("score", lambda v: v.score),
        ("part of the groups' scores", lambda v: v.part),
        ("P of the last word", lambda v: v.last_word),
        (f"similarity to '{template}'", lambda v: v.cloze_similarity),
        ("cloze score", lambda v: v.cloze_score),
    ]
    cells = [[name, *(_number(value(version)) for version in found.versions)] for name, value in rows]
    groups = [version.group for version in found.versions]
    show_table(["", *groups], cells, set(range(1, len(groups) + 1)))
    if all(version.similarity is None for version in found.versions):
        say("The encoder knows nothing of the sentence, or of what is seen; name another one with --encoder.")
    say()
    say(
        f"estimate: {found.estimate or 'undecided'}; cloze: {found.cloze_estimate or 'undecided'}",
        style="bold",
    )
    about = ", ".join(f"{name}: {text}" for name, text in scorer.likelihood.about.items())
    say(f"language model {scorer.likelihood.name} ({about}); encoder {scorer.encoder.name}")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
