"""portrayal vl-bias"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

from portrayal.cli.console import say, show_table, warn
from portrayal.cli.options import skip_bad_option, study_argument
from portrayal.cli.row_files import refuse_file, write_rows
from portrayal.cli.study_loading import load_study
from portrayal.counterfactual.concepts import BIAS_PROMPT, KINDS, STEREOTYPES, TEMPLATES, article
from portrayal.counterfactual.manifest import check_manifest, read_manifest, write_manifest
from portrayal.errors import PortrayalError, counted
from portrayal.vl_bias import counts, mine
from portrayal.vl_bias.pairs import read_pairs

_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The manifest to write, ending in .csv.",
)


@click.group("vl-bias")
def command() -> None:
    """Manifests for CounterBias: which picture shows which group with which activity or occupation."""


@command.command("concepts")
def concepts_command() -> None:
    """List the concepts of VL-Bias, whom its raters tie them to, and its templates."""
    rows = [
        [kind, f"{article(kind, concept)} {concept}".strip(), STEREOTYPES.get(concept, "")]
        for kind, concepts in KINDS.items()
        for concept in concepts
    ]
    show_table(["kind", "concept", "raters tie it to"], rows)
    say()
    show_table(["template", "text"], [[name, text] for name, text in TEMPLATES.items()])
    say(f"The prompt of its attack: {BIAS_PROMPT}")


@command.command("check")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the pictures are; by default beside the manifest.",
)
@skip_bad_option
def check_command(manifest: Path, images: Path | None, skip_bad: bool) -> None:
    """Count the pictures of MANIFEST, and say what is wrong with it and what it lacks.

    MANIFEST is a CSV or TSV file with the columns image, group, concept and kind, and perhaps counterfactual: the same
    picture with somebody of the other group. Exit code 2 when something is wrong.
    """
    read = read_manifest(manifest, images, skip_bad)
    checked = check_manifest(read)
    groups = sorted(read.groups)
    _show_counts(checked.counts, groups)
    exact = sum(one.exact is not None for one in read.instances)
    told = f", {exact:,} with their counterfactual" if exact else ""
    say(f"{counted(len(read.instances), 'row')}{told}.")
    for warning in checked.warnings:
        say(f"Note: {warning}")
    if read.left_out:
        warn(f"{counted(read.left_out, 'bad row', 'was')} left out.")


@command.command("mine")
@study_argument
@_OUT
@click.option(
    "--lexicon",
    default="gender",
    show_default=True,
    metavar="NAME",
    help="The words that name groups: a shipped list, or a file.",
)
@click.option(
    "--min-captions",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Captions of a picture that must say the same.",
)
@skip_bad_option
def mine_command(study: Path, out: Path, lexicon: str, min_captions: int, skip_bad: bool) -> None:
    """Propose pictures for a manifest from what people's captions in STUDY say.

    A caption proposes its picture where it names one group, speaks of one person, and says that this person does one
    activity or has one occupation. The file is a manifest with the columns saying, captions and caption besides: look
    at each picture, and take out the rows that are wrong.
    """
    _refuse(out)
    read = load_study(study, skip_bad)
    if not read.references.height:
        raise PortrayalError("The study holds no captions by people, which are what is searched.")
    found = mine(read, lexicon=lexicon, least=min_captions)
    if not found:
        raise PortrayalError(
            "No caption says of one person of one group what they do or are; nothing is written."
        )
    lost = [one.image for one in found if one.image not in read.pictures] if read.images is not None else []
    named = [replace(one, image=_file(one.image, read.pictures)) for one in found]
    write_rows(out, [asdict(one) for one in named])
    _show_counts(counts(found), list(dict.fromkeys(one.group for one in found)))
    if lost:
        warn(
            f"{len(set(lost)):,} images have no picture in {read.images}; the file has their id, such as {lost[0]}."
        )
    say(f"{len(found):,} candidates, {len({one.image for one in found}):,} images, for you to accept: {out}")


@command.command("pairs")
@click.argument("folder", type=click.Path(path_type=Path))
@_OUT
@click.option(
    "--swap",
    default="man=woman",
    show_default=True,
    metavar="A=B",
    help="The two parts of file names that tell one picture from its counterfactual.",
)
def pairs_command(folder: Path, out: Path, swap: str) -> None:
    """Write the manifest of pictures in which only the person differs, as PAIRS has them.

    FOLDER holds KIND/CONCEPT/OTHER_GROUP.png, such as occupations/apron/black_man.png, whose counterfactual is
    occupations/apron/black_woman.png. Pictures are named as seen from the manifest.
    """
    _refuse(out)
    first, _, second = (part.strip() for part in swap.partition("="))
    if not first or not second or first == second or "=" in second:
        raise click.BadParameter(f"expected two words such as man=woman, got {swap!r}.", param_hint="--swap")
    found = read_pairs(folder, {first: second})
    write_manifest(found, out)
    kinds = {one.kind: len({two.concept for two in found if two.kind == one.kind}) for one in found}
    show_table(["kind", "concepts"], [[kind, f"{number:,}"] for kind, number in kinds.items()], {1})
    say(f"{len(found):,} pictures, each with its counterfactual: {out}")


def _refuse(out: Path) -> None:
    refuse_file(out)
    if out.suffix.lower() != ".csv":
        raise click.BadParameter(f"expected a file ending in .csv, got {out.name!r}.", param_hint="--out")


def _file(image: str, pictures: Mapping[str, Path]) -> str:
    return pictures[image].name if image in pictures else image


def _show_counts(numbers: Mapping[tuple[str, str, str], int], groups: list[str]) -> None:
    """A row for each concept, a column for each group."""
    concepts = list(dict.fromkeys((kind, concept) for kind, concept, _ in numbers))
    rows = [
        [kind, concept, *(f"{numbers.get((kind, concept, group), 0):,}" for group in groups)]
        for kind, concept in concepts
    ]
    show_table(["kind", "concept", *groups], rows, set(range(2, 2 + len(groups))))
