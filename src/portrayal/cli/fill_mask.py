"""portrayal fill-mask"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from PIL.Image import Image

from portrayal.cli.console import clear_interrupt_message, echo, print_table, progress
from portrayal.cli.images import (
    BY_NAME,
    BatchInference,
    find_images,
    image_options,
    model_name,
    readable_images,
    warn_skipped_images,
)
from portrayal.cli.options import comma_separated
from portrayal.cli.row_files import checkpoint_folder, require_new_file, write_rows
from portrayal.errors import PortrayalError, Problems, counted
from portrayal.models.masked_vlm.requirements import need_packages

if TYPE_CHECKING:
    from portrayal.models.masked_vlm import TorchMaskedVLM

_TOP_WORDS = 5  # words per image and text without --words
_MAX_ROWS = 10  # rows printed on the terminal
_NORMALIZE_OVER = ("vocabulary", "candidates")


@click.command("fill-mask")
@click.option(
    "--model", required=True, metavar="NAME",
    help="Masked vision-language model: lab-dual, lab-single, a checkpoint file of ALBEF or TCL, a folder (such as "
    "`lab train` writes), or the Hugging Face name of a ViLT.",
)  # fmt: skip
@click.option("--text", "texts", multiple=True, required=True, metavar="TEXT",
              help='Prompt with one [MASK], such as "a [MASK] is in the picture" (repeatable).')  # fmt: skip
@click.option(
    "--words",
    callback=comma_separated,
    metavar="A,B",
    help=f"Candidate words for the mask, separated by commas. [default: the {_TOP_WORDS} most probable words of each "
    "image and text]",
)
@click.option("--normalize-over", type=click.Choice(_NORMALIZE_OVER), default=_NORMALIZE_OVER[0], show_default=True,
              help="Normalize probabilities over the model's vocabulary or over the words of --words.")  # fmt: skip
@click.option(
    "--tokenizer",
    metavar="NAME",
    help="Tokenizer of an ALBEF or TCL checkpoint file: a Hugging Face name or a folder.",
)
@image_options
def command(
    model: str,
    texts: tuple[str, ...],
    words: list[str] | None,
    normalize_over: str,
    tokenizer: str | None,
    images: Path,
    out: Path,
    ids: str,
    device: str,
    skip_bad: bool,
) -> None:
    """Fill the [MASK] of a text with a vision-language model, for each image of a folder.

    Writes the columns image_id, text, word and probability. Progress is checkpointed; run the same command again to
    resume.
    """
    require_new_file(out)
    if normalize_over == "candidates" and not words:
        raise click.UsageError("--normalize-over candidates needs candidate words: give them as --words A,B.")
    need_packages(model)
    from portrayal.models.masked_vlm.loading import lab_model_path, load_masked

    loaded = load_masked(model, device, tokenizer=tokenizer)
    fill = _mask_filler(loaded, texts, words, normalize_over)
    problems = Problems(skip_bad)
    checkpoint = checkpoint_folder(out)
    with progress("fill-mask") as report_progress:
        files = readable_images(find_images(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("fill-mask", unit="images") as report_progress:
        settings = (
            texts,
            words,
            normalize_over,
            [loaded.tokenizer.id_to_token(token_id) for token_id in range(len(loaded.tokenizer))],
        )
        inference = BatchInference("filling masks", lab_model_path(model), settings, lambda: fill)
        predictions = inference.run(files, checkpoint, report_progress)
    rows = [
        {"image_id": image, "text": text, "word": word, "probability": probability}
        for image, image_predictions in predictions.items()
        for text, word, probability in image_predictions
    ]
    write_rows(out, rows)
    # Only after the file is written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    warn_skipped_images(problems)
    columns = ["image_id", "text", "word", "probability"]
    print_table(
        columns,
        [[*map(str, list(row.values())[:3]), f"{row['probability']:.3g}"] for row in rows[:_MAX_ROWS]],
    )
    echo(
        f"{counted(len(rows), 'prediction')} for {counted(len(predictions), 'image')} by {model_name(model)}: {out}"
    )


def _mask_filler(
    model: TorchMaskedVLM, texts: Sequence[str], words: Sequence[str] | None, normalize_over: str
) -> Callable[[Sequence[Image]], list[list[Any]]]:
    """Return a function from images to lists of [text, word, probability].

    Texts and words are checked now, before hours of work.
    """
    import torch

    if not model.network.image_size:
        raise PortrayalError(f"The model '{model.name}' reads texts alone: it takes no images.")

    def fill(images: Sequence[Image]) -> list[list[Any]]:
        predictions: list[list[Any]] = [[] for _ in images]
        with torch.inference_mode():
            encoded = model.encode_images(model.preprocess(images))
            for text in texts:
                if words:
                    log_probs = model.word_log_probs(encoded, text, words, normalize_over)  # type: ignore[arg-type]
                    for row, values in zip(predictions, log_probs.exp().tolist(), strict=True):
                        row.extend([text, word, value] for word, value in zip(words, values, strict=True))
                    continue
                top = model.log_probs(encoded, text)[:, 0].exp().topk(_TOP_WORDS)
                for row, values, token_ids in zip(
                    predictions, top.values.tolist(), top.indices.tolist(), strict=True
                ):
                    row.extend(
                        [text, model.tokenizer.id_to_token(token_id), value]
                        for token_id, value in zip(token_ids, values, strict=True)
                    )
        return predictions

    with torch.inference_mode():
        encoded = model.encode_images(model.gray_images(1))
        for text in texts:
            if words:
                model.word_log_probs(encoded, text, words)
            elif model.log_probs(encoded, text).shape[1] != 1:
                raise PortrayalError("A text has one [MASK]: found several.")
    return fill
