"""portrayal mitigate captions"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portrayal.cli.console import echo, print_table, progress
from portrayal.cli.folders import claim_folder, force_option, remove_stale, results_files, results_subject
from portrayal.cli.options import (
    bootstrap_option,
    comma_separated,
    metric_options,
    seed_option,
    skip_bad_option,
    study_argument,
    systems_option,
    workers_option,
)
from portrayal.cli.study_loading import load_study
from portrayal.metrics import CARDS, Card, Term, find_metric
from portrayal.mitigate.captions import (
    CAPTION_METHODS,
    CARD,
    METRICS,
    WHERE,
    CaptionMitigation,
    compared_metrics,
    mitigate_captions,
)
from portrayal.report import thumbnail_images, write_page
from portrayal.report.tables.layout import format_number, format_with_ci
from portrayal.report.tables.table import format_p
from portrayal.results import Measurement, Results
from portrayal.study.thumbnails import thumbnails

BEFORE = "before"
SHORT_LABELS = {"neutral where no evidence": "neutral, no evidence"}


def _add_metric_options(command: click.Command) -> None:
    """Add the options of `score METRIC` that the metrics' cards offer here, such as the choice of a classifier."""
    for metric, description in compared_metrics():
        options = {option.name: option for option in metric_options(find_metric(metric))}
        for name in description.offered_options:
            options[name].help = f"{metric.upper()}: {options[name].help}"
            command.params.append(options[name])


def _default_metrics() -> str:
    """The metrics that are measured by default, and to which measurements they are limited."""
    limits = [
        f"; of {metric} the {option} {', '.join(value)}"
        for metric, description in compared_metrics()
        for option, value in description.options.items()
        if isinstance(value, tuple)
    ]
    return f"{','.join(METRICS)}{''.join(limits)}"


@click.command("captions")
@study_argument
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(CAPTION_METHODS),
    default=CAPTION_METHODS,
    show_default=True,
    help="Mitigation method. neutral: replace words that name a group with neutral words; balanced: keep images on "
    "which groups are equally frequent, overall and with frequent objects (repeatable).",
)
@systems_option
@click.option(
    "--attribute", default="gender", show_default=True, help="Attribute whose groups are mitigated."
)
@click.option(
    "--lexicon",
    metavar="NAME",
    help="Lexicon of group words: a shipped one or a TOML file. [default: the attribute's]",
)
@click.option(
    "--where",
    multiple=True,
    type=click.Choice(WHERE),
    default=WHERE,
    show_default=True,
    help="For neutral: rewrite captions whose image's references give no evidence of the group, or all captions "
    "(repeatable).",
)
@click.option(
    "--min-share",
    type=float,
    default=0.5,
    show_default=True,
    help="Minimum share, among an image's references that name people, that name the group to count as evidence.",
)
@click.option(
    "--metrics",
    callback=comma_separated,
    metavar="A,B",
    help=f"Metrics to measure before and after, separated by commas. [default: {_default_metrics()}]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Output folder of the page, the results, the captions and the lists of images. [default: print only]",
)
@bootstrap_option
@workers_option
@seed_option
@skip_bad_option
@force_option
def captions(
    study: Path,
    methods: tuple[str, ...],
    metrics: list[str] | None,
    out: Path | None,
    skip_bad: bool,
    force: bool,
    **options: Any,
) -> None:
    """Rewrite the captions of STUDY with neutral words, select a balanced subset of its images, and measure every
    system before and after.

    Each mitigated system is another system in the results, and each difference after - before is a row of its own, with
    a paired CI. Writes index.html, results.json, evidence.parquet, captions/SYSTEM.jsonl and images/SET.csv to DIR.
    """
    loaded = load_study(study, skip_bad)
    systems = options["systems"]
    subject = results_subject(
        {"study": {"digest": (loaded.select_systems(systems) if systems else loaded).digest}, "mitigated": {}}
    )
    stale = claim_folder(out, subject, force) if out is not None else []
    with progress("mitigate captions") as report_progress:
        mitigation = mitigate_captions(
            loaded, methods=methods, metrics=metrics or METRICS, progress=report_progress, **options
        )
    if out is not None and loaded.image_files:
        images = thumbnails(loaded.image_files, thumbnail_images(mitigation.results))
        mitigation = replace(mitigation, results=replace(mitigation.results, thumbnails=images))
    _print_mitigation(mitigation)
    if out is not None:
        written = mitigation.save(out)
        page = write_page(mitigation.results, out)
        remove_stale(
            stale, results_files(out, with_images=bool(mitigation.results.thumbnails.height), more=written)
        )
        for path in written[1:]:
            echo(f"Written: {path}")
        echo(f"The page, where every number opens its evidence: {page}")


_add_metric_options(captions)


def _print_mitigation(mitigation: CaptionMitigation) -> None:
    """Print what each method changed, then a table per system: each number before and after, and the difference."""
    rows = mitigation.results.measurements
    _print_methods(mitigation)
    for original in dict.fromkeys(mitigation.original_systems.values()):
        variants = [BEFORE, *(name for name, old in mitigation.original_systems.items() if old == original)]
        lines = []
        for metric, term, by_group in _printed_terms():
            measured = [
                m for m in rows
                if (m.metric, m.term, m.item) == (metric, term.name, None) and m.unit != "count"
                and (m.group is None or by_group)
            ]  # fmt: skip
            # If a metric has several settings (such as splits), the first one is shown; the page has the others.
            groups = dict.fromkeys(m.group for m in measured)
            for group in groups:
                for variant in variants:
                    system = original if variant == BEFORE else variant
                    m = next((m for m in measured if (m.system, m.group) == (system, group)), None)
                    if m is None:
                        continue
                    variant_label = variant.removeprefix(f"{original} (").removesuffix(")")
                    label = ", ".join(filter(None, (term.label or term.name, group)))
                    change = _change(mitigation.results, m) if variant != BEFORE else None
                    lines.append(
                        [
                            label if variant == BEFORE else "",
                            SHORT_LABELS.get(variant_label, variant_label),
                            format_with_ci(m),
                            _format_change(change) if change is not None else "",
                            format_p(change.p) if change is not None else "",
                        ]
                    )
        if lines:
            echo()
            echo(f"{original}, before and after", "bold")
            print_table(["number", "captions", "value", "change", "p"], lines, {4})
    echo()
    for skip in mitigation.results.provenance["skipped"]:
        echo(f"Not measured: {skip['metric']}. {skip['reason']}", "dim")
    echo(
        "Intervals of changes are paired. A caption that names no group cannot name a wrong one: read wrong with "
        "right, neutral and not mentioned (references name a group and the caption does not).",
        "dim",
    )


def _printed_terms() -> Iterator[tuple[str, Term, bool]]:
    """Yield the rows of the table of a system: metric, term, and whether also by group. What it costs comes last."""
    costs_last = sorted(compared_metrics(), key=lambda metric: _is_quality(CARDS[metric[0]]))
    for metric, description in costs_last:
        for name in description.printed_terms:
            yield metric, CARDS[metric].term(name), name in description.printed_by_group


def _is_quality(card: Card) -> bool:
    return card.trade_off is not None and not card.trade_off.is_bias


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


def _format_change(change: Measurement) -> str:
    if change.value is None:
        return "undefined"
    signed: Callable[[float | None], str] = lambda value: (  # noqa: E731
        ("+" if value is not None and value > 0 else "") + format_number(value, change.unit)
    )
    if change.low is None or change.high is None:
        return signed(change.value)
    return f"{signed(change.value)} [{signed(change.low)}, {signed(change.high)}]"


def _print_methods(mitigation: CaptionMitigation) -> None:
    rows = [m for m in mitigation.results.measurements if m.metric == CARD.name and m.item is None]
    changed_rows = [m for m in rows if m.term == "changed" and m.group is None]
    if changed_rows:
        counts = {(m.system, m.term): m.value for m in rows if m.group is None}
        min_share = next(
            (m.settings["min_share"] for m in changed_rows if m.settings["min_share"] is not None), None
        )
        echo()
        echo("Neutral words", "bold")
        if min_share is not None:
            echo(
                f"Evidence of a group: {min_share:g} or more of an image's references that name people name it. "
                f"Words: {changed_rows[0].settings['lexicon']}."
            )
        table = []
        for m in changed_rows:
            captions = round((m.value or 0) * (m.n or 0))
            words, left = (f"{counts[m.system, term] or 0:,.0f}" for term in ("words", "left"))
            table.append(
                [str(m.system), f"{captions:,} of {m.n:,}", format_number(m.value, m.unit), words, left]
            )
        print_table(
            ["system", "captions changed", "share", "words changed", "no neutral word"], table, {1, 2, 3, 4}
        )
    kept_rows = [m for m in rows if m.term == "kept" and m.group is None]
    if kept_rows:
        values = {(m.system, m.term): m for m in rows if m.group is None}
        echo()
        echo("Images", "bold")
        table = []
        for m in kept_rows:
            groups = [g for g in rows if g.term == "kept" and g.system == m.system and g.group is not None]
            distances = [format_with_ci(values[m.system, term]) for term in ("groups-apart", "objects-apart")]
            group_counts = ", ".join(f"{g.value or 0:,.0f} {g.group}" for g in groups)
            table.append([str(m.system), f"{m.value or 0:,.0f} of {m.n:,}", group_counts, *distances])
        print_table(["set", "images", "of each group", "groups apart", "objects apart"], table, {1, 3, 4})
