"""portrayal import"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from portrayal.cli.console import echo
from portrayal.cli.folders import force_option, refuse_study
from portrayal.cli.options import out_option, skip_bad_option
from portrayal.cli.study_loading import (
    describe_mapping,
    describe_objects,
    describe_rankings,
    warn_skipped_rows,
)
from portrayal.documents import writable
from portrayal.errors import Problems, counted
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.shared.lexicon_use import aliases
from portrayal.metrics.shared.object_labels import caption_word_caution, unannotated_caution
from portrayal.study import Study, importers, write_study
from portrayal.study.folder import refuse_to_overwrite
from portrayal.study.group_names import GroupNames, parse_maps

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("import")
@click.argument("kind")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "--references", type=_FILE, metavar="FILE", help="Human captions (references) of the same images."
)
@click.option(
    "--attributes", type=_FILE, metavar="FILE", help="Attribute labels of the people shown, such as gender."
)
@click.option(
    "--objects",
    type=_FILE,
    metavar="FILE",
    help="Object labels of the images: COCO instances (instances_val2014.json), {image: [labels]}, or a table.",
)
@click.option(
    "--objects-source",
    metavar="NAME",
    help="Source of the object labels if their file does not name it: 'human' (annotators looked at the images), a "
    "model's name, or 'captions' (words found in captions, which never count as ground truth). [default: human]",
)
@click.option(
    "--rankings",
    multiple=True,
    metavar="FILE",
    help="Retrieval rankings: a table with query, item, score, and columns for groups (repeatable, NAME=FILE).",
)
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Folder of the images, to show them on the page.",
)
@click.option(
    "--attribute",
    "attribute_names",
    multiple=True,
    metavar="NAME",
    help="Import only this attribute (repeatable). [default: all]",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="ATTRIBUTE:VALUE=GROUP,...",
    help="Map label values to groups, such as gender:M=male,F=female (repeatable). [default: the lexicon's aliases]",
)
@click.option("--name", metavar="TEXT", help="Name of the study. [default: the name of its folder]")
@out_option
@skip_bad_option
@force_option
def command(
    kind: str,
    sources: tuple[str, ...],
    references: Path | None,
    attributes: Path | None,
    objects: Path | None,
    objects_source: str | None,
    rankings: tuple[str, ...],
    images: Path | None,
    attribute_names: tuple[str, ...],
    maps: tuple[str, ...],
    name: str | None,
    out: Path,
    skip_bad: bool,
    force: bool,
) -> None:
    """Import captions as a study. KIND is table, coco, lic or gender-score; SOURCE is a file, several, or a folder.

    A system is named by its file, or explicitly by NAME=FILE. With --rankings, SOURCE may be omitted: a retrieval
    system without captions is a study too.
    """
    if not sources and not (kind == "table" and rankings):
        raise click.UsageError(
            "Missing argument 'SOURCE...' (only 'import table --rankings FILE' can do without)."
        )
    if objects_source is not None and (objects is None or not objects_source.strip()):
        raise click.UsageError("--objects-source NAME says who labelled the objects of --objects FILE.")
    refuse_to_overwrite(out)
    refuse_study(out, force)
    problems = Problems(skip_bad)
    request = importers.ImportRequest(
        sources=sources,
        references=references,
        attributes=attributes,
        objects=objects,
        objects_source=objects_source,
        rankings=rankings,
        images=images,
        attribute_names=attribute_names,
        group_names=GroupNames(parse_maps(maps), aliases, resolve_attribute),
        name=name or writable(out.resolve().name),
    )
    imported = importers.run_importer(kind, request, problems)
    problems.settle()
    warn_skipped_rows(problems)
    write_study(replace(imported.study, left_out=problems.count), out)
    for line in describe_mapping(imported.study):
        echo(line)
    for note in imported.notes:
        echo(note, style="dim")
    echo(_summary(imported.study))
    for caution in filter(None, (caption_word_caution(imported.study), unannotated_caution(imported.study))):
        echo(f"Caution: {caution}")
    echo(f"The study is in {out}. Next: portrayal check-study {out}")


def _summary(study: Study) -> str:
    parts = []
    if study.captions.height or not study.rankings.height:
        images = study.captions["image_id"].n_unique()
        parts.append(
            f"{counted(len(study.systems), 'system')}, {counted(images, 'image')}, "
            f"{counted(study.captions.height, 'caption')}"
        )
    if study.rankings.height:
        parts.append(describe_rankings(study))
    if study.references.height:
        parts.append(f"references for {counted(study.references['image_id'].n_unique(), 'image')}")
    if study.attribute_names:
        parts.append(f"labels of {', '.join(study.attribute_names)}")
    if study.objects.height:
        parts.append(describe_objects(study))
    return "; ".join(parts) + "."
