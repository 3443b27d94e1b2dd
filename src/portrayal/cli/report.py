"""portrayal report"""

from __future__ import annotations

from pathlib import Path

import click

from portrayal.cli.console import echo
from portrayal.cli.folders import claim_folder, force_option, remove_stale, results_files, results_subject
from portrayal.cli.options import comma_separated, out_option
from portrayal.files import write_text
from portrayal.report import to_csv, to_markdown, write_page
from portrayal.report.export.exports import ALL, EXPORTS, resolve_exports, write_exports
from portrayal.results import Results


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@out_option
@force_option
@click.option(
    "--export",
    "export_names",
    callback=comma_separated,
    metavar="A,B",
    help=f"Also export these, for papers and model cards: {', '.join(EXPORTS)} or {ALL}.",
)
def command(results: Path, out: Path, force: bool, export_names: list[str] | None) -> None:
    """Write the page, the results and their tables again from RESULTS, a results file or its folder."""
    # Raises an error for an unknown name before anything is written.
    chosen = resolve_exports(export_names or ())
    loaded = Results.load(results)
    stale = claim_folder(out, results_subject(loaded.provenance), force)
    loaded.save(out)
    write_text(out / "results.csv", to_csv(loaded))
    write_text(out / "results.md", to_markdown(loaded))
    echo(f"The page: {write_page(loaded, out)}")
    exported = write_exports(loaded, out, chosen)
    tables = [out / "results.csv", out / "results.md"]
    written = [*tables, *(file for files in exported.values() for file in files)]
    remove_stale(stale, results_files(out, with_images=bool(loaded.thumbnails.height), more=written))
    for name, files in exported.items():
        echo(f"{name}: {len(files)} files in {files[0].parent}" if files else f"{name}: nothing to write")
