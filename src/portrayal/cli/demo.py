"""portrayal demo"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.audit import run_audit
from portrayal.cli.console import say
from portrayal.cli.options import seed_option
from portrayal.lab.folder import Recipe, write_lab
from portrayal.lab.pictures import SIZE
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
def command(out: Path, seed: int) -> None:
    """Make a small study in the lab, where the faults of three captioners are known, and audit it."""
    folder = out / "study"
    write_lab(Recipe(seed=seed, name="the lab's demo world", pictures=SIZE), folder)
    say(f"A study with three captioners whose faults were planted: {folder}")
    run_audit(read_study(folder), out, seed=seed)
