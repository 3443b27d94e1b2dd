"""portrayal caption"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from portrayal.cli.console import finished, progress, say
from portrayal.cli.images import (
    BY_NAME,
    Asked,
    model_name,
    picture_options,
    pictures_in,
    readable,
    tell_left_out,
)
from portrayal.cli.row_files import journal_beside, refuse_file, write_rows
from portrayal.errors import PortrayalError, Problems, counted
from portrayal.models.vision.captioner import BEAMS, WORDS, Captioner
from portrayal.results import HUMAN


@click.command("caption")
@click.option("--model", required=True, metavar="NAME", help="A captioner: a Hugging Face name, or a folder.")
@picture_options
@click.option("--system", metavar="NAME", help="The system's name; by default the last part of the model's.")
@click.option(
    "--beams",
    type=click.IntRange(min=1),
    default=BEAMS,
    show_default=True,
    metavar="N",
    help="Captions that are followed at once; 1 takes the likeliest next word each time.",
)
@click.option(
    "--words",
    type=click.IntRange(min=1),
    default=WORDS,
    show_default=True,
    metavar="N",
    help="The longest caption, in the model's tokens, of which a word has one or a few.",
)
def command(
    model: str,
    images: Path,
    out: Path,
    ids: str,
    device: str,
    skip_bad: bool,
    system: str | None,
    beams: int,
    words: int,
) -> None:
    """Caption the pictures of a folder with a model.

    Writes image_id, system and caption, which `portrayal import table` reads. What is finished is kept when the command
    is interrupted; the same command goes on from there.
    """
    refuse_file(out)
    name = system or model_name(model)
    if name == HUMAN:
        raise PortrayalError(
            f"No system may be called '{HUMAN}', which stands for people; give another --system."
        )
    captioner = Captioner.load(model, device, beams=beams, words=words)
    problems = Problems(skip_bad)
    kept = journal_beside(out)
    with progress("caption") as report_progress:
        pictures = readable(pictures_in(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("caption", kept="images") as report_progress:
        asked = Asked("captioning", model, (beams, words), lambda: captioner.captions)
        captions = asked.answers(pictures, kept, report_progress)
    write_rows(
        out, [{"image_id": image, "system": name, "caption": text} for image, text in captions.items()]
    )
    shutil.rmtree(kept, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    tell_left_out(problems)
    say(
        f"Captions of {counted(len(captions), 'picture')} by {name}: {out}. "
        f"Next: portrayal import table {out} --out STUDY"
    )
