"""portrayal mitigate captions"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import progress, say, show_table
from portrayal.cli.folders import claim, clear, force_option, results_files, subject
from portrayal.cli.options import (
    bootstrap_option,
    metric_options,
    names,
    seed_option,
    skip_bad_option,
    study_argument,
    systems_option,
    workers_option,
)
from portrayal.cli.study_loading import load_study
from portrayal.metrics import find_metric
from portrayal.mitigate.captions import METRICS, REMEDIES, WHERE, Remedied, remedied
from portrayal.report import pictured_images, write_page
from portrayal.report.tables.layout import number, with_interval
from portrayal.report.tables.table import probability
from portrayal.results import Measurement, Results
from portrayal.study.thumbnails import thumbnails

OF_LIC = ("classifier", "split", "seeds", "permutations", "device")
# What stands in the table of a system, where it was measured: metric, term, and whether by group too.
SHOWN = (
    ("lic", "lic_m", False),
    ("lic", "lic_d", False),
    ("lic", "lic", False),
    ("lic", "lic_excess", False),
    ("error", "right", False),
    ("error", "wrong", True),
    ("error", "neutral", True),
    ("error", "both", False),
    ("harms", "erasure.group-not-mentioned", False),
    ("quality", "cider", True),
)
BEFORE = "before"
SAID = {"erasure.group-not-mentioned": "not mentioned"}
SHORT = {"neutral where no evidence": "neutral, no evidence"}


def _lic_options(command: click.Command) -> click.Command:
    """Those that `score lic` has for what guesses, and from what."""
    known = {option.name: option for option in metric_options(find_metric("lic"))}
    for name in OF_LIC:
        known[name].help = f"LIC: {known[name].help}"
        command.params.append(known[name])
    return command


@click.command("captions")
@study_argument
@click.option(
    "--method",
    "remedies",
    multiple=True,
    type=click.Choice(REMEDIES),
    default=REMEDIES,
    show_default=True,
    help="neutral: words that name a group become words for anybody; balanced: images are kept on which groups are "
    "equally frequent, also beside frequent objects (repeatable).",
)
@systems_option
@click.option(
    "--attribute", default="gender", show_default=True, help="The attribute whose groups are named."
)
@click.option("--lexicon", metavar="NAME", help="A shipped list or a TOML file. [default: the attribute's]")
@click.option(
    "--where",
    multiple=True,
    type=click.Choice(WHERE),
    default=WHERE,
    show_default=True,
    help="neutral: where the image's references give no evidence of the group, or everywhere (repeatable).",
)
@click.option(
    "--min-share",
    type=float,
    default=0.5,
    show_default=True,
    help="There is evidence where this share of the references that name people name the group.",
)
@click.option(
    "--metrics",
    callback=names,
    metavar="A,B",
    help=f"What is measured before and after. [default: {','.join(METRICS)}; of harms the measurement "
    "erasure.group-not-mentioned]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where to write the page, the results, the rewritten captions and the lists of images. [default: nowhere]",
)
@bootstrap_option
@workers_option
@seed_option
@skip_bad_option
@force_option
def captions(
    study: Path,
    remedies: tuple[str, ...],
    metrics: list[str] | None,
    out: Path | None,
    skip_bad: bool,
    force: bool,
    **options: Any,
) -> None:
    """Rewrite the captions of STUDY with neutral words, keep a balanced set of its images, and measure every system
    before and after.

    A remedied system is a further system of the results, and the number after less the number before is a row of its
    own, with a paired interval. DIR gets index.html, results.json, evidence.parquet, captions/SYSTEM.jsonl and
    images/SET.csv.
    """
    read = load_study(study, skip_bad)
    systems = options["systems"]
    about = subject({"study": {"digest": (read.only(systems) if systems else read).digest}, "remedied": {}})
    old = claim(out, about, force) if out is not None else []
    with progress("mitigate captions") as report_progress:
        made = remedied(
            read, remedies=remedies, metrics=metrics or METRICS, progress=report_progress, **options
        )
    if out is not None and read.pictures:
        pictures = thumbnails(read.pictures, pictured_images(made.results))
        made = replace(made, results=replace(made.results, pictures=pictures))
    _show(made)
    if out is not None:
        written = made.save(out)
        page = write_page(made.results, out)
        clear(old, results_files(out, pictures=bool(made.results.pictures.height), more=written))
        for path in written[1:]:
            say(f"Written: {path}")
        say(f"The page, where every number opens its evidence: {page}")


_lic_options(captions)


def _show(made: Remedied) -> None:
    """What each remedy changed, then a table for each system: every number before and after, and by how much."""
    rows = made.results.measurements
    _show_remedies(made)
    for original in dict.fromkeys(made.before.values()):
        variants = [BEFORE, *(name for name, old in made.before.items() if old == original)]
        lines = []
        for metric, term, grouped in SHOWN:
            found = [
                m for m in rows
                if (m.metric, m.term, m.item) == (metric, term, None) and m.unit != "count"
                and (m.group is None or grouped)
            ]  # fmt: skip
            # Where a metric has several settings (splits of LIC), the first one is shown; the page has the others.
            groups = dict.fromkeys(m.group for m in found)
            for group in groups:
                for variant in variants:
                    system = original if variant == BEFORE else variant
                    m = next((m for m in found if (m.system, m.group) == (system, group)), None)
                    if m is None:
                        continue
                    said = variant.removeprefix(f"{original} (").removesuffix(")")
                    label = ", ".join(filter(None, (SAID.get(term, term), group)))
                    change = _change(made.results, m) if variant != BEFORE else None
                    lines.append(
                        [
                            label if variant == BEFORE else "",
                            SHORT.get(said, said),
                            with_interval(m),
                            _told(change) if change is not None else "",
                            probability(change.p) if change is not None else "",
                        ]
                    )
        if lines:
            say()
            say(f"{original}, before and after", "bold")
            show_table(["number", "captions", "value", "change", "p"], lines, {4})
    say()
    for skip in made.results.provenance["skipped"]:
        say(f"Not measured: {skip['metric']}. {skip['reason']}", "dim")
    say(
        "Intervals of changes are paired. A caption that names no group cannot name a wrong one: read wrong with "
        "right, neutral and not mentioned (what people say of a group and the caption does not).",
        "dim",
    )


def _change(results: Results, m: Measurement) -> Measurement | None:
    split = m.settings.get("split")
    items = (f"{m.metric}: {m.term}", f"{m.metric}: {m.term} ({split})")
    return next(
        (
            row for row in results.measurements
            if row.term == "change" and (row.system, row.group) == (m.system, m.group) and row.item in items
        ),
        None,
    )  # fmt: skip


def _told(change: Measurement) -> str:
    if change.value is None:
        return "undefined"
    signed: Callable[[float | None], str] = lambda value: (  # noqa: E731
        ("+" if value is not None and value > 0 else "") + number(value, change.unit)
    )
    if change.low is None or change.high is None:
        return signed(change.value)
    return f"{signed(change.value)} [{signed(change.low)}, {signed(change.high)}]"


def _show_remedies(made: Remedied) -> None:
    rows = [m for m in made.results.measurements if m.metric == "remedy" and m.item is None]
    changed = [m for m in rows if m.term == "changed" and m.group is None]
    if changed:
        counts = {(m.system, m.term): m.value for m in rows if m.group is None}
        least = next((m.settings["min_share"] for m in changed if m.settings["min_share"] is not None), None)
        say()
        say("Neutral words", "bold")
        if least is not None:
            say(
                f"Evidence of a group: {least:g} or more of an image's references that name people name it. "
                f"Words: {changed[0].settings['lexicon']}."
            )
        table = []
        for m in changed:
            captions = round((m.value or 0) * (m.n or 0))
            words, left = (f"{counts[m.system, term] or 0:,.0f}" for term in ("words", "left"))
            table.append([str(m.system), f"{captions:,} of {m.n:,}", number(m.value, m.unit), words, left])
        show_table(
            ["system", "captions changed", "share", "words changed", "no neutral word"], table, {1, 2, 3, 4}
        )
    kept = [m for m in rows if m.term == "kept" and m.group is None]
    if kept:
        values = {(m.system, m.term): m for m in rows if m.group is None}
        say()
        say("Images", "bold")
        table = []
        for m in kept:
            groups = [g for g in rows if g.term == "kept" and g.system == m.system and g.group is not None]
            apart = [with_interval(values[m.system, term]) for term in ("groups-apart", "objects-apart")]
            told = ", ".join(f"{g.value or 0:,.0f} {g.group}" for g in groups)
            table.append([str(m.system), f"{m.value or 0:,.0f} of {m.n:,}", told, *apart])
        show_table(["set", "images", "of each group", "groups apart", "objects apart"], table, {1, 3, 4})
