"""portrayal lab"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import say
from portrayal.cli.options import F, seed_option
from portrayal.lab import DEMO_CAPTIONERS, Annotators, Captioner, World
from portrayal.lab.dials import Dial, dials_of, spelled
from portrayal.lab.folder import MANIFEST_FILE, Recipe, write_lab
from portrayal.lab.pictures import SIZE, contact_sheet, world_rows


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
                return {group.strip(): float(number) for group, number in pairs}
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
    "--images", is_flag=True, help=f"Draw the scenes too, and write {MANIFEST_FILE} for CounterBias."
)
@click.option(
    "--size", type=click.IntRange(min=16), default=SIZE, show_default=True, help="Pixels a side of a picture."
)
@click.option("--activities", type=click.Choice(["drawn", "all"]), default="drawn", show_default=True,
              help="Only activities that can be drawn, or all 52 (words only).")  # fmt: skip
@_dial_options(World)
@_dial_options(Annotators)
@_dial_options(Captioner)
def make(out: Path, scenes: int, seed: int, images: bool, size: int, activities: str, **dials: Any) -> None:
    """Make a study of the lab. The dials come last: first those of the world, then of the people who write
    references, then of the captioner. Without a dial of the captioner there are three captioners with different
    faults; with one there is a single captioner, with those faults.
    """
    given = {name: value for name, value in dials.items() if value is not None}
    world, people, faults = (
        {name: given[name] for name in dials_of(kind) if name in given}
        for kind in (World, Annotators, Captioner)
    )
    captioners = (Captioner("captioner", **faults),) if faults else DEMO_CAPTIONERS
    place = World(activities=activities, **world)  # type: ignore[arg-type]  # click has checked the choice
    recipe = Recipe(scenes, seed, place, Annotators(**people), captioners)
    study = write_lab(recipe, out, pictures=images, size=size)
    say(f"{scenes} scenes by {', '.join(study.systems)} and five annotators each: {out}")


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
    "--size", type=click.IntRange(min=16), default=SIZE, show_default=True, help="Pixels a side of a picture."
)
@seed_option
def sheet(out: Path, size: int, seed: int) -> None:
    """Draw everything that has a picture on one sheet."""
    out.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(world_rows(seed), size).save(out, format="PNG")
    say(f"A sheet of the lab's pictures: {out}")
