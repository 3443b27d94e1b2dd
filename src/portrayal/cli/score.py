"""portrayal score"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from portrayal.auditing import score
from portrayal.cli.console import echo, progress, write_raw
from portrayal.cli.options import (
    FORMATS,
    SHARED_OPTIONS,
    attribute_option,
    metric_options,
    output_options,
    seed_option,
    skip_bad_option,
    study_argument,
    systems_option,
    workers_option,
)
from portrayal.cli.study_loading import load_study
from portrayal.cli.tables import print_cautions, print_results
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.results import Results


class _Metrics(click.Group):
    """One subcommand per metric, with that metric's own options."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(METRICS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _command(find_metric(cmd_name))


@click.group("score", cls=_Metrics, subcommand_metavar="METRIC STUDY [OPTIONS]")
def command() -> None:
    """Run one metric on a study and print the results; `portrayal score METRIC --help` lists its options."""


def _command(metric: Metric) -> click.Command:
    @click.command(metric.name, help=f"{metric.card.question}\n\n{metric.card.formula}")
    @study_argument
    @attribute_option
    @systems_option
    @seed_option
    @skip_bad_option
    @output_options
    def run(
        study: Path,
        attribute: str | None,
        systems: list[str] | None,
        seed: int,
        skip_bad: bool,
        json_file: Path | None,
        style: str,
        workers: int = 1,
        stream: bool = False,
        **options: Any,
    ) -> None:
        shared: dict[str, Any] = {
            "attribute": attribute,
            "systems": systems,
            "seed": seed,
            "workers": workers,
        }
        shared_options = {"skip_bad": skip_bad}
        options |= {name: shared_options[name] for name in SHARED_OPTIONS if name in metric.options}
        if stream and metric.stream is not None:
            with progress(metric.name) as report_progress:
                results = metric.stream(study, **shared, progress=report_progress, **options)
        else:
            loaded = load_study(study, skip_bad)
            with (
                progress(metric.name)
                if workers > 1 or metric.sources_together(options)
                else nullcontext() as report_progress
            ):
                results = score(loaded, metric, **shared, progress=report_progress, **options)
        _print_score(results, json_file, style)

    run.params += metric_options(metric)
    if metric.stream is not None:
        run.params.append(
            click.Option(
                ["--stream"],
                is_flag=True,
                help="Read the study in parts (study.toml lists several caption files) in bounded memory; "
                "measurements that need all images at once are skipped.",
            )
        )
    return workers_option(run) if metric.slow else run


def _print_score(results: Results, json_file: Path | None, style: str) -> None:
    if json_file is not None:
        results.save(json_file)
    if style == "table":
        print_results(results)
        for skip in results.provenance.get("skipped", ()):
            echo(f"Not measured: {skip['metric']}, {skip['attribute']}. {skip['reason']}")
        echo()
        print_cautions(results)
    else:
        write_raw(FORMATS[style](results))
