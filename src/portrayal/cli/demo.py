"""portrayal demo"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.audit import run_audit
from portrayal.cli.console import echo
from portrayal.cli.folders import force_option
from portrayal.cli.lab import refuse_lab
from portrayal.cli.options import seed_option
from portrayal.errors import PortrayalError
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.lab.images import SIZE
from portrayal.study import read_study


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("portrayal-demo"),
    show_default=True,
    metavar="DIR",
    help="Output folder.",
)
@seed_option
@force_option
def command(out: Path, seed: int, force: bool) -> None:
    """Audit a small synthetic study, in which the biases of three captioners are known.

    The study is written to DIR/study, the page to DIR/index.html.
    """
    folder = out / "study"
    recipe = LabRecipe(seed=seed, name="the lab's demo world", image_size=SIZE)
    refuse_lab(folder, recipe, force)
    other_files = [path.name for path in out.iterdir() if path.name != folder.name] if out.is_dir() else []
    if other_files and not folder.is_dir():
        raise PortrayalError(f"{out} holds files ({min(other_files)}); choose a new folder for the demo.")
    write_lab(recipe, folder)
    echo(f"A study with three captioners whose faults were planted: {folder}")
    run_audit(read_study(folder), out, seed=seed, force=force, allowed=(folder.name,))
