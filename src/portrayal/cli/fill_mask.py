"""portrayal fill"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from PIL.Image import Image

from portrayal.cli.console import finished, progress, say, show_table
from portrayal.cli.images import (
    BY_NAME,
    Asked,
    model_name,
    picture_options,
    pictures_in,
    readable,
    tell_left_out,
)
from portrayal.cli.options import names
from portrayal.cli.row_files import journal_beside, refuse_file, write_rows
from portrayal.errors import PortrayalError, Problems, counted
from portrayal.models.masked_vlm.requirements import need_packages

if TYPE_CHECKING:
    from portrayal.models.masked_vlm import MaskedModel

_BEST = 5  # words shown of each text where none are asked for
_SHOWN = 10  # rows on the terminal
_OVER = ("vocabulary", "candidates")


@click.command("fill-mask")
@click.option(
    "--model", required=True, metavar="NAME",
    help="lab-dual, lab-single; a file of ALBEF or TCL; a folder (lab train writes one), or a ViLT by its hub name.",
)  # fmt: skip
@click.option("--text", "texts", multiple=True, required=True, metavar="TEXT",
              help='A text with one [MASK], such as "a [MASK] is in the picture" (repeatable).')  # fmt: skip
@click.option(
    "--words",
    callback=names,
    metavar="A,B",
    help=f"Words to ask about. By default the {_BEST} likeliest of each picture and text.",
)
@click.option("--normalize-over", type=click.Choice(_OVER), default=_OVER[0], show_default=True,
              help="Probabilities over all that the model knows, or over the words asked about.")  # fmt: skip
@click.option(
    "--tokenizer", metavar="NAME", help="A name or folder with the word pieces of a file of ALBEF or TCL."
)
@picture_options
def command(
    model: str,
    texts: tuple[str, ...],
    words: list[str] | None,
    over: str,
    tokenizer: str | None,
    images: Path,
    out: Path,
    ids: str,
    device: str,
    skip_bad: bool,
) -> None:
    """Fill the mask of a text, given each picture of a folder.

    Writes image_id, text, word and probability. What is finished is kept when the command is interrupted; the same
    command goes on from there.
    """
    refuse_file(out)
    if over == "candidates" and not words:
        raise click.UsageError("--normalize-over candidates needs the candidates: give them as --words A,B.")
    need_packages(model)
    from portrayal.models.masked_vlm.loading import load_masked, located

    known = load_masked(model, device, tokenizer=tokenizer)
    answer = _filler(known, texts, words, over)
    problems = Problems(skip_bad)
    kept = journal_beside(out)
    with progress("fill-mask") as report_progress:
        pictures = readable(pictures_in(images, ids == BY_NAME, problems), problems, report_progress)
    with progress("fill-mask", kept="images") as report_progress:
        settings = (texts, words, over, [known.reader.word(number) for number in range(len(known.reader))])
        asked = Asked("filling masks", located(model), settings, lambda: answer)
        answers = asked.answers(pictures, kept, report_progress)
    rows = [
        {"image_id": image, "text": text, "word": word, "probability": probability}
        for image, said in answers.items()
        for text, word, probability in said
    ]
    write_rows(out, rows)
    shutil.rmtree(kept, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    tell_left_out(problems)
    columns = ["image_id", "text", "word", "probability"]
    show_table(
        columns, [[*map(str, list(row.values())[:3]), f"{row['probability']:.3g}"] for row in rows[:_SHOWN]]
    )
    say(
        f"{counted(len(rows), 'answer')} about {counted(len(answers), 'picture')} by {model_name(model)}: {out}"
    )


def _filler(
    model: MaskedModel, texts: Sequence[str], words: Sequence[str] | None, over: str
) -> Callable[[Sequence[Image]], list[list[Any]]]:
    """For each picture a list of [text, word, probability]. Texts and words are tried now, before hours of work."""
    import torch

    if not model.network.side:
        raise PortrayalError(f"The model '{model.name}' reads texts alone: it takes no pictures.")

    def fill(pictures: Sequence[Image]) -> list[list[Any]]:
        found: list[list[Any]] = [[] for _ in pictures]
        with torch.inference_mode():
            looked = model.encode(model.pixels(pictures))
            for text in texts:
                if words:
                    said = model.word_log_probs(looked, text, words, over)  # type: ignore[arg-type]
                    for row, values in zip(found, said.exp().tolist(), strict=True):
                        row.extend([text, word, value] for word, value in zip(words, values, strict=True))
                    continue
                best = model.log_probs(looked, text)[:, 0].exp().topk(_BEST)
                for row, values, numbers in zip(
                    found, best.values.tolist(), best.indices.tolist(), strict=True
                ):
                    row.extend(
                        [text, model.reader.word(number), value]
                        for number, value in zip(numbers, values, strict=True)
                    )
        return found

    with torch.inference_mode():
        looked = model.encode(model.gray(1))
        for text in texts:
            if words:
                model.word_log_probs(looked, text, words)
            elif model.log_probs(looked, text).shape[1] != 1:
                raise PortrayalError("A text has one [MASK]: found several.")
    return fill
