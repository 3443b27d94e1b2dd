"""portrayal counterbias"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import clear_interrupt_message, echo, print_table, print_warning, progress
from portrayal.cli.folders import claim_folder, force_option, remove_stale, results_files, results_subject
from portrayal.cli.options import (
    Number,
    bootstrap_option,
    comma_separated,
    out_option,
    seed_option,
    skip_bad_option,
)
from portrayal.counterfactual.concepts import BIAS_PROMPT, CONTROL_PROMPT, CONTROL_WORDS, TEMPLATES
from portrayal.counterfactual.manifest import read_manifest
from portrayal.counterfactual.prompts import ATTACKS, BIAS_NORMALIZE_OVER, BLANK_IMAGES, NORMALIZE_OVER, NORMS
from portrayal.errors import counted
from portrayal.metrics import counterbias
from portrayal.metrics.counterbias.card import CARD
from portrayal.metrics.counterbias.groups import study_summary
from portrayal.metrics.counterbias.terms import ALL
from portrayal.models.device import DEVICES
from portrayal.report import write_page
from portrayal.results import Measurement, Results

CHECKPOINT = ".counterbias"
NO_IMAGE = "no image"


def _group_words(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, str] | None:
    if value is None:
        return None
    pairs = [part.partition("=") for part in value.split(",")]
    if any(not group.strip() or not word.strip() for group, _, word in pairs):
        raise click.BadParameter(f"expected GROUP=WORD,.. such as male=man,female=woman, got {value!r}.")
    return {group.strip(): word.strip() for group, _, word in pairs}


@click.command("counterbias")
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Masked vision-language model: lab-dual, lab-single, a checkpoint file of ALBEF or TCL, a folder, or the "
    "Hugging Face name of a ViLT or BERT (repeatable).",
)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    metavar="FILE",
    help="CSV or TSV file with the columns image, group, concept and kind; --attack exact also needs counterfactual.",
)
@out_option
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Folder of the manifest's images. [default: the manifest's folder]",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    type=click.Choice(ATTACKS),
    default=("pgd",),
    show_default=True,
    help="How the counterfactual image is made: by an adversarial attack (pgd, fgsm), or exact: the manifest names it "
    "(repeatable).",
)
@click.option(
    "--epsilon",
    type=Number(),
    help="Attack budget: size of the image change in the --norm, with pixels from 0 to 1. [default: 8/255]",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help="Maximum number of pgd steps. [default: 20; with --norm linf 10]",
)
@click.option(
    "--step-size", type=Number(), help="Size of a pgd step. [default: .5/255; with --norm linf 2/255]"
)
@click.option(
    "--norm",
    type=click.Choice(list(NORMS)),
    help="Norm that epsilon limits: the largest pixel change (linf), or the root mean square of all (l2). "
    "[default: l2; for fgsm linf]",
)
@click.option(
    "--stop-at",
    type=Number(),
    default=0.9,
    show_default=True,
    help="Stop attacking an image once the target group has this share of the two groups' probability.",
)
@click.option(
    "--placebo/--no-placebo",
    default=True,
    show_default=True,
    help="Also run a placebo attack of the same size on the control prompt, to separate bias from image damage.",
)
@click.option(
    "--templates",
    multiple=True,
    metavar="TEXT",
    help=f"Prompt template: one of {', '.join(map(repr, TEMPLATES))}, or a text with {{group}} and [MASK] "
    "(repeatable). [default: all four]",
)
@click.option(
    "--normalize-over",
    type=click.Choice(NORMALIZE_OVER),
    default=NORMALIZE_OVER[0],
    show_default=True,
    help="Normalize P(concept) over the model's whole vocabulary or over the concepts of its kind.",
)
@click.option(
    "--bias-normalize-over",
    type=click.Choice(BIAS_NORMALIZE_OVER),
    default=BIAS_NORMALIZE_OVER[0],
    show_default=True,
    help="Normalize P(group) over the model's whole vocabulary or over the words of the two groups.",
)
@click.option(
    "--bias-prompt",
    default=BIAS_PROMPT,
    show_default=True,
    help="Prompt for the group of the person in an image.",
)
@click.option(
    "--control-prompt",
    default=CONTROL_PROMPT,
    show_default=True,
    help="Prompt for something other than the group: the target of the placebo attack, and the measure of drift.",
)
@click.option(
    "--control-words",
    callback=comma_separated,
    metavar="A,B",
    help=f"Candidate words of the control prompt. [default: {', '.join(CONTROL_WORDS)}]",
)
@click.option("--attribute", default="gender", show_default=True, help="Attribute of the groups.")
@click.option(
    "--groups",
    callback=comma_separated,
    metavar="A,B",
    help="Groups to compare; positive bias is toward the first. [default: all, in the lexicon's order]",
)
@click.option(
    "--words",
    callback=_group_words,
    metavar="GROUP=WORD,..",
    help="Word for each group in prompts. [default: the lexicon's, else the group's name]",
)
@click.option(
    "--lexicon",
    metavar="NAME",
    help="Lexicon of group words: a shipped one or a TOML file. [default: the attribute's]",
)
@click.option(
    "--concepts",
    callback=comma_separated,
    metavar="A,B",
    help="Query these concepts for every image, instead of the concept in the manifest.",
)
@click.option(
    "--blank-image",
    type=click.Choice(BLANK_IMAGES),
    default="text",
    show_default=True,
    help="Image input for b@text: none (text only), or a gray image.",
)
@click.option(
    "--tokenizer",
    metavar="NAME",
    help="Tokenizer of an ALBEF or TCL checkpoint file: a Hugging Face name or a folder.",
)
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    help="Device for inference; auto: a GPU if there is one.",
)
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Floating-point precision of the model.",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Images per batch."
)
@bootstrap_option
@seed_option
@skip_bad_option
@force_option
def command(
    models: tuple[str, ...],
    manifest: Path,
    out: Path,
    images: Path | None,
    attacks: tuple[str, ...],
    control_words: list[str] | None,
    templates: tuple[str, ...],
    skip_bad: bool,
    force: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Measure vision-language bias: change only the person in image and text, and compare the model's probabilities.

    Writes index.html, results.json and evidence.parquet. Progress is checkpointed; run the same command again to
    resume.
    """
    checkpoint = out / CHECKPOINT
    model_names = list(dict.fromkeys(models))
    loaded = read_manifest(manifest, images, skip_bad)
    subject = results_subject(
        {"study": study_summary(loaded, loaded.instances, {}, model_names)}, with_systems=True
    )
    stale = claim_folder(out, subject, force, checkpoint=checkpoint)
    with progress(CARD.name, unit="images", stages=True) as report_progress:
        results = counterbias(
            manifest,
            model_names,
            images=images,
            attack=list(dict.fromkeys(attacks)),
            templates=templates,
            control_words=control_words or CONTROL_WORDS,
            skip_bad=skip_bad,
            checkpoint=checkpoint,
            progress=report_progress,
            **options,
        )
    results.save(out)
    page = write_page(results, out)
    remove_stale(stale, results_files(out, with_images=bool(results.thumbnails.height)))
    # Only after the results are written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    _print_headlines(results)
    left_out = results.provenance["study"]["left_out"]
    if left_out:
        print_warning(f"{left_out:,} rows or images were left out.")
    echo(
        f"{counted(len(results.measurements), 'measurement')}, {counted(results.evidence.height, 'row')} of evidence."
    )
    echo(f"The page, where every number opens its evidence: {page}")


def _print_headlines(results: Results) -> None:
    """Print a table of the headline numbers per model, with a column per attack."""
    headlines = [m for m in results.measurements if m.group is None and m.item is None]
    headlines = [m for m in headlines if m.settings.get("template", ALL) == ALL]
    for system, pair in dict.fromkeys((m.system, _group_pair(m)) for m in headlines):
        pair_rows = [m for m in headlines if (m.system, _group_pair(m)) == (system, pair)]
        attacks = list(dict.fromkeys(m.settings.get("attack", NO_IMAGE) for m in pair_rows))
        echo()
        echo(f"{system}: {pair}. Mean absolute bias in percent, over concepts and templates.", "bold")
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for m in pair_rows:
            if m.term in CARD.headline and m.settings.get("of", m.term) in (m.term, "b@v-l"):
                cells = rows.setdefault((m.settings.get("kind", "all"), m.term), {})
                cells[m.settings.get("attack", NO_IMAGE)] = _cell(m)
        order = sorted(rows, key=lambda row: (row[0] == "all", row[0], CARD.headline.index(row[1])))
        table = [
            [kind, CARD.term(term).label or term, *(rows[kind, term].get(attack, "") for attack in attacks)]
            for kind, term in order
        ]
        print_table(["of", "number", *attacks], table)
    echo()


def _group_pair(m: Measurement) -> str:
    return " or ".join(m.settings["groups"])


def _cell(m: Measurement | None) -> str:
    if m is None:
        return ""
    if m.value is None:
        return "undefined"
    if m.unit == "count":
        return f"{m.value:,.0f} of {m.n:,}"
    interval = "" if m.low is None or m.high is None else f" [{m.low:.1f}, {m.high:.1f}]"
    return f"{m.value:.2f}{interval}" if m.term == "b@text" else f"{m.value:.1f}{interval}"
