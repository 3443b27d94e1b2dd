"""portrayal demo"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.audit import run_audit
from portrayal.cli.console import say
from portrayal.cli.folders import force_option
from portrayal.cli.lab import refuse_lab
from portrayal.cli.options import seed_option
from portrayal.errors import PortrayalError
from portrayal.lab.folder import Recipe, write_lab
from portrayal.lab.images import SIZE
from portrayal.study import read_study


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("portrayal-demo"),
    show_default=True,
    metavar="DIR",
    help="Where to write.",
)
@seed_option
@force_option
def command(out: Path, seed: int, force: bool) -> None:
    """Make a small study in the lab, where the faults of three captioners are known, and audit it."""
    folder = out / "study"
    recipe = Recipe(seed=seed, name="the lab's demo world", pictures=SIZE)
    refuse_lab(folder, recipe, force)
    others = [path.name for path in out.iterdir() if path.name != folder.name] if out.is_dir() else []
    if others and not folder.is_dir():
        raise PortrayalError(f"{out} holds files ({min(others)}); choose a new folder for the demo.")
    write_lab(recipe, folder)
    say(f"A study with three captioners whose faults were planted: {folder}")
    run_audit(read_study(folder), out, seed=seed, force=force, beside=(folder.name,))
