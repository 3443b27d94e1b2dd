"""portrayal lab"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import clear_interrupt_message, echo, print_table, progress
from portrayal.cli.folders import force_option, refuse_study
from portrayal.cli.options import F, comma_separated, out_option, seed_option, workers_option
from portrayal.errors import PortrayalError
from portrayal.files import replacing
from portrayal.lab import DEMO_CAPTIONERS, Annotators, Captioner, World
from portrayal.lab.dials import Dial, dial_name, dials_of
from portrayal.lab.folder import (
    APPEARANCE_FILE,
    MANIFEST_FILE,
    RECIPE_FILE,
    LabRecipe,
    read_recipe,
    write_lab,
)
from portrayal.lab.images import SIZE, contact_sheet, world_rows
from portrayal.lab.model_training import STATE, STREAMS, WORLDS, TrainingSpec, recipe_for, train_lab_model
from portrayal.models.device import DEVICES, resolve_device

CHECKPOINT = ".curves-checkpoint"


@click.group("lab")
def command() -> None:
    """Simulate studies with planted bias, to validate metrics against known truth."""


class _DialValue(click.ParamType[Any]):
    """Parse a number, or a number per group: 0.1, or female=0.1,male=0.02."""

    def __init__(self, dial: Dial, only_groups: bool):
        self.name = "GROUP=N,.." if only_groups else "N|GROUP=N,.." if dial.per_group else "N"
        self._per_group = only_groups or dial.per_group
        self._accepts_number = not only_groups

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            if self._per_group and "=" in value:
                pairs = [part.split("=") for part in value.split(",")]
                rates = {group.strip(): float(number) for group, number in pairs}
                if len(rates) == len(pairs):
                    return rates
            if self._accepts_number:
                return float(value)
        except ValueError:
            pass
        return self.fail(f"expected {self.name}, got {value!r}.", param, ctx)


def _dial_options(kind: type) -> Callable[[F], F]:
    """Add an option for every dial of a class; dials that are not given keep their defaults."""

    def add(function: F) -> F:
        defaults = kind("") if kind is Captioner else kind()
        for name, dial in reversed(dials_of(kind).items()):
            default = getattr(defaults, name)
            text = (
                f"{dial.meaning[0].upper()}{dial.meaning[1:]}; {dial.low:g} to {dial.high:g}, 0: {dial.zero}."
            )
            if default != {}:
                text += f" [default: {default:g}]"
            function = click.option(
                f"--{dial_name(name)}", name, type=_DialValue(dial, default == {}), help=text
            )(function)
        return function

    return add


def refuse_lab(folder: Path, recipe: LabRecipe, force: bool) -> None:
    """Raise an error if the folder holds another study than this recipe's, unless `force` is given."""
    if (folder / RECIPE_FILE).is_file() and read_recipe(folder) == recipe:
        return
    refuse_study(folder, force)


@command.command("make")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="STUDY",
    help="Output folder of the study.",
)
@click.option(
    "--scenes", type=click.IntRange(min=1), default=1500, show_default=True, help="Number of scenes."
)
@seed_option
@click.option(
    "--images",
    is_flag=True,
    help=f"Also render the scenes as images, and write {MANIFEST_FILE} for CounterBias and {APPEARANCE_FILE} for "
    "reification.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 2048),
    help=f"Width and height of the images in pixels. [default: {SIZE}]",
)
@click.option("--counterfactuals", is_flag=True,
              help="Also render the manifest's images with a person of the other group.")  # fmt: skip
@click.option("--activities", type=click.Choice(["drawn", "all"]), default="drawn", show_default=True,
              help="Use only activities that can be drawn, or all 52 (captions only).")  # fmt: skip
@force_option
@_dial_options(World)
@_dial_options(Annotators)
@_dial_options(Captioner)
def make_command(
    out: Path,
    scenes: int,
    seed: int,
    images: bool,
    size: int | None,
    counterfactuals: bool,
    activities: str,
    force: bool,
    **dials: Any,
) -> None:
    """Simulate a study with planted bias and write it.

    The last options are the dials (one planted bias each): first those of the world, then of the annotators who write
    references, then of the captioner. Without a captioner dial there are three captioners with different biases; with
    one there is a single captioner with those biases. If a dial is set per group, groups that are not named get 0.
    """
    given_dials = {name: value for name, value in dials.items() if value is not None}
    world, annotators, captioner = (
        {name: given_dials[name] for name in dials_of(kind) if name in given_dials}
        for kind in (World, Annotators, Captioner)
    )
    captioners = (Captioner("captioner", **captioner),) if captioner else DEMO_CAPTIONERS
    lab_world = World(activities=activities, **world)  # type: ignore[arg-type]  # click has checked the choice
    if (size is not None or counterfactuals) and not images:
        raise click.UsageError("--size and --counterfactuals apply to images: add --images.")
    image_size = size or SIZE if images else None
    recipe = LabRecipe(
        scenes,
        seed,
        lab_world,
        Annotators(**annotators),
        captioners,
        image_size=image_size,
        counterfactuals=counterfactuals,
    )
    refuse_lab(out, recipe, force)
    study = write_lab(recipe, out)
    echo(
        f"Scenes: {scenes:,}, each described by {', '.join(study.systems)} and five people. The study: {out}"
    )


@command.command("sheet")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("lab-sheet.png"),
    show_default=True,
    metavar="FILE",
    help="Output image, .png.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 2048),
    default=SIZE,
    show_default=True,
    help="Width and height of each image in pixels.",
)
@seed_option
def sheet_command(out: Path, size: int, seed: int) -> None:
    """Draw a contact sheet of everything that the lab can render."""
    if out.suffix.lower() != ".png":
        raise click.BadParameter(f"expected a file ending in .png, got {out.name!r}.", param_hint="--out")
    sheet = contact_sheet(world_rows(seed), size)
    with replacing(out) as temporary:
        sheet.save(temporary, format="PNG")
    echo(f"A sheet of the lab's images: {out}")


@command.command("train")
@click.argument("stream", metavar="STREAM", type=click.Choice(STREAMS))
@click.argument("world", metavar="WORLD", type=click.Choice(list(WORLDS)))
@out_option
@click.option(
    "--scenes",
    type=click.IntRange(min=2),
    default=TrainingSpec.scenes,
    show_default=True,
    help="Number of training scenes.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=2),
    help="Images per training step. [default: the packaged model's]",
)
@click.option(
    "--steps", type=click.IntRange(min=1), help="Number of training steps. [default: the packaged model's]"
)
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    help="Device for training; auto: a GPU if there is one.",
)
@seed_option
def train_command(
    stream: str,
    world: str,
    out: Path,
    scenes: int,
    batch_size: int | None,
    steps: int | None,
    device: str,
    seed: int,
) -> None:
    """Train a small vision-language model on the lab's images and captions.

    STREAM is the architecture: single (one encoder for image and text, as in ViLT) or dual (separate encoders and a
    cross-encoder, as in ALBEF). WORLD is the training data: 0, half or full data bias, or clear (full data bias, and
    every image shows the activity). The defaults are those of the packaged models (lab-dual-half and so on) and need a
    GPU: on two cores they take hours. Progress is checkpointed; run the same command again to resume.
    """
    spec = TrainingSpec(stream, world, scenes, seed)
    training_device = resolve_device(device)
    if out.is_dir() and any(out.iterdir()) and not (out / STATE).exists():
        raise PortrayalError(f"{out} holds files already; choose a new folder for the model.")
    with progress("train", unit="steps", stages=True) as report_progress:
        recipe = recipe_for(stream, training_device, batch_size=batch_size, steps=steps, seed=seed)
        card = train_lab_model(
            spec, out, recipe, training_device, lambda done, of, _: report_progress("training", done, of)
        )
    clear_interrupt_message()
    scores = [[name, f"{value:.3f}"] for name, value in card["held out"].items()]
    print_table(["on scenes it has not seen", "share or distance"], scores)
    echo(f"The model {card['name']}: {out}. Use it as --model {out}")


@command.command("curves")
@click.option(
    "--metrics",
    callback=comma_separated,
    metavar="A,B",
    help="Only these metrics, separated by commas. [default: all]",
)
@out_option
@click.option(
    "--quick", is_flag=True, help="Simulate a twentieth of the studies: faster, with rough numbers."
)
@workers_option
@seed_option
def curves_command(metrics: list[str] | None, out: Path, quick: bool, workers: int, seed: int) -> None:
    """Validate metrics: simulate many studies and plot each metric against the dial that it should follow.

    Writes index.html with a chart and the numbers of each term, and the same as curves.csv and curves.json. Progress is
    checkpointed; run the same command again to resume.
    """
    # Imported here because charts take a second to load, which the lab's other commands do not need.
    from portrayal.lab.curves import curves, write_curves
    from portrayal.lab.curves.tables import SHORT, findings, short
    from portrayal.lab.curves.write import CURVES_FILE

    checkpoint = out / CHECKPOINT
    if out.is_dir() and any(out.iterdir()) and not (checkpoint.exists() or (out / CURVES_FILE).exists()):
        raise PortrayalError(f"{out} holds files but no {CURVES_FILE}; choose a new folder for the curves.")
    with progress("curves", unit="tasks") as report_progress:
        fitted_curves = curves(
            metrics, quick=quick, seed=seed, workers=workers, checkpoint=checkpoint, progress=report_progress
        )
    page = write_curves(fitted_curves, out)
    # Only after the results are written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    print_table(list(SHORT), short(fitted_curves))
    for curve in fitted_curves:
        for finding in findings(curve):
            echo(f"  {finding}" if finding.startswith("Note") else f"{curve.name} {finding}", style="dim")
    echo(f"The page, with a chart for each: {page}")
