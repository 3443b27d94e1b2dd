"""portrayal compare"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import click

from portrayal.cli.console import COLUMN_GAP, console, echo, print_table, write_raw
from portrayal.cli.folders import claim_folder, force_option, remove_stale, results_files, results_subject
from portrayal.cli.options import FORMATS, output_options
from portrayal.comparing import compare
from portrayal.errors import find_name, unknown_name
from portrayal.report.findings.changes import (
    caution_notes,
    change_sentences,
    count_changes,
    reason_notes,
    row_labels,
    verdict,
)
from portrayal.report.page.comparison import write_comparison
from portrayal.report.tables.layout import format_number, format_with_ci
from portrayal.report.tables.table import format_p
from portrayal.results import HUMAN, Measurement, Results

_SELECTOR = re.compile(r".+@(?P<name>\w+)=.*")


@click.command("compare")
@click.argument("first")
@click.argument("second")
@output_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write the page and the results to this folder.",
)
@force_option
def command(
    first: str, second: str, json_file: Path | None, style: str, out: Path | None, force: bool
) -> None:
    """Test the differences SECOND - FIRST between two results files, or folders that hold one.

    PATH@system=NAME selects one system of a file, so that two systems of one audit can be compared. If both were
    measured with the same seed, differences are paired: variation that common images share cancels. p values are
    corrected (Holm) over all tested rows, overall and by group. Rows that are better for one group and worse for
    another come first.
    """
    differences = compare(_load(first), _load(second), (first, second))
    if json_file is not None:
        differences.save(json_file)
    if out is not None:
        stale = claim_folder(out, results_subject(differences.provenance), force)
        differences.save(out)
        page = write_comparison(differences, out)
        remove_stale(stale, results_files(out))
    if style == "table":
        _print_comparison(differences)
    else:
        write_raw(FORMATS[style](differences))
    if out is not None and style == "table":
        echo(f"The page: {page}")


def _load(source: str) -> Results:
    path, selector, system = source.rpartition("@system=")
    other_selector = _SELECTOR.fullmatch(source)
    if other_selector and other_selector["name"] != "system" and not Path(source).exists():
        raise unknown_name(f"selector in '{source}'", other_selector["name"], ["system"])
    results = Results.load(path if selector else system)
    if not selector:
        return results
    known = {str(m.system) for m in results.measurements if m.system not in (None, HUMAN)}
    name = find_name(f"system in {path}", system, known)
    return replace(results, measurements=tuple(m for m in results.measurements if m.system == name))


def _print_comparison(differences: Results) -> None:
    """Print a table per metric; on narrow terminals the least important columns are dropped."""
    head = ["term", "group", "first", "second", "difference", "p", "Holm", "MDE", "change"]
    _print_changes(differences)
    for section in _sections(differences):
        first = section[0]
        echo()
        echo(" · ".join(filter(None, (first.metric, first.attribute, first.system))), style="bold")
        names = row_labels(section)
        rows = [_cells(m, names[m.id]) for m in section]
        for hidden in ((), (7,), (7, 5), (7, 5, 2, 3), (7, 5, 2, 3, 8)):
            shown_columns = [index for index in range(len(head)) if index not in hidden]
            lines = [[row[index] for index in shown_columns] for row in [head, *rows]]
            if (
                sum(max(map(len, column)) + COLUMN_GAP for column in zip(*lines, strict=True))
                <= console().width
            ):
                break
        print_table(
            lines[0], lines[1:], {position for position, index in enumerate(shown_columns) if 2 <= index <= 7}
        )
        for line in (*reason_notes(section), *caution_notes(section)):
            echo(line)
    paired = [m.settings["paired"] for m in differences.measurements if m.settings["paired"] is not None]
    echo()
    if not paired:
        echo("Nothing could be tested: one side or both have neither resamples nor standard errors.")
    elif all(paired):
        echo(
            "All differences are paired: both have the same resamples, so that what common images share cancels."
        )
    else:
        echo(
            f"{paired.count(False)} of {len(paired)} differences are not paired: another seed, no resamples, or "
            "resamples of one side that are all alike."
        )
    if differences.provenance.get("same_images") is False:
        echo("The two were not measured on the same images, so a difference may be one between images.")
    echo(
        "MDE: minimum detectable effect, the smallest true difference that this much data would find with 80 % "
        "probability.",
        "dim",
    )


def _print_changes(differences: Results) -> None:
    changed, same, not_comparable = count_changes(differences)
    echo("What changed", style="bold")
    for sentence in change_sentences(differences):
        echo(f"- {sentence}")
    rows = changed + same + not_comparable
    suffix = f"; {not_comparable} cannot be compared" if not_comparable else ""
    echo(
        f"{changed} of {rows} rows changed; {same} did not change significantly{suffix} (Holm over all rows that are "
        "tested, .05).",
        "dim",
    )


def _sections(differences: Results) -> list[list[Measurement]]:
    sections: dict[tuple[str | None, ...], list[Measurement]] = {}
    for m in differences.measurements:
        sections.setdefault((m.metric, m.attribute, m.system), []).append(m)
    return list(sections.values())


def _cells(m: Measurement, name: str) -> list[str]:
    p, q = format_p(m.p), format_p(m.q)
    first, second, mde = (format_number(m.settings[name], m.unit) for name in ("first", "second", "mde"))
    return [name, m.group or "all", first, second, format_with_ci(m), p, q, mde, verdict(m)]
