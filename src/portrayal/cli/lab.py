"""portrayal lab"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import finished, progress, say, show_table
from portrayal.cli.folders import force_option, refuse_study
from portrayal.cli.options import F, names, out_option, seed_option, workers_option
from portrayal.errors import PortrayalError
from portrayal.files import replacing
from portrayal.lab import DEMO_CAPTIONERS, Annotators, Captioner, World
from portrayal.lab.dials import Dial, dials_of, spelled
from portrayal.lab.folder import LOOKS_FILE, MANIFEST_FILE, RECIPE_FILE, Recipe, read_recipe, write_lab
from portrayal.lab.images import SIZE, contact_sheet, world_rows
from portrayal.lab.model_training import STATE, STREAMS, WORLDS, Lesson, recipe_for, teach
from portrayal.models.device import DEVICES, best_device

JOURNAL = ".curves-journal"


@click.group("lab")
def command() -> None:
    """A synthetic world with planted bias, to hold metrics against the truth."""


class _Level(click.ParamType[Any]):
    """A number, or a number per group: 0.1, or female=0.1,male=0.02."""

    def __init__(self, dial: Dial, only_groups: bool):
        self.name = "GROUP=N,.." if only_groups else "N|GROUP=N,.." if dial.per_group else "N"
        self._groups = only_groups or dial.per_group
        self._number = not only_groups

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            if self._groups and "=" in value:
                pairs = [part.split("=") for part in value.split(",")]
                rates = {group.strip(): float(number) for group, number in pairs}
                if len(rates) == len(pairs):
                    return rates
            if self._number:
                return float(value)
        except ValueError:
            pass
        return self.fail(f"expected {self.name}, got {value!r}.", param, ctx)


def _dial_options(kind: type) -> Callable[[F], F]:
    """An option for every dial of a class. What is not given keeps its default."""

    def add(function: F) -> F:
        usual = kind("") if kind is Captioner else kind()
        for name, dial in reversed(dials_of(kind).items()):
            default = getattr(usual, name)
            text = (
                f"{dial.meaning[0].upper()}{dial.meaning[1:]}; {dial.low:g} to {dial.high:g}, 0: {dial.zero}."
            )
            if default != {}:
                text += f" [default: {default:g}]"
            function = click.option(f"--{spelled(name)}", name, type=_Level(dial, default == {}), help=text)(
                function
            )
        return function

    return add


def refuse_lab(folder: Path, recipe: Recipe, force: bool) -> None:
    """The lab may write a study again, but another one only with `force`."""
    if (folder / RECIPE_FILE).is_file() and read_recipe(folder) == recipe:
        return
    refuse_study(folder, force)


@command.command("make")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="STUDY",
    help="Where to write.",
)
@click.option(
    "--scenes", type=click.IntRange(min=1), default=1500, show_default=True, help="How many scenes."
)
@seed_option
@click.option(
    "--images",
    is_flag=True,
    help=f"Draw the scenes too, and write {MANIFEST_FILE} for CounterBias and {LOOKS_FILE} for reification.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 2048),
    help=f"Pixels a side of a picture. [default: {SIZE}]",
)
@click.option("--counterfactuals", is_flag=True,
              help="Draw the pictures of the manifest once more, with somebody of the other group.")  # fmt: skip
@click.option("--activities", type=click.Choice(["drawn", "all"]), default="drawn", show_default=True,
              help="Only activities that can be drawn, or all 52 (words only).")  # fmt: skip
@force_option
@_dial_options(World)
@_dial_options(Annotators)
@_dial_options(Captioner)
def make(
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
    """Make a study of the lab. The dials come last: first those of the world, then of the people who write
    references, then of the captioner. Without a dial of the captioner there are three captioners with different
    faults; with one there is a single captioner, with those faults. Where numbers are given per group, a group that is
    not mentioned gets 0.
    """
    given = {name: value for name, value in dials.items() if value is not None}
    world, people, faults = (
        {name: given[name] for name in dials_of(kind) if name in given}
        for kind in (World, Annotators, Captioner)
    )
    captioners = (Captioner("captioner", **faults),) if faults else DEMO_CAPTIONERS
    place = World(activities=activities, **world)  # type: ignore[arg-type]  # click has checked the choice
    if (size is not None or counterfactuals) and not images:
        raise click.UsageError("--size and --counterfactuals are about pictures, which --images asks for.")
    pictures = size or SIZE if images else None
    recipe = Recipe(
        scenes,
        seed,
        place,
        Annotators(**people),
        captioners,
        pictures=pictures,
        counterfactuals=counterfactuals,
    )
    refuse_lab(out, recipe, force)
    study = write_lab(recipe, out)
    say(f"Scenes: {scenes:,}, each described by {', '.join(study.systems)} and five people. The study: {out}")


@command.command("sheet")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("lab-sheet.png"),
    show_default=True,
    metavar="FILE",
    help="The picture to write.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 2048),
    default=SIZE,
    show_default=True,
    help="Pixels a side of a picture.",
)
@seed_option
def sheet_command(out: Path, size: int, seed: int) -> None:
    """Draw everything that has a picture on one sheet."""
    if out.suffix.lower() != ".png":
        raise click.BadParameter(f"expected a file ending in .png, got {out.name!r}.", param_hint="--out")
    sheet = contact_sheet(world_rows(seed), size)
    with replacing(out) as temporary:
        sheet.save(temporary, format="PNG")
    say(f"A sheet of the lab's pictures: {out}")


@command.command("train")
@click.argument("stream", type=click.Choice(STREAMS))
@click.argument("world", type=click.Choice(list(WORLDS)))
@out_option
@click.option(
    "--scenes", type=click.IntRange(min=2), default=Lesson.scenes, show_default=True, help="To learn from."
)
@click.option(
    "--batch-size", type=click.IntRange(min=2), help="Pictures of a step. [default: the model's own]"
)
@click.option("--steps", type=click.IntRange(min=1), help="Steps of training. [default: the model's own]")
@click.option(
    "--device", type=click.Choice(DEVICES), default="auto", show_default=True, help="Where it is trained."
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
    """Train a small vision-language model on the lab's pictures and captions.

    STREAM is single (pictures and words are read together, as in ViLT) or dual (apart, then together, as in ALBEF).
    WORLD is what it learns from: 0, half or full data bias, or clear (full data bias, and every picture shows what is
    done). The defaults are those of the models in the package (lab-dual-half and so on), and are for a GPU: on two
    cores they take hours. An interrupted command goes on where it was.
    """
    lesson = Lesson(stream, world, scenes, seed)
    where = best_device(device)
    if out.is_dir() and any(out.iterdir()) and not (out / STATE).exists():
        raise PortrayalError(f"{out} holds files already; choose a new folder for the model.")
    with progress("train", kept="steps", stages=True) as report_progress:
        recipe = recipe_for(stream, where, batch_size=batch_size, steps=steps, seed=seed)
        card = teach(lesson, out, recipe, where, lambda done, of, _: report_progress("training", done, of))
    finished()
    grades = [[name, f"{value:.3f}"] for name, value in card["held out"].items()]
    show_table(["on scenes it has not seen", "share or distance"], grades)
    say(f"The model {card['name']}: {out}. Use it as --model {out}")


@command.command("curves")
@click.option("--metrics", callback=names, metavar="A,B", help="Only these metrics.")
@out_option
@click.option("--quick", is_flag=True, help="A twentieth of the studies: sooner, and the numbers are rough.")
@workers_option
@seed_option
def curves_command(metrics: list[str] | None, out: Path, quick: bool, workers: int, seed: int) -> None:
    """Hold each metric against the dial it claims to follow, in many simulated studies.

    Writes index.html with a chart and the numbers of each term, and the same as curves.csv and curves.json. What is
    finished is kept when the command is interrupted; the same command goes on from there.
    """
    # Here, because charts take a second to load that the lab's other commands have no need to spend.
    from portrayal.lab.curves import curves, write_curves
    from portrayal.lab.curves.tables import SHORT, findings, short
    from portrayal.lab.curves.write import CURVES_FILE

    checkpoint = out / JOURNAL
    if out.is_dir() and any(out.iterdir()) and not (checkpoint.exists() or (out / CURVES_FILE).exists()):
        raise PortrayalError(f"{out} holds files but no {CURVES_FILE}; choose a new folder for the curves.")
    with progress("curves", kept="tasks") as report_progress:
        made = curves(
            metrics, quick=quick, seed=seed, workers=workers, checkpoint=checkpoint, progress=report_progress
        )
    page = write_curves(made, out)
    shutil.rmtree(checkpoint, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    show_table(list(SHORT), short(made))
    for curve in made:
        for finding in findings(curve):
            say(f"  {finding}" if finding.startswith("Note") else f"{curve.name} {finding}", style="dim")
    say(f"The page, with a chart for each: {page}")
