"""portrayal compare"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import click

from portrayal.cli.console import COLUMN_GAP, console, raw, say, show_table
from portrayal.cli.folders import claim, clear, force_option, results_files, subject
from portrayal.cli.options import FORMATS, output_options
from portrayal.comparing import compare
from portrayal.errors import find_name, unknown_name
from portrayal.report.findings.changes import cautions, counts, labels, notes, sentences, verdict
from portrayal.report.page.comparison import write_comparison
from portrayal.report.tables.layout import number, with_interval
from portrayal.report.tables.table import probability
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
    help="Also write a page, and the results.",
)
@force_option
def command(
    first: str, second: str, json_file: Path | None, style: str, out: Path | None, force: bool
) -> None:
    """What changes from FIRST to SECOND: two results files, or folders that hold one.

    PATH@system=NAME takes one system of a file, so that two systems of one audit can be compared. Where both were
    measured with the same seed, differences are paired: what common images share cancels. p is corrected (Holm) over
    all rows that are tested, of everybody and of groups. What is better for one group and worse for another comes
    first.
    """
    differences = compare(_load(first), _load(second), (first, second))
    if json_file is not None:
        differences.save(json_file)
    if out is not None:
        old = claim(out, subject(differences.provenance), force)
        differences.save(out)
        page = write_comparison(differences, out)
        clear(old, results_files(out))
    if style == "table":
        _show(differences)
    else:
        raw(FORMATS[style](differences))
    if out is not None and style == "table":
        say(f"The page: {page}")


def _load(source: str) -> Results:
    path, selector, system = source.rpartition("@system=")
    other = _SELECTOR.fullmatch(source)
    if other and other["name"] != "system" and not Path(source).exists():
        raise unknown_name(f"selector in '{source}'", other["name"], ["system"])
    results = Results.load(path if selector else system)
    if not selector:
        return results
    known = {str(m.system) for m in results.measurements if m.system not in (None, HUMAN)}
    name = find_name(f"system in {path}", system, known)
    return replace(results, measurements=tuple(m for m in results.measurements if m.system == name))


def _show(differences: Results) -> None:
    """A table per metric; the columns that say least give way where the terminal is narrow."""
    head = ["term", "group", "first", "second", "difference", "p", "Holm", "detectable", "change"]
    _say_what_changed(differences)
    for section in _sections(differences):
        first = section[0]
        say()
        say(" · ".join(filter(None, (first.metric, first.attribute, first.system))), style="bold")
        names = labels(section)
        rows = [_cells(m, names[m.id]) for m in section]
        for hidden in ((), (7,), (7, 5), (7, 5, 2, 3), (7, 5, 2, 3, 8)):
            shown = [index for index in range(len(head)) if index not in hidden]
            lines = [[row[index] for index in shown] for row in [head, *rows]]
            if (
                sum(max(map(len, column)) + COLUMN_GAP for column in zip(*lines, strict=True))
                <= console().width
            ):
                break
        show_table(lines[0], lines[1:], {place for place, index in enumerate(shown) if 2 <= index <= 7})
        for line in (*notes(section), *cautions(section)):
            say(line)
    paired = [m.settings["paired"] for m in differences.measurements if m.settings["paired"] is not None]
    say()
    if not paired:
        say("Nothing could be tested: one side or both have neither resamples nor standard errors.")
    elif all(paired):
        say(
            "All differences are paired: both have the same resamples, so that what common images share cancels."
        )
    else:
        say(
            f"{paired.count(False)} of {len(paired)} differences are not paired: another seed, no resamples, or "
            "resamples of one side that are all alike."
        )
    if differences.provenance.get("same_images") is False:
        say("The two were not measured on the same images, so a difference may be one between images.")
    say("detectable: the smallest true difference this much data would find with 80 % probability.", "dim")


def _say_what_changed(differences: Results) -> None:
    changed, same, untold = counts(differences)
    say("What changed", style="bold")
    for sentence in sentences(differences):
        say(f"- {sentence}")
    rows = changed + same + untold
    left = f"; {untold} cannot be compared" if untold else ""
    say(
        f"{changed} of {rows} rows changed; {same} did not change significantly{left} (Holm over all rows that are "
        "tested, .05).",
        "dim",
    )


def _sections(differences: Results) -> list[list[Measurement]]:
    found: dict[tuple[str | None, ...], list[Measurement]] = {}
    for m in differences.measurements:
        found.setdefault((m.metric, m.attribute, m.system), []).append(m)
    return list(found.values())


def _cells(m: Measurement, name: str) -> list[str]:
    p, q = probability(m.p), probability(m.q)
    first, second, detectable = (
        number(m.settings[name], m.unit) for name in ("first", "second", "detectable")
    )
    return [name, m.group or "all", first, second, with_interval(m), p, q, detectable, verdict(m)]
