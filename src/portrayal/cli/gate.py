"""portrayal gate"""

from __future__ import annotations

import json
from pathlib import Path

import click

from portrayal.cli.console import raw, say
from portrayal.gating import BOUNDS, about, as_dicts, as_junit, judge, parse_rule
from portrayal.results import Results


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("rules", nargs=-1, required=True, metavar='"METRIC:TERM[@NAME=VALUE,...] <= X"...')
@click.option(
    "--on", type=click.Choice(BOUNDS), default="value", show_default=True, help="What must keep the rule."
)
@click.option(
    "--allow-undefined", is_flag=True, help="Let undefined numbers, and rules that match no row, pass."
)
@click.option(
    "--format", "style", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True
)
@click.pass_context
def command(
    ctx: click.Context, results: Path, rules: tuple[str, ...], on: str, allow_undefined: bool, style: str
) -> None:
    """Check RESULTS against rules. Every row that a rule matches must keep it; exit code 1 when one does not.

    A selector limits a rule: error:wrong@system=oscar,group=female <= 0.05. It may name system, attribute, group,
    item, unit, or a setting; group=all means the row of all people; a name with a comma stands between quotation
    marks.
    """
    verdicts = judge(Results.load(results), [parse_rule(rule) for rule in rules], on, allow_undefined)
    if style == "json":
        raw(json.dumps(as_dicts(verdicts), indent=1, ensure_ascii=False) + "\n")
    elif style == "junit":
        raw(as_junit(verdicts))
    else:
        for v in verdicts:
            where = about(v)
            say(
                f"{'pass' if v.passed else 'FAIL'}  {v.rule.text}  {f'[{where}] ' if where else ''}{v.sentence}"
            )
        failed = sum(not v.passed for v in verdicts)
        say(f"{len(verdicts) - failed} of {len(verdicts)} pass.")
    ctx.exit(0 if all(v.passed for v in verdicts) else 1)
