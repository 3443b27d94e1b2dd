"""portrayal caption"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from portrayal.cli.console import clear_interrupt_message, echo, progress
from portrayal.cli.images import (
    BY_NAME,
    BatchInference,
    find_images,
    image_options,
    model_name,
    readable_images,
    warn_skipped_images,
)
from portrayal.cli.row_files import checkpoint_folder, require_new_file, write_rows
from portrayal.errors import PortrayalError, Problems, counted
from portrayal.models.vision.captioner import MAX_NEW_TOKENS, NUM_BEAMS, ImageCaptioner
from portrayal.results import HUMAN


@click.command("caption")
@click.option(
    "--model", required=True, metavar="NAME", help="Image captioning model: a Hugging Face name or a folder."
)
@image_options
@click.option(
    "--system", metavar="NAME", help="System name in the output. [default: the last part of the model's name]"
)
@click.option(
    "--beams",
    type=click.IntRange(min=1),
    default=NUM_BEAMS,
    show_default=True,
    metavar="N",
    help="Number of beams for beam search; 1 is greedy decoding.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=MAX_NEW_TOKENS,
    show_default=True,
    metavar="N",
    help="Maximum caption length in tokens (max_new_tokens); a word has one or a few.",
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
    max_tokens: int,
) -> None:
    """Caption the images of a folder with a model.

    Writes the columns image_id, system and caption, which `portrayal import table` reads. Progress is checkpointed; run
    the same command again to resume.
    """
    require_new_file(out)
    name = system or model_name(model)
    if name == HUMAN:
        raise PortrayalError(
            f"No system may be called '{HUMAN}', which stands for human captions; give another --system."
        )
    captioner = ImageCaptioner.load(model, device, num_beams=beams, max_new_tokens=max_tokens)
    problems = Problems(skip_bad)
    checkpoint = checkpoint_folder(out)
    with progress("caption") as report_progress:
        files = readable_images(find_images(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("caption", unit="images") as report_progress:
        inference = BatchInference("captioning", model, (beams, max_tokens), lambda: captioner.caption_images)
        captions = inference.run(files, checkpoint, report_progress)
    write_rows(
        out, [{"image_id": image, "system": name, "caption": text} for image, text in captions.items()]
    )
    # Only after the file is written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    warn_skipped_images(problems)
    echo(
        f"Captions of {counted(len(captions), 'image')} by {name}: {out}. "
        f"Next: portrayal import table {out} --out STUDY"
    )
