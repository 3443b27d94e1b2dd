"""portrayal counterbias"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import finished, progress, say, show_table, warn
from portrayal.cli.folders import claim, clear, force_option, results_files, subject
from portrayal.cli.options import Number, bootstrap_option, names, out_option, seed_option, skip_bad_option
from portrayal.counterfactual.concepts import BIAS_PROMPT, CONTROL_PROMPT, CONTROL_WORDS, TEMPLATES
from portrayal.counterfactual.manifest import read_manifest
from portrayal.counterfactual.prompts import ATTACKS, BIAS_OVER, NONE, NORMS, OVER
from portrayal.errors import counted
from portrayal.metrics import counterbias
from portrayal.metrics.counterbias.groups import described
from portrayal.metrics.counterbias.terms import ALL
from portrayal.models.device import DEVICES
from portrayal.report import write_page
from portrayal.results import Measurement, Results

JOURNAL = ".counterbias"
NO_PICTURE = "no picture"
SHOWN = ("b@v-l", "b@v", "b@l", "excess", "corrected", "b@text", "attack-success", "drift", "undefined")
SAID = {
    "excess": "b@v-l less its floor",
    "corrected": "b@v-l less the placebo's",
    "b@text": "b@text (log)",
    "attack-success": "attacks that succeed",
    "drift": "drift of the place",
    "undefined": "instances undefined",
}


def _words(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, str] | None:
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
    help="lab-dual, lab-single, a file of ALBEF or TCL, a folder, a ViLT or BERT by its hub name (repeatable).",
)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    metavar="FILE",
    help="image, group, concept, kind, and for --attack exact counterfactual (CSV or TSV).",
)
@out_option
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Where the manifest's pictures are. [default: its own folder]",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    type=click.Choice(ATTACKS),
    default=("pgd",),
    show_default=True,
    help="How the other picture is made; exact: the manifest names it (repeatable, side by side).",
)
@click.option(
    "--epsilon",
    type=Number(),
    help="How far a pixel, from 0 to 1, may move. [default: 8/255]",
)
@click.option(
    "--steps", type=click.IntRange(min=1), help="Steps of pgd, at most. [default: 20; with linf 10]"
)
@click.option(
    "--step-size", type=Number(), help="How far each step of pgd goes. [default: .5/255; with linf 2/255]"
)
@click.option(
    "--norm",
    type=click.Choice(list(NORMS)),
    help="What epsilon limits: every pixel (linf), or the root of the mean square of all (l2). "
    "[default: l2; of fgsm linf]",
)
@click.option(
    "--stop-at",
    type=Number(),
    default=0.9,
    show_default=True,
    help="A picture is left alone once the other group has this share of both.",
)
@click.option(
    "--placebo/--no-placebo",
    default=True,
    show_default=True,
    help="An attack as large on the place, to tell bias from damage.",
)
@click.option(
    "--templates",
    multiple=True,
    metavar="TEXT",
    help=f"One of {', '.join(map(repr, TEMPLATES))}, or a text with {{group}} and [MASK] (repeatable). "
    f"[default: all four]",
)
@click.option(
    "--normalize-over",
    type=click.Choice(OVER),
    default=OVER[0],
    show_default=True,
    help="P(concept) among all that the model knows, or among the concepts of its kind.",
)
@click.option(
    "--bias-normalize-over",
    type=click.Choice(BIAS_OVER),
    default=BIAS_OVER[0],
    show_default=True,
    help="P(group) among all that the model knows, or among the words of the two groups.",
)
@click.option(
    "--bias-prompt", default=BIAS_PROMPT, show_default=True, help="Asks for the group in a picture."
)
@click.option(
    "--control-prompt",
    default=CONTROL_PROMPT,
    show_default=True,
    help="Asks for something other than the group: the placebo's aim, and what may drift.",
)
@click.option(
    "--control-words",
    callback=names,
    metavar="A,B",
    help=f"Its answers. [default: {', '.join(CONTROL_WORDS)}]",
)
@click.option("--attribute", default="gender", show_default=True, help="What the groups are groups of.")
@click.option(
    "--groups",
    callback=names,
    metavar="A,B",
    help="Only these; bias is toward the first. [default: all, in the lexicon's order]",
)
@click.option(
    "--words",
    callback=_words,
    metavar="GROUP=WORD,..",
    help="How texts name the groups. [default: as the lexicon does, else by the group's name]",
)
@click.option("--lexicon", metavar="NAME", help="A shipped list or a TOML file. [default: the attribute's]")
@click.option(
    "--concepts",
    callback=names,
    metavar="A,B",
    help="Ask every picture about these, instead of about what the manifest says it shows.",
)
@click.option(
    "--blank-image",
    type=click.Choice(NONE),
    default="text",
    show_default=True,
    help="How b@text shows no picture: text alone, or a gray picture.",
)
@click.option("--tokenizer", metavar="NAME", help="The word pieces of a file of ALBEF or TCL.")
@click.option(
    "--device", type=click.Choice(DEVICES), default="auto", show_default=True, help="Where models run."
)
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Of a model's weights and products.",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Pictures at once."
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
    """Change only the person in pictures and texts, and see how what a model says of them changes.

    Writes index.html, results.json and evidence.parquet. What is finished is kept when the command is interrupted; the
    same command goes on from there.
    """
    checkpoint = out / JOURNAL
    asked = list(dict.fromkeys(models))
    read = read_manifest(manifest, images, skip_bad)
    about = subject({"study": described(read, read.instances, {}, asked)}, with_systems=True)
    old = claim(out, about, force, checkpoint=checkpoint)
    with progress("counterbias", kept="images", stages=True) as report_progress:
        results = counterbias(
            manifest,
            asked,
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
    clear(old, results_files(out, pictures=bool(results.pictures.height)))
    shutil.rmtree(checkpoint, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    _show(results)
    left_out = results.provenance["study"]["left_out"]
    if left_out:
        warn(f"{left_out:,} rows or pictures were left out.")
    say(
        f"{counted(len(results.measurements), 'measurement')}, {counted(results.evidence.height, 'row')} of evidence."
    )
    say(f"The page, where every number opens its evidence: {page}")


def _show(results: Results) -> None:
    """The headlines: of each model a table, a column for each way to make the other picture."""
    headlines = [m for m in results.measurements if m.group is None and m.item is None]
    headlines = [m for m in headlines if m.settings.get("template", ALL) == ALL]
    for system, pair in dict.fromkeys((m.system, _pair(m)) for m in headlines):
        here = [m for m in headlines if (m.system, _pair(m)) == (system, pair)]
        ways = list(dict.fromkeys(m.settings.get("attack", NO_PICTURE) for m in here))
        say()
        say(f"{system}: {pair}. Mean absolute bias in percent, over concepts and templates.", "bold")
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for m in here:
            if m.term in SHOWN and m.settings.get("of", m.term) in (m.term, "b@v-l"):
                what = rows.setdefault((m.settings.get("kind", "all"), m.term), {})
                what[m.settings.get("attack", NO_PICTURE)] = _cell(m)
        order = sorted(rows, key=lambda row: (row[0] == "all", row[0], SHOWN.index(row[1])))
        table = [
            [kind, SAID.get(term, term), *(rows[kind, term].get(way, "") for way in ways)]
            for kind, term in order
        ]
        show_table(["of", "number", *ways], table)
    say()


def _pair(m: Measurement) -> str:
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
