"""portrayal report"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.console import say
from portrayal.cli.options import out_option
from portrayal.files import write_text
from portrayal.report import to_csv, to_markdown, write_page
from portrayal.results import Results


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@out_option
def command(results: Path, out: Path) -> None:
    """Write the page, the results and their tables again from RESULTS, a results file or its folder."""
    loaded = Results.load(results)
    loaded.save(out)
    write_text(out / "results.csv", to_csv(loaded))
    write_text(out / "results.md", to_markdown(loaded))
    say(f"The page: {write_page(loaded, out)}")
