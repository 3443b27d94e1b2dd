"""portrayal gate"""

from __future__ import annotations

import json
from pathlib import Path

import click

from portrayal.cli.console import raw
from portrayal.cli.verdicts import show_verdicts
from portrayal.errors import PortrayalError
from portrayal.gating import BOUNDS, EXAMPLE, Rule, as_dicts, as_junit, judge, parse_rule, read_rules
from portrayal.results import Results


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("rules", nargs=-1, metavar='["METRIC:TERM[@NAME=VALUE,...] <= X"]...')
@click.option(
    "--rules",
    "files",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Also check the rules of this TOML file: [[rule]] tables with check, and optionally on, reason and "
    "allow_undefined. May be given several times.",
)
@click.option(
    "--on",
    type=click.Choice(BOUNDS),
    default="value",
    show_default=True,
    help="Number that must keep a rule: the value, or the low or high end of its 95 % CI. A rule of a file that "
    "sets its own is not changed.",
)
@click.option(
    "--allow-undefined", is_flag=True, help="Let undefined numbers, and rules that match no row, pass."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="What to print; build servers read junit.",
)
@click.pass_context
def command(
    ctx: click.Context,
    results: Path,
    rules: tuple[str, ...],
    files: tuple[Path, ...],
    on: str,
    allow_undefined: bool,
    style: str,
) -> None:
    """Check RESULTS, a results file or its folder, against rules. Every row that a rule matches must keep it.

    \b
    Examples:
      portrayal gate audit "error:error <= 0.05"
      portrayal gate audit "error:wrong@system=oscar,group=female <= 0.05" --on high
      portrayal gate audit --rules rules.toml --format junit > gate.xml

    The relation is one of <=, <, >=, >, ==. What follows @ limits the rule to rows of that system, attribute, group,
    item, unit or setting (split, stage, k); without it the rule is for all of them. group=all is the row of all people,
    and item=all that of all words or objects. Human captions are checked only with @system=human. Upper and lower case
    are the same. A name with a comma stands between quotation marks: item="a, b".

    A folder made by `portrayal compare OLD NEW --out DIR` can be checked too: its values are NEW - OLD.

    Exit code 0: all rules are kept. 1: a row breaks its rule, is undefined, or does not exist. 2: a rule cannot be
    read, or names something unknown. Without a rule, the metrics and terms of RESULTS are listed.
    """
    wanted = _rules(rules, files)
    loaded = Results.load(results)
    if not wanted:
        raise PortrayalError(_no_rule(loaded))
    verdicts = judge(loaded, wanted, on, allow_undefined, _catalogue(loaded, wanted))
    if style == "json":
        raw(json.dumps(as_dicts(verdicts), indent=1, ensure_ascii=False) + "\n")
    elif style == "junit":
        raw(as_junit(verdicts))
    else:
        show_verdicts(verdicts)
    ctx.exit(0 if all(v.passed for v in verdicts) else 1)


def _rules(texts: tuple[str, ...], files: tuple[Path, ...]) -> list[Rule]:
    """The rules of the command line and of the files, all read before one is judged."""
    rules: list[Rule] = []
    wrong: list[str] = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except PortrayalError as error:
            hint = f" Did you mean --rules {text}?" if text.endswith(".toml") else ""
            wrong.append(f"{error}{hint}")
    for file in files:
        try:
            rules += read_rules(file)
        except PortrayalError as error:
            wrong.append(str(error))
    if wrong:
        raise PortrayalError("\n".join(wrong))
    return rules


def _no_rule(results: Results) -> str:
    """What to type: the metrics and terms that a rule could be about."""
    terms: dict[str, dict[str, None]] = {}
    for m in results.measurements:
        terms.setdefault(m.metric, {})[m.term] = None
    return "\n".join(
        [
            f'There is no rule to check: give one, such as "{EXAMPLE}", or a file of them with --rules FILE.',
            "These results hold:" if terms else "These results hold no row.",
            *(f"  {metric}: {', '.join(names)}" for metric, names in terms.items()),
        ]
    )


def _catalogue(results: Results, rules: list[Rule]) -> dict[str, list[str]]:
    """Metrics and terms of the program, loaded only where a rule names one that has no row."""
    rows = {(m.metric, m.term) for m in results.measurements}
    if all((rule.metric, rule.term) in rows for rule in rules):
        return {}
    from portrayal.metrics import CARDS

    return {name: [term.name for term in card.terms] for name, card in CARDS.items()}
