"""portrayal vl-bias"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

from portrayal.cli.console import echo, print_table, print_warning
from portrayal.cli.options import skip_bad_option, study_argument
from portrayal.cli.row_files import require_new_file, write_rows
from portrayal.cli.study_loading import load_study
from portrayal.counterfactual.concepts import BIAS_PROMPT, CONCEPTS_BY_KIND, STEREOTYPES, TEMPLATES, article
from portrayal.counterfactual.manifest import check_manifest, read_manifest, write_manifest
from portrayal.errors import PortrayalError, counted
from portrayal.vl_bias import count_candidates, mine_candidates
from portrayal.vl_bias.pairs import read_pairs

_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Output manifest, .csv; must not exist.",
)


@click.group("vl-bias")
def command() -> None:
    """Manifests for CounterBias: the group and the activity or occupation that each image shows."""


@command.command("concepts")
def concepts_command() -> None:
    """List the concepts of VL-Bias, the group that its raters associate with each, and its templates."""
    rows = [
        [kind, f"{article(kind, concept)} {concept}".strip(), STEREOTYPES.get(concept, "")]
        for kind, concepts in CONCEPTS_BY_KIND.items()
        for concept in concepts
    ]
    print_table(["kind", "concept", "raters associate it with"], rows)
    echo()
    print_table(["template", "text"], [[name, text] for name, text in TEMPLATES.items()])
    echo(f"The prompt of its attack: {BIAS_PROMPT}")


@command.command("check")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the manifest's images. [default: the manifest's folder]",
)
@skip_bad_option
def check_command(manifest: Path, images: Path | None, skip_bad: bool) -> None:
    """Validate MANIFEST: count its images by concept and group, and report problems.

    MANIFEST is a CSV or TSV file with the columns image, group, concept and kind, and optionally counterfactual: the
    same image with a person of the other group. Exit code 2 if there is a problem.
    """
    loaded = read_manifest(manifest, images, skip_bad)
    checked = check_manifest(loaded)
    groups = sorted(loaded.groups)
    _print_counts(checked.counts, groups)
    with_counterfactual = sum(instance.counterfactual is not None for instance in loaded.instances)
    suffix = f", {with_counterfactual:,} with their counterfactual" if with_counterfactual else ""
    echo(f"{counted(len(loaded.instances), 'row')}{suffix}.")
    for warning in checked.warnings:
        echo(f"Note: {warning}")
    if loaded.n_skipped:
        print_warning(f"{counted(loaded.n_skipped, 'bad row', 'was')} left out.")


@command.command("mine")
@study_argument
@_OUT
@click.option(
    "--lexicon",
    default="gender",
    show_default=True,
    metavar="NAME",
    help="Lexicon of group words: a shipped one or a TOML file.",
)
@click.option(
    "--min-captions",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Minimum number of captions of an image that must agree.",
)
@skip_bad_option
def mine_command(study: Path, out: Path, lexicon: str, min_captions: int, skip_bad: bool) -> None:
    """Propose images for a manifest from the human captions of STUDY.

    An image is proposed if a caption mentions one person of one group, with one activity or occupation. The file is a
    manifest with the additional columns saying, captions and caption: check each image, and delete wrong rows.
    """
    _check_output(out)
    loaded = load_study(study, skip_bad)
    if not loaded.references.height:
        raise PortrayalError("The study has no human captions to search (references).")
    candidates = mine_candidates(loaded, lexicon=lexicon, min_captions=min_captions)
    if not candidates:
        raise PortrayalError(
            "No caption names an activity or occupation of one person of one group; nothing is written."
        )
    missing = (
        [candidate.image for candidate in candidates if candidate.image not in loaded.image_files]
        if loaded.images is not None
        else []
    )
    candidates_by_file = [
        replace(candidate, image=_file_name(candidate.image, loaded.image_files)) for candidate in candidates
    ]
    write_rows(out, [asdict(candidate) for candidate in candidates_by_file])
    _print_counts(
        count_candidates(candidates), list(dict.fromkeys(candidate.group for candidate in candidates))
    )
    if missing:
        print_warning(
            f"{len(set(missing)):,} images have no file in {loaded.images}; the manifest has their id, such as "
            f"{missing[0]}."
        )
    n_images = len({candidate.image for candidate in candidates})
    echo(f"{len(candidates):,} candidates, {n_images:,} images, to be checked by you: {out}")


@command.command("pairs")
@click.argument("folder", type=click.Path(path_type=Path))
@_OUT
@click.option(
    "--swap",
    default="man=woman",
    show_default=True,
    metavar="A=B",
    help="The two parts of file names that distinguish an image from its counterfactual.",
)
def pairs_command(folder: Path, out: Path, swap: str) -> None:
    """Write a manifest of image pairs in which only the person differs, such as the PAIRS dataset.

    FOLDER holds KIND/CONCEPT/OTHER_GROUP.png, such as occupations/apron/black_man.png, whose counterfactual is
    occupations/apron/black_woman.png. Image paths are relative to the manifest.
    """
    _check_output(out)
    first, _, second = (part.strip() for part in swap.partition("="))
    if not first or not second or first == second or "=" in second:
        raise click.BadParameter(f"expected two words such as man=woman, got {swap!r}.", param_hint="--swap")
    instances = read_pairs(folder, {first: second})
    write_manifest(instances, out)
    kinds = {
        instance.kind: len({other.concept for other in instances if other.kind == instance.kind})
        for instance in instances
    }
    print_table(["kind", "concepts"], [[kind, f"{number:,}"] for kind, number in kinds.items()], {1})
    echo(f"{len(instances):,} images, each with its counterfactual: {out}")


def _check_output(out: Path) -> None:
    require_new_file(out)
    if out.suffix.lower() != ".csv":
        raise click.BadParameter(f"expected a file ending in .csv, got {out.name!r}.", param_hint="--out")


def _file_name(image: str, files: Mapping[str, Path]) -> str:
    return files[image].name if image in files else image


def _print_counts(numbers: Mapping[tuple[str, str, str], int], groups: list[str]) -> None:
    """Print a row per concept, with a column per group."""
    concepts = list(dict.fromkeys((kind, concept) for kind, concept, _ in numbers))
    rows = [
        [kind, concept, *(f"{numbers.get((kind, concept, group), 0):,}" for group in groups)]
        for kind, concept in concepts
    ]
    print_table(["kind", "concept", *groups], rows, set(range(2, 2 + len(groups))))
