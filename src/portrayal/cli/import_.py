"""portrayal import"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from portrayal.cli.console import say
from portrayal.cli.folders import force_option, refuse_study
from portrayal.cli.options import out_option, skip_bad_option
from portrayal.cli.study_loading import tell_skipped, told_mapping, told_objects, told_rankings
from portrayal.documents import writable
from portrayal.errors import Problems, counted
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.shared.lexicon_use import aliases
from portrayal.metrics.shared.object_labels import caption_words, unannotated
from portrayal.study import Study, importers, write_study
from portrayal.study.folder import refuse_to_overwrite
from portrayal.study.group_names import GroupNames, parse_maps

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("import")
@click.argument("kind")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--references", type=_FILE, metavar="FILE", help="People's captions of the same images.")
@click.option("--attributes", type=_FILE, metavar="FILE", help="Labels of the people shown.")
@click.option(
    "--objects",
    type=_FILE,
    metavar="FILE",
    help="Objects in the images: COCO's instances (instances_val2014.json), {image: [labels]}, or a table.",
)
@click.option(
    "--objects-source",
    metavar="NAME",
    help="Who labelled the objects, where their file does not say: 'human' (the default: annotators looked at the "
    "images), a model's name, or 'captions' (words found in captions, which never count as ground truth).",
)
@click.option(
    "--rankings",
    multiple=True,
    metavar="FILE",
    help="What a search gives: query, item, score, and columns for groups (repeatable, NAME=FILE).",
)
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The pictures.",
)
@click.option("--attribute", "names", multiple=True, metavar="NAME", help="Only this attribute (repeatable).")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="ATTRIBUTE:VALUE=GROUP,...",
    help="What values of labels mean, such as gender:M=male,F=female (repeatable). By default the lexicon's aliases.",
)
@click.option("--name", metavar="TEXT", help="The study's name; by default the name of its folder.")
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
    names: tuple[str, ...],
    maps: tuple[str, ...],
    name: str | None,
    out: Path,
    skip_bad: bool,
    force: bool,
) -> None:
    """Make a study of KIND (table, coco, lic or gender-score) from SOURCE: a file, several, or a folder.

    A system is named by its file, or as you say with NAME=FILE. With --rankings SOURCE may be left out: a search that
    writes no captions is a study too.
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
    request = importers.Request(
        sources=sources,
        references=references,
        attributes=attributes,
        objects=objects,
        objects_source=objects_source,
        rankings=rankings,
        images=images,
        attribute_names=names,
        meaning=GroupNames(parse_maps(maps), aliases, resolve_attribute),
        name=name or writable(out.resolve().name),
    )
    imported = importers.run(kind, request, problems)
    problems.settle()
    tell_skipped(problems)
    write_study(replace(imported.study, left_out=problems.count), out)
    for line in told_mapping(imported.study):
        say(line)
    for note in imported.notes:
        say(note, style="dim")
    say(_summary(imported.study))
    for caution in filter(None, (caption_words(imported.study), unannotated(imported.study))):
        say(f"Caution: {caution}")
    say(f"The study is in {out}. Next: portrayal check-study {out}")


def _summary(study: Study) -> str:
    parts = []
    if study.captions.height or not study.rankings.height:
        images = study.captions["image_id"].n_unique()
        parts.append(
            f"{counted(len(study.systems), 'system')}, {counted(images, 'image')}, "
            f"{counted(study.captions.height, 'caption')}"
        )
    if study.rankings.height:
        parts.append(told_rankings(study))
    if study.references.height:
        parts.append(f"references for {counted(study.references['image_id'].n_unique(), 'image')}")
    if study.attribute_names:
        parts.append(f"labels of {', '.join(study.attribute_names)}")
    if study.objects.height:
        parts.append(told_objects(study))
    return "; ".join(parts) + "."
