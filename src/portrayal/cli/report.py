"""portrayal report"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.console import say
from portrayal.cli.folders import claim, clear, force_option, results_files, subject
from portrayal.cli.options import names, out_option
from portrayal.files import write_text
from portrayal.report import to_csv, to_markdown, write_page
from portrayal.report.export.exports import ALL, EXPORTS, exports, write_exports
from portrayal.results import Results


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@out_option
@force_option
@click.option(
    "--export",
    "wanted",
    callback=names,
    metavar="A,B",
    help=f"Also write these, for papers and model cards: {', '.join(EXPORTS)} or {ALL}.",
)
def command(results: Path, out: Path, force: bool, wanted: list[str] | None) -> None:
    """Write the page, the results and their tables again from RESULTS, a results file or its folder."""
    chosen = exports(wanted or ())  # a name that is not known is said before anything is written
    loaded = Results.load(results)
    old = claim(out, subject(loaded.provenance), force)
    loaded.save(out)
    write_text(out / "results.csv", to_csv(loaded))
    write_text(out / "results.md", to_markdown(loaded))
    say(f"The page: {write_page(loaded, out)}")
    exported = write_exports(loaded, out, chosen)
    tables = [out / "results.csv", out / "results.md"]
    written = [*tables, *(file for files in exported.values() for file in files)]
    clear(old, results_files(out, pictures=bool(loaded.pictures.height), more=written))
    for name, files in exported.items():
        say(f"{name}: {len(files)} files in {files[0].parent}" if files else f"{name}: nothing to write")
